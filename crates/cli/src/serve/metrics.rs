//! What Prometheus is told.

use std::{
    fmt::Write,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use super::service::{Service, Site};

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Ok,
    TimedOut,
    Failed,
    /// The request was wrong.
    Wrong,
    /// Not at all: the client has gone before.
    Cancelled,
}

const SAID: [(Said, &str); 5] = [
    (Said::Ok, "ok"),
    (Said::TimedOut, "timed_out"),
    (Said::Failed, "failed"),
    (Said::Wrong, "wrong"),
    (Said::Cancelled, "cancelled"),
];

/// The upper ends of the buckets, in seconds.
const BUCKETS: [f64; 12] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];

/// The counters of one loop of a server.
pub(super) struct Metrics {
    plans: Vec<PlanMetrics>,
    refused: Counter,
    not_accepted: Counter,
}

#[derive(Default)]
struct PlanMetrics {
    said: [Counter; SAID.len()],
    /// How many took no longer than each bucket's end, and longer than the one before.
    buckets: [Counter; BUCKETS.len()],
    nanos: Counter,
}

/// Counted on one loop, and read on any: no two add to it at the same time.
#[derive(Default)]
struct Counter(AtomicU64);

impl Counter {
    fn add(&self, count: u64) {
        self.0.store(self.get().wrapping_add(count), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Metrics {
    /// For so many plans.
    pub(super) fn new(plans: usize) -> Self {
        Self {
            plans: (0..plans).map(|_| PlanMetrics::default()).collect(),
            refused: Counter::default(),
            not_accepted: Counter::default(),
        }
    }

    /// A request came to its end, whichever.
    pub(super) fn ended(&self, plan: usize, said: Said, took: Duration) {
        let (plan, seconds) = (&self.plans[plan], took.as_secs_f64());
        plan.said[said as usize].add(1);
        plan.nanos.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        if let Some(bucket) = BUCKETS.iter().position(|end| seconds <= *end) {
            plan.buckets[bucket].add(1);
        }
    }

    /// There was too much to do.
    pub(super) fn refused(&self) {
        self.refused.add(1);
    }

    /// A connection could not be accepted.
    pub(super) fn not_accepted(&self) {
        self.not_accepted.add(1);
    }
}

/// A request that is being answered. Whatever becomes of it, it is counted once: on its loop, which drops it if its
/// client goes away.
pub(super) struct Counted<'s> {
    site: &'s Site,
    plan: usize,
    begin: Instant,
    said: Said,
}

impl<'s> Counted<'s> {
    pub(super) fn new(site: &'s Site, plan: usize, begin: Instant) -> Self {
        Self { site, plan, begin, said: Said::Cancelled }
    }

    /// It was answered. Gives when.
    pub(super) fn end(mut self, said: Said) -> Instant {
        self.said = said;
        self.site.events.now()
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let took = self.site.events.now().saturating_duration_since(self.begin);
        self.site.metrics.ended(self.plan, self.said, took);
    }
}

/// The sums over all loops, as Prometheus reads them.
pub(super) fn text(service: &Service) -> String {
    let mut text = String::new();
    let sum = |counter: &dyn Fn(&Metrics) -> &Counter| -> u64 {
        service.sites.iter().map(|site| counter(&site.metrics).get()).sum()
    };
    let plans: Vec<_> = service.names().map(label).enumerate().collect();
    head(&mut text, "ebbtide_requests_total", "counter", "Requests, and how they were answered.");
    for (plan, label) in &plans {
        for (said, name) in SAID {
            let count = sum(&|metrics| &metrics.plans[*plan].said[said as usize]);
            let _ = writeln!(text, "ebbtide_requests_total{{plan=\"{label}\",outcome=\"{name}\"}} {count}");
        }
    }
    head(&mut text, "ebbtide_request_seconds", "histogram", "How long answers took.");
    for (plan, label) in &plans {
        let mut below = 0;
        for (nth, end) in BUCKETS.iter().enumerate() {
            below += sum(&|metrics| &metrics.plans[*plan].buckets[nth]);
            let _ = writeln!(text, "ebbtide_request_seconds_bucket{{plan=\"{label}\",le=\"{end}\"}} {below}");
        }
        let all: u64 =
            SAID.iter().map(|(said, _)| sum(&|metrics| &metrics.plans[*plan].said[*said as usize])).sum();
        let seconds = sum(&|metrics| &metrics.plans[*plan].nanos) as f64 / 1e9;
        let _ = writeln!(text, "ebbtide_request_seconds_bucket{{plan=\"{label}\",le=\"+Inf\"}} {all}");
        let _ = writeln!(text, "ebbtide_request_seconds_sum{{plan=\"{label}\"}} {seconds}");
        let _ = writeln!(text, "ebbtide_request_seconds_count{{plan=\"{label}\"}} {all}");
    }
    let pool = service.app.pool().stats();
    let refused = sum(&|metrics| &metrics.refused);
    let not_accepted = sum(&|metrics| &metrics.not_accepted);
    let (in_flight, open) = (service.requests.in_flight() as u64, service.connections() as u64);
    let one = [
        ("ebbtide_requests_refused_total", "counter", "Requests that were refused: too many.", refused),
        (
            "ebbtide_connections_failed_total",
            "counter",
            "Connections that could not be accepted.",
            not_accepted,
        ),
        ("ebbtide_connections", "gauge", "Connections that are open.", open),
        ("ebbtide_requests_in_flight", "gauge", "Requests that are being answered.", in_flight),
        ("ebbtide_late_nodes", "gauge", "Nodes that go on after their deadline.", service.late_now() as u64),
        ("ebbtide_late_nodes_total", "counter", "Nodes that ended after their deadline.", service.late()),
        ("ebbtide_pool_queued", "gauge", "CPU jobs that wait for a thread.", pool.cpu.queued as u64),
        ("ebbtide_pool_threads", "gauge", "Threads for CPU jobs.", pool.cpu.threads as u64),
    ];
    for (name, kind, about, value) in one {
        head(&mut text, name, kind, about);
        let _ = writeln!(text, "{name} {value}");
    }
    text
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
        let metrics = Metrics::new(1);
        metrics.ended(0, Said::Ok, Duration::from_micros(250));
        metrics.ended(0, Said::Failed, Duration::from_secs(9));
        let plan = &metrics.plans[0];
        assert_eq!(plan.buckets.each_ref().map(Counter::get)[..3], [0, 1, 0]);
        assert_eq!(plan.said.each_ref().map(Counter::get), [1, 0, 1, 0, 0]);
    }
}
