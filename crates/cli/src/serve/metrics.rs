//! What Prometheus is told.

use std::{cell::Cell, fmt::Write, time::Duration};

use ebbtide::{App, lifecycle::Component};

use crate::engine::Engine;

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Ok,
    TimedOut,
    Failed,
    /// The request was wrong.
    Wrong,
}

const SAID: [(Said, &str); 4] =
    [(Said::Ok, "ok"), (Said::TimedOut, "timed_out"), (Said::Failed, "failed"), (Said::Wrong, "wrong")];

/// The upper ends of the buckets, in seconds.
const BUCKETS: [f64; 12] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];

/// The counters of a server. All is counted on its loop.
pub(super) struct Metrics {
    plans: Vec<PlanMetrics>,
    refused: Cell<u64>,
    not_accepted: Cell<u64>,
}

struct PlanMetrics {
    name: String,
    said: [Cell<u64>; SAID.len()],
    /// How many took no longer than each bucket's end, and longer than the one before.
    buckets: [Cell<u64>; BUCKETS.len()],
    seconds: Cell<f64>,
}

impl Metrics {
    pub(super) fn new<'a>(plans: impl Iterator<Item = &'a str>) -> Self {
        let plan = |name: &str| PlanMetrics {
            name: name.to_owned(),
            said: Default::default(),
            buckets: Default::default(),
            seconds: Cell::default(),
        };
        Self { plans: plans.map(plan).collect(), refused: Cell::default(), not_accepted: Cell::default() }
    }

    pub(super) fn answered(&self, plan: usize, said: Said, took: Duration) {
        let (plan, seconds) = (&self.plans[plan], took.as_secs_f64());
        add(&plan.said[said as usize]);
        plan.seconds.set(plan.seconds.get() + seconds);
        if let Some(bucket) = BUCKETS.iter().position(|end| seconds <= *end) {
            add(&plan.buckets[bucket]);
        }
    }

    /// There was too much to do.
    pub(super) fn refused(&self) {
        add(&self.refused);
    }

    /// A connection could not be accepted.
    pub(super) fn not_accepted(&self) {
        add(&self.not_accepted);
    }

    /// All of it, as Prometheus reads it.
    pub(super) fn text(&self, app: &App, engines: &[Engine], in_flight: usize) -> String {
        let mut text = String::new();
        head(&mut text, "ebbtide_requests_total", "counter", "Requests that were answered.");
        for plan in &self.plans {
            for (said, name) in SAID {
                let count = plan.said[said as usize].get();
                let _ = writeln!(
                    text,
                    "ebbtide_requests_total{{plan=\"{}\",outcome=\"{name}\"}} {count}",
                    label(&plan.name)
                );
            }
        }
        head(&mut text, "ebbtide_request_seconds", "histogram", "How long answers took.");
        for plan in &self.plans {
            let (name, mut below) = (label(&plan.name), 0);
            for (end, count) in BUCKETS.iter().zip(&plan.buckets) {
                below += count.get();
                let _ =
                    writeln!(text, "ebbtide_request_seconds_bucket{{plan=\"{name}\",le=\"{end}\"}} {below}");
            }
            let all: u64 = plan.said.iter().map(Cell::get).sum();
            let _ = writeln!(text, "ebbtide_request_seconds_bucket{{plan=\"{name}\",le=\"+Inf\"}} {all}");
            let _ = writeln!(text, "ebbtide_request_seconds_sum{{plan=\"{name}\"}} {}", plan.seconds.get());
            let _ = writeln!(text, "ebbtide_request_seconds_count{{plan=\"{name}\"}} {all}");
        }
        let late = engines.iter().map(Engine::late).sum::<u64>() + app.runners().balance().late;
        let pool = app.pool().stats();
        let one = [
            (
                "ebbtide_requests_refused_total",
                "counter",
                "Requests that were refused: too many.",
                self.refused.get(),
            ),
            (
                "ebbtide_connections_failed_total",
                "counter",
                "Connections that could not be accepted.",
                self.not_accepted.get(),
            ),
            ("ebbtide_requests_in_flight", "gauge", "Requests that are being answered.", in_flight as u64),
            ("ebbtide_late_nodes_total", "counter", "Nodes that ended after their deadline.", late),
            ("ebbtide_pool_queued", "gauge", "CPU jobs that wait for a thread.", pool.cpu.queued as u64),
            ("ebbtide_pool_threads", "gauge", "Threads for CPU jobs.", pool.cpu.threads as u64),
        ];
        for (name, kind, about, value) in one {
            head(&mut text, name, kind, about);
            let _ = writeln!(text, "{name} {value}");
        }
        text
    }
}

fn add(count: &Cell<u64>) {
    count.set(count.get() + 1);
}

fn head(text: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(text, "# HELP {name} {about}\n# TYPE {name} {kind}");
}

/// A name as it stands in a label.
fn label(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_labels_are_escaped() {
        assert_eq!(label("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }

    #[test]
    fn each_answer_is_in_the_bucket_that_ends_after_it() {
        let metrics = Metrics::new(["feed"].into_iter());
        metrics.answered(0, Said::Ok, Duration::from_micros(250));
        metrics.answered(0, Said::Failed, Duration::from_secs(9));
        let plan = &metrics.plans[0];
        assert_eq!(plan.buckets.each_ref().map(Cell::get)[..3], [0, 1, 0]);
        assert_eq!(plan.said.each_ref().map(Cell::get), [1, 0, 1, 0]);
    }
}
