//! What shapes, lines and colours mean: only those that a picture has.

use super::{
    graph::{NODES_NAMED_MAX, Outline},
    look::Look,
    picture::{Node, Picture},
    text::{Px, columns},
};
use crate::{draw::put, graph::Kind};

/// How large a sample is.
const WIDTH: f64 = 30.0;
const HEIGHT: f64 = 14.0;

/// A sample, and what it means.
pub(super) struct Entry {
    sample: String,
    width: f64,
    meaning: &'static str,
}

/// What the picture has.
pub(super) fn entries(picture: &Picture<'_>) -> Vec<Entry> {
    let has = |is: &dyn Fn(&Node<'_>) -> bool| picture.nodes.iter().any(is);
    let mut entries = Vec::new();
    let looks = Look::ALL.into_iter().rev();
    for look in looks.filter(|look| has(&|node| node.fate.as_ref().is_some_and(|fate| fate.look == *look))) {
        let class = look.class();
        let rect = format!("<rect class=\"box\" width=\"{HEIGHT}\" height=\"{HEIGHT}\" rx=\"3\"/>");
        let sample = format!("<g class=\"node {class}\">{rect}</g>");
        entries.push(Entry { sample, width: HEIGHT, meaning: look.word() });
    }
    let is_large = picture.nodes.len() > NODES_NAMED_MAX;
    let is_run = picture.nodes.iter().any(|node| node.fate.is_some());
    // Dots have no shapes; those of a plan have the colours of kinds.
    let has_kinds = !(is_large && is_run);
    let kinds =
        [(Kind::Inline, "inline"), (Kind::Async, "async"), (Kind::Cpu, "cpu"), (Kind::Blocking, "blocking")];
    for (kind, meaning) in kinds.into_iter().filter(|(kind, _)| has_kinds && has(&|node| node.kind == *kind))
    {
        let outline = Outline { kind, width: WIDTH, height: HEIGHT, out: 0.0, class: "box" };
        let sample = format!("<g class=\"node {}\">{outline}</g>", if is_run { "" } else { meaning });
        entries.push(Entry { sample, width: WIDTH, meaning });
    }
    if !is_large && has(&|node| node.is_output) {
        let sample = "<circle class=\"out\" cx=\"7\" cy=\"7\" r=\"4.5\"/>".to_owned();
        entries.push(Entry { sample, width: HEIGHT, meaning: "output" });
    }
    if picture.edges.iter().any(|edge| edge.is_optional) {
        entries.push(Entry { width: WIDTH, sample: line("optional"), meaning: "optional input" });
    }
    if has(&|node| node.is_critical()) {
        entries.push(Entry { width: WIDTH, sample: line("critical"), meaning: "critical path" });
    }
    entries
}

fn line(class: &str) -> String {
    format!("<path class=\"edge {class}\" d=\"M0 7H{WIDTH}\"/>")
}

/// As rows of a picture, so wide at most. Gives how high they are.
pub(super) fn rows(picture: &Picture<'_>, width_max: f64) -> (String, f64) {
    const ROW: f64 = 24.0;
    let (mut rows, mut left, mut top) = (String::new(), 0.0, 0.0);
    for Entry { sample, width, meaning } in entries(picture) {
        let room = width + 8.0 + columns(meaning) as f64 * 6.6;
        if left > 0.0 && left + room > width_max {
            (left, top) = (0.0, top + ROW);
        }
        put(
            &mut rows,
            format_args!(
                "<g transform=\"translate({} {})\">{sample}<text class=\"meaning\" x=\"{}\" y=\"11\">{meaning}</text></g>\n",
                Px(left),
                Px(top),
                width + 8.0
            ),
        );
        left += room + 18.0;
    }
    (rows, top + ROW)
}

/// As a list of a page.
pub(super) fn list(picture: &Picture<'_>) -> String {
    let mut list = String::from("<ul class=\"legend\">");
    for Entry { sample, width, meaning } in entries(picture) {
        put(
            &mut list,
            format_args!(
                "<li><svg width=\"{0}\" height=\"16\" viewBox=\"-1 -1 {0} 16\" aria-hidden=\"true\">{sample}</svg>{meaning}</li>",
                width + 2.0
            ),
        );
    }
    list.push_str("</ul>\n");
    list
}
