//! Pictures of a plan, and of a run.

use std::fmt::Write;

use crate::{
    graph::Kind,
    plan::Compiled,
    reach::Reach,
    report::{NodeEnd, Report, Span},
};

/// What a picture shows of a plan.
pub(crate) struct Drawing<'a> {
    name: &'a str,
    nodes: Vec<(&'a str, Kind)>,
    /// From, to, and whether it can do without.
    edges: Vec<(u32, u32, bool)>,
    outputs: Vec<u32>,
}

impl<R, M: Reach> Compiled<R, M> {
    pub(crate) fn drawing(&self) -> Drawing<'_> {
        let edges = self.predecessors.iter().enumerate().flat_map(|(node, inputs)| {
            inputs.iter().map(move |edge| (edge.node, node as u32, !edge.required))
        });
        Drawing {
            name: &self.name,
            nodes: self.outline.nodes.iter().map(|info| (&*info.name, info.kind)).collect(),
            edges: edges.collect(),
            outputs: self.outputs.iter().map(|edge| edge.node).collect(),
        }
    }
}

/// In the language of Graphviz.
pub(crate) fn dot(drawing: &Drawing<'_>) -> String {
    let mut text = format!("digraph \"{}\" {{\n  rankdir=LR;\n", escape(drawing.name));
    for (node, (name, kind)) in drawing.nodes.iter().enumerate() {
        let shape = match kind {
            Kind::Inline => "ellipse",
            Kind::Async => "box, style=rounded",
            Kind::Cpu => "box",
            Kind::Blocking => "box, style=dashed",
        };
        let bold = if drawing.outputs.contains(&(node as u32)) { ", penwidth=2" } else { "" };
        put(&mut text, format_args!("  n{node} [label=\"{}\", shape={shape}{bold}];\n", escape(name)));
    }
    for (from, to, optional) in &drawing.edges {
        let style = if *optional { " [style=dashed]" } else { "" };
        put(&mut text, format_args!("  n{from} -> n{to}{style};\n"));
    }
    text.push_str("}\n");
    text
}

/// In the language of Mermaid.
pub(crate) fn mermaid(drawing: &Drawing<'_>) -> String {
    let mut text = String::from("flowchart LR\n");
    for (node, (name, kind)) in drawing.nodes.iter().enumerate() {
        let (open, close) = match kind {
            Kind::Inline => ("(", ")"),
            Kind::Async => ("([", "])"),
            Kind::Cpu => ("[", "]"),
            Kind::Blocking => ("[[", "]]"),
        };
        let name = name.replace('"', "#quot;").replace(char::is_control, " ");
        put(&mut text, format_args!("  n{node}{open}\"{name}\"{close}\n"));
    }
    for (from, to, optional) in &drawing.edges {
        let arrow = if *optional { "-.->" } else { "-->" };
        put(&mut text, format_args!("  n{from} {arrow} n{to}\n"));
    }
    for output in &drawing.outputs {
        put(&mut text, format_args!("  style n{output} stroke-width:3px\n"));
    }
    text
}

impl Report {
    /// The run as a trace that Perfetto and Chrome open: a row for each thread, an arrow for each input. Without
    /// events unless the run was traced.
    #[must_use]
    pub fn chrome_trace(&self) -> String {
        let mut threads: Vec<&str> = Vec::new();
        let mut events = Vec::new();
        let micros = |time: std::time::Duration| time.as_nanos() as f64 / 1e3;
        let took = self.took();
        for (number, node) in self.nodes().enumerate() {
            let Some(Span { queued, begun, ended, thread }) = node.span else { continue };
            let row = threads.iter().position(|known| *known == thread).unwrap_or_else(|| {
                threads.push(thread);
                threads.len() - 1
            });
            let ended = ended.unwrap_or(took.max(begun));
            let (name, category) = (json(node.name), if *node.end == NodeEnd::Ok { "ok" } else { "bad" });
            events.push(format!(
                "{{\"name\":{name},\"cat\":\"{category}\",\"ph\":\"X\",\"ts\":{:.3},\"dur\":{:.3},\"pid\":1,\
                 \"tid\":{row},\"args\":{{\"kind\":\"{}\",\"end\":{},\"queued_us\":{:.3},\"attempts\":{}}}}}",
                micros(begun),
                micros(ended.saturating_sub(begun)),
                node.kind,
                json(&node.end.to_string()),
                micros(begun.saturating_sub(queued)),
                node.attempts,
            ));
            for input in node.inputs.iter() {
                let Some(Span { ended: Some(from), thread: from_thread, .. }) = self.at(*input as usize).span
                else {
                    continue;
                };
                let from_row = threads.iter().position(|known| *known == from_thread).unwrap_or_else(|| {
                    threads.push(from_thread);
                    threads.len() - 1
                });
                // An arrow has to begin and end within the nodes' own bars.
                let id = number << 16 | *input as usize;
                let from = micros(from) - 0.001;
                events.push(format!(
                    "{{\"name\":\"input\",\"cat\":\"input\",\"ph\":\"s\",\"id\":{id},\"ts\":{from:.3},\"pid\":1,\
                     \"tid\":{from_row}}}"
                ));
                events.push(format!(
                    "{{\"name\":\"input\",\"cat\":\"input\",\"ph\":\"f\",\"bp\":\"e\",\"id\":{id},\"ts\":{:.3},\
                     \"pid\":1,\"tid\":{row}}}",
                    micros(begun)
                ));
            }
        }
        let names = threads.iter().enumerate().map(|(row, thread)| {
            format!(
                "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":{row},\"args\":{{\"name\":{}}}}}",
                json(thread)
            )
        });
        let plan = format!(
            "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{{\"name\":{}}}}}",
            json(&self.plan)
        );
        let all: Vec<_> = std::iter::once(plan).chain(names).chain(events).collect();
        format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n", all.join(",\n"))
    }
}

pub(crate) fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a string takes all that is written");
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A string as JSON has it.
fn json(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if c < ' ' => put(&mut quoted, format_args!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
