//! The layers of a graph: each node one further than the furthest of its inputs.
//!
//! An edge that goes further than one layer bends in each layer on its way, so that it has a place there among the
//! nodes and goes around them.

use super::picture::Edge;

/// So many bends there are at most: beyond, edges go straight, and nobody could follow them anyway.
const BENDS_MAX: usize = 4_000;

/// A graph in layers. Its slots are its nodes, by their numbers, and then the bends of its edges.
pub(super) struct Layers {
    pub(super) nodes: usize,
    /// The slots of each layer, in their order.
    pub(super) rows: Vec<Vec<u32>>,
    /// The layer of each slot.
    pub(super) layer_of: Vec<u32>,
    /// What each slot is linked with in layers before its own, and in those behind.
    pub(super) before: Vec<Vec<u32>>,
    pub(super) behind: Vec<Vec<u32>>,
    /// The slots that each edge goes through, from its start to its end.
    pub(super) ways: Vec<Vec<u32>>,
}

impl Layers {
    /// The layers of `edges`, without those that are not `drawn`. `drawn` are some of `edges`.
    pub(super) fn new(nodes: usize, edges: &[Edge], drawn: &[Edge], with_bends: bool) -> Self {
        let mut layer_of = depths(nodes, edges);
        let mut rows = vec![Vec::new(); layer_of.iter().max().map_or(0, |deepest| *deepest as usize + 1)];
        let far =
            |edge: &Edge| layer_of[edge.to as usize].saturating_sub(layer_of[edge.from as usize]) as usize;
        let bends: usize = drawn.iter().map(|edge| far(edge).saturating_sub(1)).sum();
        let has_bends = with_bends && bends <= BENDS_MAX;
        let mut ways = Vec::with_capacity(drawn.len());
        for edge in drawn {
            let (first, last) = (layer_of[edge.from as usize], layer_of[edge.to as usize]);
            let mut way = vec![edge.from];
            for layer in (first + 1..last).filter(|_| has_bends) {
                way.push(layer_of.len() as u32);
                layer_of.push(layer);
            }
            way.push(edge.to);
            ways.push(way);
        }
        for (slot, layer) in layer_of.iter().enumerate() {
            rows[*layer as usize].push(slot as u32);
        }
        let (mut before, mut behind) = (vec![Vec::new(); layer_of.len()], vec![Vec::new(); layer_of.len()]);
        for pair in ways.iter().flat_map(|way| way.windows(2)) {
            behind[pair[0] as usize].push(pair[1]);
            before[pair[1] as usize].push(pair[0]);
        }
        Self { nodes, rows, layer_of, before, behind, ways }
    }

    pub(super) fn is_bend(&self, slot: u32) -> bool {
        slot as usize >= self.nodes
    }
}

/// The longest way to each node, in edges. There are no circles: a plan has none.
fn depths(nodes: usize, edges: &[Edge]) -> Vec<u32> {
    let (mut missing, mut behind) = (vec![0_u32; nodes], vec![Vec::new(); nodes]);
    for edge in edges {
        missing[edge.to as usize] += 1;
        behind[edge.from as usize].push(edge.to);
    }
    let mut depths = vec![0; nodes];
    let mut ready: Vec<u32> = (0..nodes as u32).filter(|node| missing[*node as usize] == 0).collect();
    while let Some(node) = ready.pop() {
        for next in &behind[node as usize] {
            let next = *next as usize;
            depths[next] = depths[next].max(depths[node as usize] + 1);
            missing[next] -= 1;
            if missing[next] == 0 {
                ready.push(next as u32);
            }
        }
    }
    depths
}
