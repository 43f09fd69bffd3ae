//! A graph that is too large to be read: a dot for each node, so that its shape is seen, and what stands out.

use super::{
    graph::Drawn,
    layers::Layers,
    picture::{Edge, Node, Picture},
    text::{Escaped, Px},
};
use crate::draw::put;

/// From dot to dot.
const PITCH: f64 = 12.0;
const DOT: f64 = 8.0;

/// So many dots stand below each other: a layer with more takes several columns.
const ROWS_MAX: usize = 80;

/// Between layers.
const AISLE: f64 = 40.0;

const MARGIN: f64 = 12.0;

pub(super) fn draw(picture: &Picture<'_>, edges: &[Edge], layers: &Layers) -> Drawn {
    let (places, width) = places(layers);
    let rows = layers.rows.iter().map(|row| row.len().min(ROWS_MAX)).max().unwrap_or(0);
    let mut body = String::new();
    let others = edges.iter().filter(|edge| !edge.is_critical);
    draw_edges(&mut body, "edge faint", others, &places);
    for (node, (x, y)) in picture.nodes.iter().zip(&places) {
        draw_dot(&mut body, node, Px(*x), Px(*y));
    }
    draw_edges(&mut body, "edge critical", edges.iter().filter(|edge| edge.is_critical), &places);
    let height = rows as f64 * PITCH + 2.0 * MARGIN;
    let note = Some("names are shown when a pointer rests on a dot".to_owned());
    Drawn { body, width: width + 2.0 * MARGIN, height, note }
}

/// All edges in one element: a browser is faster with it.
fn draw_edges<'a>(
    body: &mut String,
    class: &str,
    edges: impl Iterator<Item = &'a Edge>,
    places: &[(f64, f64)],
) {
    put(body, format_args!("<path class=\"{class}\" d=\"M0 0"));
    for edge in edges {
        let ((x, y), (to_x, to_y)) = (places[edge.from as usize], places[edge.to as usize]);
        let (x, y, to_x, to_y) = (Px(x + DOT), Px(y + DOT / 2.0), Px(to_x), Px(to_y + DOT / 2.0));
        put(body, format_args!("M{x} {y}L{to_x} {to_y}"));
    }
    body.push_str("\"/>\n");
}

fn draw_dot(body: &mut String, node: &Node<'_>, x: Px, y: Px) {
    let look = node.fate.as_ref().map_or("", |fate| fate.look.class());
    let critical = if node.is_critical() { " critical" } else { "" };
    // Of so many nodes only what a pointer asks for first.
    let tip = match &node.fate {
        Some(fate) => format!("{}: {}", node.name, fate.told),
        None => node.name.to_owned(),
    };
    put(
        body,
        format_args!(
            "<g class=\"node {} {look}{critical}\"><title>{}</title><rect class=\"dot\" x=\"{x}\" y=\"{y}\" width=\"{DOT}\" \
             height=\"{DOT}\" rx=\"2\"/></g>\n",
            node.kind,
            Escaped(&tip)
        ),
    );
}

/// The corner of each dot, and how wide all are.
fn places(layers: &Layers) -> (Vec<(f64, f64)>, f64) {
    let mut places = vec![(0.0, 0.0); layers.nodes];
    let highest = layers.rows.iter().map(|row| row.len().min(ROWS_MAX)).max().unwrap_or(0);
    let mut left = MARGIN;
    for row in &layers.rows {
        let lines = row.len().clamp(1, ROWS_MAX);
        let top = MARGIN + (highest - lines.min(highest)) as f64 * PITCH / 2.0;
        for (nth, slot) in row.iter().enumerate() {
            let (column, line) = (nth / lines, nth % lines);
            places[*slot as usize] = (left + column as f64 * PITCH, top + line as f64 * PITCH);
        }
        left += row.len().div_ceil(lines) as f64 * PITCH + AISLE;
    }
    (places, (left - AISLE - MARGIN).max(0.0))
}
