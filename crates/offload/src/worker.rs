//! A thread of a lane: takes work, runs it, sleeps when there is none.

use std::{
    cell::{Cell, RefCell},
    io, mem,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Outcome,
    time::{Clock, SystemClock, Tempo},
};

use crate::{
    crew::{Desk, Kind},
    hub::{Aftermath, Home, Hub, Visit, Which},
    sync::{
        Mutex, Ordering, lock,
        thread::{self, JoinHandle},
        thread_local,
    },
    work::{Work, as_part_of, is_in_a_job, now_runs},
};

/// For so long a thread stays awake with nothing to do: about as long as it takes to wake one.
const LINGER: Duration = Duration::from_micros(50);

/// A thread that the system did not give is asked for again by those who come to the queue after this long: to be
/// refused takes about as long as many jobs do.
const MISSED: Duration = Duration::from_millis(1);

thread_local! {
    /// Whose thread this is.
    static POST: RefCell<Option<Post>> = RefCell::default();

    /// Which pool has started this thread. It has no destructor: those of other thread-locals can still ask.
    static STARTED_BY: Cell<Option<u64>> = Cell::default();
}

/// A thread's place in a pool.
#[derive(Clone)]
struct Post {
    hub: Arc<Hub>,
    desk: Arc<Mutex<Desk>>,
}

/// Whether this is a thread of the pool, also when it is about to end.
#[inline]
pub(crate) fn is_of(hub: &Hub) -> bool {
    is_started_by(hub.id)
}

#[inline]
fn is_started_by(pool: u64) -> bool {
    STARTED_BY.try_with(Cell::get).is_ok_and(|by| by == Some(pool))
}

/// Whether this is a thread of the pool, in the middle of a job.
#[inline]
pub(crate) fn is_in_a_job_of(hub: &Arc<Hub>) -> bool {
    is_of(hub) && is_in_a_job()
}

/// This thread's place, if it is in that pool.
fn post_in(home: Home) -> Option<Post> {
    // In the destructor of another thread-local there may be nothing left to ask.
    POST.try_with(|post| post.borrow().clone().filter(|post| post.hub.id == home.pool)).ok().flatten()
}

/// Whether this is a thread of the pool where that job is.
#[inline]
pub(crate) fn is_at(home: Home) -> bool {
    is_started_by(home.pool)
}

/// Runs work of this thread's own pool, whose result is waited for here, unless it has begun: whoever waits on
/// a thread of a pool for work of the same pool would wait in vain if he had the last thread.
///
/// One part after the other, while `goes_on`: the rest stays where it is, to be taken by others, handed back, or
/// discarded.
#[cold]
pub(crate) fn run_by_waiter(home: Home, work: &Arc<dyn Work>, goes_on: impl Fn() -> bool) {
    let Some(Post { hub, desk }) = post_in(home) else { return };
    let (mut ended, mut below) = (Vec::new(), usize::MAX);
    while goes_on() {
        hub.take_for_waiter(home.which, work);
        lock(&desk).running.push((work.tag().clone(), hub.time.now()));
        let run = || work.run_by_waiter(&mut below, hub.before_each.as_ref(), &mut ended);
        let has_run = as_part_of(work.clone(), run);
        lock(&desk).running.pop();
        let mut aftermath = Aftermath::default();
        hub.settle(&mut hub.lock(), &mut ended, &mut aftermath);
        hub.see_to(aftermath);
        if !has_run {
            return;
        }
    }
}

/// What a thread is called.
pub(crate) fn name(pool: &str, which: Which, number: usize) -> String {
    match which {
        Which::Cpu => format!("{pool}-cpu-{number}"),
        Which::Blocking => format!("{pool}-blocking-{number}"),
    }
}

/// Starts a thread that was hired.
pub(crate) fn start(
    hub: &Arc<Hub>,
    which: Which,
    number: usize,
    desk: Arc<Mutex<Desk>>,
) -> io::Result<JoinHandle<()>> {
    let worker = Worker { hub: hub.clone(), which, number, desk };
    thread::Builder::new().name(name(&hub.name, which, number)).spawn(move || {
        STARTED_BY.with(|by| by.set(Some(worker.hub.id)));
        POST.with(|post| post.replace(Some(Post { hub: worker.hub.clone(), desk: worker.desk.clone() })));
        worker.run();
        POST.with(|post| drop(post.take()));
    })
}

struct Worker {
    hub: Arc<Hub>,
    which: Which,
    number: usize,
    desk: Arc<Mutex<Desk>>,
}

/// What a thread runs next.
struct Next {
    /// None if it is the same work as before.
    another: Option<Arc<dyn Work>>,
    parts: Range<usize>,
}

/// Tells a thread when a job begins. To read the clock costs more than a tiny job does: where those of a batch
/// follow each other quickly, it is read for some of them, and the others seem to have begun a little earlier
/// than they did.
struct Watch {
    read: Instant,
    /// So many may begin before it is read again.
    unread: u32,
}

impl Watch {
    /// How many jobs may begin at one reading.
    const UNREAD_MAX: u32 = 15;

    /// If the jobs since the last reading have taken no longer than this, they are tiny.
    const TINY: Duration = Duration::from_micros(20);

    fn new(now: Instant) -> Self {
        Self { read: now, unread: 0 }
    }

    #[inline]
    fn look(&mut self, time: &Tempo, is_another: bool) -> Instant {
        if self.unread > 0 && !is_another {
            self.unread -= 1;
            return self.read;
        }
        let before = mem::replace(&mut self.read, time.now());
        if self.read - before < Self::TINY {
            self.unread = Self::UNREAD_MAX;
        }
        self.read
    }
}

/// Where a thread comes from when it comes to the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CameFrom {
    Work,
    /// It stayed awake, and may have been beckoned by several.
    Lingering,
    /// It was woken.
    Sleep,
}

/// What a thread finds when it comes to the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Its next share.
    Share,
    /// Nothing; it may stay awake for a while.
    TimeToLinger,
    /// Nothing; it is to sleep.
    TimeToSleep,
    /// The end of the pool.
    TheEnd,
}

impl Worker {
    fn run(&self) {
        let kind = self.hub.lock().lane(self.which).crew.begins(self.number, thread::current());
        let (mut ended, mut watch) = (Vec::new(), Watch::new(self.hub.time.now()));
        let mut came_from = CameFrom::Work;
        loop {
            self.run_share(&mut watch, &mut ended);
            let mut found = self.come_to_the_queue(came_from);
            came_from = CameFrom::Work;
            if found == Found::TimeToLinger {
                self.linger();
                found = self.come_to_the_queue(CameFrom::Lingering);
            }
            if found == Found::TheEnd || (found == Found::TimeToSleep && !self.sleep(kind)) {
                return;
            }
            if found == Found::TimeToSleep {
                came_from = CameFrom::Sleep;
                watch = Watch::new(self.hub.time.now());
            }
        }
    }

    /// Runs what it has taken.
    fn run_share(&self, watch: &mut Watch, ended: &mut Vec<Outcome>) {
        let mut current: Option<Arc<dyn Work>> = None;
        while let Some(Next { another, parts }) = self.next_of_share(current.as_ref(), watch, ended) {
            if let Some(work) = another {
                drop(now_runs(Some(work.clone())));
                current = Some(work);
            }
            if let Some(work) = &current {
                work.run(parts, self.hub.before_each.as_ref(), ended);
            }
        }
        drop(now_runs(None));
    }

    /// Takes the next of what it has taken already, and shows it. Says how what it ran has ended.
    #[inline]
    fn next_of_share(
        &self,
        current: Option<&Arc<dyn Work>>,
        watch: &mut Watch,
        ended: &mut Vec<Outcome>,
    ) -> Option<Next> {
        let desk = &mut *lock(&self.desk);
        desk.ended.append(ended);
        desk.running.clear();
        let front = desk.share.front_mut()?;
        let is_another = !current.is_some_and(|current| Arc::ptr_eq(current, &front.work));
        // The end of one job is the beginning of the next.
        let now = watch.look(&self.hub.time, is_another);
        if !front.work.is_over() {
            desk.running.push((front.work.tag().clone(), now));
        }
        // Of a batch one part at a time: the others have not begun.
        let parts = front.parts.start..front.parts.start + 1;
        if front.parts.len() == 1 {
            return desk.share.pop_front().map(|entry| Next { another: Some(entry.work), parts });
        }
        front.parts.start = parts.end;
        Some(Next { another: is_another.then(|| front.work.clone()), parts })
    }

    /// Brings back what it has run, and takes what is to be run next. If there is nothing, it is known from now on to
    /// linger, or to sleep.
    fn come_to_the_queue(&self, came_from: CameFrom) -> Found {
        let visit = Visit { which: self.which, number: self.number, now: self.hub.time.now(), came_from };
        let mut aftermath = Aftermath::default();
        let mut state = self.hub.lock_as_it_is();
        if came_from == CameFrom::Lingering {
            state.lane(self.which).crew.ends_lingering();
            self.hub.beckoned[self.which as usize].store(false, Ordering::Relaxed);
        }
        if state.missed.is_some() {
            self.hub.try_again(&mut state, MISSED);
        }
        let mut desk = lock(&self.desk);
        self.hub.settle(&mut state, &mut desk.ended, &mut aftermath);
        let found = loop {
            if self.hub.take_share(&mut state, visit, &mut desk.share, &mut aftermath) {
                break Found::Share;
            }
            if state.has_ended {
                break Found::TheEnd;
            }
            let lingers = came_from != CameFrom::Lingering && state.lane(self.which).crew.may_linger();
            if !self.hub.may_rest(&mut state, self.which, lingers) {
                continue;
            }
            if lingers {
                state.lane(self.which).crew.lingers();
                break Found::TimeToLinger;
            }
            state.lane(self.which).crew.sleeps(self.number);
            break Found::TimeToSleep;
        };
        drop(desk);
        drop(state);
        self.hub.see_to(aftermath);
        found
    }

    /// Stays awake until it is beckoned, for as long as it takes to be woken: jobs that follow each other
    /// closely then cost no waking. Others go first.
    fn linger(&self) {
        let beckoned = &self.hub.beckoned[self.which as usize];
        let until = SystemClock.now() + LINGER;
        while !beckoned.load(Ordering::Relaxed) && (cfg!(any(loom, shuttle)) || SystemClock.now() < until) {
            thread::yield_now();
            if cfg!(any(loom, shuttle)) {
                return;
            }
        }
    }

    /// Sleeps until it is woken. Gives false if it is to leave, because it has slept for so long.
    fn sleep(&self, kind: Kind) -> bool {
        let mut until = match kind {
            Kind::Fixed(_) => None,
            Kind::Elastic { keep_alive, .. } => SystemClock.now().checked_add(keep_alive),
        };
        loop {
            park(until);
            let mut state = self.hub.lock_as_it_is();
            let crew = &mut state.lane(self.which).crew;
            // A job may have left a token behind that ends a park before its time.
            if !crew.is_asleep(self.number) {
                return true;
            }
            if until.is_some_and(|until| SystemClock.now() >= until) {
                if crew.begun() > 1 {
                    crew.rises(self.number);
                    crew.dismiss(self.number);
                    return false;
                }
                // Somebody has to stay.
                until = None;
            }
        }
    }
}

#[cfg(not(any(loom, shuttle)))]
fn park(until: Option<Instant>) {
    match until {
        None => thread::park(),
        Some(until) => thread::park_timeout(until.saturating_duration_since(SystemClock.now())),
    }
}

#[cfg(any(loom, shuttle))]
fn park(_: Option<Instant>) {
    thread::park();
}
