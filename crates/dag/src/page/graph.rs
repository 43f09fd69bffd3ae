//! A graph as SVG: boxes, edges, and what they mean.

use std::{collections::HashSet, fmt};

use super::{
    GRAPH_STYLE, crossings, dots,
    layers::Layers,
    legend,
    picture::{Edge, Node, Picture},
    place::{Measures, Places, place},
    text::{Escaped, Px, columns, count, shorten},
};
use crate::{draw::put, graph::Kind};

/// Up to so many nodes there is room to say something about each.
const NODES_IN_FULL_MAX: usize = 200;

/// Up to so many nodes a picture with their names can be found one's way in.
pub(super) const NODES_NAMED_MAX: usize = 1_000;

/// So many edges are drawn: nobody can follow more, and a browser takes seconds for them.
const EDGES_DRAWN_MAX: usize = 30_000;

/// Around a picture, so that rings and tips are not cut off.
const MARGIN: f64 = 12.0;

/// How much is shown of each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    Full,
    Names,
    Dots,
}

impl Detail {
    fn of(nodes: usize) -> Self {
        if nodes <= NODES_IN_FULL_MAX {
            Self::Full
        } else if nodes <= NODES_NAMED_MAX {
            Self::Names
        } else {
            Self::Dots
        }
    }

    /// How long a name may be.
    fn columns_max(self) -> usize {
        if self == Self::Full { 24 } else { 16 }
    }

    fn height(self) -> f64 {
        if self == Self::Full { 46.0 } else { 22.0 }
    }
}

/// The elements of a graph, and how much room they take.
pub(super) struct Drawn {
    pub(super) body: String,
    pub(super) width: f64,
    pub(super) height: f64,
    /// What is not shown, if anything is not.
    pub(super) note: Option<String>,
}

/// A file of its own: with a heading, a legend and its style.
pub(super) fn standalone(picture: &Picture<'_>) -> String {
    const HEADING: f64 = 34.0;
    const WIDTH_MIN: f64 = 440.0;
    let drawn = draw(picture);
    let width = drawn.width.max(WIDTH_MIN);
    let (rows, rows_height) = legend::rows(picture, width - 2.0 * MARGIN);
    let height = HEADING + drawn.height + rows_height + 2.0 * MARGIN;
    let nodes = count(picture.nodes.len(), "node");
    let note = drawn.note.map_or(nodes.clone(), |note| format!("{nodes}; {note}"));
    let name = shorten(picture.name, (width / 9.5) as usize - columns(&note).min(30));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ebbtide\" role=\"img\" width=\"{w}\" height=\"{h}\" \
         viewBox=\"0 0 {w} {h}\">\n<title>{full}</title>\n<style>\n{GRAPH_STYLE}</style>\n\
         <rect class=\"ground\" width=\"{w}\" height=\"{h}\"/>\n\
         <text class=\"heading\" x=\"{MARGIN}\" y=\"26\">{name} <tspan class=\"told\">{note}</tspan></text>\n\
         <g transform=\"translate({left} {HEADING})\">\n{body}</g>\n\
         <g transform=\"translate({MARGIN} {below})\">\n{rows}</g>\n</svg>\n",
        w = Px(width),
        h = Px(height),
        full = Escaped(picture.name),
        name = Escaped(&name),
        left = Px((width - drawn.width) / 2.0),
        body = drawn.body,
        below = Px(HEADING + drawn.height + MARGIN),
    )
}

/// The graph alone.
pub(super) fn draw(picture: &Picture<'_>) -> Drawn {
    let edges = drawn_edges(&picture.edges);
    let detail = Detail::of(picture.nodes.len());
    let mut layers = Layers::new(picture.nodes.len(), &picture.edges, &edges, detail != Detail::Dots);
    crossings::order(&mut layers);
    let mut drawn = if detail == Detail::Dots {
        dots::draw(picture, &edges, &layers)
    } else {
        let measures = measures(picture, detail);
        let places = place(&layers, &measures);
        Sheet { picture, edges: &edges, layers: &layers, places: &places, detail }.draw()
    };
    if edges.len() == EDGES_DRAWN_MAX {
        drawn.note = Some(format!("{} of {} edges are drawn", edges.len(), picture.edges.len()));
    }
    drawn
}

/// The edges that are drawn: each once; if there are too many, the critical ones and the first inputs of each node.
fn drawn_edges(edges: &[Edge]) -> Vec<Edge> {
    let mut ranked = Vec::with_capacity(edges.len());
    let (mut to, mut nth) = (None, 0);
    let mut seen = HashSet::with_capacity(edges.len());
    // A node may be an input and a condition.
    for edge in edges.iter().filter(|edge| seen.insert((edge.from, edge.to))) {
        nth = if to == Some(edge.to) { nth + 1 } else { 0 };
        to = Some(edge.to);
        ranked.push(((!edge.is_critical, nth), *edge));
    }
    if ranked.len() > EDGES_DRAWN_MAX {
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.truncate(EDGES_DRAWN_MAX);
    }
    ranked.into_iter().map(|(_, edge)| edge).collect()
}

fn measures(picture: &Picture<'_>, detail: Detail) -> Measures {
    const NAME_COLUMN: f64 = 7.9;
    const TOLD_COLUMN: f64 = 6.3;
    const PADDING: f64 = 28.0;
    let width = |node: &Node<'_>| {
        let name = columns(&shorten(node.name, detail.columns_max())) as f64;
        match detail {
            Detail::Full => (name * NAME_COLUMN).max(columns(&told(node)) as f64 * TOLD_COLUMN) + PADDING,
            _ => name * NAME_COLUMN * 0.85 + PADDING / 1.5,
        }
    };
    // Where many edges go from layer to layer there is more room for them.
    let crowd = (picture.edges.len() / picture.nodes.len().max(1)).min(5) as f64;
    Measures {
        widths: picture.nodes.iter().map(width).collect(),
        height: detail.height(),
        gap: if detail == Detail::Full { 16.0 } else { 6.0 },
        aisle: 30.0 + 14.0 * crowd,
    }
}

/// What stands below the name.
fn told(node: &Node<'_>) -> String {
    let op = node.op.map(|op| format!("{} · ", shorten(op, 16))).unwrap_or_default();
    let fate = node.fate.as_ref().map(|fate| format!(" · {}", fate.told)).unwrap_or_default();
    format!("{op}{}{fate}", node.kind)
}

/// All that is needed to draw.
struct Sheet<'a> {
    picture: &'a Picture<'a>,
    edges: &'a [Edge],
    layers: &'a Layers,
    places: &'a Places,
    detail: Detail,
}

impl Sheet<'_> {
    fn draw(&self) -> Drawn {
        let mut body = String::from(TIPS);
        let ports = self.ports();
        for critical in [false, true] {
            for (nth, edge) in self.edges.iter().enumerate().filter(|(_, edge)| edge.is_critical == critical)
            {
                self.draw_edge(&mut body, edge, &self.layers.ways[nth], ports[nth]);
            }
        }
        for (number, node) in self.picture.nodes.iter().enumerate() {
            self.draw_node(&mut body, number, node);
        }
        let body = format!("<g transform=\"translate({MARGIN} {MARGIN})\">\n{body}</g>\n");
        let (width, height) = (self.places.width + 2.0 * MARGIN, self.places.height + 2.0 * MARGIN);
        Drawn { body, width, height, note: None }
    }

    /// How far from the middle of its end each edge arrives: those of one node side by side, so that they do not cross.
    fn ports(&self) -> Vec<f64> {
        const APART_MAX: f64 = 9.0;
        let mut arriving = vec![Vec::new(); self.picture.nodes.len()];
        for (nth, way) in self.layers.ways.iter().enumerate() {
            arriving[way[way.len() - 1] as usize].push(nth);
        }
        let mut ports = vec![0.0; self.edges.len()];
        for ways in &mut arriving {
            let from = |nth: usize| {
                let way = &self.layers.ways[nth];
                self.places.middles[way[way.len() - 2] as usize]
            };
            ways.sort_by(|left, right| from(*left).total_cmp(&from(*right)));
            let gaps = ways.len().saturating_sub(1) as f64;
            let apart = APART_MAX.min((self.detail.height() - 16.0) / gaps.max(1.0));
            for (nth, way) in ways.iter().enumerate() {
                ports[*way] = apart * (nth as f64 - gaps / 2.0);
            }
        }
        ports
    }

    fn draw_edge(&self, body: &mut String, edge: &Edge, way: &[u32], port: f64) {
        let column = |slot: u32| self.places.columns[self.layers.layer_of[slot as usize] as usize];
        let (left, width) = column(way[0]);
        let (mut x, mut y) = (left + width, self.places.middles[way[0] as usize]);
        let class = edge_class(edge);
        put(body, format_args!("<path class=\"edge{class}\" d=\"M{} {}", Px(x), Px(y)));
        for (nth, slot) in way.iter().enumerate().skip(1) {
            let is_last = nth + 1 == way.len();
            let (left, width) = column(*slot);
            let middle = self.places.middles[*slot as usize];
            // The tip ends where the box, or its ring, begins.
            let tip =
                if self.picture.nodes.get(*slot as usize).is_some_and(Node::is_critical) { 5.0 } else { 1.0 };
            let (to, level) = if is_last { (left - tip, middle + port) } else { (left, middle) };
            let (half, x_of, y_of) = (Px((x + to) / 2.0), Px(to), Px(level));
            put(body, format_args!("C{half} {} {half} {y_of} {x_of} {y_of}", Px(y)));
            (x, y) = (to, level);
            if !is_last {
                x = left + width;
                put(body, format_args!("H{}", Px(x)));
            }
        }
        let tip = if edge.is_critical { "tip-critical" } else { "tip" };
        put(body, format_args!("\" marker-end=\"url(#{tip})\"/>\n"));
    }

    fn draw_node(&self, body: &mut String, number: usize, node: &Node<'_>) {
        let (left, width) = self.places.columns[self.layers.layer_of[number] as usize];
        let height = self.detail.height();
        let top = self.places.middles[number] - height / 2.0;
        let look = node.fate.as_ref().map_or("", |fate| fate.look.class());
        let critical = if node.is_critical() { " critical" } else { "" };
        // In a page it leads to its line in the table.
        let (open, close) = match &node.fate {
            Some(_) => (format!("<a href=\"#n{number}\""), "</a>"),
            None => ("<g".to_owned(), "</g>"),
        };
        put(
            body,
            format_args!(
                "{open} class=\"node {} {look}{critical}\" transform=\"translate({} {})\"><title>{}</title>",
                node.kind,
                Px(left),
                Px(top),
                Escaped(&node.tip())
            ),
        );
        if node.is_critical() {
            put(
                body,
                format_args!("{}", Outline { kind: node.kind, width, height, out: 3.5, class: "ring" }),
            );
        }
        put(body, format_args!("{}", Outline { kind: node.kind, width, height, out: 0.0, class: "box" }));
        let middle = Px(width / 2.0);
        let name = shorten(node.name, self.detail.columns_max());
        let line = if self.detail == Detail::Full { 20.0 } else { height / 2.0 + 4.0 };
        let small = if self.detail == Detail::Full { "" } else { " small" };
        put(
            body,
            format_args!(
                "<text class=\"name{small}\" x=\"{middle}\" y=\"{}\">{}</text>",
                Px(line),
                Escaped(&name)
            ),
        );
        if self.detail == Detail::Full {
            let told = told(node);
            put(body, format_args!("<text class=\"told\" x=\"{middle}\" y=\"36\">{}</text>", Escaped(&told)));
        }
        if node.is_output {
            put(
                body,
                format_args!(
                    "<circle class=\"out\" cx=\"{}\" cy=\"{}\" r=\"4.5\"/>",
                    Px(width),
                    Px(height / 2.0)
                ),
            );
        }
        body.push_str(close);
        body.push('\n');
    }
}

/// What the edge is in the style, after its name.
pub(super) fn edge_class(edge: &Edge) -> &'static str {
    match (edge.is_critical, edge.is_idle, edge.is_optional) {
        (true, _, true) => " critical optional",
        (true, _, false) => " critical",
        (false, true, true) => " idle optional",
        (false, true, false) => " idle",
        (false, false, true) => " optional",
        (false, false, false) => "",
    }
}

/// The shape of a kind: as in a flow chart.
pub(super) struct Outline {
    pub(super) kind: Kind,
    pub(super) width: f64,
    pub(super) height: f64,
    /// How far outside of the box it runs.
    pub(super) out: f64,
    pub(super) class: &'static str,
}

impl fmt::Display for Outline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, width, height, out, class } = *self;
        let round = match kind {
            Kind::Cpu => return self.hexagon(f),
            Kind::Inline => height / 5.0,
            Kind::Async => height / 2.0,
            Kind::Blocking => 1.0,
        };
        write!(
            f,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>",
            Px(-out),
            Px(-out),
            Px(width + 2.0 * out),
            Px(height + 2.0 * out),
            Px(round + out)
        )?;
        if kind == Kind::Blocking && out == 0.0 {
            write!(
                f,
                "<path class=\"sides\" d=\"M5 0V{}M{} 0v{}\"/>",
                Px(height),
                Px(width - 5.0),
                Px(height)
            )?;
        }
        Ok(())
    }
}

impl Outline {
    /// A box whose sides are pointed.
    fn hexagon(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, height, out, class, .. } = *self;
        let (middle, point) = (height / 2.0, height * 0.26);
        // As far outside everywhere: a side that leans has to move further.
        let moved = out * middle.hypot(point) / middle;
        let left = point * (middle + out) / middle - moved;
        let (across, half) = (width - 2.0 * left, middle + out);
        write!(
            f,
            "<path class=\"{class}\" d=\"M{} {}h{}L{} {}L{} {}h-{}L{} {}Z\"/>",
            Px(left),
            Px(-out),
            Px(across),
            Px(width + moved),
            Px(middle),
            Px(width - left),
            Px(middle + half),
            Px(across),
            Px(-moved),
            Px(middle)
        )
    }
}

/// The ends of edges.
const TIPS: &str = "<defs>\
    <marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
    markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"tip\" d=\"M0 0.5L8 4L0 7.5Z\"/></marker>\
    <marker id=\"tip-critical\" viewBox=\"0 0 8 8\" refX=\"6\" refY=\"4\" markerWidth=\"11\" markerHeight=\"11\" \
    markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"tip critical\" d=\"M0 0L8 4L0 8Z\"/></marker>\
    </defs>\n";
