//! Graphs whose nodes do as little as can be: what it costs to run them in order, and to hand on what they give.
//!
//! All contestants run the same [shapes](shapes::Shape), again and again, and have what they know of a shape before
//! they start. A node gives the sum of its inputs plus one.

mod ours;
mod peers;
mod pool;
mod shapes;
mod tables;

pub(crate) use self::{
    ours::{Nodes, Ours},
    shapes::Shape,
};
use crate::areas::Part;

pub(crate) const PARTS: [Part; 6] = [
    Part::new("async", tables::ready),
    Part::new("inline", tables::inline),
    Part::new("timeouts", tables::timeouts),
    Part::new("cpu", tables::cpu),
    Part::new("plan", tables::plan),
    Part::new("trace", tables::trace),
];
