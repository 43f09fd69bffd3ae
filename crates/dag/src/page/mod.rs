//! A plan as a picture, and a run as one page: plain text that a browser shows, with nothing to load.
//!
//! 1. `picture`: what is shown of a plan or of a run. `look`: how the end of a node is shown.
//! 2. `layers`, `crossings`, `place`: where the boxes of a graph go. `graph`: its boxes and edges; `legend`: what they
//!    mean; `dots`: the same for graphs that are too large to be read.
//! 3. `html`: the page; `timeline`, `table`: its parts. `text`, `time`: what stands in them.

mod crossings;
mod dots;
mod graph;
mod html;
mod layers;
mod legend;
mod look;
mod picture;
mod place;
mod table;
mod text;
mod time;
mod timeline;

use crate::{inputs::Inputs, plan::Plan, reach::Reach, report::Report};

/// Colours in light and in dark, and how graphs look.
const GRAPH_STYLE: &str = include_str!("graph.css");

impl<R, O: Inputs, M: Reach> Plan<R, O, M> {
    /// The graph as a picture in SVG, with its style in it, in light and in dark: each node to the right of its inputs.
    /// Needs the feature `page`.
    ///
    /// Of large graphs it shows less: from 201 nodes on only names, from 1,001 on only dots, which have their names as
    /// tool tips, and of very many edges some.
    #[must_use]
    pub fn to_svg(&self) -> String {
        graph::standalone(&self.compiled.picture())
    }
}

impl Report {
    /// The run as one page of HTML that loads nothing: what became of it, the graph, a timeline of its nodes by thread,
    /// and a table. Needs the feature `page`.
    ///
    /// A run that was not traced has no timeline.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::page(self)
    }
}
