//! A mailbox on Redis against one in memory, by random sequences of steps: every observation agrees.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use ebbtide_lifecycle::time::VirtualClock;
use ebbtide_mailbox::{
    Bytes, Delivery, Limits, Mailbox, MemoryMailbox, Message, Office, Pull, Receipt, RedisMailbox,
    SettleError, Settlement, Span,
};
use proptest::{prelude::*, sample::Index};

use crate::{Site, finish};

const LIMITS: Limits = Limits { capacity: 12, body: 4 };

/// Longer than a test takes: no time passes here.
const LONG: u32 = 10_000;

#[derive(Clone, Debug)]
enum Act {
    Send {
        size: usize,
        is_delayed: bool,
    },
    Receive {
        max: usize,
        is_lost: bool,
    },
    /// Of any delivery that there ever was.
    Settle(Index, Settlement),
    Checkpoint(Index, usize),
    Purge,
}

fn acts() -> impl Strategy<Value = Act> {
    let how = prop_oneof![
        4 => Just(Settlement::Ack),
        2 => Just(Settlement::Nack(Span::ZERO)),
        1 => Just(Settlement::Nack(Span::secs(LONG))),
        3 => Just(Settlement::Release),
        1 => prop_oneof![Just(0), Just(2 * LONG)].prop_map(|more| Settlement::Extend(Span::secs(more))),
    ];
    prop_oneof![
        40 => (0_usize..6, prop::bool::weighted(0.1)).prop_map(|(size, is_delayed)| Act::Send { size, is_delayed }),
        30 => (1_usize..=10, prop::bool::weighted(0.2)).prop_map(|(max, is_lost)| Act::Receive { max, is_lost }),
        50 => (any::<Index>(), how).prop_map(|(index, how)| Act::Settle(index, how)),
        10 => (any::<Index>(), 0_usize..6).prop_map(|(index, size)| Act::Checkpoint(index, size)),
        1 => Just(Act::Purge),
    ]
}

struct Twins {
    memory: MemoryMailbox<VirtualClock>,
    redis: RedisMailbox,
    /// Those of each delivery, in memory and on Redis.
    receipts: Vec<[Receipt; 2]>,
    /// Tells messages apart.
    sent: u8,
}

/// What is seen of a delivery, whatever its numbers.
fn view(delivery: &Delivery) -> (Bytes, u32, Option<Bytes>) {
    (delivery.body.clone(), delivery.delivery_count, delivery.checkpoint.clone())
}

fn settled(outcome: Result<(), SettleError>) -> Result<(), String> {
    outcome.map_err(|error| error.to_string())
}

impl Twins {
    fn act(&mut self, act: Act) {
        let Self { memory, redis, receipts, sent } = self;
        match act {
            Act::Send { size, is_delayed } => {
                *sent = sent.wrapping_add(1);
                let delay = if is_delayed { Span::secs(LONG) } else { Span::ZERO };
                let message = Message::new(vec![*sent; size]).delayed(delay);
                let outcomes = [finish(memory.send(message.clone())), finish(redis.send(message))];
                let [in_memory, on_redis] =
                    outcomes.map(|sent| sent.map(drop).map_err(|error| error.to_string()));
                assert_eq!(in_memory, on_redis);
            }
            Act::Receive { max, is_lost } => {
                let visibility = if is_lost { Span::ZERO } else { Span::secs(LONG) };
                let pull =
                    Pull::default().max(max).unwrap().visibility(visibility).wait(Duration::ZERO).unwrap();
                let [in_memory, on_redis] =
                    [finish(memory.receive(pull)).unwrap(), finish(redis.receive(pull)).unwrap()];
                let views = |given: &[Delivery]| given.iter().map(view).collect::<Vec<_>>();
                assert_eq!(views(&in_memory), views(&on_redis));
                receipts
                    .extend(in_memory.iter().zip(&on_redis).map(|(one, other)| [one.receipt, other.receipt]));
                // In memory it comes back at once, on Redis when somebody looks.
                if is_lost {
                    let nobody = pull.visibility(Span::secs(LONG));
                    self.look(nobody);
                }
            }
            Act::Settle(index, how) if !receipts.is_empty() => {
                let [one, other] = *index.get(receipts);
                assert_eq!(
                    settled(finish(memory.settle(one, how))),
                    settled(finish(redis.settle(other, how)))
                );
            }
            Act::Checkpoint(index, size) if !receipts.is_empty() => {
                let ([one, other], progress) = (*index.get(receipts), Bytes::from(vec![7; size]));
                let saved = [memory.checkpoint(one, progress.clone()), redis.checkpoint(other, progress)];
                let [in_memory, on_redis] = saved.map(|saved| settled(finish(saved)));
                assert_eq!(in_memory, on_redis);
            }
            Act::Settle(..) | Act::Checkpoint(..) => {}
            Act::Purge => assert_eq!(finish(memory.purge()).unwrap(), finish(redis.purge()).unwrap()),
        }
        assert_eq!(finish(self.memory.counts()).unwrap(), finish(self.redis.counts()).unwrap());
    }

    /// Receives one, and gives it back.
    fn look(&self, pull: Pull) {
        let pull = pull.max(1).unwrap();
        let [in_memory, on_redis] =
            [finish(self.memory.receive(pull)).unwrap(), finish(self.redis.receive(pull)).unwrap()];
        assert_eq!(
            in_memory.iter().map(view).collect::<Vec<_>>(),
            on_redis.iter().map(view).collect::<Vec<_>>()
        );
        for (one, other) in in_memory.iter().zip(&on_redis) {
            finish(self.memory.settle(one.receipt, Settlement::Release)).unwrap();
            finish(self.redis.settle(other.receipt, Settlement::Release)).unwrap();
        }
    }
}

#[test]
fn redis_does_what_memory_does() {
    let (site, opened) = (Site::new(), AtomicUsize::new(0));
    // What is written to a disk is no part of what is compared.
    site.ask(ebbtide_redis::Command::new("CONFIG").arg("SET").arg("appendonly").arg("no"));
    let config = ProptestConfig {
        cases: 150,
        // A failing sequence is printed, shrunk; nothing is written to the tree.
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(acts in prop::collection::vec(acts(), 1..80))| {
        let memory = Office::new(VirtualClock::new()).mailbox_with("orders", LIMITS);
        let name = format!("orders {}", opened.fetch_add(1, Ordering::Relaxed));
        let redis = site.open_with(&name, LIMITS);
        let mut twins = Twins { memory, redis, receipts: Vec::new(), sent: 0 };
        for act in acts {
            twins.act(act);
        }
    });
}
