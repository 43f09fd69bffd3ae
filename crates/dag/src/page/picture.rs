//! What is shown of a plan, or of a run.

use std::{cmp::Reverse, time::Duration};

use super::{
    look::{self, Look},
    time::brief,
};
use crate::{
    graph::Kind,
    plan::Compiled,
    reach::Reach,
    report::{NodeReport, Report, Span, Step},
};

/// A graph that is to be drawn.
pub(super) struct Picture<'a> {
    pub(super) name: &'a str,
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) edges: Vec<Edge>,
}

pub(super) struct Node<'a> {
    pub(super) name: &'a str,
    pub(super) kind: Kind,
    /// What it runs, in a plan from data.
    pub(super) op: Option<&'a str>,
    pub(super) is_output: bool,
    /// What became of it, in a run.
    pub(super) fate: Option<Fate>,
}

/// What became of a node.
pub(super) struct Fate {
    pub(super) look: Look,
    /// How it ended, or how long it took if it ended well.
    pub(super) told: String,
    pub(super) is_critical: bool,
    /// All that is known, on several lines.
    pub(super) tip: String,
}

/// Who depends on whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Who depends on it can do without.
    pub(super) is_optional: bool,
    /// Both its ends follow each other on the critical path.
    pub(super) is_critical: bool,
    /// Who depends on it has not run.
    pub(super) is_idle: bool,
}

impl Node<'_> {
    /// What is shown when a pointer rests on it.
    pub(super) fn tip(&self) -> String {
        match (&self.fate, self.op) {
            (Some(fate), _) => fate.tip.clone(),
            (None, Some(op)) => format!("{}\n{op}, {}", self.name, self.kind),
            (None, None) => format!("{}\n{}", self.name, self.kind),
        }
    }

    pub(super) fn is_critical(&self) -> bool {
        self.fate.as_ref().is_some_and(|fate| fate.is_critical)
    }
}

impl<R, M: Reach> Compiled<R, M> {
    pub(super) fn picture(&self) -> Picture<'_> {
        let is_output = marks(self.outline.nodes.len(), self.outputs.iter().map(|edge| edge.node));
        let node = |(info, is_output)| {
            let info: &crate::outline::Info = info;
            Node { name: &info.name, kind: info.kind, op: info.op.as_deref(), is_output, fate: None }
        };
        let edges = self.predecessors.iter().enumerate().flat_map(|(to, inputs)| {
            inputs.iter().map(move |edge| Edge {
                from: edge.node,
                to: to as u32,
                is_optional: !edge.required,
                is_critical: false,
                is_idle: false,
            })
        });
        Picture {
            name: &self.name,
            nodes: self.outline.nodes.iter().zip(is_output).map(node).collect(),
            edges: edges.collect(),
        }
    }
}

/// A run whose sums were made.
pub(super) struct Sums<'a> {
    pub(super) report: &'a Report,
    /// The nodes of the critical path, the first to run first.
    pub(super) path: Vec<Step>,
    pub(super) is_critical: Vec<bool>,
    pub(super) slack: Vec<Option<Duration>>,
}

impl<'a> Sums<'a> {
    pub(super) fn of(report: &'a Report) -> Self {
        let path = report.critical_path();
        let is_critical = marks(report.nodes().len(), path.iter().map(|step| step.node as u32));
        Self { report, path, is_critical, slack: report.slack() }
    }

    pub(super) fn picture(&self) -> Picture<'a> {
        let Self { report, path, .. } = self;
        let is_output = marks(report.nodes().len(), report.outputs.iter().copied());
        let node = |(number, node): (usize, NodeReport<'a>)| Node {
            name: node.name,
            kind: node.kind,
            op: node.op,
            is_output: is_output[number],
            fate: Some(Fate {
                look: Look::of(&node),
                told: told(report, &node),
                is_critical: self.is_critical[number],
                tip: self.tip(number),
            }),
        };
        let mut before = vec![None; report.nodes().len()];
        path.windows(2).for_each(|pair| before[pair[1].node] = Some(pair[0].node as u32));
        // For each node, who was the last to say that it can do without.
        let mut spared_by = vec![None; report.nodes().len()];
        let mut edges = Vec::new();
        for (to, node) in report.nodes().enumerate() {
            node.optional.iter().for_each(|from| spared_by[*from as usize] = Some(to));
            edges.extend(node.inputs.iter().map(|from| Edge {
                from: *from,
                to: to as u32,
                is_optional: spared_by[*from as usize] == Some(to),
                is_critical: before[to] == Some(*from),
                is_idle: Look::of(&node).is_idle(),
            }));
        }
        Picture { name: &report.plan, nodes: report.nodes().enumerate().map(node).collect(), edges }
    }

    /// All that is known of a node.
    pub(super) fn tip(&self, number: usize) -> String {
        let node = &self.report.at(number);
        let op = node.op.as_ref().map(|op| format!("{op}, ")).unwrap_or_default();
        let mut lines = vec![node.name.to_string(), format!("{op}{}: {}", node.kind, look::word(node))];
        let why = look::why(self.report, node);
        if !why.is_empty() {
            lines.push(why);
        }
        if let Some(span) = &node.span {
            lines.push(format!("queued {}, ran {}", brief(queued(span)), ran_in_brief(self.report, span)));
            lines.push(format!("from {} on {}", brief(span.begun), span.thread));
        }
        match self.slack[number] {
            _ if self.is_critical[number] => lines.push("on the critical path".to_owned()),
            Some(slack) => lines.push(format!("slack {}", brief(slack))),
            None => {}
        }
        lines.join("\n")
    }

    /// How long the nodes of the critical path ran, and how long they waited.
    pub(super) fn path_in_brief(&self) -> String {
        let ran: Duration = self.path.iter().map(|step| step.ran).sum();
        let queued: Duration = self.path.iter().map(|step| step.waited).sum();
        format!("ran {}, queued {}", brief(ran), brief(queued))
    }
}

/// What stands in the box of a node.
fn told(report: &Report, node: &NodeReport<'_>) -> String {
    match (Look::of(node), node.span.as_ref()) {
        (Look::Ok, Some(span)) => ran_in_brief(report, span),
        (Look::Ok, None) => "ok".to_owned(),
        (look, Some(span)) if look.is_trouble() => {
            format!("{} · {}", look::word(node), ran_in_brief(report, span))
        }
        _ => look::word(node).to_owned(),
    }
}

/// How long a node waited after its inputs were there.
pub(super) fn queued(span: &Span<'_>) -> Duration {
    span.begun.saturating_sub(span.queued)
}

/// How long a node ran, up to the end of the run.
pub(super) fn ran(report: &Report, span: &Span<'_>) -> Duration {
    span.ended.unwrap_or(report.total).saturating_sub(span.begun)
}

/// The same in words; `> 5 ms` if it had not ended.
pub(super) fn ran_in_brief(report: &Report, span: &Span<'_>) -> String {
    let more = if span.ended.is_none() { "> " } else { "" };
    format!("{more}{}", brief(ran(report, span)))
}

/// The nodes that a list of so many at most shows, in their order: those that stand out, and then those that ran
/// longest.
pub(super) fn chosen(sums: &Sums<'_>, nodes_max: usize) -> Vec<usize> {
    let nodes: Vec<_> = sums.report.nodes().collect();
    let mut chosen: Vec<usize> = (0..nodes.len()).collect();
    if chosen.len() > nodes_max {
        chosen.sort_by_key(|number| {
            let stands_out = sums.is_critical[*number] || Look::of(&nodes[*number]).is_trouble();
            (!stands_out, Reverse(nodes[*number].span.as_ref().map(|span| ran(sums.report, span))))
        });
        chosen.truncate(nodes_max);
        chosen.sort_unstable();
    }
    chosen
}

fn marks(len: usize, marked: impl Iterator<Item = u32>) -> Vec<bool> {
    let mut marks = vec![false; len];
    for node in marked {
        if let Some(mark) = marks.get_mut(node as usize) {
            *mark = true;
        }
    }
    marks
}
