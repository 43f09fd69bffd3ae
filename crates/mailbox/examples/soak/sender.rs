//! Who sends, and what he was told.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use ebbtide_lifecycle::wait::block_on;
use ebbtide_mailbox::{Mailbox as _, Message, NotSent, RedisMailbox, Span};
use ebbtide_redis::Why;

use crate::{Outcome, random::Random};

const SENDERS: usize = 2;

/// How many messages are sent in a row, on the average.
const BURST: u64 = 10;

/// What a sender knows of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// The server has it.
    Sent,
    /// It never left.
    NotSent,
    /// The server went away: it may have it or not.
    Unknown,
}

/// All messages, by the numbers that they have as their bodies.
pub(crate) type Sendings = Vec<(u64, Sending)>;

pub(crate) struct Senders {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Outcome<Sendings>>>,
}

impl Senders {
    pub(crate) fn start(mailbox: &RedisMailbox, random: &mut Random) -> Outcome<Self> {
        let (is_over, numbers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let sender = |_| {
            let (mailbox, numbers, is_over) = (mailbox.clone(), numbers.clone(), is_over.clone());
            let random = Random::new(random.next());
            thread::Builder::new().spawn(move || send(&mailbox, &numbers, &is_over, random))
        };
        let threads = (0..SENDERS).map(sender).collect::<Result<_, _>>()?;
        Ok(Self { is_over, threads })
    }

    pub(crate) fn stop(self) -> Outcome<Sendings> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for thread in self.threads {
            all.extend(thread.join().map_err(|_| "a sender panicked")??);
        }
        Ok(all)
    }
}

fn send(
    mailbox: &RedisMailbox,
    numbers: &AtomicU64,
    is_over: &AtomicBool,
    mut random: Random,
) -> Outcome<Sendings> {
    let mut sendings = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let mut message = Message::new(number.to_string());
        if random.below(20) == 0 {
            message = message.delayed(Span::new(Duration::from_millis(random.below(300)))?);
        }
        let sending = match block_on(mailbox.send(message)) {
            Ok(_) => Sending::Sent,
            Err(error) => told(&error.why).ok_or(error)?,
        };
        sendings.push((number, sending));
        // In bursts, so that workers have whole batches in hand.
        if random.below(BURST) == 0 {
            thread::park_timeout(Duration::from_millis(random.below(20)));
        }
    }
    Ok(sendings)
}

/// Nothing if it is no outage.
fn told(why: &NotSent) -> Option<Sending> {
    let NotSent::Backend(error) = why else { return None };
    match error.downcast_ref::<ebbtide_redis::Error>()?.why() {
        Why::Unreachable { .. } => Some(Sending::NotSent),
        Why::Lost(_) | Why::Silent(_) => Some(Sending::Unknown),
        _ => None,
    }
}
