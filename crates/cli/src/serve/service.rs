//! What is served, and where.

use std::{sync::Arc, time::Duration};

use ebbtide::{
    App,
    lifecycle::{Component, Gate},
    reactor::Handle,
};

use super::metrics::Metrics;
use crate::engine::Engine;

/// What all loops of a server share.
pub(super) struct Service {
    pub(super) app: App,
    /// One for each loop, and at least one: the plans are the same everywhere.
    pub(super) sites: Box<[Site]>,
    /// Those that are answered at the same time; there is a limit.
    pub(super) requests: Gate,
    /// That limit. Nodes that go on after their run count, too.
    pub(super) requests_max: usize,
    pub(super) body_max: usize,
    /// How long a client may take to send a body: it has a place among the requests meanwhile.
    pub(super) body_timeout: Duration,
}

/// What is used on one loop, and there alone, but for reading its counters.
pub(super) struct Site {
    pub(super) events: Handle,
    pub(super) engines: Vec<Engine>,
    pub(super) metrics: Metrics,
    /// Each connection has a permit.
    pub(super) connections: Gate,
}

impl Service {
    /// The names of the plans.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.sites[0].engines.iter().map(Engine::name)
    }

    /// How many connections there are.
    pub(super) fn connections(&self) -> usize {
        self.sites.iter().map(|site| site.connections.in_flight()).sum()
    }

    /// How many nodes go on after their deadline. What they hold is held as by a request.
    pub(super) fn late_now(&self) -> usize {
        self.app.runners().in_flight()
    }

    /// How many nodes have ended after their deadline.
    pub(super) fn late(&self) -> u64 {
        let engines = self.sites.iter().flat_map(|site| &site.engines);
        engines.map(Engine::late).sum::<u64>() + self.app.runners().balance().late
    }

    /// Where there are the fewest connections.
    pub(super) fn quietest(self: &Arc<Self>) -> Desk {
        let nth = (0..self.sites.len()).min_by_key(|nth| self.sites[*nth].connections.in_flight());
        Desk { service: self.clone(), nth: nth.unwrap_or(0) }
    }
}

/// One of the sites, with what all share.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) service: Arc<Service>,
    nth: usize,
}

impl Desk {
    pub(super) fn site(&self) -> &Site {
        &self.service.sites[self.nth]
    }
}

impl Site {
    pub(super) fn new(events: Handle, engines: Vec<Engine>) -> Self {
        Self { events, metrics: Metrics::new(engines.len()), engines, connections: Gate::new() }
    }
}
