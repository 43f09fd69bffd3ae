//! `ebbtide worker`: requests from a queue. `ebbtide send` puts them there.

mod lines;
mod memory;
mod send;

use std::{num::NonZero, sync::Arc, time::Duration};

pub(crate) use self::send::send;
use ebbtide::{
    App,
    mailbox::{
        Mailbox, Pull, RedisMailbox, Span,
        worker::{GiveUp, HandlerResult, Job, Retry, Worker},
    },
    redis::{Link, Settings},
    shutdown::Priority,
};
use ebbtide_rank::Request;

use crate::{
    args,
    engine::Engine,
    fault::{Fault, code},
    inside,
    library::Library,
    registry,
    serve::drain_timeout,
    sources,
    terminal::Terminal,
};

/// What requests that are given up on are put into: a queue of this name, after that of the requests.
const DEAD: &str = "dead";

/// How long after a failure a request is tried again, and how long at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

type Loop = ebbtide::reactor::Handle;

pub(crate) fn worker(args: args::Worker, library: Library, terminal: Terminal) -> Result<(), Fault> {
    let in_memory = args.mailbox.mailbox == "memory";
    let app =
        if in_memory { inside::builder(&args.terms).observer(|_| ()) } else { inside::lasting(&args.terms) };
    let mut app = app.readiness_delay(args.drain.readiness_delay_ms);
    if let Some(timeout) = drain_timeout(&args.drain)? {
        app = app.drain_timeout(timeout);
    }
    inside::run(app, async move |app| {
        let endpoints = sources::endpoints(&args.sources, &app).await?;
        let registry = ebbtide_rank::registry(app.handle().clone(), &endpoints);
        let plan = registry::read(&registry, &library, &args.plan)?;
        for warning in plan.warnings() {
            terminal.warn(warning);
        }
        let engine = Engine::bind(&app, plan, &endpoints, &args.terms)?;
        if in_memory {
            memory::work(&app, &args, engine, terminal).await
        } else {
            on_redis(&app, &args, engine, terminal).await
        }
    })
}

/// Works off a queue on a server, until it is told to stop.
async fn on_redis(app: &App, args: &args::Worker, engine: Engine, terminal: Terminal) -> Result<(), Fault> {
    let link = link(app, &args.mailbox.mailbox).await?;
    let queue = open(&link, &args.mailbox.queue).await?;
    let dead = open(&link, &format!("{}:{DEAD}", args.mailbox.queue)).await?;
    let worker = build(app, args, engine, Arc::new(queue), Some(Arc::new(dead)), terminal)?;
    start(app, &worker)?;
    terminal.announce(format!("working off {} at {}\n", args.mailbox.queue, link.address()));
    app.ready();
    finish(worker.work().await)
}

/// A link to the server that the queue is on.
async fn link(app: &App, url: &str) -> Result<Link, Fault> {
    let server =
        sources::server(url).map_err(|fault| fault.hint("a mailbox is `memory`, or redis://HOST:PORT"))?;
    // By a link that gives up soon, and knows why: the one to work with waits longer for a server that comes back.
    sources::greet(app, &sources::link(app, &server, sources::hasty())).await?;
    let link = sources::link(app, &server, Settings::default());
    // Its name is its own: those of the sources have a number.
    let _ = app.register(format!("mailbox at {}", link.address()), sources::LINKS, link.clone());
    Ok(link)
}

/// Opens a queue; made if there is none.
async fn open(link: &Link, name: &str) -> Result<RedisMailbox, Fault> {
    let opened = RedisMailbox::open(link, name).await;
    opened.map_err(|error| Fault::new(code::UNAVAILABLE, format!("cannot open the queue {name}: {error}")))
}

/// A worker that answers requests.
fn build(
    app: &App,
    args: &args::Worker,
    engine: Engine,
    mailbox: Arc<dyn Mailbox>,
    dead: Option<Arc<dyn Mailbox>>,
    terminal: Terminal,
) -> Result<Worker<Loop>, Fault> {
    let concurrency = NonZero::new(usize::from(args.concurrency)).unwrap_or(NonZero::<usize>::MIN);
    let batch = concurrency.get().min(Pull::BATCH_MAX);
    let pull = Pull::default().max(batch).map_err(|error| Fault::new(code::USAGE, error.to_string()))?;
    let mut builder = Worker::builder(mailbox, app.handle().clone(), move |job| answer(engine.clone(), job))
        .name("worker")
        .observer(move |event| terminal.tell(event))
        .concurrency(concurrency)
        .pull(pull.visibility(Span::secs(args.visibility_seconds)))
        .retry(Retry::default().attempts(args.attempts).backoff(BACKOFF.0, BACKOFF.1));
    if let Some(iterations) = args.max_iterations {
        builder = builder.max_iterations(iterations);
    }
    if let Some(dead) = dead {
        builder = builder.dead_letters(dead);
    }
    Ok(builder.build())
}

/// Has it stopped with the app.
fn start(app: &App, worker: &Worker<Loop>) -> Result<(), Fault> {
    let registered = app.register("worker", Priority::WORKERS, worker.clone());
    registered.map_err(|_| Fault::new(code::FAILED, "there are two workers"))
}

fn finish(ended: Result<(), ebbtide::lifecycle::RunError>) -> Result<(), Fault> {
    ended.map_err(|error| Fault::new(code::FAILED, error.to_string()))
}

/// Answers one request. One that makes no sense is not tried again.
async fn answer(engine: Engine, job: Job) -> HandlerResult {
    let text = std::str::from_utf8(job.body()).map_err(GiveUp::because)?;
    let request = Arc::new(Request::from_json(text).map_err(GiveUp::because)?);
    // Answers come in any order: a failure says whose it is.
    let told = |error| format!("request {:?}: {error}", request.request_id);
    let outputs = engine.run(request.clone()).await.map_err(told)?;
    let mut answer = Vec::new();
    engine.write(&request, &outputs, None, &mut answer);
    Ok(Some(answer.into()))
}
