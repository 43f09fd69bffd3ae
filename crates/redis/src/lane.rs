//! What waits to be sent on one connection, and what was sent and waits for its answer.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
    time::{Duration, Instant},
};

use bytes::BytesMut;
use ebbtide_lifecycle::{Admission, OwnedPermit, blame::Origin};

use crate::{
    answer::{Debt, Slot},
    command::{Frozen, Lead, write_parts},
    timer::{LinkTimer, later},
};

/// More than this is not put into the buffer of a connection at a time: what is in there cannot be taken back.
const OUT_MAX: usize = 64 << 10;

/// One connection's commands. Any thread puts them in; the driver sends them, and answers.
pub(crate) struct Lane {
    /// Whether it is for commands that block: one at a time, then.
    pub(crate) blocks: bool,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Those that were not sent, in the order in which they came.
    waiting: VecDeque<Request>,
    /// Those that were sent, in the order in which they are answered.
    asked: VecDeque<Request>,
    orders: Orders,
    /// Who to wake when there is something to do.
    driver: Option<Waker>,
    /// What went wrong when it was last tried to connect.
    trouble: Option<Arc<str>>,
    /// What the server calls the connection, if it is one that blocks.
    client: Option<u64>,
    /// How often the server was told to unblock what is asked here, and has not said that it did.
    told: usize,
    /// Whether there is nothing to do here, but for that: what the server was told would meet whatever came next.
    rests: bool,
}

/// What the driver is told. Each can only be followed by a later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Orders {
    /// Go on.
    #[default]
    Run,
    /// End when nothing is left to do.
    Finish,
    /// End.
    End,
    /// There is no driver any more.
    Orphaned,
}

/// A command on its way.
pub(crate) struct Request {
    pub(crate) what: &'static str,
    /// There until it is sent.
    pub(crate) command: Option<Frozen>,
    /// If it was sent as the first part of a command: how many parts that has. They come next.
    pub(crate) parts: Option<usize>,
    /// How many commands it is, if it is a batch.
    pub(crate) batch: Option<usize>,
    pub(crate) debt: Debt,
    /// Its place among those that block, if it does.
    pub(crate) seat: Option<OwnedPermit>,
    /// Until when it waits to be sent; and then, until when it waits for its answer.
    pub(crate) by: Instant,
    /// How long it waits for its answer.
    pub(crate) patience: Duration,
    /// There once it is to be unblocked.
    pub(crate) unblocks: Option<Unblocks>,
    /// What it has the server unblock, if that is what it is for.
    pub(crate) about: Option<Arc<Lane>>,
}

/// When the server is told again to unblock a command, and how long it was given before. On another connection it may
/// have been told before the command came; and it is not told at all while the link is full.
#[derive(Clone, Copy)]
pub(crate) struct Unblocks {
    at: Instant,
    pause: Duration,
}

/// How long the server is given at first to answer a command that it was told to unblock, and then twice as long each
/// time: longer than it takes on most ways to a server, so that it is seldom told in vain.
const UNBLOCK_PAUSE: Duration = Duration::from_millis(50);

impl Request {
    /// How many answers of the server it gets.
    pub(crate) fn answers(&self) -> usize {
        self.batch.unwrap_or(1)
    }

    /// Gives its place up, and what is owed: whoever is answered finds the place free.
    pub(crate) fn free(self) -> Debt {
        drop(self.seat);
        self.debt
    }
}

/// What the driver finds.
pub(crate) struct Look {
    pub(crate) ended: bool,
    /// It is to end, and nothing is left here. What is left elsewhere may still come here to be passed on.
    pub(crate) idle: bool,
    /// When the first that waits to be sent gives up.
    pub(crate) first: Option<Instant>,
}

/// What was sent first, of all that is not answered.
pub(crate) struct Oldest {
    /// Until when it is to be answered.
    pub(crate) by: Instant,
    /// How long it was given for that.
    pub(crate) patience: Duration,
    /// When the server is to be told again to unblock it.
    pub(crate) unblocks: Option<Instant>,
}

impl Oldest {
    /// When something is to be done about it.
    pub(crate) fn due(&self) -> Instant {
        self.unblocks.map_or(self.by, |at| at.min(self.by))
    }
}

impl Lane {
    pub(crate) fn new(blocks: bool) -> Self {
        Self { blocks, queue: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing that can panic runs under the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a request in line. Gives it back, with the orders, if there is nobody to send it.
    pub(crate) fn put(&self, request: Request) -> Option<(Request, Orders)> {
        let mut queue = self.lock();
        if queue.orders >= Orders::End {
            return Some((request, queue.orders));
        }
        queue.waiting.push_back(request);
        let driver = queue.driver.take();
        drop(queue);
        driver.into_iter().for_each(Waker::wake);
        None
    }

    /// Has the driver woken when there is something to do.
    pub(crate) fn listen(&self, waker: &Waker) {
        let waker = waker.clone();
        let old = self.lock().driver.replace(waker);
        drop(old);
    }

    pub(crate) fn order(&self, orders: Orders) {
        let mut queue = self.lock();
        queue.orders = queue.orders.max(orders);
        let driver = queue.driver.take();
        drop(queue);
        driver.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn look(&self) -> Look {
        let queue = self.lock();
        let idle = queue.orders == Orders::Finish && queue.waiting.is_empty() && queue.asked.is_empty();
        Look {
            ended: queue.orders >= Orders::End || self.blocks && idle,
            idle,
            first: queue.waiting.front().map(|request| request.by),
        }
    }

    /// Takes out those that have waited to be sent for too long, and says what the trouble is.
    pub(crate) fn take_overdue(&self, now: Instant) -> (Vec<Request>, Option<Arc<str>>) {
        let mut queue = self.lock();
        let count = queue.waiting.iter().take_while(|request| request.by <= now).count();
        (queue.waiting.drain(..count).collect(), queue.trouble.clone())
    }

    /// Writes what there is room for. Gives whether it wrote anything, and those that nobody waits for any more.
    pub(crate) fn load(&self, out: &mut BytesMut, clock: impl Fn() -> Instant) -> (bool, Vec<Request>) {
        let mut void = Vec::new();
        let mut queue = self.lock();
        let Queue { waiting, asked, .. } = &mut *queue;
        if waiting.is_empty() {
            return (false, void);
        }
        let (now, before) = (clock(), asked.len());
        while out.len() < OUT_MAX && (asked.is_empty() || !self.blocks) {
            let Some(mut request) = waiting.pop_front() else { break };
            if request.debt.is_void() {
                void.push(request);
                continue;
            }
            let command = request.command.take().expect("there until it is sent");
            let first = asked.len();
            let mut parts = vec![];
            if let Some(lead) = &command.lead {
                take_parts(waiting, lead, &mut void, |mut request| {
                    parts.extend(request.command.take());
                    request.by = later(now, request.patience);
                    asked.push_back(request);
                });
                write_parts(lead, [&command].into_iter().chain(&parts), out);
                request.parts = Some(1 + parts.len());
            } else {
                command.write_to(out);
            }
            request.by = later(now, request.patience);
            asked.insert(first, request);
        }
        (asked.len() > before, void)
    }

    /// Those for whom there is everything in the next `count` answers, all parts of a command one after the other; up
    /// to the first command that has several. Gives whether somebody waits for each of them, also for those at the end
    /// after which more are to come.
    pub(crate) fn take_asked(&self, mut count: usize, into: &mut Vec<Request>) -> bool {
        let mut queue = self.lock();
        let mut length = 0;
        while let Some(request) = queue.asked.get(length).filter(|request| request.answers() <= count) {
            count -= request.answers();
            let parts = request.parts.unwrap_or(1);
            length += parts;
            if parts > 1 {
                break;
            }
        }
        into.extend(queue.asked.drain(..length));
        count == 0 || !queue.asked.is_empty()
    }

    /// The oldest that was sent and not answered. It has until `alive_until` at least, if that is given.
    pub(crate) fn oldest(&self, alive_until: Option<Instant>) -> Option<Oldest> {
        let queue = self.lock();
        let Request { by, patience, unblocks, .. } = queue.asked.front()?;
        let by = alive_until.map_or(*by, |until| until.max(*by));
        Some(Oldest { by, patience: *patience, unblocks: unblocks.map(|unblocks| unblocks.at) })
    }

    /// All that were sent and not answered, when the connection is gone.
    pub(crate) fn lose(&self) -> VecDeque<Request> {
        let mut queue = self.lock();
        queue.client = None;
        mem::take(&mut queue.asked)
    }

    /// Everything, in the order in which it was to be answered; nothing more comes in.
    pub(crate) fn cut(&self, orders: Orders) -> VecDeque<Request> {
        let mut queue = self.lock();
        queue.orders = queue.orders.max(orders);
        let mut all = mem::take(&mut queue.asked);
        all.append(&mut queue.waiting);
        let driver = queue.driver.take();
        drop(queue);
        driver.into_iter().for_each(Waker::wake);
        all
    }

    pub(crate) fn set_trouble(&self, trouble: Option<Arc<str>>) {
        self.lock().trouble = trouble;
    }

    pub(crate) fn set_client(&self, client: u64) {
        self.lock().client = Some(client);
    }

    /// Nothing is to be done here any more. Gives whether another command may come here at once.
    pub(crate) fn rest(&self) -> bool {
        let mut queue = self.lock();
        queue.rests = queue.told > 0;
        !queue.rests
    }

    /// The server has unblocked what was asked here, or never will. Gives whether another command may come here from
    /// now on.
    pub(crate) fn was_unblocked(&self) -> bool {
        let mut queue = self.lock();
        queue.told -= 1;
        queue.told == 0 && mem::take(&mut queue.rests)
    }

    /// The request that is parked here, if one is, and its place among those that block.
    pub(crate) fn parked(&self) -> Option<(Arc<Slot>, Option<OwnedPermit>)> {
        let mut queue = self.lock();
        let Queue { asked, waiting, .. } = &mut *queue;
        let request = asked.front_mut().or(waiting.front_mut()).filter(|_| self.blocks)?;
        let slot = request.debt.owed.0.clone().filter(|_| request.debt.is_parked())?;
        Some((slot, request.seat.take()))
    }

    /// What to do about a request that nobody waits for any more.
    pub(crate) fn interrupt(&self, slot: &Arc<Slot>, now: Instant, timeout: Duration) -> Interrupt {
        let is_it =
            |request: &Request| request.debt.owed.0.as_ref().is_some_and(|other| Arc::ptr_eq(other, slot));
        let mut queue = self.lock();
        if let Some(at) = queue.waiting.iter().position(is_it) {
            return queue
                .waiting
                .remove(at)
                .map_or(Interrupt::Nothing, |request| Interrupt::Unsent(Box::new(request)));
        }
        if !queue.asked.front().is_some_and(is_it) {
            return Interrupt::Nothing;
        }
        let interrupt = queue.unblock(now, UNBLOCK_PAUSE, timeout);
        // The driver sees to it that it is told again.
        let driver = queue.driver.take();
        drop(queue);
        driver.into_iter().for_each(Waker::wake);
        interrupt
    }

    /// What to do about a request that is still blocked although the server was told.
    pub(crate) fn interrupt_again(&self, now: Instant, timeout: Duration) -> Interrupt {
        let mut queue = self.lock();
        match queue.asked.front().and_then(|request| request.unblocks) {
            Some(Unblocks { pause, .. }) => queue.unblock(now, pause.saturating_mul(2), timeout),
            None => Interrupt::Nothing,
        }
    }
}

impl Queue {
    /// Has what was sent unblocked: now, and once more after `pause`. From now on it is to be answered as soon as any
    /// other command: a server that hangs would hold up a stop until the time is over for which it may block.
    fn unblock(&mut self, now: Instant, pause: Duration, timeout: Duration) -> Interrupt {
        let Some(request) = self.asked.front_mut() else { return Interrupt::Nothing };
        request.by = request.by.min(later(now, timeout));
        request.patience = request.patience.min(timeout);
        let Some(client) = self.client else { return Interrupt::Nothing };
        request.unblocks = Some(Unblocks { at: later(now, pause), pause });
        let Ok(admission) = request.debt.admission.fork(&Origin::here()) else { return Interrupt::Nothing };
        self.told += 1;
        Interrupt::Unblock { client, admission }
    }
}

/// Takes out those at the front that can be sent with what `lead` begins.
fn take_parts(
    waiting: &mut VecDeque<Request>,
    lead: &Lead,
    void: &mut Vec<Request>,
    mut take: impl FnMut(Request),
) {
    let is_part = |request: &Request| {
        let lead_of = |command: &Frozen| command.lead.as_ref().is_some_and(|other| other.is(lead));
        request.command.as_ref().is_some_and(lead_of)
    };
    let mut taken = 1;
    while taken < lead.parts_max
        && waiting.front().is_some_and(is_part)
        && let Some(request) = waiting.pop_front()
    {
        if request.debt.is_void() {
            void.push(request);
            continue;
        }
        taken += 1;
        take(request);
    }
}

/// See [`Lane::interrupt`].
pub(crate) enum Interrupt {
    /// It is over.
    Nothing,
    /// It was not sent, and will not be.
    Unsent(Box<Request>),
    /// The server is to be told to answer it at once.
    Unblock { client: u64, admission: Admission<LinkTimer> },
}
