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

/// More parts than this are not sent as one command: a script holds up everybody.
const PARTS_MAX: usize = 128;

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
    pub(crate) debt: Debt,
    /// Its place among those that block, if it does.
    pub(crate) seat: Option<OwnedPermit>,
    /// Until when it waits to be sent; and then, until when it waits for its answer.
    pub(crate) by: Instant,
    /// How long it waits for its answer.
    pub(crate) patience: Duration,
}

impl Request {
    /// Gives its place up, and what is owed: whoever is answered finds the place free.
    pub(crate) fn free(self) -> Debt {
        drop(self.seat);
        self.debt
    }
}

/// What the driver finds.
pub(crate) struct Look {
    pub(crate) ended: bool,
    /// When the first that waits to be sent gives up.
    pub(crate) first: Option<Instant>,
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
        let idle = queue.waiting.is_empty() && queue.asked.is_empty();
        Look {
            ended: queue.orders >= Orders::End || queue.orders == Orders::Finish && idle,
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

    /// Those that the next `count` answers are for, all parts of a command one after the other. Fewer, if fewer were
    /// asked.
    pub(crate) fn take_asked(&self, count: usize, into: &mut Vec<Request>) {
        let mut queue = self.lock();
        let mut length = 0;
        for _ in 0..count {
            length += queue.asked.get(length).map_or(0, |request| request.parts.unwrap_or(1));
        }
        into.extend(queue.asked.drain(..length));
    }

    /// Until when the oldest that was sent is to be answered, and how long it was given.
    pub(crate) fn oldest(&self) -> Option<(Instant, Duration)> {
        self.lock().asked.front().map(|request| (request.by, request.patience))
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

    /// The request that is parked here, if one is, and its place among those that block.
    pub(crate) fn parked(&self) -> Option<(Arc<Slot>, Option<OwnedPermit>)> {
        let mut queue = self.lock();
        let Queue { asked, waiting, .. } = &mut *queue;
        let request = asked.front_mut().or(waiting.front_mut()).filter(|_| self.blocks)?;
        let slot = request.debt.slot.clone().filter(|_| request.debt.is_parked())?;
        Some((slot, request.seat.take()))
    }

    /// What to do about a request that nobody waits for any more.
    pub(crate) fn interrupt(&self, slot: &Arc<Slot>) -> Interrupt {
        let is_it =
            |request: &Request| request.debt.slot.as_ref().is_some_and(|other| Arc::ptr_eq(other, slot));
        let mut queue = self.lock();
        if let Some(at) = queue.waiting.iter().position(is_it) {
            return queue
                .waiting
                .remove(at)
                .map_or(Interrupt::Nothing, |request| Interrupt::Unsent(Box::new(request)));
        }
        let client = queue.client;
        match (queue.asked.front().filter(|request| is_it(request)), client) {
            (Some(request), Some(client)) => {
                let forked = request.debt.admission.fork(&Origin::here());
                forked.map_or(Interrupt::Nothing, |admission| Interrupt::Unblock { client, admission })
            }
            _ => Interrupt::Nothing,
        }
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
    while taken < PARTS_MAX
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
