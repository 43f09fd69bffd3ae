//! Checking a graph: all that is wrong with it is told at once, and only what is right becomes a plan.

use std::{collections::HashMap, sync::Arc};

use crate::{
    error::{Code, PlanError, PlanErrors},
    graph::Draft,
    inputs::{Edge, Inputs},
    plan::{Compiled, Plan},
    reach::Reach,
};

/// More nodes than this a plan may not have: numbers of nodes, and marks beside them, fit into 32 bits with room to
/// spare, and what is larger was made by mistake.
pub const NODES_MAX: usize = 65_535;

/// How many nodes of a circle a message names.
const CIRCLE_SHOWN_MAX: usize = 12;

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
    if errors.is_empty() && !is_in_order(&nodes) {
        let successors = successors(&nodes);
        if let Some(circle) = circle(&successors) {
            let names: Vec<_> = circle.iter().map(|node| &*nodes[*node as usize].name).collect();
            errors.push(cycle(&names));
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

/// The nodes that depend on each node.
fn successors<R, M: Reach>(nodes: &[Draft<R, M>]) -> Vec<Vec<u32>> {
    let mut successors = vec![Vec::new(); nodes.len()];
    for (nth, node) in nodes.iter().enumerate() {
        for edge in &node.edges {
            successors[edge.node as usize].push(nth as u32);
        }
    }
    successors
}

/// The error for nodes that depend on each other.
pub(crate) fn cycle(names: &[&str]) -> PlanError {
    let mut shown: Vec<_> = names.iter().take(CIRCLE_SHOWN_MAX).map(|name| (*name).to_owned()).collect();
    if names.len() > CIRCLE_SHOWN_MAX {
        shown.push(format!("… {} more …", names.len() - CIRCLE_SHOWN_MAX));
    }
    shown.extend(names.first().map(|first| (*first).to_owned()));
    let place = format!("node \"{}\"", names.first().unwrap_or(&""));
    PlanError::new(Code::P009, place, format!("nodes depend on each other: {}", shown.join(" -> ")))
}

/// The shortest circle through a node that is in one, if there is any.
pub(crate) fn circle(successors: &[Vec<u32>]) -> Option<Vec<u32>> {
    let mut missing = vec![0_u32; successors.len()];
    for successor in successors.iter().flatten() {
        missing[*successor as usize] += 1;
    }
    let mut ready: Vec<u32> =
        (0..successors.len() as u32).filter(|node| missing[*node as usize] == 0).collect();
    while let Some(node) = ready.pop() {
        for successor in &successors[node as usize] {
            missing[*successor as usize] -= 1;
            if missing[*successor as usize] == 0 {
                ready.push(*successor);
            }
        }
    }
    let stuck: Vec<u32> = (0..successors.len() as u32).filter(|node| missing[*node as usize] > 0).collect();
    // Some of those that are stuck only depend on a circle.
    stuck
        .into_iter()
        .take(NODES_TRIED_MAX)
        .filter_map(|node| circle_through(node, successors))
        .min_by_key(Vec::len)
}

/// From so many nodes the shortest circle is looked for; with thousands in circles it does not matter which is shown.
const NODES_TRIED_MAX: usize = 64;

/// The shortest way from a node back to itself.
fn circle_through(start: u32, successors: &[Vec<u32>]) -> Option<Vec<u32>> {
    let mut came_from = HashMap::new();
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for successor in &successors[node as usize] {
            if *successor == start {
                let mut way = vec![node];
                while *way.last().expect("it has one") != start {
                    way.push(came_from[way.last().expect("it has one")]);
                }
                way.reverse();
                return Some(way);
            }
            if let std::collections::hash_map::Entry::Vacant(entry) = came_from.entry(*successor) {
                entry.insert(node);
                queue.push_back(*successor);
            }
        }
    }
    None
}
