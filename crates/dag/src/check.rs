//! Checking a graph: all that is wrong with it is told at once, and only what is right becomes a plan.

use std::{collections::HashMap, sync::Arc};

use crate::{
    circle,
    error::{Code, PlanError, PlanErrors},
    graph::Draft,
    inputs::{Edge, Inputs},
    plan::{Compiled, Plan},
    reach::Reach,
};

/// More nodes than this a plan may not have: numbers of nodes, and marks beside them, fit into 32 bits with room to
/// spare, and what is larger was made by mistake.
pub const NODES_MAX: usize = 65_535;

/// Makes a plan of what was drafted.
pub(crate) fn plan<R, O: Inputs, M: Reach>(
    graph: u64,
    name: Arc<str>,
    nodes: Vec<Draft<R, M>>,
    outputs: O,
) -> Result<Plan<R, O, M>, PlanErrors> {
    let mut errors = Vec::new();
    let mut output_edges = Vec::new();
    outputs.edges(&mut output_edges);
    if nodes.is_empty() {
        errors.push(PlanError::new(Code::P003, format!("plan \"{name}\""), "it has no nodes: add one"));
    }
    if nodes.len() > NODES_MAX {
        let message =
            format!("it has {} nodes, and may have {NODES_MAX}: make it several plans", nodes.len());
        errors.push(PlanError::new(Code::P018, format!("plan \"{name}\""), message));
        return Err(PlanErrors::new(errors));
    }
    names(&nodes, &mut errors);
    let is_known = |edge: &Edge| edge.graph == graph && (edge.node as usize) < nodes.len();
    for (nth, node) in nodes.iter().enumerate() {
        for (input, edge) in node.edges.iter().enumerate() {
            let place = || format!("node \"{}\", input {input}", node.name);
            if !is_known(edge) {
                let message = "the handle is of another graph";
                errors.push(PlanError::new(Code::P007, place(), message));
            } else if edge.node as usize == nth {
                errors.push(PlanError::new(Code::P008, place(), "it depends on itself"));
            }
        }
    }
    for (nth, edge) in output_edges.iter().enumerate() {
        if !is_known(edge) {
            let message = "the handle is of another graph";
            errors.push(PlanError::new(Code::P015, format!("output {nth}"), message));
        }
    }
    if !is_in_order(&nodes) {
        let inputs = nodes.iter().enumerate();
        let edges = inputs.flat_map(|(nth, node)| {
            node.edges.iter().filter(|edge| is_known(edge)).map(move |edge| (edge.node, nth as u32))
        });
        for circle in circle::circles(nodes.len(), edges) {
            let names: Vec<_> = circle.iter().map(|node| &*nodes[*node as usize].name).collect();
            errors.push(circle::error(&names));
        }
    }
    if !errors.is_empty() {
        return Err(PlanErrors::new(errors));
    }
    Ok(Plan::new(Arc::new(Compiled::new(name, nodes, output_edges)), outputs.kept()))
}

fn names<R, M: Reach>(nodes: &[Draft<R, M>], errors: &mut Vec<PlanError>) {
    let mut seen = HashMap::with_capacity(nodes.len());
    for (nth, node) in nodes.iter().enumerate() {
        if node.name.is_empty() {
            let place = format!("node {nth}, at {}", node.site);
            errors.push(PlanError::new(Code::P004, place, "its name is empty: errors and reports need one"));
        } else if let Some(first) = seen.insert(&*node.name, node.site) {
            let message = format!("there are two of this name, at {first} and at {}", node.site);
            errors.push(PlanError::new(Code::P005, format!("node \"{}\"", node.name), message));
        }
    }
}

/// Whether each node was added after all its inputs, as in most graphs. Those have no circle.
fn is_in_order<R, M: Reach>(nodes: &[Draft<R, M>]) -> bool {
    nodes.iter().enumerate().all(|(nth, node)| node.edges.iter().all(|edge| (edge.node as usize) < nth))
}
