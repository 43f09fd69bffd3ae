//! All nodes of a run, a line for each.

use std::time::Duration;

use super::{
    look::{self, Look},
    picture::{Sums, chosen, queued, ran, ran_in_brief},
    text::Escaped,
    time::brief,
};
use crate::draw::put;

/// So many lines there are: a browser lays out more for seconds.
const LINES_MAX: usize = 2_000;

const HEAD: &str = "<table>\n<thead><tr><th>Node</th><th>Runs</th><th>Thread</th><th class=\"time\">Began</th>\
    <th class=\"time\">Queued</th><th class=\"time\">Ran</th><th class=\"time\">Slack</th><th>End</th><th>Why</th>\
    </tr></thead>\n<tbody>\n";

/// The table, and what it does not show.
pub(super) fn draw(sums: &Sums<'_>) -> (String, Option<String>) {
    let report = sums.report;
    let lines = chosen(sums, LINES_MAX);
    let all = report.nodes().len();
    let note = (lines.len() < all).then(|| {
        format!("{} of {all} nodes are listed: those that stand out, and those that ran longest", lines.len())
    });
    let mut table = String::from(HEAD);
    for number in lines {
        draw_line(&mut table, sums, number);
    }
    table.push_str("</tbody>\n</table>\n");
    (table, note)
}

fn draw_line(table: &mut String, sums: &Sums<'_>, number: usize) {
    let node = &sums.report.at(number);
    let look = Look::of(node).class();
    let critical = if sums.is_critical[number] { " <span class=\"tag\">critical</span>" } else { "" };
    put(
        table,
        format_args!(
            "<tr id=\"n{number}\" class=\"{look}\"><th scope=\"row\"><code>{}</code>{critical}</th><td class=\"runs\">",
            Escaped(node.name)
        ),
    );
    if let Some(op) = &node.op {
        put(table, format_args!("<code>{}</code> · ", Escaped(op)));
    }
    let thread = node.span.as_ref().map_or("", |span| span.thread);
    put(table, format_args!("{}</td><td class=\"thread\">{}</td>", node.kind, Escaped(thread)));
    let span = node.span.as_ref();
    let in_brief = |time: Duration| (time, brief(time));
    let times = [
        span.map(|span| in_brief(span.begun)),
        span.map(|span| in_brief(queued(span))),
        span.map(|span| (ran(sums.report, span), ran_in_brief(sums.report, span))),
        sums.slack[number].map(in_brief),
    ];
    times.into_iter().for_each(|time| draw_time(table, time));
    let (word, why) = (look::word(node), look::why(sums.report, node));
    put(
        table,
        format_args!(
            "<td><span class=\"badge {look}\">{word}</span></td><td class=\"why\">{}</td></tr>\n",
            Escaped(&why)
        ),
    );
}

/// A time in words, with what it is sorted by.
fn draw_time(table: &mut String, time: Option<(Duration, String)>) {
    match time {
        Some((time, told)) => put(
            table,
            format_args!("<td class=\"time\" data-by=\"{}\">{}</td>", time.as_nanos(), Escaped(&told)),
        ),
        None => table.push_str("<td class=\"time\" data-by=\"-1\">–</td>"),
    }
}
