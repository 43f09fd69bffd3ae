//! The shapes on rayon's threads: each node spawns those that it makes ready.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rayon::{Scope, ThreadPool};

use super::shapes::{Shape, give, total};

pub(super) struct Rayon<'a> {
    shape: &'a Shape,
    /// How many inputs each node is missing.
    missing: Vec<AtomicU32>,
    values: Vec<AtomicU64>,
}

impl<'a> Rayon<'a> {
    pub(super) fn new(shape: &'a Shape) -> Self {
        let missing = (0..shape.len()).map(|_| AtomicU32::default()).collect();
        let values = (0..shape.len()).map(|_| AtomicU64::default()).collect();
        Self { shape, missing, values }
    }

    /// Runs the shape once.
    pub(super) fn run(&mut self, pool: &ThreadPool) {
        for (node, missing) in self.missing.iter_mut().enumerate() {
            *missing.get_mut() = self.shape.inputs.row(node as u32).len() as u32;
        }
        let this = &*self;
        pool.scope(|scope| {
            for root in &this.shape.roots {
                scope.spawn(|scope| this.run_node(scope, *root));
            }
        });
        assert_eq!(total(self.shape.outputs.iter().map(|output| self.value(*output))), self.shape.total);
    }

    fn run_node<'s>(&'s self, scope: &Scope<'s>, node: u32) {
        let value = give(self.shape.inputs.row(node).iter().map(|input| self.value(*input)));
        // Relaxed: the count below publishes it.
        self.values[node as usize].store(value, Ordering::Relaxed);
        for next in self.shape.successors.row(node) {
            // Release: this node's value. Acquire: those of the other inputs.
            if self.missing[*next as usize].fetch_sub(1, Ordering::AcqRel) == 1 {
                scope.spawn(|scope| self.run_node(scope, *next));
            }
        }
    }

    fn value(&self, node: u32) -> u64 {
        self.values[node as usize].load(Ordering::Relaxed)
    }
}
