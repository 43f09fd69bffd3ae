//! Where the slots of a graph go, once each layer has its order.
//!
//! Layers stand side by side. Within one, each slot wants to be level with what it is linked with; the order and the
//! gaps are kept, and of all such places those nearest to the wishes are taken. Last, bands that are empty are closed.

use super::layers::Layers;

/// So often all layers are gone through.
const SWEEPS: usize = 10;

/// Links of bends are kept straight before those of nodes.
const BEND_TO_BEND: f64 = 8.0;
const BEND_TO_NODE: f64 = 2.0;

/// Sizes, in pixels.
pub(super) struct Measures {
    /// Of each node.
    pub(super) widths: Vec<f64>,
    pub(super) height: f64,
    /// Between nodes of a layer.
    pub(super) gap: f64,
    /// Between layers.
    pub(super) aisle: f64,
}

/// Where everything is: the left edges and widths of layers, and the middles of slots.
pub(super) struct Places {
    pub(super) columns: Vec<(f64, f64)>,
    pub(super) middles: Vec<f64>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// How high a bend is: less than a node, so that edges may run close to each other.
const BEND_HEIGHT: f64 = 6.0;

pub(super) fn place(layers: &Layers, measures: &Measures) -> Places {
    let mut columns = Vec::with_capacity(layers.rows.len());
    let mut left = 0.0;
    for row in &layers.rows {
        let widths = row.iter().filter_map(|slot| measures.widths.get(*slot as usize));
        let width = widths.copied().fold(0.0, f64::max);
        columns.push((left, width));
        left += width + measures.aisle;
    }
    let height_of = |slot: u32| if layers.is_bend(slot) { BEND_HEIGHT } else { measures.height };
    let gap = |above: u32, below: u32| {
        let between_bends = layers.is_bend(above) && layers.is_bend(below);
        let gap = if between_bends { BEND_HEIGHT } else { measures.gap };
        (height_of(above) + height_of(below)) / 2.0 + gap
    };
    let mut middles = vec![0.0; layers.layer_of.len()];
    for row in &layers.rows {
        let mut below = 0.0;
        row.windows(2).for_each(|pair| {
            below += gap(pair[0], pair[1]);
            middles[pair[1] as usize] = below;
        });
        // Layers begin with their middles level.
        row.iter().for_each(|slot| middles[*slot as usize] -= below / 2.0);
    }
    for sweep in 0..SWEEPS {
        if sweep % 2 == 0 {
            layers.rows.iter().for_each(|row| level(layers, row, &layers.before, &gap, &mut middles));
        } else {
            layers.rows.iter().rev().for_each(|row| level(layers, row, &layers.behind, &gap, &mut middles));
        }
    }
    let height = close_ranks(&mut middles, measures.gap, height_of);
    Places { columns, middles, width: (left - measures.aisle).max(0.0), height }
}

/// Moves everything up to where the picture begins, and across bands that nothing is in. Gives how high all is.
fn close_ranks(middles: &mut [f64], gap: f64, height_of: impl Fn(u32) -> f64) -> f64 {
    let half = |slot: u32| height_of(slot) / 2.0;
    let top = |slot: u32, middles: &[f64]| middles[slot as usize] - half(slot);
    let mut slots: Vec<u32> = (0..middles.len() as u32).collect();
    slots.sort_by(|one, other| top(*one, middles).total_cmp(&top(*other, middles)));
    let (mut by, mut bottom) = (slots.first().map_or(0.0, |first| top(*first, middles)), 0.0_f64);
    for slot in slots {
        by = by.max(top(slot, middles) - bottom - gap);
        middles[slot as usize] -= by;
        bottom = bottom.max(middles[slot as usize] + half(slot));
    }
    bottom
}

/// Slots that stand as close as they may: where the first of them would like to be, how strongly, and how many they
/// are.
struct Block {
    wish: f64,
    weight: f64,
    slots: usize,
}

/// Moves the slots of a layer to where their links are, as far as order and gaps allow: by merging neighbours that are
/// in each other's way, which finds the least squares.
fn level(
    layers: &Layers,
    row: &[u32],
    links: &[Vec<u32>],
    gap: &impl Fn(u32, u32) -> f64,
    middles: &mut [f64],
) {
    let mut blocks: Vec<Block> = Vec::with_capacity(row.len());
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(row.len());
    for (nth, slot) in row.iter().enumerate() {
        if nth > 0 {
            offset += gap(row[nth - 1], *slot);
        }
        offsets.push(offset);
        let (wish, weight) = wish(layers, *slot, &links[*slot as usize], middles);
        // Without its gaps a layer only has to be in order.
        let mut block = Block { wish: wish - offset, weight, slots: 1 };
        while let Some(above) = blocks.pop_if(|above| above.wish > block.wish) {
            let weight = above.weight + block.weight;
            let wish = (above.wish * above.weight + block.wish * block.weight) / weight;
            block = Block { wish, weight, slots: above.slots + block.slots };
        }
        blocks.push(block);
    }
    let wishes = blocks.iter().flat_map(|block| std::iter::repeat_n(block.wish, block.slots));
    for ((slot, offset), wish) in row.iter().zip(offsets).zip(wishes) {
        middles[*slot as usize] = wish + offset;
    }
}

/// Where a slot would like to be, and how strongly.
fn wish(layers: &Layers, slot: u32, links: &[u32], middles: &[f64]) -> (f64, f64) {
    let weigh = |link: u32| match (layers.is_bend(slot), layers.is_bend(link)) {
        (true, true) => BEND_TO_BEND,
        (true, false) | (false, true) => BEND_TO_NODE,
        (false, false) => 1.0,
    };
    let weight: f64 = links.iter().map(|link| weigh(*link)).sum();
    if links.is_empty() {
        // It yields to those who have a reason.
        return (middles[slot as usize], 0.1);
    }
    let sum: f64 = links.iter().map(|link| weigh(*link) * middles[*link as usize]).sum();
    (sum / weight, weight)
}
