//! One of the worker processes: what a user's program looks like, but for what it writes down.

use std::{
    io::Read as _,
    net::SocketAddr,
    num::NonZero,
    process::{self, ExitCode},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    time::{Clock as _, Timer as _},
    wait::block_on,
};
use ebbtide_mailbox::{
    Pull, RedisMailbox, Span,
    worker::{HandlerResult, Job, Retry, Worker},
};
use ebbtide_redis::LinkTimer;
use ebbtide_shutdown::{Coordinator, Priority, group::Group};

use crate::{
    MAILBOX, Outcome,
    note::Note,
    random::Random,
    site::Site,
    witness::{Witness, note, number},
};

/// Short, so that what a killed worker had in hand soon comes back.
const VISIBILITY: Span = Span::secs(2);

pub(crate) fn run(server: SocketAddr, seed: u64) -> Outcome<ExitCode> {
    let coordinator = Coordinator::builder().observer(|_| ()).install()?;
    note([Note::Listening]);
    // Whoever has started it holds the other end: if he is gone, so is this.
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        process::exit(1);
    });
    let mut random = Random::new(seed);
    let site = Site::new(server, Duration::from_secs(5))?;
    // After those who use it, and before what it runs on.
    coordinator.register("redis", Priority::POOLS, site.link.clone())?.keep();
    coordinator.register("loop", Priority::LOOPS, site.events.clone())?.keep();
    let Some(mailbox) = open(&coordinator, &site) else { return Ok(end(&coordinator.run())) };

    let concurrency = NonZero::new(1 + random.below(4) as usize).unwrap_or(NonZero::<usize>::MIN);
    let pull =
        Pull::default().visibility(VISIBILITY).wait(Duration::from_millis(500 + random.below(4500)))?;
    let (random, timer) = (Mutex::new(random), site.link.timer().clone());
    let handler = move |job: Job| {
        let draws = {
            let mut random = random.lock().unwrap_or_else(PoisonError::into_inner);
            [random.below(1000), random.below(15)]
        };
        handle(job, timer.clone(), draws)
    };
    let retry =
        Retry::default().attempts(u32::MAX).backoff(Duration::from_millis(10), Duration::from_millis(100));
    let worker = Worker::builder(Arc::new(Witness(mailbox)), site.link.timer().clone(), handler)
        .concurrency(concurrency)
        .pull(pull)
        .retry(retry)
        .observer(|_| ())
        .build();
    let group = Group::builder().member(MAILBOX, worker.clone()).build()?;
    let report = group.serve("workers")?;
    let sums = worker.balance();
    let accounted = sums.completed + sums.failed + sums.handed_back;
    note([Note::Sums { accepted: sums.accepted, accounted }]);
    Ok(end(&report))
}

/// Tries until the server is there, or it is told to stop.
fn open(coordinator: &Coordinator, site: &Site) -> Option<RedisMailbox> {
    while !coordinator.token().is_triggered() {
        if let Ok(mailbox) = block_on(site.open(MAILBOX)) {
            return Some(mailbox);
        }
    }
    None
}

fn end(report: &ebbtide_shutdown::Report) -> ExitCode {
    if !report.is_clean() {
        eprintln!("{report}");
    }
    report.exit_code().into()
}

/// Takes some milliseconds; one of fifty a third of a second; one of thirty fails, and one of a hundred panics.
async fn handle(job: Job, timer: LinkTimer, [luck, millis]: [u64; 2]) -> HandlerResult {
    let millis = if luck < 20 { 300 } else { millis };
    timer.sleep_until(timer.now() + Duration::from_millis(millis)).await;
    match luck {
        100..130 => return Err("not today".into()),
        200..210 => std::panic::resume_unwind(Box::new("no")),
        _ => {}
    }
    note([Note::Done(number(job.body()), job.delivery().receipt.into())]);
    Ok(None)
}
