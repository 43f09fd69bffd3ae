//! What whoever registers something gets back.

use std::{fmt, sync::Arc};

use crate::{desk::Id, shared::Shared};

/// A component's place at its coordinator. Dropping it takes the component out again, unless its stop has begun.
#[must_use = "dropping it takes the component out again: hold it, or say `keep()`"]
pub struct Registration {
    /// None once it is to be kept.
    shared: Option<Arc<Shared>>,
    id: Id,
}

impl Registration {
    pub(crate) fn new(shared: &Arc<Shared>, id: Id) -> Self {
        Self { shared: Some(shared.clone()), id }
    }

    /// Leaves the component with its coordinator for good.
    pub fn keep(mut self) {
        self.shared = None;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let entry = self.shared.as_ref().and_then(|shared| shared.desk().unregister(self.id));
        // Foreign code, dropped without the lock.
        drop(entry);
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").finish_non_exhaustive()
    }
}

/// A callback's place at its coordinator, for [`remove_callback`](crate::Coordinator::remove_callback). Dropping it
/// does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackId(pub(crate) Id);

/// A component was not registered: there is one of that name.
pub struct Duplicate<C = ()> {
    /// The name.
    pub name: Arc<str>,
    /// What was to be registered, if it was a component.
    pub component: C,
}

impl<C> Duplicate<C> {
    /// The same, without what was to be registered.
    pub(crate) fn without(self) -> Duplicate {
        Duplicate { name: self.name, component: () }
    }
}

impl<C> fmt::Display for Duplicate<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a component {:?} is registered already: give this one another name", self.name)
    }
}

impl<C> fmt::Debug for Duplicate<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Duplicate").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<C> std::error::Error for Duplicate<C> {}
