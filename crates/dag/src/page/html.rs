//! The page of a run: what became of it first, then why, then everything.

use super::{
    GRAPH_STYLE, graph, legend,
    look::{self, Look},
    picture::{Picture, Sums, ran_in_brief},
    table,
    text::{Escaped, Px, count},
    time::brief,
    timeline,
};
use crate::{
    draw::put,
    report::{Report, Step},
};

const PAGE_STYLE: &str = include_str!("page.css");

/// Sorts the table. All else works without it. As the page is XML, too, it has no `<` and no `&`.
const SCRIPT: &str = include_str!("page.js");

/// So many nodes that have not ended well are told at the top; the table has all of them.
const TROUBLES_TOLD_MAX: usize = 12;

/// So many nodes of the critical path are named at each of its ends.
const STEPS_TOLD_MAX: usize = 6;

/// So many of them are left out at least: to say that there are fewer takes as much room as to name them.
const STEPS_LEFT_OUT_MIN: usize = 3;

/// Nothing but what is in the page is loaded or run.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

pub(super) fn page(report: &Report) -> String {
    let sums = Sums::of(report);
    let picture = sums.picture();
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\" class=\"ebbtide\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n<title>{}: {}</title>\n\
         <style>\n{GRAPH_STYLE}{PAGE_STYLE}</style>\n</head>\n<body>\n",
        Escaped(&report.plan),
        verdict(report).0,
    );
    draw_header(&mut page, &sums);
    draw_troubles(&mut page, report);
    draw_graph(&mut page, &sums, &picture);
    draw_timeline(&mut page, &sums);
    draw_table(&mut page, &sums);
    put(&mut page, format_args!("<script>\n{SCRIPT}</script>\n</body>\n</html>\n"));
    page
}

/// What became of the run, in words and as a colour.
fn verdict(report: &Report) -> (&'static str, Look) {
    match report.code {
        None => ("ok", Look::Ok),
        Some("R001") => ("deadline exceeded", Look::TimedOut),
        Some("R002") => ("expired before it began", Look::TimedOut),
        Some("R003") => ("timed out", Look::TimedOut),
        Some("R006") => ("cancelled", Look::Cancelled),
        Some("R007" | "R008") => ("refused", Look::Cancelled),
        Some(_) => ("failed", Look::Failed),
    }
}

fn draw_header(page: &mut String, sums: &Sums<'_>) {
    let report = sums.report;
    let (word, look) = verdict(report);
    put(
        page,
        format_args!(
            "<header>\n<h1>{} <span class=\"badge {}\">{word}</span></h1>\n",
            Escaped(&report.plan),
            look.class()
        ),
    );
    if let Some(error) = &report.error {
        put(page, format_args!("<p class=\"error {}\">{}</p>\n", look.class(), Escaped(error)));
    }
    page.push_str("<dl class=\"facts\">\n");
    let mut fact = |what: &str, value: &str, more: &str, class: &str| {
        put(
            page,
            format_args!(
                "<div><dt>{what}</dt><dd>{value} <small class=\"{class}\">{more}</small></dd></div>\n"
            ),
        );
    };
    fact("Total", &brief(report.total), "", "");
    match report.deadline {
        None => fact("Deadline", "none", "", ""),
        Some(deadline) if report.total > deadline => {
            let over = format!("exceeded by {}", brief(report.total - deadline));
            fact("Deadline", &brief(deadline), &over, "over");
        }
        Some(deadline) if matches!(report.code, Some("R001" | "R002")) => {
            fact("Deadline", &brief(deadline), "exceeded", "over");
        }
        Some(deadline) => {
            fact("Deadline", &brief(deadline), &format!("{} left", brief(deadline - report.total)), "");
        }
    }
    let looks = Look::ALL.into_iter().rev().filter_map(|look| {
        let number = report.nodes().filter(|node| Look::of(node) == look).count();
        (number > 0).then(|| format!("{number}&#160;{}", look.word().replace(' ', "&#160;")))
    });
    let looks: Vec<String> = looks.collect();
    fact("Nodes", &report.nodes().len().to_string(), &looks.join(", "), "");
    if !sums.path.is_empty() {
        fact("Critical path", &count(sums.path.len(), "node"), &sums.path_in_brief(), "");
    }
    page.push_str("</dl>\n</header>\n");
}

/// Nodes that have not ended well, the worst first.
fn draw_troubles(page: &mut String, report: &Report) {
    let nodes = report.nodes().enumerate();
    let mut troubles: Vec<_> = nodes.filter(|(_, node)| Look::of(node).is_trouble()).collect();
    if troubles.is_empty() {
        return;
    }
    troubles.sort_by_key(|(_, node)| Look::ALL.iter().position(|look| *look == Look::of(node)));
    page.push_str("<section>\n<h2>What went wrong</h2>\n<ul class=\"troubles\">\n");
    for (number, node) in troubles.iter().take(TROUBLES_TOLD_MAX) {
        put(
            page,
            format_args!(
                "<li class=\"{}\"><a href=\"#n{number}\"><code>{}</code></a> <span class=\"badge {0}\">{}</span> <span \
                 class=\"why\">{}</span></li>\n",
                Look::of(node).class(),
                Escaped(node.name),
                look::word(node),
                Escaped(&look::why(report, node))
            ),
        );
    }
    page.push_str("</ul>\n");
    if troubles.len() > TROUBLES_TOLD_MAX {
        let more = count(troubles.len() - TROUBLES_TOLD_MAX, "more node");
        put(page, format_args!("<p class=\"note\">{more} in the table below</p>\n"));
    }
    page.push_str("</section>\n");
}

fn draw_graph(page: &mut String, sums: &Sums<'_>, picture: &Picture<'_>) {
    // Smaller than this part of its size it is scrolled, not shrunk: it has to be read.
    const SHRINKS_TO: f64 = 0.6;
    let drawn = graph::draw(picture);
    page.push_str("<section>\n<h2>Graph</h2>\n");
    draw_path(page, sums);
    put(
        page,
        format_args!(
            "<div class=\"scroll\"><svg class=\"graph\" role=\"group\" aria-label=\"graph\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" style=\"min-width:{}px\">\n{}</svg></div>\n{}",
            Px(drawn.width * SHRINKS_TO),
            drawn.body,
            legend::list(picture),
            w = Px(drawn.width),
            h = Px(drawn.height),
        ),
    );
    if let Some(note) = drawn.note {
        put(page, format_args!("<p class=\"note\">{note}</p>\n"));
    }
    page.push_str("</section>\n");
}

/// The critical path as a line of names.
fn draw_path(page: &mut String, sums: &Sums<'_>) {
    if sums.path.is_empty() {
        return;
    }
    let len = sums.path.len();
    let left_out = Some(len.saturating_sub(2 * STEPS_TOLD_MAX)).filter(|more| *more >= STEPS_LEFT_OUT_MIN);
    page.push_str("<p class=\"path\"><span class=\"tag\">critical</span> ");
    for (nth, Step { node: number, .. }) in sums.path.iter().enumerate() {
        if let Some(left_out) = left_out {
            if nth == STEPS_TOLD_MAX {
                put(page, format_args!(" → … {} … ", count(left_out, "more node")));
            }
            if (STEPS_TOLD_MAX..len - STEPS_TOLD_MAX).contains(&nth) {
                continue;
            }
        }
        let node = &sums.report.at(*number);
        let ran = node.span.as_ref().map(|span| ran_in_brief(sums.report, span)).unwrap_or_default();
        let arrow = if nth == 0 { "" } else { " → " };
        put(
            page,
            format_args!(
                "{arrow}<a href=\"#n{number}\"><code>{}</code></a>&#160;<small>{}</small>",
                Escaped(node.name),
                Escaped(&ran)
            ),
        );
    }
    page.push_str("</p>\n");
}

fn draw_timeline(page: &mut String, sums: &Sums<'_>) {
    page.push_str("<section>\n<h2>Timeline</h2>\n");
    if sums.report.nodes().any(|node| node.span.is_some()) {
        let timeline = timeline::draw(sums);
        put(page, format_args!("<div class=\"scroll\">{}</div>\n", timeline.svg));
        page.push_str(
            "<p class=\"note\">By thread; thin and light: queued, its inputs are there; full: it runs; \
             an arrow: it went on, late",
        );
        timeline.notes.iter().for_each(|note| put(page, format_args!("; {note}")));
        page.push_str("</p>\n");
    } else {
        let has_begun = sums.report.nodes().any(|node| node.attempts > 0);
        let why = if sums.report.traced || !has_begun {
            "no node has begun"
        } else {
            "the run was not traced, so there are no times"
        };
        put(page, format_args!("<p class=\"note\">{why}</p>\n"));
    }
    page.push_str("</section>\n");
}

fn draw_table(page: &mut String, sums: &Sums<'_>) {
    let (table, note) = table::draw(sums);
    put(page, format_args!("<section>\n<h2>Nodes</h2>\n<div class=\"wide\">{table}</div>\n"));
    if sums.slack.iter().any(Option::is_some) {
        page.push_str(
            "<p class=\"note\">Slack: how much longer a node could have taken without the run ending later; nodes of the \
             critical path have none</p>\n",
        );
    }
    if let Some(note) = note {
        put(page, format_args!("<p class=\"note\">{note}</p>\n"));
    }
    page.push_str("</section>\n");
}
