//! Nodes that depend on each other.

use std::collections::{HashMap, VecDeque, hash_map::Entry};

use crate::error::{Code, PlanError};

/// So many circles are told: with more, the graph was not mistyped.
const CIRCLES_TOLD_MAX: usize = 16;

/// How many nodes of a circle a message names.
const CIRCLE_SHOWN_MAX: usize = 12;

/// So many edges are looked at for a shorter circle than the first that was found: a large graph full of circles is not
/// to take seconds.
const LOOKS_MAX: usize = 1 << 18;

/// Circles that have no node in common, each from its lowest number on. `edges` are pairs of nodes, the second of which
/// depends on the first; those that depend on themselves are somebody else's to tell.
pub(crate) fn circles(nodes: usize, edges: impl Iterator<Item = (u32, u32)>) -> Vec<Vec<u32>> {
    let mut successors = vec![Vec::new(); nodes];
    for (from, to) in edges.filter(|(from, to)| from != to) {
        successors[from as usize].push(to);
    }
    let mut circles = Vec::new();
    while circles.len() < CIRCLES_TOLD_MAX
        && let Some(mut circle) = circle(&successors)
    {
        let first = circle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(at, _)| at);
        circle.rotate_left(first);
        circle.iter().for_each(|node| successors[*node as usize].clear());
        circles.push(circle);
    }
    circles
}

/// The error for nodes of these names that depend on each other.
pub(crate) fn error(names: &[&str]) -> PlanError {
    let mut shown: Vec<_> = names.iter().take(CIRCLE_SHOWN_MAX).map(|name| (*name).to_owned()).collect();
    if names.len() > CIRCLE_SHOWN_MAX {
        shown.push(format!("… {} more …", names.len() - CIRCLE_SHOWN_MAX));
    }
    shown.extend(names.first().map(|first| (*first).to_owned()));
    let place = format!("node \"{}\"", names.first().unwrap_or(&""));
    PlanError::new(Code::P009, place, format!("nodes depend on each other: {}", shown.join(" -> ")))
}

/// A circle, if there is any: the shortest, unless it takes long to find that.
fn circle(successors: &[Vec<u32>]) -> Option<Vec<u32>> {
    let stays = on_circles(successors);
    let nodes = || (0..successors.len() as u32).filter(|node| stays[*node as usize]);
    let mut best = walk(nodes().next()?, successors, &stays);
    let mut looks = LOOKS_MAX;
    for start in nodes() {
        if let Some(circle) = shortest(start, successors, &stays, &mut looks)
            && circle.len() < best.len()
        {
            best = circle;
        }
    }
    Some(best)
}

/// Which nodes are on a circle, or on the way from one to another: from each of them one gets to another of them.
fn on_circles(successors: &[Vec<u32>]) -> Vec<bool> {
    let mut predecessors = vec![Vec::new(); successors.len()];
    for (node, successors) in successors.iter().enumerate() {
        successors.iter().for_each(|successor| predecessors[*successor as usize].push(node as u32));
    }
    let mut stays = vec![true; successors.len()];
    trim(&mut stays, &predecessors, successors);
    trim(&mut stays, successors, &predecessors);
    stays
}

/// Takes away who has nobody before him, again and again.
fn trim(stays: &mut [bool], before: &[Vec<u32>], after: &[Vec<u32>]) {
    let count = |before: &Vec<u32>| before.iter().filter(|node| stays[**node as usize]).count();
    let mut left: Vec<usize> = before.iter().map(count).collect();
    let mut ends: Vec<u32> =
        (0..stays.len() as u32).filter(|node| stays[*node as usize] && left[*node as usize] == 0).collect();
    while let Some(node) = ends.pop() {
        stays[node as usize] = false;
        for next in after[node as usize].iter().filter(|next| stays[**next as usize]) {
            left[*next as usize] -= 1;
            if left[*next as usize] == 0 {
                ends.push(*next);
            }
        }
    }
}

/// The circle that one comes to by going on and on.
fn walk(start: u32, successors: &[Vec<u32>], stays: &[bool]) -> Vec<u32> {
    let (mut way, mut met_at, mut node) = (Vec::new(), HashMap::new(), start);
    loop {
        match met_at.entry(node) {
            Entry::Occupied(met_at) => return way.split_off(*met_at.get()),
            Entry::Vacant(entry) => entry.insert(way.len()),
        };
        way.push(node);
        let mut next = successors[node as usize].iter().filter(|next| stays[**next as usize]);
        node = *next.next().expect("from each node that stays one gets to another");
    }
}

/// The shortest way from a node back to itself, if it is found within so many looks.
fn shortest(start: u32, successors: &[Vec<u32>], stays: &[bool], looks: &mut usize) -> Option<Vec<u32>> {
    let (mut came_from, mut queue) = (HashMap::new(), VecDeque::from([start]));
    while let Some(node) = queue.pop_front() {
        for successor in successors[node as usize].iter().filter(|next| stays[**next as usize]) {
            *looks = looks.checked_sub(1)?;
            if *successor == start {
                let mut way = vec![node];
                while let Some(before) = way.last().filter(|node| **node != start) {
                    way.push(came_from[before]);
                }
                way.reverse();
                return Some(way);
            }
            if let Entry::Vacant(entry) = came_from.entry(*successor) {
                entry.insert(node);
                queue.push_back(*successor);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(nodes: usize, edges: &[(u32, u32)]) -> Vec<Vec<u32>> {
        circles(nodes, edges.iter().copied())
    }

    #[test]
    fn a_circle_is_found_whoever_depends_on_it_and_whatever_it_depends_on() {
        // A hundred who depend on the circle stand before it, and one that it depends on after it.
        let dependants = (0..100).map(|node| (100, node));
        let edges = dependants.chain([(100, 101), (101, 102), (102, 100), (103, 100)]);
        assert_eq!(circles(104, edges), [[100, 101, 102]]);
    }

    #[test]
    fn the_shortest_circle_is_told_first_and_those_that_share_no_node_with_it_after() {
        let long = [(0, 1), (1, 2), (2, 3), (3, 0)];
        let short = [(3, 1)];
        let other = [(5, 4), (4, 5)];
        let edges = [&long[..], &short, &other].concat();
        assert_eq!(circles_of(6, &edges), [vec![4, 5], vec![1, 2, 3]]);
    }

    #[test]
    fn a_graph_without_circles_has_none() {
        assert!(circles_of(4, &[(0, 1), (0, 2), (1, 3), (2, 3), (1, 1)]).is_empty());
        assert!(circles_of(0, &[]).is_empty());
    }

    #[test]
    fn a_large_graph_full_of_circles_has_sixteen() {
        let nodes = 60_000;
        let edges = (0..nodes).flat_map(|node| (1..9).map(move |far| (node, (node * 7 + far * 13) % nodes)));
        let circles = circles(nodes as usize, edges);
        assert_eq!(circles.len(), CIRCLES_TOLD_MAX);
    }
}
