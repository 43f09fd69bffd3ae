//! `ebbtide bench`: many requests, and how long they took.

use std::{
    fmt::Write,
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ebbtide::{App, dag::RunError, lifecycle::Token, reactor::Handle, sleep, spawn, yield_now};
use ebbtide_rank::{Endpoints, Request};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::{
    args,
    engine::Engine,
    fault::{Fault, code},
    histogram::Histogram,
    inside,
    library::Library,
    loops::loops,
    registry, request, sources,
    terminal::{Terminal, visible},
};

/// How often the bar is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(100);

/// How long nodes that are late are waited for, to be counted.
const LATE: Duration = Duration::from_secs(2);

/// What became of the requests.
#[derive(Default)]
struct Tally {
    lengths: Histogram,
    ok: u64,
    timed_out: u64,
    failed: u64,
    /// The first error that is not about time.
    error: Option<String>,
}

/// What was measured.
struct Measured {
    tally: Tally,
    plan: String,
    nodes: usize,
    took: Duration,
    late: u64,
}

pub(crate) fn bench(args: args::Bench, library: Library, terminal: Terminal) -> Result<(), Fault> {
    let (json, concurrency, wanted) = (args.json, args.concurrency, args.requests);
    let app = inside::brief(&args.terms);
    let measured = inside::run_brief(app, async move |app| {
        let endpoints = sources::endpoints(&args.sources, &app).await?;
        let registry = ebbtide_rank::registry(app.handle().clone(), &endpoints);
        let plan = registry::read(&registry, &library, &args.plan)?;
        let request = Arc::new(request::request(&app, &args.request, &plan).await?);
        let engine = Engine::bind(&app, plan, &endpoints, &args.terms)?;
        let desks = desks(&app, engine, &endpoints, &args)?;
        Ok(measure(&app, &desks, &request, &args).await)
    })?;
    let text = if json { as_json(&measured, concurrency) } else { as_text(&measured, concurrency, terminal) };
    terminal.print(text)?;
    if measured.requests() < wanted {
        terminal.warn(format_args!("it was stopped after {} of {wanted} requests", measured.requests()));
    }
    match &measured.tally {
        // Timeouts are a result like another. What fails each time is not.
        Tally { ok: 0, timed_out: 0, error: Some(error), .. } => Err(Fault::new(code::FAILED, error.clone())),
        Tally { failed, error: Some(error), .. } => {
            terminal.warn(format_args!("{failed} requests failed; the first: {error}"));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A loop, with an engine of its own and what became of the requests there.
struct Desk {
    events: Handle,
    engine: Engine,
    tally: Arc<Mutex<Tally>>,
}

/// The app's own loop and as many others as are wanted.
fn desks(app: &App, engine: Engine, endpoints: &Endpoints, args: &args::Bench) -> Result<Vec<Desk>, Fault> {
    let mut engines = vec![(app.handle().clone(), engine)];
    for events in loops(app, args.loops, args.concurrency as usize)?.into_iter().skip(1) {
        let engine = engines[0].1.for_loop(app, &events, endpoints, &args.terms)?;
        engines.push((events, engine));
    }
    let desk = |(events, engine)| Desk { events, engine, tally: Arc::default() };
    Ok(engines.into_iter().map(desk).collect())
}

async fn measure(app: &App, desks: &[Desk], request: &Arc<Request>, args: &args::Bench) -> Measured {
    let left = Arc::new(AtomicU64::new(args.requests));
    let late = || {
        use ebbtide::lifecycle::Component;

        desks.iter().map(|desk| desk.engine.late()).sum::<u64>() + app.runners().balance().late
    };
    let late_before = late();
    let begin = app.handle().now();
    let asker = |desk: &Desk| {
        let asking = ask(desk, left.clone(), request.clone(), app.token(), begin);
        desk.events.spawn(asking).ok()
    };
    let askers: Vec<_> = desks.iter().cycle().take(args.concurrency as usize).filter_map(asker).collect();
    let drawing = spawn(draw(args.requests, left.clone()));
    for asker in askers {
        // None of them panics; if one did, what it has not counted would be missing from the sum.
        let _ = asker.await;
    }
    let took = app.handle().now() - begin;
    left.store(0, Ordering::Relaxed);
    if let Ok(drawing) = drawing {
        let _ = drawing.await;
    }
    // Those that are late now are counted when they have ended, unless that takes too long.
    let idle = async {
        app.runners().wait_idle().await;
        app.pool().wait_idle().await;
    };
    let _ = ebbtide::timeout::timeout(app.handle(), LATE, idle).await;
    let mut tally = Tally::default();
    desks.iter().for_each(|desk| tally.add(&lock(&desk.tally)));
    let engine = &desks[0].engine;
    Measured {
        tally,
        plan: engine.name().to_owned(),
        nodes: engine.plan().len(),
        took,
        late: late() - late_before,
    }
}

/// One of those who ask: as long as requests are left, one after the other. Each is due as soon as the one before has
/// its answer, the first one at `due`, and has waited since then: the others, whose turn it is meanwhile, are a part
/// of that.
fn ask(
    desk: &Desk,
    left: Arc<AtomicU64>,
    request: Arc<Request>,
    token: Token,
    mut due: Instant,
) -> impl Future<Output = ()> + Send + use<> {
    let (engine, clock, tally) = (desk.engine.clone(), desk.events.clone(), desk.tally.clone());
    async move {
        let mut answer = Vec::new();
        while !token.is_triggered() && takes_one(&left) {
            let result = engine.run(request.clone()).cancelled_by(&token).await;
            let end = clock.now();
            {
                // Those who ask on one loop are never in here at the same time.
                let mut tally = lock(&tally);
                match result {
                    Ok(outputs) => {
                        answer.clear();
                        engine.write(&request, &outputs, None, &mut answer);
                        tally.ok += 1;
                    }
                    Err(RunError::Deadline { .. } | RunError::TimedOut { .. } | RunError::Expired) => {
                        tally.timed_out += 1;
                    }
                    // What was cut off by a stop says nothing of the plan.
                    Err(RunError::Cancelled { .. }) => return,
                    Err(error) => {
                        tally.failed += 1;
                        tally.error.get_or_insert_with(|| error.to_string());
                    }
                }
                tally.lengths.record(end - due);
            }
            due = end;
            // A plan that has nothing to wait for would leave the loop to nobody else.
            yield_now().await;
        }
    }
}

fn takes_one(left: &AtomicU64) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws a bar until nothing is left, if standard error is a terminal.
async fn draw(requests: u64, left: Arc<AtomicU64>) {
    let bar = ProgressBar::new(requests);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} requests, {per_sec}, {eta} to go");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    while !bar.is_hidden() {
        // First: of what has only begun there is no rate.
        sleep(DRAWN_EVERY).await;
        let left = left.load(Ordering::Relaxed);
        if left == 0 {
            break;
        }
        bar.set_position(requests - left);
    }
    bar.finish_and_clear();
}

const SHARES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

impl Tally {
    fn add(&mut self, other: &Self) {
        self.lengths.add(&other.lengths);
        self.ok += other.ok;
        self.timed_out += other.timed_out;
        self.failed += other.failed;
        if self.error.is_none() {
            self.error.clone_from(&other.error);
        }
    }
}

impl Measured {
    fn requests(&self) -> u64 {
        self.tally.ok + self.tally.timed_out + self.tally.failed
    }

    fn per_second(&self) -> f64 {
        self.requests() as f64 / self.took.as_secs_f64().max(1e-9)
    }

    fn nanos_per_node(&self) -> f64 {
        self.took.as_nanos() as f64 / (self.requests().max(1) * self.nodes.max(1) as u64) as f64
    }
}

fn as_text(measured: &Measured, concurrency: u32, terminal: Terminal) -> String {
    let Measured { tally, plan, nodes, took, late } = measured;
    let mut text = String::new();
    let (plan, requests) = (visible(plan), measured.requests());
    let nodes = if *nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
    let _ =
        writeln!(text, "plan {plan} of {nodes}, {requests} requests, {concurrency} at a time, {took:.2?}");
    let _ = writeln!(text, "{}  {:.0} requests/s", terminal.bold("throughput"), measured.per_second());
    let _ = write!(text, "{}     ", terminal.bold("latency"));
    for (name, share) in SHARES {
        let _ = write!(text, "{name} {:.1?}, ", tally.lengths.quantile(share));
    }
    let _ = writeln!(text, "max {:.1?}", tally.lengths.max());
    let _ = writeln!(
        text,
        "{}    {} ok, {} timed out, {} failed, {late} late",
        terminal.bold("outcomes"),
        tally.ok,
        tally.timed_out,
        tally.failed
    );
    let _ = writeln!(text, "{}    {:.0} ns", terminal.bold("per node"), measured.nanos_per_node());
    text
}

fn as_json(measured: &Measured, concurrency: u32) -> String {
    let Measured { tally, plan, nodes, took, late } = measured;
    let micros = |length: Duration| length.as_nanos() as f64 / 1e3;
    let mut json = json!({
        "plan": plan,
        "nodes": nodes,
        "requests": measured.requests(),
        "concurrency": concurrency,
        "seconds": took.as_secs_f64(),
        "requests_per_second": measured.per_second(),
        "max_us": micros(tally.lengths.max()),
        "ok": tally.ok,
        "timed_out": tally.timed_out,
        "failed": tally.failed,
        "late": late,
        "ns_per_node": measured.nanos_per_node(),
        "error": tally.error,
    });
    for (name, share) in SHARES {
        json[format!("{name}_us")] = micros(tally.lengths.quantile(share)).into();
    }
    format!("{json}\n")
}
