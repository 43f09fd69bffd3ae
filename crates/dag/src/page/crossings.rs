//! The order of the slots of each layer: such that few edges cross.
//!
//! Each slot goes to the mean of the places of what it is linked with, in the layer before and in the layer behind by
//! turns (the barycentre heuristic of Sugiyama, Tagawa and Toda, 1981). The best order that was come across is kept.

use super::layers::Layers;

/// So often all layers are gone through: more helps hardly any graph.
const SWEEPS_MAX: usize = 16;

/// So many in a row that did not help are the last.
const SWEEPS_IN_VAIN_MAX: usize = 4;

/// Puts the slots of all layers in order.
pub(super) fn order(layers: &mut Layers) {
    let mut places = vec![0.0; layers.layer_of.len()];
    layers.rows.iter().for_each(|row| number(row, &mut places));
    let mut fewest = crossings(layers, &places);
    let (mut best, mut in_vain) = (layers.rows.clone(), 0);
    for sweep in 0..SWEEPS_MAX {
        if fewest == 0 || in_vain == SWEEPS_IN_VAIN_MAX {
            break;
        }
        let Layers { rows, before, behind, .. } = &mut *layers;
        if sweep % 2 == 0 {
            rows.iter_mut().for_each(|row| sort(row, before, &mut places));
        } else {
            rows.iter_mut().rev().for_each(|row| sort(row, behind, &mut places));
        }
        let crossings = crossings(layers, &places);
        in_vain += 1;
        if crossings < fewest {
            (fewest, in_vain) = (crossings, 0);
            best.clone_from(&layers.rows);
        }
    }
    layers.rows = best;
}

fn number(row: &[u32], places: &mut [f64]) {
    row.iter().enumerate().for_each(|(place, slot)| places[*slot as usize] = place as f64);
}

/// Sorts a layer by the means of what its slots are linked with. Who is linked with nothing stays about where it is.
fn sort(row: &mut [u32], links: &[Vec<u32>], places: &mut [f64]) {
    let mean = |slot: u32| {
        let links = &links[slot as usize];
        let sum: f64 = links.iter().map(|link| places[*link as usize]).sum();
        if links.is_empty() { places[slot as usize] } else { sum / links.len() as f64 }
    };
    let mut means: Vec<(f64, u32)> = row.iter().map(|slot| (mean(*slot), *slot)).collect();
    means.sort_by(|left, right| left.0.total_cmp(&right.0));
    row.iter_mut().zip(&means).for_each(|(slot, (_, sorted))| *slot = *sorted);
    number(row, places);
}

/// How many pairs of links between neighbouring layers cross.
fn crossings(layers: &Layers, places: &[f64]) -> u64 {
    let mut all = 0;
    let mut ends = Vec::new();
    for pair in layers.rows.windows(2) {
        ends.clear();
        for slot in &pair[0] {
            let first = ends.len();
            let links = layers.behind[*slot as usize].iter();
            let near =
                links.filter(|link| layers.layer_of[**link as usize] == layers.layer_of[*slot as usize] + 1);
            ends.extend(near.map(|link| places[*link as usize] as usize));
            // Two that start at one slot do not cross.
            ends[first..].sort_unstable();
        }
        all += inversions(&ends, pair[1].len());
    }
    all
}

/// How many pairs are in the wrong order. Numbers are below `len`. Counted with a Fenwick tree of those seen so far.
fn inversions(numbers: &[usize], len: usize) -> u64 {
    let mut tree = vec![0_u64; len + 1];
    let mut inversions = 0;
    for (seen, number) in numbers.iter().enumerate() {
        let (mut at, mut not_above) = (number + 1, 0);
        while at > 0 {
            not_above += tree[at];
            at &= at - 1;
        }
        inversions += seen as u64 - not_above;
        at = number + 1;
        while at <= len {
            tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    inversions
}
