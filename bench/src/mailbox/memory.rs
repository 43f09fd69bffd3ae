//! The mailbox in memory against a bare async-channel, which forgets a message when it is received.

use std::{thread, time::Duration};

use ebbtide_lifecycle::time::{Clock, SystemClock, ThreadTimer};
use ebbtide_mailbox::{Bytes, Mailbox, MemoryMailbox, Message, Office, Pull, Settlement, Span};
use futures_lite::future::block_on;
use rustix::time::{ClockId, clock_gettime};

use crate::contest::{Contestant, Table, contest, measure};

/// Messages a round.
const MESSAGES: usize = 5_000;

/// Messages a round where one thread hands them to another.
const HANDED: usize = 20_000;

/// How many are received at a time where it is not said: the default.
const BATCH: usize = 10;

/// What a message may cost where 2 million a second are wanted, in nanoseconds.
const BAR: f64 = 500.0;

/// How many are in the hands of receivers while another waits.
const INVISIBLE: usize = 1_000_000;

/// How long he waits.
const WAIT: Duration = Duration::from_millis(200);

/// What he may use of a core meanwhile, in microseconds: a thousandth.
const IDLE: f64 = 200.0;

type InMemory = MemoryMailbox<ThreadTimer>;

pub(crate) fn run() -> Vec<Table> {
    vec![on_one_thread(), on_two_threads(), against_the_bar(), invisible()]
}

/// Sends, receives and acknowledges so many messages, one by one.
pub(crate) fn handle_one_by_one(messages: usize) {
    through_mailbox(&mailbox(), messages, 1);
}

fn mailbox() -> InMemory {
    Office::new(ThreadTimer::start().expect("a thread for the timer")).mailbox("bench")
}

fn body() -> Bytes {
    Bytes::copy_from_slice(&[7; 100])
}

fn elapsed(act: impl FnOnce()) -> Duration {
    let start = SystemClock.now();
    act();
    SystemClock.now() - start
}

/// Sends `batch` messages and receives them, again and again.
fn through_channel(messages: usize, batch: usize) -> Duration {
    let (sender, receiver) = async_channel::unbounded::<Message>();
    elapsed(|| {
        block_on(async {
            for _ in 0..messages / batch {
                for _ in 0..batch {
                    sender.send(Message::new(body())).await.expect("open");
                }
                for _ in 0..batch {
                    assert_eq!(receiver.recv().await.expect("open").body.len(), 100);
                }
            }
        });
    })
}

/// The same, and acknowledges each.
fn through_mailbox(mailbox: &InMemory, messages: usize, batch: usize) -> Duration {
    elapsed(|| {
        block_on(async {
            for _ in 0..messages / batch {
                for _ in 0..batch {
                    mailbox.send(Message::new(body())).await.expect("open");
                }
                assert_eq!(handle(mailbox, batch).await, batch);
            }
        });
    })
}

/// Receives up to `batch` messages, and acknowledges them.
async fn handle(mailbox: &InMemory, batch: usize) -> usize {
    let pull = Pull::default().max(batch).expect("within the range");
    let received = mailbox.receive(pull).await.expect("open");
    for delivery in &received {
        assert_eq!(delivery.body.len(), 100);
        mailbox.settle(delivery.receipt, Settlement::Ack).await.expect("in hand");
    }
    received.len()
}

fn on_one_thread() -> Table {
    let (one, ten) = (mailbox(), mailbox());
    contest(
        "send, receive, acknowledge 100 bytes, 1 thread",
        MESSAGES,
        Contestant::new("async-channel: send and receive", |n| through_channel(n, 1)),
        [
            Contestant::new("ebbtide, one by one", |n| through_mailbox(&one, n, 1)).target(4.0),
            Contestant::new("ebbtide, ten at a time", |n| through_mailbox(&ten, n, 10)).target(4.0),
            Contestant::new("async-channel, ten at a time", |n| through_channel(n, 10)),
        ],
    )
}

/// How long `work` takes on this thread for what a producer on another one sends as fast as it can.
fn worked_off(produce: impl FnOnce() + Send, work: impl FnOnce()) -> Duration {
    thread::scope(|scope| {
        let start = SystemClock.now();
        let producer = scope.spawn(produce);
        work();
        let took = SystemClock.now() - start;
        producer.join().expect("a producer does not panic");
        took
    })
}

fn channel_between_threads(messages: usize) -> Duration {
    let (sender, receiver) = async_channel::unbounded::<Message>();
    worked_off(
        || {
            block_on(async {
                for _ in 0..messages {
                    sender.send(Message::new(body())).await.expect("open");
                }
            });
        },
        || {
            block_on(async {
                for _ in 0..messages {
                    assert_eq!(receiver.recv().await.expect("open").body.len(), 100);
                }
            });
        },
    )
}

fn mailbox_between_threads(mailbox: &InMemory, messages: usize) -> Duration {
    worked_off(
        || {
            block_on(async {
                for _ in 0..messages {
                    mailbox.send(Message::new(body())).await.expect("open");
                }
            });
        },
        || {
            block_on(async {
                let mut handled = 0;
                while handled < messages {
                    handled += handle(mailbox, BATCH).await;
                }
            });
        },
    )
}

fn on_two_threads() -> Table {
    let ours = mailbox();
    contest(
        "send, receive, acknowledge 100 bytes, 2 threads",
        HANDED,
        Contestant::new("async-channel: send and receive", channel_between_threads),
        [Contestant::new("ebbtide", |n| mailbox_between_threads(&ours, n)).target(4.0)],
    )
}

fn against_the_bar() -> Table {
    let (one, ten, two) = (mailbox(), mailbox(), mailbox());
    let nanos = |time: Duration, messages| time.as_nanos() as f64 / messages as f64;
    measure(
        "2 million messages of 100 bytes a second",
        "ns",
        101,
        Contestant::value("the bar", || BAR),
        [
            Contestant::value("1 thread, one by one", || nanos(through_mailbox(&one, MESSAGES, 1), MESSAGES))
                .target(1.0),
            Contestant::value("1 thread, ten at a time", || {
                nanos(through_mailbox(&ten, MESSAGES, 10), MESSAGES)
            })
            .target(1.0),
            Contestant::value("2 threads", || nanos(mailbox_between_threads(&two, HANDED), HANDED))
                .target(1.0),
        ],
    )
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What the process uses while one waits in vain.
fn waiting(mailbox: &InMemory) -> f64 {
    let before = cpu();
    let received = block_on(mailbox.receive(Pull::default().wait(WAIT).expect("within the range")));
    assert!(received.expect("open").is_empty(), "nothing comes while it waits");
    (cpu() - before).as_nanos() as f64 / 1e3
}

fn invisible() -> Table {
    let (empty, full) = (mailbox(), mailbox());
    block_on(async {
        let pull = Pull::default().visibility(Span::MAX);
        for _ in 0..INVISIBLE / BATCH {
            for _ in 0..BATCH {
                full.send(Message::new(body())).await.expect("open");
            }
            assert_eq!(full.receive(pull).await.expect("open").len(), BATCH);
        }
    });
    measure(
        "200 ms of waiting beside a million invisible messages, CPU of the process",
        "µs",
        11,
        Contestant::value("the bar: a thousandth of a core", || IDLE),
        [
            Contestant::value("a million invisible messages", || waiting(&full)).target(1.0),
            Contestant::value("an empty mailbox", || waiting(&empty)).ours(),
        ],
    )
}
