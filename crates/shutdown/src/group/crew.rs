//! What all handles, threads and waits of a group share: how members are run, told to stop, and waited for.

use std::{
    error::Error,
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Illegal, Lifecycle, Panicked, Reason, RunError, Runnable, State, Step, Stopped, Trigger, contain,
    time::{Clock, Deadline, Hold, Tempo, VirtualClock},
    wait::{Bell, Wait, Watch},
};

use super::{
    board::{Board, DROPPED, Order, Orders},
    builder::{Job, Policy},
    lineage::{self, Lineage},
    outcomes::{Ending, Outcomes},
};
use crate::{pace::Pace, subject::text_of};

/// The choices that a builder has made.
pub(super) struct Terms {
    pub(super) budget: Duration,
    pub(super) policy: Policy,
    pub(super) spawner: Option<Box<dyn Fn(Job) -> io::Result<()> + Send + Sync>>,
    pub(super) stack_size: Option<usize>,
    pub(super) tempo: Tempo,
}

pub(super) struct Crew {
    /// Its number in a [`Lineage`].
    number: u64,
    /// Never locked while foreign code runs.
    board: Mutex<Board>,
    /// Rung by `announce`.
    changed: Bell,
    pub(super) life: Lifecycle,
    pub(super) stop: Trigger,
    terms: Terms,
}

impl Crew {
    pub(super) fn new(board: Board, terms: Terms) -> Arc<Self> {
        Arc::new(Self {
            number: lineage::number(),
            board: Mutex::new(board),
            changed: Bell::new(),
            life: Lifecycle::new(),
            stop: Trigger::new(),
            terms,
        })
    }

    pub(super) fn board(&self) -> MutexGuard<'_, Board> {
        // Nothing that can panic runs under the lock.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tempo(&self) -> &Tempo {
        &self.terms.tempo
    }

    /// Whether the current thread is one that the group waits for.
    pub(super) fn is_own_thread(&self) -> bool {
        lineage::is_within(self.number)
    }

    /// A thread of the group's own.
    fn thread(&self, name: &str) -> thread::Builder {
        // A name for the system ends at the first zero.
        let builder = thread::Builder::new().name(name.replace('\0', " "));
        match self.terms.stack_size {
            Some(bytes) => builder.stack_size(bytes),
            None => builder,
        }
    }

    /// Makes the caller the one that runs the group. False if a stop came before anybody did.
    pub(super) fn claim(&self) -> Result<bool, Illegal> {
        let step = self.life.step(Step::Start);
        match step {
            Ok(_) => Ok(self.board().claim()),
            Err(illegal) if illegal.state == State::Stopped && self.board().claim() => Ok(false),
            Err(illegal) => Err(illegal),
        }
    }

    /// Runs the members until all have ended or were given up on. Only for who has made the claim.
    pub(super) fn run(self: &Arc<Self>, pace: &mut Pace) -> Outcomes {
        let lineage = lineage::and(self.number);
        let _within = lineage::enter(lineage.clone());
        let members = self.board().len();
        for member in 0..members {
            self.hand(member, &lineage);
        }
        // Refused if a stop came meanwhile; then there is little to wait for.
        let _ = self.life.step(Step::Ready);
        loop {
            let (seen, deadline) = {
                let mut board = self.board();
                let now = pace.now();
                board.give_up(now);
                let Some(deadline) = board.run_waits(now) else { break };
                (board.revision(), deadline)
            };
            pace.wait(self.change_since(seen), deadline);
        }
        self.conclude()
    }

    /// The run is over, or there will be none.
    fn conclude(&self) -> Outcomes {
        let outcomes = self.board().conclude(self.tempo().now());
        let reason = outcomes.reason().cloned();
        // Of these, the first two are done already if somebody wanted the stop.
        let _ = self.life.step(Step::Stop);
        self.stop.fire(reason.unwrap_or_else(|| Reason::requested("all members of the group have ended")));
        let _ = self.life.step(Step::End);
        self.announce();
        outcomes
    }

    /// Wakes all who wait: called after each change of the board or of the life.
    fn announce(&self) {
        self.board().touch();
        self.changed.ring();
    }

    /// Starts a thread that runs the group. Only for who has made the claim.
    pub(super) fn run_elsewhere(self: &Arc<Self>) -> io::Result<()> {
        let (crew, lineage, mut pace) = (self.clone(), lineage::current(), Pace::new(self.tempo()));
        let run = move || {
            let _within = lineage::enter(lineage);
            crew.run(&mut pace);
        };
        let spawned = self.thread("ebbtide-group").spawn(run);
        if let Err(error) = &spawned {
            let reason = Reason::failed("ebbtide-group", error);
            self.order(Deadline::never(), &reason).tell();
            self.conclude();
        }
        spawned.map(drop)
    }

    /// Finds a thread for a member.
    fn hand(self: &Arc<Self>, member: usize, lineage: &Lineage) {
        if !self.board().hand(member) {
            return;
        }
        let ticket = Ticket {
            crew: self.clone(),
            member,
            lineage: lineage.clone(),
            hold: self.tempo().hold(),
            begun: false,
        };
        let run = move || ticket.run();
        let handed = match &self.terms.spawner {
            Some(spawn) => contain(|| spawn(Box::new(run))),
            None => {
                let name = self.board().name(member);
                contain(|| self.thread(&name).spawn(run).map(drop))
            }
        };
        let handed = handed.unwrap_or_else(|panicked| Err(io::Error::other(panicked)));
        let error = handed.as_ref().err().map_or_else(|| DROPPED.into(), text_of);
        let not_started = self.settle(member, &error, |board| board.handed(member, handed));
        not_started.tell_in_turn();
    }

    /// Lets `change` end a member that does not start, and its siblings be told.
    fn settle(
        self: &Arc<Self>,
        member: usize,
        error: &str,
        change: impl FnOnce(&mut Board) -> Option<Arc<dyn Runnable>>,
    ) -> Untold {
        let _hold = self.tempo().hold();
        let mut board = self.board();
        let refused = change(&mut board);
        let orders = refused.as_ref().and_then(|_| self.order_siblings(&mut board, member, error));
        drop(board);
        let _ = contain(|| drop(refused));
        self.obey(orders)
    }

    /// A member's run has ended: badly, with that text, if there is one.
    fn end(self: &Arc<Self>, member: usize, bad: Option<(Ending, Arc<str>)>) {
        let (ending, error) = bad.unzip();
        let hold = self.tempo().hold();
        let now = self.tempo().now();
        let mut board = self.board();
        board.end(member, now, ending);
        let orders = error.and_then(|error| self.order_siblings(&mut board, member, &error));
        drop(board);
        let untold = self.obey(orders);
        drop(hold);
        untold.tell_in_turn();
    }

    /// A member has ended badly. That is a stop for all, if it is the policy and nobody else has wanted one; in one
    /// step with the end itself, so that the run cannot be over in between.
    fn order_siblings(&self, board: &mut Board, member: usize, error: &str) -> Option<Orders> {
        if self.terms.policy == Policy::LeaveSiblings || board.is_stopping() {
            return None;
        }
        let reason = Reason::failed(board.name(member), &error);
        Some(board.order(self.tempo().now(), self.budget(), &reason))
    }

    /// The deadline of a stop that begins at this moment, and that the group decides on.
    pub(super) fn budget(&self) -> Deadline {
        Deadline::after(self.tempo(), self.terms.budget)
    }

    /// Tells everybody to stop. Gives those for whom there was no thread, to be told by the caller.
    pub(super) fn order(self: &Arc<Self>, deadline: Deadline, reason: &Reason) -> Untold {
        // Time does not move before everybody knows.
        let _hold = self.tempo().hold();
        let orders = self.board().order(self.tempo().now(), deadline, reason);
        self.obey(Some(orders))
    }

    /// Announces a change of the board, and does what it made necessary.
    fn obey(self: &Arc<Self>, orders: Option<Orders>) -> Untold {
        let Some(Orders { reason, tell, unneeded }) = orders else {
            self.announce();
            return Untold { orders: Vec::new(), crew: self.clone() };
        };
        // Refused to all but the first who wants it.
        let _ = self.life.step(Step::Stop);
        self.stop.fire(reason);
        self.announce();
        let untold = tell.into_iter().filter_map(|order| self.tell_elsewhere(order).err()).collect();
        for runnable in unneeded {
            let _ = contain(|| drop(runnable));
        }
        Untold { orders: untold, crew: self.clone() }
    }

    /// Calls a member's `shutdown` on a thread of its own. Hands the order back if there is none.
    fn tell_elsewhere(self: &Arc<Self>, order: Order) -> Result<(), Order> {
        let (crew, lineage, hold) = (self.clone(), lineage::and(self.number), self.tempo().hold());
        let name = format!("stop {}", order.name);
        let copy = order.clone();
        let tell = move || {
            let _within = lineage::enter(lineage);
            drop(hold);
            crew.tell(copy);
        };
        self.thread(&name).spawn(tell).map(drop).map_err(|_| order)
    }

    /// Calls a member's `shutdown`.
    fn tell(&self, order: Order) {
        let Order { member, runnable, due, reason, .. } = order;
        let told = contain(move || {
            runnable.shutdown(due, &reason);
        });
        self.board().told(member, told.err().map(|panicked| panicked.message().into()));
        self.announce();
    }

    /// Blocks until the stop has ended, or until `deadline`. On a thread that the group waits for it only looks.
    pub(super) fn wait(self: &Arc<Self>, pace: &mut Pace, deadline: Deadline) -> Stopped {
        loop {
            let (seen, until) = match self.look(deadline) {
                Look::Over(stopped) => return stopped,
                Look::Wait { .. } if self.is_own_thread() => return Stopped::Overdue,
                Look::Wait { seen, until } => (seen, until),
            };
            pace.wait(self.change_since(seen), until);
        }
    }

    /// The same, to be polled, in virtual time.
    pub(super) async fn stopped(self: Arc<Self>, clock: VirtualClock, deadline: Deadline) -> Stopped {
        loop {
            match self.look(deadline) {
                Look::Over(stopped) => return stopped,
                Look::Wait { seen, until } => drop(self.change_since(seen).by(clock.clone(), until).await),
            }
        }
    }

    /// Where the stop is for somebody who waits for it until `deadline`.
    fn look(&self, deadline: Deadline) -> Look {
        let now = self.tempo().now();
        let mut board = self.board();
        board.give_up(now);
        let (seen, given_up) = (board.revision(), board.has_given_up());
        // A step that is taken from here on is announced after it.
        let over = self.life.state() == State::Stopped;
        if given_up && (over || board.in_flight() == 0) {
            return Look::Over(Stopped::Overdue);
        }
        if over {
            return Look::Over(Stopped::Clean);
        }
        if deadline.is_expired(now) {
            let stopped = if board.all_ended() { Stopped::Clean } else { Stopped::Overdue };
            return Look::Over(stopped);
        }
        Look::Wait { seen, until: deadline.min(board.next_due()) }
    }

    fn change_since(self: &Arc<Self>, seen: u64) -> Wait<Changed> {
        Wait::new(Changed { crew: self.clone(), seen })
    }

    pub(super) fn ended(self: &Arc<Self>) -> Wait<Ended> {
        Wait::new(Ended { crew: self.clone() })
    }

    /// What became of the members, once nothing more will.
    pub(super) fn outcomes(&self) -> Option<Outcomes> {
        let over = self.life.state() == State::Stopped;
        over.then(|| self.board().outcomes(self.tempo().now()))
    }
}

enum Look {
    Over(Stopped),
    /// Until the board is not as it was `seen`, or a deadline has come.
    Wait {
        seen: u64,
        until: Deadline,
    },
}

/// Members that have to be told to stop by whoever wanted it, one after the other, because the system had no threads.
#[must_use = "they have not been told yet"]
pub(super) struct Untold {
    orders: Vec<Order>,
    crew: Arc<Crew>,
}

impl Untold {
    /// Tells each: in turn, or at once on a thread that the group waits for.
    pub(super) fn tell(self) {
        if self.crew.is_own_thread() { self.tell_at_once() } else { self.tell_in_turn() }
    }

    /// Tells each, and waits until it has ended, for as long as it may take.
    fn tell_in_turn(self) {
        self.orders.into_iter().for_each(|order| self.crew.tell(order));
    }

    /// Tells each that there is no time left: all that can be done without waiting.
    pub(super) fn tell_at_once(self) {
        let due = Deadline::at(self.crew.tempo().now());
        self.orders.into_iter().for_each(|order| self.crew.tell(Order { due, ..order }));
    }
}

/// What is waited for with [`Crew::change_since`].
struct Changed {
    crew: Arc<Crew>,
    seen: u64,
}

impl Watch for Changed {
    type Seen = ();

    fn look(&self) -> Option<()> {
        (self.crew.board().revision() != self.seen).then_some(())
    }

    fn bell(&self) -> &Bell {
        &self.crew.changed
    }
}

/// What [`Group::ended`](super::Group::ended) waits for.
pub struct Ended {
    crew: Arc<Crew>,
}

impl Watch for Ended {
    type Seen = Outcomes;

    fn look(&self) -> Option<Outcomes> {
        self.crew.outcomes()
    }

    fn bell(&self) -> &Bell {
        &self.crew.changed
    }
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ended").field("state", &self.crew.life.state()).finish()
    }
}

/// A member's right to run, once. Dropped without that, the member is not started.
struct Ticket {
    crew: Arc<Crew>,
    member: usize,
    lineage: Lineage,
    /// Until the member begins, so that time does not move in between.
    hold: Option<Hold>,
    begun: bool,
}

impl Ticket {
    fn run(mut self) {
        self.begun = true;
        let (crew, member) = (self.crew.clone(), self.member);
        let _within = lineage::enter(std::mem::take(&mut self.lineage));
        let thread = thread::current().name().map(Arc::from);
        let now = crew.tempo().now();
        let Some(runnable) = crew.board().begin(member, now, thread) else { return };
        self.hold = None;
        let result = contain(|| runnable.run());
        let kept = crew.board().release(member);
        let dropped = contain(|| drop((runnable, kept)));
        crew.end(member, verdict(result, dropped));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.begun {
            let (crew, member) = (&self.crew, self.member);
            crew.settle(member, DROPPED, |board| board.unbegun(member)).tell_at_once();
        }
    }
}

/// How a member ended whose `run` and drop came to this, if badly; and the text for its siblings.
fn verdict(
    run: Result<Result<(), RunError>, Panicked>,
    dropped: Result<(), Panicked>,
) -> Option<(Ending, Arc<str>)> {
    match (run, dropped) {
        (Ok(Ok(())), Ok(())) => None,
        (Ok(Err(error)), _) => {
            let error: Arc<dyn Error + Send + Sync> = error.into();
            let text: Arc<str> = text_of(&*error).into();
            Some((Ending::Failed { text: text.clone(), error }, text))
        }
        (Err(panicked), _) | (Ok(Ok(())), Err(panicked)) => {
            Some((Ending::Panicked(panicked.message().into()), panicked.to_string().into()))
        }
    }
}
