//! Panics as values: caught where foreign code is called, and handed to whoever waits for it.

use std::{
    any::Any,
    fmt, mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Mutex, PoisonError},
};

/// How often a panic may lead to another one, in the drop of what it panicked with, before that is leaked.
const PANICS_IN_A_ROW_MAX: usize = 8;

/// Does `act`, which is foreign code, and gives its panic as a value.
///
/// # Errors
/// [`Panicked`], if it panicked.
pub fn contain<T>(act: impl FnOnce() -> T) -> Result<T, Panicked> {
    if cfg!(any(loom, shuttle)) {
        // What a model has to say comes as a panic.
        return Ok(act());
    }
    catch_unwind(AssertUnwindSafe(act)).map_err(Panicked::new)
}

/// What foreign code panicked with. Dropping it lets no panic out, not even that of the payload's own drop.
pub struct Panicked {
    /// Boxed, because it is seldom there, and much that is often there has room for it.
    inner: Box<Inner>,
}

struct Inner {
    /// In a lock only because it is not `Sync`, and errors should be; there until it is taken out.
    payload: Mutex<Option<Payload>>,
    message: Option<String>,
}

type Payload = Box<dyn Any + Send>;

impl Panicked {
    /// From what [`catch_unwind`] or a thread's `join` gave.
    #[must_use]
    pub fn new(payload: Payload) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Self { inner: Box::new(Inner { payload: Mutex::new(Some(payload)), message }) }
    }

    /// The text of the panic, where it has one.
    #[must_use]
    pub fn message(&self) -> &str {
        self.inner.message.as_deref().unwrap_or("no message")
    }

    /// What it panicked with.
    #[must_use]
    pub fn into_payload(self) -> Payload {
        self.take().unwrap_or_else(|| Box::new(()))
    }

    /// Goes on panicking on this thread.
    pub fn resume(self) -> ! {
        resume_unwind(self.into_payload())
    }

    fn take(&self) -> Option<Payload> {
        self.inner.payload.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Panicked {
    fn drop(&mut self) {
        let Some(mut payload) = self.take() else { return };
        for _ in 0..PANICS_IN_A_ROW_MAX {
            match catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                Ok(()) => return,
                Err(again) => payload = again,
            }
        }
        mem::forget(payload);
    }
}

impl fmt::Debug for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panicked").field(&self.message()).finish()
    }
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it panicked: {}", self.message())
    }
}

impl std::error::Error for Panicked {}
