//! What runs on the executor: connects, sends, answers, and connects again.
//!
//! ```text
//!   idle ──a command──► connecting ──► talking ──connection lost──┐
//!     ▲                     │ ▲                                   │
//!     │                     ▼ └───────── backing off ◄────────────┤
//!     └──────nothing to send──────────────────────────────────────┘
//! ```

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use ebbtide_lifecycle::{
    Drained,
    time::{Clock, Timer},
    wait::Wait,
};

use crate::{
    backoff::Backoff,
    command::Command,
    core::Core,
    error::Why,
    lane::{Lane, Look, Oldest, Orders, Request},
    timer::{Snooze, later},
    value::Value,
    wire::Wire,
};

/// How often a connection is looked at before others on the executor get their turn.
const ROUNDS_MAX: usize = 16;

/// Drives one connection of a link, until the link ends.
pub(crate) fn drive(core: Arc<Core>, lane: Arc<Lane>, seed: u64) -> impl Future<Output = ()> + Send {
    // Made before the first poll, which may never come.
    let driving = Driving { core, lane };
    async move { driving.run(seed).await }
}

/// Gives everybody his answer when the driver ends, or is dropped by its executor.
struct Driving {
    core: Arc<Core>,
    lane: Arc<Lane>,
}

impl Driving {
    async fn run(&self, seed: u64) {
        let Self { core, lane } = self;
        let mut backoff = Backoff::new(core.settings.backoff, core.settings.backoff_max, seed);
        loop {
            let wanted =
                poll_fn(|_| if lane.look().first.is_some() { Poll::Ready(()) } else { Poll::Pending });
            let Some(()) = self.attend(wanted).await else { return };
            match self.attend(connect(core, lane)).await {
                None => return,
                Some(Err(error)) => lane.set_trouble(Some(error.to_string().into())),
                Some(Ok(mut wire)) => {
                    lane.set_trouble(None);
                    let mut talk = Talk::new(self, &mut wire, &mut backoff);
                    let Some(why) = talk.run().await else { return };
                    if let Why::Lost(trouble) = &why {
                        lane.set_trouble(Some(trouble.clone()));
                    }
                    for request in lane.lose() {
                        self.fail(request, why.clone());
                    }
                }
            }
            let pause = core.timer.sleep_until(later(core.timer.now(), backoff.pause()));
            let Some(()) = self.attend(pause).await else { return };
        }
    }

    /// Goes on with `future` while those are told who have waited for too long. Nothing when the link ends.
    async fn attend<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let (mut snooze, mut drained) = (Snooze::default(), self.core.intake.gate().drained());
        poll_fn(|cx| {
            self.lane.listen(cx.waker());
            loop {
                let look = self.lane.look();
                if is_over(&look, &mut drained, cx) {
                    return Poll::Ready(None);
                }
                if let Poll::Ready(value) = future.as_mut().poll(cx) {
                    return Poll::Ready(Some(value));
                }
                if snooze.poll(&self.core.timer, look.first, cx).is_pending() {
                    return Poll::Pending;
                }
                self.tell_overdue(self.core.timer.now());
            }
        })
        .await
    }

    fn tell_overdue(&self, now: Instant) {
        let (overdue, trouble) = self.lane.take_overdue(now);
        for request in overdue {
            let patience = self.core.settings.patience;
            self.fail(request, Why::Unreachable { patience, trouble: trouble.clone() });
        }
    }

    fn fail(&self, request: Request, why: Why) {
        self.core.set_free(&self.lane);
        self.core.fail(request, why);
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        let why = if self.lane.look().ended { Why::Stopped } else { Why::Undriven };
        for request in self.lane.cut(Orders::Orphaned) {
            self.core.fail(request, why.clone());
        }
    }
}

async fn connect(core: &Core, lane: &Lane) -> io::Result<Wire> {
    let patience = core.settings.timeout;
    let greeted = async {
        let mut wire = Wire::new((core.connect)().await?);
        let mut greeting = core.settings.greeting.clone();
        let ping = greeting.len();
        // Refused by a server that takes connections while it still loads what it had on its disk.
        greeting.push(Command::new("PING"));
        if lane.blocks {
            greeting.push(Command::new("CLIENT").arg("ID"));
        }
        let answers = wire.greet(greeting).await?;
        // On the loopback a connection may come about to itself while nobody listens: it would hear its own commands
        // as answers, and keep the server from its port for as long as it lasts.
        if !matches!(answers.get(ping), Some(Value::Bytes(said)) if said == "PONG") {
            return Err(io::Error::other("PING is not answered with PONG: it is no Redis server"));
        }
        if lane.blocks
            && let Some(client) = answers.last().and_then(Value::int)
        {
            lane.set_client(client.cast_unsigned());
        }
        Ok(wire)
    };
    let mut greeted = pin!(greeted);
    let mut alarm = core.timer.sleep_until(later(core.timer.now(), patience));
    poll_fn(|cx| {
        if let Poll::Ready(wire) = greeted.as_mut().poll(cx) {
            return Poll::Ready(wire);
        }
        let late = || io::Error::new(io::ErrorKind::TimedOut, format!("not connected within {patience:?}"));
        alarm.as_mut().poll(cx).map(|()| Err(late()))
    })
    .await
}

/// Whether a driver ends. That of commands that do not block stays until nothing of the link is in flight: what is
/// unclaimed elsewhere is passed on here.
fn is_over(look: &Look, drained: &mut Wait<Drained>, cx: &mut Context<'_>) -> bool {
    look.ended || look.idle && Pin::new(drained).poll(cx).is_ready()
}

/// A connection that is up.
struct Talk<'a> {
    driving: &'a Driving,
    wire: &'a mut Wire,
    backoff: &'a mut Backoff,
    /// Answers; of a batch that is not answered completely, those that have come.
    got: VecDeque<Value>,
    /// A server that gives signs of life is not silent, however long an answer takes, and those before it: it has its
    /// time from the last one on.
    alive_until: Option<Instant>,
}

/// What came of a look at a connection.
enum Round {
    /// There is nothing to be done until something happens.
    Nothing,
    /// There may be more to do.
    More,
    /// Answers were handed out, and there are more of them.
    HandedOut,
}

impl<'a> Talk<'a> {
    fn new(driving: &'a Driving, wire: &'a mut Wire, backoff: &'a mut Backoff) -> Self {
        Self { driving, wire, backoff, got: VecDeque::new(), alive_until: None }
    }

    /// Ends when the connection is lost, and says why; or, with nothing, when the link ends.
    async fn run(&mut self) -> Option<Why> {
        let (mut snooze, mut drained) = (Snooze::default(), self.driving.core.intake.gate().drained());
        let mut due = Vec::new();
        poll_fn(|cx| {
            let Driving { core, lane } = self.driving;
            lane.listen(cx.waker());
            for _ in 0..ROUNDS_MAX {
                if is_over(&lane.look(), &mut drained, cx) {
                    return Poll::Ready(None);
                }
                match self.round(&mut due, cx) {
                    Ok(Round::More) => {}
                    // Whoever was answered is to ask again before the others are: the server has something to do then.
                    Ok(Round::HandedOut) => break,
                    Err(error) => return Poll::Ready(Some(Why::Lost(error.to_string().into()))),
                    Ok(Round::Nothing) => {
                        let oldest = lane.oldest(self.alive_until);
                        if snooze.poll(&core.timer, oldest.as_ref().map(Oldest::due), cx).is_pending() {
                            return Poll::Pending;
                        }
                        if let Some(oldest) = oldest.filter(|oldest| oldest.by == oldest.due()) {
                            return Poll::Ready(Some(Why::Silent(oldest.patience)));
                        }
                        core.interrupt_again(lane);
                    }
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    /// Writes and reads what can be.
    fn round(&mut self, due: &mut Vec<Request>, cx: &mut Context<'_>) -> io::Result<Round> {
        let Driving { core, lane } = self.driving;
        let (loaded, void) = lane.load(&mut self.wire.out, || core.timer.now());
        for request in void {
            core.set_free(lane);
            core.withdraw(request);
        }
        let mut ended = failure(self.wire.poll_write(cx));
        let mut read = self.wire.poll_read(cx);
        // A connection that cannot be written to may still hold answers.
        while ended.is_some() && matches!(read, Poll::Ready(Ok(()))) {
            read = self.wire.poll_read(cx);
        }
        if self.wire.take_sign() {
            self.alive_until = Some(later(core.timer.now(), core.settings.timeout));
        }
        let more = loaded || read.is_ready();
        ended = ended.or(failure(read));
        // Whatever comes after them, those that were answered get their answers.
        loop {
            match self.wire.answer() {
                Ok(Some(value)) => {
                    if is_replica(&value) && ended.is_none() {
                        ended =
                            Some(io::Error::other("the server has become a replica, and takes no writes"));
                    }
                    self.got.push_back(value);
                }
                Ok(None) => break,
                Err(malformed) => {
                    ended = Some(malformed);
                    break;
                }
            }
        }
        while !self.got.is_empty() {
            self.backoff.reset();
            let all_asked = lane.take_asked(self.got.len(), due);
            let is_stuck = due.is_empty();
            self.hand_out(due);
            if !all_asked {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer that nobody asked for"));
            }
            if is_stuck {
                // More of a batch is to come.
                break;
            }
            if ended.is_none() && !self.got.is_empty() {
                return Ok(Round::HandedOut);
            }
        }
        match ended {
            Some(error) => Err(error),
            None if more => Ok(Round::More),
            None => Ok(Round::Nothing),
        }
    }

    /// Gives those who are due what is theirs of what has come.
    fn hand_out(&mut self, due: &mut Vec<Request>) {
        let Driving { core, lane } = self.driving;
        let mut due = due.drain(..);
        while let Some(request) = due.next() {
            core.set_free(lane);
            let value = match request.batch {
                Some(commands) => Value::Array(self.got.drain(..commands).collect()),
                None => self.got.pop_front().expect("there are as many as were taken for"),
            };
            core.answer_next(request, &mut due, value);
        }
    }
}

/// A server that was the master refuses writes for as long as a connection lives. A new one may find who is.
fn is_replica(answer: &Value) -> bool {
    matches!(answer, Value::Refusal(error) if error.code() == "READONLY")
}

fn failure(done: Poll<io::Result<()>>) -> Option<io::Error> {
    match done {
        Poll::Ready(Err(error)) => Some(error),
        _ => None,
    }
}
