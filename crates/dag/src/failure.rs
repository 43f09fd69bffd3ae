//! What went wrong in a node, whatever it was.

use std::{error::Error, fmt};

/// Why a node failed: any error, boxed. `?` makes one of whatever error a node meets; of errors that are boxed already,
/// and of texts, `.map_err(Failure::new)?` does.
pub struct Failure(Box<dyn Error + Send + Sync>);

impl Failure {
    /// A failure that says `why`.
    pub fn new(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(why.into())
    }

    /// The error itself.
    #[must_use]
    pub fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

// Not an `Error` itself, so that every error can become one.
impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The error, and what caused it.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
