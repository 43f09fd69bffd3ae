//! What is told of panics that no handle is there to get.

use std::fmt;

use ebbtide_lifecycle::{Panicked, blame::Origin, contain};

/// A panic that the loop caught, and that no [`Task`](crate::Task) handle is there to get.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct PanicReport<'a> {
    /// The name of the loop.
    pub loop_name: &'a str,
    /// Where the work was submitted, and what it is called.
    pub origin: &'a Origin,
    /// What it panicked with.
    pub panic: &'a Panicked,
}

impl fmt::Debug for PanicReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PanicReport({self})")
    }
}

impl fmt::Display for PanicReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.panic.message();
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
        drop(contain(|| (self.0)(report)));
    }
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
