//! What a node gets of another one.

use std::{borrow::Borrow, fmt, ops::Deref, sync::Arc};

/// The output of another node, or of a whole plan. It is the output itself for its last consumer; for others it is
/// lent, to a node that is done with it when it returns, or shared. Nothing was copied but numbers and the like.
pub struct Input<'a, T>(Held<'a, T>);

enum Held<'a, T> {
    Own(T),
    Lent(&'a T),
    Shared(Arc<T>),
}

impl<'a, T> Input<'a, T> {
    pub(crate) const fn own(output: T) -> Self {
        Self(Held::Own(output))
    }

    pub(crate) const fn lent(output: &'a T) -> Self {
        Self(Held::Lent(output))
    }

    pub(crate) const fn shared(output: Arc<T>) -> Self {
        Self(Held::Shared(output))
    }

    /// The output, unless others still hold it. Of numbers and the like everybody has a copy.
    ///
    /// # Errors
    /// Gives this back if others do.
    pub fn try_into_inner(self) -> Result<T, Self> {
        match self.0 {
            Held::Own(output) => Ok(output),
            Held::Lent(_) => Err(self),
            Held::Shared(output) => Arc::try_unwrap(output).map_err(Self::shared),
        }
    }

    /// The output, or a copy of it if others still hold it.
    #[must_use]
    pub fn into_inner(self) -> T
    where
        T: Clone,
    {
        match self.0 {
            Held::Own(output) => output,
            Held::Lent(output) => output.clone(),
            Held::Shared(output) => Arc::unwrap_or_clone(output),
        }
    }
}

impl<T> Deref for Input<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Held::Own(output) => output,
            Held::Lent(output) => output,
            Held::Shared(output) => output,
        }
    }
}

impl<T> Borrow<T> for Input<'_, T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T: fmt::Debug> fmt::Debug for Input<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for Input<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
