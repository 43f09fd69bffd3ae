//! When the nodes of a run ran: a bar for each, by the threads that they began on.

use std::{collections::BTreeMap, time::Duration};

use super::{
    look::Look,
    picture::{Sums, chosen},
    text::{Escaped, Px, columns, shorten},
    time::{brief, ticks},
};
use crate::{draw::put, graph::Kind, report::Span};

/// So many bars are drawn.
const BARS_MAX: usize = 2_000;

/// How wide the timeline is, and where time begins in it.
const WIDTH: f64 = 1_140.0;
const GUTTER: f64 = 150.0;
const RIGHT: f64 = 14.0;

/// Below the marks of the axis.
const AXIS: f64 = 26.0;

/// A deadline that is further away than so many times the run is not shown: the bars would become too short.
const DEADLINE_FAR: f64 = 2.0;

/// A timeline, and what it does not show.
pub(super) struct Timeline {
    pub(super) svg: String,
    pub(super) notes: Vec<String>,
}

/// One node.
struct Bar {
    node: usize,
    /// Where it was ready, where it began, and where it ended.
    ready: f64,
    begun: f64,
    ended: f64,
    /// It went on after that.
    goes_on: bool,
    label: Option<Label>,
    lane: usize,
}

struct Label {
    text: String,
    left: f64,
}

/// How high lanes are, and what stands in them.
#[derive(Clone, Copy)]
struct Lanes {
    height: f64,
    /// Names stand beside bars that are too short for them.
    names_beside: bool,
}

impl Lanes {
    fn of(bars: usize) -> Self {
        match bars {
            0..=120 => Self { height: 26.0, names_beside: true },
            121..=500 => Self { height: 20.0, names_beside: false },
            _ => Self { height: 8.0, names_beside: false },
        }
    }

    fn has_names(self) -> bool {
        self.height > 10.0
    }
}

/// Which place a time has.
struct Axis {
    end: Duration,
}

impl Axis {
    fn at(&self, time: Duration) -> f64 {
        let share = time.as_secs_f64() / self.end.as_secs_f64().max(1e-9);
        GUTTER + share.min(1.0) * (WIDTH - GUTTER - RIGHT)
    }
}

/// The timeline of a run that was traced.
pub(super) fn draw(sums: &Sums<'_>) -> Timeline {
    let report = sums.report;
    let mut notes = Vec::new();
    let nodes = chosen(sums, BARS_MAX);
    if nodes.len() < report.nodes().len() {
        let (some, all) = (nodes.len(), report.nodes().len());
        notes.push(format!(
            "{some} of {all} nodes are shown: those that stand out, and those that ran longest"
        ));
    }
    let whole = report.total.max(report.took());
    let is_far = |deadline: &Duration| deadline.as_secs_f64() > whole.as_secs_f64() * DEADLINE_FAR;
    let deadline = report.deadline.filter(|deadline| !is_far(deadline));
    if let Some(far) = report.deadline.filter(is_far) {
        notes.push(format!("the deadline, {}, is further to the right", brief(far)));
    }
    // What went on has room to show it.
    let axis = Axis { end: whole.max(deadline.unwrap_or_default()).mul_f64(1.03) };
    let lanes = Lanes::of(nodes.len());
    let mut threads: BTreeMap<&str, Vec<Bar>> = BTreeMap::new();
    for node in nodes {
        let Some(span) = &report.at(node).span else { continue };
        threads.entry(span.thread).or_default().push(bar(sums, node, span, &axis, lanes));
    }
    // The thread that polls the run comes first.
    let is = |bar: &Bar, kinds: &[Kind]| kinds.contains(&report.at(bar.node).kind);
    let polls = |bars: &Vec<Bar>| bars.iter().any(|bar| is(bar, &[Kind::Inline, Kind::Async]));
    let mut threads: Vec<_> = threads.into_iter().collect();
    threads.sort_by_key(|(_, bars)| !polls(bars));
    let on_the_spot = |bars: &Vec<Bar>| polls(bars) && bars.iter().any(|bar| is(bar, &[Kind::Cpu]));
    if threads.iter().any(|(_, bars)| on_the_spot(bars)) {
        notes.push(
            "a cpu node on the thread of the run has so little to do that the way to the pool is longer"
                .to_owned(),
        );
    }
    let top = if deadline.is_some() { AXIS + 18.0 } else { AXIS };
    let (mut bands, mut bars_drawn, mut y) = (String::new(), String::new(), top);
    for (name, mut bars) in threads {
        let count = pack(&mut bars);
        let height = count as f64 * lanes.height + 12.0;
        let (band, line) = (Px(height), Px(y + height));
        let name_y = Px(y + height.min(lanes.height + 12.0) / 2.0 + 4.0);
        put(
            &mut bands,
            format_args!(
                "<g><title>{}</title><rect class=\"band\" y=\"{}\" width=\"{GUTTER}\" height=\"{band}\"/>\
                 <path class=\"rule\" d=\"M0 {line}H{WIDTH}\"/><text class=\"thread\" x=\"10\" y=\"{name_y}\">{}</text></g>\n",
                Escaped(name),
                Px(y),
                Escaped(&shorten(name, 19))
            ),
        );
        for bar in &bars {
            draw_bar(&mut bars_drawn, sums, bar, y + 6.0 + bar.lane as f64 * lanes.height, lanes);
        }
        y += height;
    }
    let mut svg = format!(
        "<svg class=\"timeline\" role=\"group\" aria-label=\"timeline\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\">\n",
        w = Px(WIDTH),
        h = Px(y + 4.0)
    );
    draw_axis(&mut svg, &axis, (top, y));
    svg.push_str(&bands);
    let end = axis.at(whole);
    put(
        &mut svg,
        format_args!(
            "<rect class=\"after\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>the run ended at {}</title></rect>\n",
            Px(end),
            Px(top),
            Px(WIDTH - end),
            Px(y - top),
            brief(whole)
        ),
    );
    svg.push_str(&bars_drawn);
    if let Some(deadline) = deadline {
        draw_deadline(&mut svg, axis.at(deadline), deadline, y);
    }
    svg.push_str("</svg>\n");
    Timeline { svg, notes }
}

fn bar(sums: &Sums<'_>, node: usize, span: &Span<'_>, axis: &Axis, lanes: Lanes) -> Bar {
    const COLUMN: f64 = 6.7;
    const COLUMNS_MAX: usize = 26;
    let report = sums.report;
    let goes_on = report.at(node).late;
    let (ready, begun) = (axis.at(span.queued), axis.at(span.begun));
    let ended = axis.at(span.ended.unwrap_or(report.total)).max(begun + 2.0);
    let text = shorten(report.at(node).name, COLUMNS_MAX);
    let width = columns(&text) as f64 * COLUMN;
    let tail = if goes_on { TAIL } else { 0.0 };
    let left = match (width + 10.0 <= ended - begun, lanes.names_beside) {
        _ if !lanes.has_names() => None,
        (true, _) => Some(begun + 5.0),
        (false, false) => None,
        (false, true) if ended + tail + 6.0 + width <= WIDTH => Some(ended + tail + 6.0),
        (false, true) => Some((ready - 6.0 - width).max(GUTTER + 2.0)),
    };
    Bar { node, ready, begun, ended, goes_on, label: left.map(|left| Label { text, left }), lane: 0 }
}

/// Behind the bar of a node that went on.
const TAIL: f64 = 18.0;

impl Bar {
    /// From where to where it takes up room.
    fn extent(&self) -> (f64, f64) {
        let tail = if self.goes_on { TAIL } else { 0.0 };
        let (left, right) = (self.ready, self.ended + tail);
        self.label.as_ref().map_or((left, right), |Label { text, left: label }| {
            (left.min(*label), right.max(label + columns(text) as f64 * 6.7))
        })
    }
}

/// Gives each bar the first lane that it fits into. Gives how many there are.
fn pack(bars: &mut [Bar]) -> usize {
    const APART: f64 = 4.0;
    bars.sort_by(|one, other| one.extent().0.total_cmp(&other.extent().0));
    let mut ends: Vec<f64> = Vec::new();
    for bar in bars {
        let (left, right) = bar.extent();
        bar.lane = ends.iter().position(|end| end + APART <= left).unwrap_or_else(|| {
            ends.push(0.0);
            ends.len() - 1
        });
        ends[bar.lane] = right;
    }
    ends.len()
}

fn draw_axis(svg: &mut String, axis: &Axis, (top, bottom): (f64, f64)) {
    for tick in ticks(axis.end, 10) {
        let x = Px(axis.at(tick));
        let label = match tick {
            Duration::ZERO => "0".to_owned(),
            // It would be cut off.
            tick if axis.at(tick) > WIDTH - 24.0 => String::new(),
            tick => brief(tick),
        };
        put(
            svg,
            format_args!(
                "<path class=\"grid\" d=\"M{x} {}V{}\"/><text class=\"tick\" x=\"{x}\" y=\"14\">{label}</text>\n",
                Px(top - 6.0),
                Px(bottom)
            ),
        );
    }
}

fn draw_deadline(svg: &mut String, x: f64, deadline: Duration, bottom: f64) {
    // To the side on which there is more room.
    let (label, anchor) = if x > WIDTH / 2.0 { (x - 6.0, "end") } else { (x + 6.0, "start") };
    put(
        svg,
        format_args!(
            "<path class=\"deadline\" d=\"M{} {}V{}\"/><text class=\"deadline\" x=\"{}\" y=\"34\" text-anchor=\"{anchor}\">\
             deadline {}</text>\n",
            Px(x),
            Px(AXIS - 2.0),
            Px(bottom),
            Px(label),
            brief(deadline)
        ),
    );
}

fn draw_bar(svg: &mut String, sums: &Sums<'_>, bar: &Bar, top: f64, lanes: Lanes) {
    let node = &sums.report.at(bar.node);
    let (height, look) = (lanes.height - if lanes.has_names() { 6.0 } else { 2.0 }, Look::of(node).class());
    let (top, middle) = (top + (lanes.height - height) / 2.0, top + lanes.height / 2.0);
    put(
        svg,
        format_args!(
            "<a href=\"#n{}\" class=\"node {look}\"><title>{}</title>",
            bar.node,
            Escaped(&sums.tip(bar.node))
        ),
    );
    if bar.begun - bar.ready >= 0.5 {
        put(
            svg,
            format_args!(
                "<rect class=\"queued\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                Px(bar.ready),
                Px(middle - height / 4.0),
                Px(bar.begun - bar.ready),
                Px(height / 2.0)
            ),
        );
    }
    let rect = |svg: &mut String, class: &str, out: f64| {
        put(
            svg,
            format_args!(
                "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\"/>",
                Px(bar.begun - out),
                Px(top - out),
                Px(bar.ended - bar.begun + 2.0 * out),
                Px(height + 2.0 * out)
            ),
        );
    };
    rect(svg, if lanes.has_names() { "box" } else { "dot" }, 0.0);
    if sums.is_critical[bar.node] {
        rect(svg, "ring", 2.0);
    }
    if bar.goes_on {
        let (x, y) = (Px(bar.ended + 2.0), Px(middle));
        put(svg, format_args!("<path class=\"tail\" d=\"M{x} {y}h12m-4 -4l4 4l-4 4\"/>"));
    }
    if let Some(Label { text, left }) = &bar.label {
        let (x, y) = (Px(*left), Px(middle + 4.0));
        put(svg, format_args!("<text class=\"bar\" x=\"{x}\" y=\"{y}\">{}</text>", Escaped(text)));
    }
    svg.push_str("</a>\n");
}
