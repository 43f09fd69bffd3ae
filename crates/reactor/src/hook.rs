//! What is told of panics that no handle is there to get.

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use ebbtide_lifecycle::blame::Origin;

use crate::task::panic_message;

/// A panic that the loop caught, and that no [`Task`](crate::Task) handle is there to get.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct PanicReport<'a> {
    /// The name of the loop.
    pub loop_name: &'a str,
    /// Where the work was submitted, and what it is called.
    pub origin: &'a Origin,
    /// What it panicked with.
    pub panic: &'a (dyn Any + Send),
}

impl fmt::Debug for PanicReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PanicReport({self})")
    }
}

impl fmt::Display for PanicReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = panic_message(self.panic);
        write!(f, "work of loop {:?} submitted at {} panicked: {message}", self.loop_name, self.origin)
    }
}

/// Called with each such panic; prints it unless told otherwise.
pub(crate) struct PanicHook(Box<dyn Fn(&PanicReport<'_>) + Send + Sync>);

impl PanicHook {
    pub(crate) fn new(hook: impl Fn(&PanicReport<'_>) + Send + Sync + 'static) -> Self {
        Self(Box::new(hook))
    }

    /// A hook that panics itself is reported by std's own, and by nobody else.
    pub(crate) fn call(&self, report: &PanicReport<'_>) {
        contain(|| (self.0)(report));
    }
}

/// How often a panic may lead to another one, in the drop of what it panicked with, before that is leaked.
const PANICS_IN_A_ROW_MAX: usize = 8;

/// Does `act`, which is foreign code, and lets no panic of it get out, nor of what it panicked with.
pub(crate) fn contain<T>(act: impl FnOnce() -> T) -> Option<T> {
    let mut payload = match catch_unwind(AssertUnwindSafe(act)) {
        Ok(done) => return Some(done),
        Err(payload) => payload,
    };
    for _ in 0..PANICS_IN_A_ROW_MAX {
        match catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            Ok(()) => return None,
            Err(again) => payload = again,
        }
    }
    std::mem::forget(payload);
    None
}

impl Default for PanicHook {
    fn default() -> Self {
        Self::new(|report| eprintln!("ebbtide: {report}"))
    }
}

impl fmt::Debug for PanicHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PanicHook")
    }
}
