//! The memory mailbox against a plain reference queue, by random sequences of steps: every observation agrees.

use std::time::{Duration, Instant};

use ebbtide_lifecycle::time::{Clock, VirtualClock};
use ebbtide_mailbox::{
    Address, Bytes, Counts, Delivery, Limits, Mailbox, MemoryMailbox, Message, MessageId, NotSent, Office,
    Pull, Receipt, ReceiveError, SettleError, Settlement, Span,
};
use proptest::{prelude::*, sample::Index};

use crate::now;

const LIMITS: Limits = Limits { capacity: 6, body: 4 };

#[derive(Clone, Debug)]
enum Act {
    Send {
        size: usize,
        delay: u32,
        reply: bool,
    },
    Receive {
        max: usize,
        visibility: u32,
    },
    /// Of any delivery that there ever was.
    Settle(Index, Settlement),
    Checkpoint(Index, u8),
    Advance(u32),
    Purge,
    Close,
    TakeUnreceived,
}

fn acts() -> impl Strategy<Value = Act> {
    // Few different times, so that some fall together, and none, which is a case of its own.
    let seconds = || 0_u32..6;
    let how = prop_oneof![
        4 => Just(Settlement::Ack),
        2 => seconds().prop_map(|delay| Settlement::Nack(Span::secs(delay))),
        2 => Just(Settlement::Release),
        2 => seconds().prop_map(|more| Settlement::Extend(Span::secs(more))),
    ];
    prop_oneof![
        400 => (0_usize..6, prop_oneof![Just(0), seconds()], any::<bool>())
            .prop_map(|(size, delay, reply)| Act::Send { size, delay, reply }),
        400 => (1_usize..5, seconds()).prop_map(|(max, visibility)| Act::Receive { max, visibility }),
        400 => (any::<Index>(), how).prop_map(|(index, how)| Act::Settle(index, how)),
        100 => (any::<Index>(), any::<u8>()).prop_map(|(index, byte)| Act::Checkpoint(index, byte)),
        250 => seconds().prop_map(Act::Advance),
        10 => Just(Act::Purge),
        5 => Just(Act::Close),
        5 => Just(Act::TakeUnreceived),
    ]
}

/// A queue as one would write it down: one list, each message with when it can be received.
#[derive(Default)]
struct Plain {
    messages: Vec<Plainly>,
    closed: bool,
    /// Counts everything that puts a message anywhere: who came first comes first.
    steps: i64,
}

#[derive(Clone)]
struct Plainly {
    id: MessageId,
    sent: Message,
    since: Instant,
    /// From when on it can be received.
    from: Instant,
    /// Its place among those that can be received since the same time. Less than nothing for those in front.
    place: i64,
    /// Whether a delay has kept it, or a lease, since it was last put somewhere.
    kept: bool,
    deliveries: u32,
    checkpoint: Option<Bytes>,
    receipt: Option<Receipt>,
}

impl Plain {
    fn step(&mut self) -> i64 {
        self.steps += 1;
        self.steps
    }

    /// Those who wait for their time and whose time has come line up behind those who are in line, by their time.
    fn line_up(&mut self, now: Instant) {
        let mut come: Vec<_> = (0..self.messages.len())
            .filter(|index| {
                let message = &self.messages[*index];
                message.kept && message.from <= now
            })
            .collect();
        come.sort_by_key(|index| (self.messages[*index].from, self.messages[*index].place));
        for index in come {
            let place = self.step();
            let message = &mut self.messages[index];
            (message.kept, message.receipt, message.place) = (false, None, place);
        }
    }

    fn counts(&self) -> Counts {
        let count = |is: fn(&&Plainly) -> bool| self.messages.iter().filter(is).count() as u64;
        Counts::new(
            count(|m| !m.kept),
            count(|m| m.kept && m.receipt.is_none()),
            count(|m| m.kept && m.receipt.is_some()),
        )
    }

    /// Those that can be received, the next first.
    fn in_line(&self) -> Vec<usize> {
        let mut line: Vec<_> = (0..self.messages.len()).filter(|index| !self.messages[*index].kept).collect();
        line.sort_by_key(|index| self.messages[*index].place);
        line
    }

    /// What is received, but for the number of the delivery, which only the mailbox knows.
    fn receive(
        &mut self,
        max: usize,
        visibility: Duration,
        now: Instant,
        given: &[Delivery],
    ) -> Vec<Delivery> {
        let taken: Vec<_> = self.in_line().into_iter().take(max).collect();
        let mut expected = Vec::new();
        for (index, given) in taken.into_iter().zip(given) {
            let place = self.step();
            let message = &mut self.messages[index];
            message.deliveries += 1;
            (message.from, message.place, message.kept) = (now + visibility, place, true);
            let Receipt { mailbox, delivery, .. } = given.receipt;
            let receipt = Receipt { mailbox, id: message.id, delivery, count: message.deliveries };
            message.receipt = Some(receipt);
            let mut delivery =
                Delivery::new(message.sent.body.clone(), receipt, message.deliveries, now - message.since);
            delivery.reply_to.clone_from(&message.sent.reply_to);
            delivery.checkpoint.clone_from(&message.checkpoint);
            expected.push(delivery);
        }
        expected
    }

    fn in_hand(&mut self, receipt: Receipt) -> Option<usize> {
        self.messages.iter().position(|message| message.receipt == Some(receipt))
    }

    /// Whether the receipt was good.
    fn settle(&mut self, receipt: Receipt, how: Settlement, now: Instant) -> bool {
        let (Some(index), place) = (self.in_hand(receipt), self.step()) else { return false };
        let message = &mut self.messages[index];
        match how {
            Settlement::Ack => drop(self.messages.remove(index)),
            Settlement::Nack(delay) => {
                (message.receipt, message.from, message.place) = (None, now + delay.duration(), place);
                message.kept = delay > Span::ZERO;
            }
            Settlement::Release => {
                message.deliveries -= 1;
                (message.receipt, message.place, message.kept) = (None, -place, false);
            }
            Settlement::Extend(more) if now + more.duration() > message.from => {
                (message.from, message.place) = (now + more.duration(), place);
            }
            _ => {}
        }
        true
    }
}

struct Twins {
    clock: VirtualClock,
    mailbox: MemoryMailbox<VirtualClock>,
    plain: Plain,
    /// Of all deliveries.
    receipts: Vec<Receipt>,
}

impl Twins {
    fn act(&mut self, act: Act) {
        let (mailbox, plain, time) = (&self.mailbox, &mut self.plain, self.clock.now());
        plain.line_up(time);
        match act {
            Act::Send { size, delay, reply } => {
                let mut message = Message::new(vec![7; size]).delayed(Span::secs(delay));
                message.reply_to = reply.then(|| Address::from("asker"));
                self.send(message);
            }
            Act::Receive { max, visibility } => {
                let visibility = Span::secs(visibility);
                let pull =
                    Pull::default().max(max).unwrap().visibility(visibility).wait(Duration::ZERO).unwrap();
                match now(mailbox.receive(pull)) {
                    Err(error) => assert!(plain.closed && matches!(error, ReceiveError::Closed)),
                    Ok(given) => {
                        assert!(!plain.closed);
                        assert_eq!(given.len(), max.min(plain.in_line().len()));
                        assert_eq!(given, plain.receive(max, visibility.duration(), time, &given));
                        for delivery in &given {
                            assert!(self.receipts.iter().all(|r| r.delivery != delivery.receipt.delivery));
                            self.receipts.push(delivery.receipt);
                        }
                    }
                }
            }
            Act::Settle(index, how) if !self.receipts.is_empty() => {
                let receipt = *index.get(&self.receipts);
                agree(now(mailbox.settle(receipt, how)), plain.settle(receipt, how, time));
            }
            Act::Checkpoint(index, byte) if !self.receipts.is_empty() => {
                let (receipt, progress) = (*index.get(&self.receipts), Bytes::from(vec![byte]));
                let saved = plain.in_hand(receipt);
                if let Some(index) = saved {
                    plain.messages[index].checkpoint = Some(progress.clone());
                }
                agree(now(mailbox.checkpoint(receipt, progress)), saved.is_some());
            }
            Act::Settle(..) | Act::Checkpoint(..) => {}
            // Nobody looks at once: what comes next may find first what has come back.
            Act::Advance(seconds) => return self.clock.advance(Duration::from_secs(seconds.into())),
            Act::Purge => {
                let purged = std::mem::take(&mut plain.messages).len();
                assert_eq!(now(mailbox.purge()).unwrap(), purged as u64);
            }
            Act::Close => {
                assert_eq!(mailbox.close(), !plain.closed);
                plain.closed = true;
            }
            Act::TakeUnreceived => self.take_unreceived(),
        }
        self.check();
    }

    fn send(&mut self, message: Message) {
        let (plain, time) = (&mut self.plain, self.clock.now());
        let (size, is_full) = (message.body.len(), plain.messages.len() == LIMITS.capacity);
        match now(self.mailbox.send(message.clone())) {
            Ok(id) => {
                assert!(size <= LIMITS.body && !plain.closed && !is_full);
                let delay = message.delay.duration();
                let place = plain.step();
                plain.messages.push(Plainly {
                    id,
                    sent: message,
                    since: time,
                    from: time + delay,
                    place,
                    kept: !delay.is_zero(),
                    deliveries: 0,
                    checkpoint: None,
                    receipt: None,
                });
            }
            Err(refused) => {
                assert_eq!(refused.message, message);
                match refused.why {
                    NotSent::TooLarge { size: said, limit } => {
                        assert_eq!((said, limit), (size, LIMITS.body));
                        assert!(size > limit);
                    }
                    NotSent::Closed => assert!(plain.closed),
                    NotSent::Full { capacity } => assert!(is_full && capacity == LIMITS.capacity),
                    why => panic!("{why:?}"),
                }
            }
        }
    }

    fn take_unreceived(&mut self) {
        let (plain, time) = (&mut self.plain, self.clock.now());
        let (in_hand, mut left): (Vec<_>, Vec<_>) =
            plain.messages.drain(..).partition(|message| message.receipt.is_some());
        plain.messages = in_hand;
        left.sort_by_key(|message| (message.kept.then_some(message.from), message.place));
        let left = left.into_iter().map(|message| {
            let delay = if message.kept { message.from - time } else { Duration::ZERO };
            message.sent.delayed(Span::new(delay).unwrap())
        });
        assert_eq!(self.mailbox.take_unreceived(), left.collect::<Vec<_>>());
    }

    fn check(&mut self) {
        self.plain.line_up(self.clock.now());
        assert_eq!(now(self.mailbox.counts()).unwrap(), self.plain.counts());
        assert_eq!(self.mailbox.is_closed(), self.plain.closed);
    }
}

fn agree(outcome: Result<(), SettleError>, was_good: bool) {
    match outcome {
        Ok(()) => assert!(was_good, "a receipt that is no good was taken"),
        Err(error) => assert!(!was_good && matches!(error, SettleError::ReceiptExpired), "{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4_000,
        // A failing sequence is printed, shrunk; nothing is written to the tree.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_mailbox_is_what_its_plain_model_says(acts in prop::collection::vec(acts(), 1..80)) {
        let clock = VirtualClock::new();
        let mailbox = Office::new(clock.clone()).mailbox_with("orders", LIMITS);
        let mut twins = Twins { clock, mailbox, plain: Plain::default(), receipts: Vec::new() };
        for act in acts {
            twins.act(act);
        }
    }
}
