//! The chart of the README: what ebbtide costs, as a ratio to the best peer of each workload.
//!
//! The scale is logarithmic, so that half and twice are as far from the line at 1. It has a ground of its own, in the
//! reader's colours, because the page that shows it may have others.

use super::{summary::workload, table::Table};

/// All in pixels, before the page scales it.
const WIDTH: f64 = 940.0;
const LINE: f64 = 19.0;
const HEADING: f64 = 28.0;
const TOP: f64 = 78.0;
const BOTTOM: f64 = 16.0;

/// From here to there the ratios are drawn; left of it is the workload, and right of it the peer.
const LEFT: f64 = 404.0;
const RIGHT: f64 = 676.0;

/// The ratios at the ends of the scale. What is beyond is drawn to the end, with its number.
const LEAST: f64 = 0.02;
const MOST: f64 = 4.0;

/// What has a line and a number at the top.
const TICKS: [(f64, &str); 6] =
    [(0.02, "1/50"), (0.1, "1/10"), (0.25, "1/4"), (0.5, "1/2"), (1.0, "1"), (2.0, "2")];

/// How many letters of a text there is room for.
const WORKLOAD_LETTERS: usize = 60;
const PEER_LETTERS: usize = 34;

const STYLE: &str = "\
text{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#1f2933}\
.ground{fill:#ffffff}.title{font-size:15px;font-weight:600}.area{font-weight:600;font-size:13px}\
.quiet{fill:#5b6773}.number{font-weight:600;font-size:11px}.grid{stroke:#dfe4e8}.one{stroke:#1f2933;stroke-width:1.5}\
.less{fill:#12838c}.more{fill:#c2571a}\
@media(prefers-color-scheme:dark){text{fill:#e3e9ee}.ground{fill:#0e151b}.quiet{fill:#93a1ad}.grid{stroke:#2a353f}\
.one{stroke:#e3e9ee}.less{fill:#35b3b8}.more{fill:#ee8a4a}}";

/// A bar for each target of each area that has a peer to be compared with.
pub(super) fn svg(areas: &[(String, Vec<Table>)]) -> String {
    let (mut body, mut y) = (String::new(), TOP);
    for (area, tables) in areas {
        let bars: Vec<_> = tables.iter().flat_map(bars).collect();
        if bars.is_empty() {
            continue;
        }
        y += HEADING;
        body += &format!("<text class=\"area\" x=\"16\" y=\"{:.0}\">{}</text>\n", y - 8.0, escape(area));
        for bar in bars {
            body += &bar.svg(y);
            y += LINE;
        }
    }
    let height = y + BOTTOM;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" width=\"{WIDTH:.0}\" \
         height=\"{height:.0}\" role=\"img\" aria-label=\"Cost of ebbtide as a ratio to the best peer of each \
         workload; less is better\">\n<style>{STYLE}</style>\n\
         <rect class=\"ground\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n{}{body}</svg>\n",
        frame(height)
    )
}

/// The title, and the lines of the scale.
fn frame(height: f64) -> String {
    let middle = x(1.0);
    let mut text = format!(
        "<text class=\"title\" x=\"16\" y=\"28\">What ebbtide costs, where the best peer of each workload costs 1</text>\n\
         <text class=\"quiet\" x=\"{:.0}\" y=\"50\" text-anchor=\"end\">◀ cheaper than the best peer</text>\n\
         <text class=\"quiet\" x=\"{:.0}\" y=\"50\">dearer ▶</text>\n\
         <text class=\"quiet\" x=\"{:.0}\" y=\"70\">best peer</text>\n",
        middle - 8.0,
        middle + 8.0,
        RIGHT + 12.0
    );
    for (ratio, label) in TICKS {
        let (x, end) = (x(ratio), height - BOTTOM / 2.0);
        let class = if ratio == 1.0 { "one" } else { "grid" };
        text += &format!(
            "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"76\" y2=\"{end:.0}\"/>\
             <text class=\"quiet\" x=\"{x:.1}\" y=\"70\" text-anchor=\"middle\">{label}</text>\n"
        );
    }
    text
}

/// Where a ratio lies.
fn x(ratio: f64) -> f64 {
    let share = (ratio.clamp(LEAST, MOST) / LEAST).ln() / (MOST / LEAST).ln();
    LEFT + share * (RIGHT - LEFT)
}

struct Bar {
    workload: String,
    peer: String,
    ratio: f64,
}

fn bars(table: &Table) -> impl Iterator<Item = Bar> {
    table.verdicts().filter_map(|(row, _)| {
        let (peer, ratio) = row.best_peer.clone()?;
        Some(Bar { workload: workload(table, row), peer, ratio })
    })
}

impl Bar {
    fn svg(&self, top: f64) -> String {
        let Self { workload, peer, ratio } = self;
        let (end, middle) = (x(*ratio), x(1.0));
        let (class, left, number, anchor) = if *ratio <= 1.0 {
            ("less", end, middle + 5.0, "start")
        } else {
            ("more", middle, middle - 5.0, "end")
        };
        let (width, text) = ((end - middle).abs().max(1.0), top + 13.0);
        format!(
            "<text x=\"{:.0}\" y=\"{text:.0}\" text-anchor=\"end\">{}</text>\
             <rect class=\"{class}\" x=\"{left:.1}\" y=\"{:.0}\" width=\"{width:.1}\" height=\"12\" rx=\"1.5\"/>\
             <text class=\"number\" x=\"{number:.1}\" y=\"{text:.0}\" text-anchor=\"{anchor}\">{ratio:.2}</text>\
             <text class=\"quiet\" x=\"{:.0}\" y=\"{text:.0}\">{}</text>\n",
            LEFT - 10.0,
            escape(&shortened(workload, WORKLOAD_LETTERS)),
            top + 3.0,
            RIGHT + 12.0,
            escape(&shortened(peer, PEER_LETTERS)),
        )
    }
}

fn shortened(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters - 1).chain(['…']).collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::{
        super::table::{read, tests::LINES},
        *,
    };

    #[test]
    fn half_and_twice_are_as_far_from_the_line() {
        assert!((x(1.0) - x(0.5) - (x(2.0) - x(1.0))).abs() < 1e-9);
        assert_eq!(x(0.0), LEFT);
        assert_eq!(x(100.0), RIGHT);
    }

    #[test]
    fn a_bar_is_drawn_where_there_is_a_peer_and_nowhere_else() {
        let svg = svg(&[("loop & more".to_owned(), read(LINES).unwrap())]);
        assert_eq!(svg.matches("class=\"less\"").count(), 1);
        assert!(svg.contains(">0.75</text>") && svg.contains(">monoio</text>"), "{svg}");
        assert!(svg.contains("loop &amp; more") && !svg.contains("class=\"more\""), "{svg}");
    }

    #[test]
    fn long_texts_are_cut_off() {
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(shortened("abcd", 3), "ab…");
    }
}
