//! Messages: each one that was sent is handled, in its mailbox, or a dead letter.

use std::{
    collections::BTreeSet,
    num::NonZero,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use ebbtide::{
    App, Error,
    lifecycle::time::VirtualClock,
    mailbox::{
        DeadLetter, Mailbox, MemoryMailbox, Message, Office, Pull, Span,
        worker::{GiveUp, HandlerResult, Job, Retry, Worker},
    },
    reactor::Handle,
    shutdown::Priority,
    sleep, spawn_named,
};
use ebbtide_testkit::{Draws, Witness};

use super::twin::Twin;

/// Longer than any message is out of sight.
const HOUR: Duration = Duration::from_secs(3600);

#[derive(Clone)]
pub(crate) struct Letters {
    /// Some messages are taken for handled before they are.
    loses: bool,
    books: Arc<Mutex<Books>>,
    /// There once the program has begun.
    boxes: Arc<OnceLock<Boxes>>,
}

#[derive(Default)]
struct Books {
    sent: BTreeSet<u64>,
    /// By a handler that said so.
    handled: BTreeSet<u64>,
}

struct Boxes {
    work: MemoryMailbox<Handle>,
    dead: MemoryMailbox<Handle>,
}

impl Letters {
    pub(crate) fn new(twin: Option<Twin>) -> Self {
        Self { loses: twin == Some(Twin::LostMessage), books: Arc::default(), boxes: Arc::default() }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a worker.
    pub(crate) fn begin(&self, app: &App, mut draws: Draws, witness: &Witness) -> Result<(), Error> {
        let office = Office::new(app.handle().clone());
        let boxes =
            self.boxes.get_or_init(|| Boxes { work: office.mailbox("work"), dead: office.mailbox("dead") });
        let (letters, seen) = (self.clone(), witness.clone());
        let handler = move |job: Job| {
            let letters = letters.clone();
            seen.watch(async move { letters.handle(&job).await })
        };
        let worker = Worker::builder(Arc::new(boxes.work.clone()), app.handle().clone(), handler)
            .dead_letters(Arc::new(boxes.dead.clone()))
            .concurrency(NonZero::new(1 + draws.below(3) as usize).unwrap_or(NonZero::<usize>::MIN))
            .retry(
                Retry::default().attempts(3).backoff(Duration::from_millis(50), Duration::from_millis(200)),
            )
            .pull(Pull::default().visibility(Span::secs(40)))
            .bounds(Duration::from_secs(30), Duration::from_secs(1))
            .observer(|_| {})
            .build();
        app.register("worker", Priority::WORKERS, worker.clone()).map_err(|taken| taken.to_string())?;
        let works = witness.watch(async move { worker.work().await });
        // Refused only once the loop drops its tasks: then there is nothing to work on.
        drop(spawn_named("worker", works));
        Ok(())
    }

    /// What a handler does with a message is in the message.
    async fn handle(&self, job: &Job) -> HandlerResult {
        let text = std::str::from_utf8(job.body())?;
        let mut parts = text.split(' ').map(|part| part.parse::<u64>());
        let (Some(id), Some(takes), Some(act)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(GiveUp::because("no message of ours").into());
        };
        let (id, takes, act) = (id?, takes?, act?);
        sleep(Duration::from_millis(takes)).await;
        match act {
            0 => Err("planted".into()),
            1 => panic!("planted"),
            2 => Err(GiveUp::because("planted").into()),
            3 if job.delivery().delivery_count < 2 => Err("planted".into()),
            _ if self.loses && act == 4 => Ok(None),
            _ => {
                self.books().handled.insert(id);
                Ok(None)
            }
        }
    }

    /// Sends a message.
    pub(crate) async fn send(&self, id: u64, draws: &mut Draws) {
        let Some(boxes) = self.boxes.get() else { return };
        let body = format!("{id} {} {}", draws.below(300), draws.below(12));
        if boxes.work.send(Message::new(body)).await.is_ok() {
            self.books().sent.insert(id);
        }
    }

    /// Each message is somewhere.
    pub(crate) fn check(&self, clock: &VirtualClock) -> Result<(), String> {
        let Some(boxes) = self.boxes.get() else { return Ok(()) };
        // What a worker that is gone had in hand comes back.
        clock.advance(HOUR);
        let id = |body: &[u8]| std::str::from_utf8(body).ok()?.split(' ').next()?.parse::<u64>().ok();
        let mut found = self.books().handled.clone();
        found.extend(boxes.work.take_unreceived().iter().filter_map(|message| id(&message.body)));
        let dead = boxes
            .dead
            .take_unreceived()
            .into_iter()
            .filter_map(|message| DeadLetter::decode(message.body).ok());
        found.extend(dead.filter_map(|letter| id(&letter.body)));
        let lost: Vec<_> = self.books().sent.difference(&found).copied().collect();
        if lost.is_empty() { Ok(()) } else { Err(format!("messages were sent, and are nowhere: {lost:?}")) }
    }
}
