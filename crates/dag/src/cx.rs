//! What a node knows of the run that it is part of.

use std::{any::Any, collections::BTreeMap, fmt, sync::Arc, time::Duration};

use ebbtide_lifecycle::time::Deadline;

use crate::outline::Info;

/// The run that a node is part of: its request, its deadline, and what the engine was bound to.
///
/// It is a view: an async node clones what it needs, before its future begins.
pub struct Cx<'a, R> {
    pub(crate) terms: &'a Terms<R>,
    pub(crate) node: &'a Info,
    pub(crate) attempt: u32,
}

/// What all nodes of a run have in common.
pub(crate) struct Terms<R> {
    pub(crate) request: Arc<R>,
    pub(crate) deadline: Deadline,
    /// How long a node may take that has no timeout of its own.
    pub(crate) node_timeout: Option<Duration>,
    pub(crate) endpoints: Arc<Endpoints>,
}

/// What an engine's nodes reach outside, by name. There are few: a hash of a name costs more than to compare some.
#[derive(Default)]
pub(crate) struct Endpoints(pub(crate) BTreeMap<Arc<str>, Arc<dyn Any + Send + Sync>>);

impl<'a, R> Cx<'a, R> {
    /// What the run was asked for. Clone the handle to keep it.
    #[must_use]
    pub fn request(&self) -> &'a Arc<R> {
        &self.terms.request
    }

    /// The request's deadline. The node may have [less time](Cx::timeout).
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        self.terms.deadline
    }

    /// How long the node may take, all attempts together, if there is a limit beside the request's deadline.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.node.timeout.or(self.terms.node_timeout)
    }

    /// The node's name.
    #[must_use]
    pub fn node(&self) -> &'a Arc<str> {
        &self.node.name
    }

    /// Which attempt this is, from 1 on.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// What the engine was [bound](crate::Env::endpoint) to under this name, if it is a `T`.
    #[must_use]
    pub fn endpoint<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        self.terms.endpoints.0.get(name).and_then(|endpoint| endpoint.clone().downcast().ok())
    }
}

impl<R> Clone for Cx<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Cx<'_, R> {}

impl<R> fmt::Debug for Cx<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx")
            .field("node", &self.node.name)
            .field("attempt", &self.attempt)
            .field("deadline", &self.terms.deadline)
            .finish_non_exhaustive()
    }
}
