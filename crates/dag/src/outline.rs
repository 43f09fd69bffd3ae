//! What is known of a plan's nodes without a look at what they do: shared by the plan and the reports of its runs.

use std::{panic::Location, sync::Arc, time::Duration};

use crate::{
    class::Class,
    graph::{Kind, OnTimeout},
    inputs::Edge,
    retry::Retry,
};

/// The nodes of a plan, and what each depends on.
pub(crate) struct Outline {
    pub(crate) nodes: Box<[Info]>,
    /// The inputs of each node.
    pub(crate) inputs: Rows,
    /// Those among them that a node can do without.
    pub(crate) optional: Rows,
}

/// What is known of a node, but for what it does.
pub(crate) struct Info {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Kind,
    /// What it runs, in a plan from data.
    pub(crate) op: Option<Arc<str>>,
    pub(crate) site: &'static Location<'static>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_timeout: Option<OnTimeout>,
    pub(crate) retry: Option<Retry>,
    pub(crate) class: Option<Class>,
    pub(crate) endpoints: Vec<Arc<str>>,
}

/// Some nodes for each node, one row after the other.
pub(crate) struct Rows {
    /// Where each row ends.
    ends: Box<[u32]>,
    numbers: Box<[u32]>,
}

impl Rows {
    /// The nodes of those edges that are wanted.
    pub(crate) fn new(predecessors: &[Box<[Edge]>], wanted: fn(&Edge) -> bool) -> Self {
        let mut numbers = Vec::new();
        let mut ends = Vec::with_capacity(predecessors.len());
        for edges in predecessors {
            numbers.extend(edges.iter().filter(|edge| wanted(edge)).map(|edge| edge.node));
            ends.push(numbers.len() as u32);
        }
        Self { ends: ends.into(), numbers: numbers.into() }
    }

    pub(crate) fn of(&self, node: usize) -> &[u32] {
        let start = node.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.numbers[start as usize..self.ends[node] as usize]
    }
}
