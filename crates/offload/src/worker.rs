//! A thread of a lane: takes work, runs it, sleeps when there is none.

use std::{
    cell::RefCell,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Outcome,
    time::{Clock, SystemClock},
};

use crate::{
    crew::{Desk, Kind},
    hub::{Aftermath, Hired, Home, Hub, Which},
    queue::Entry,
    sync::{
        Mutex, Ordering, lock,
        thread::{self, JoinHandle},
        thread_local,
    },
    work::{Lost, Work, as_part_of},
};

/// For so long a thread stays awake with nothing to do: about as long as it takes to wake one.
const LINGER: Duration = Duration::from_micros(50);

thread_local! {
    /// Whose thread this is.
    static POST: RefCell<Option<(Arc<Hub>, Which)>> = RefCell::default();
}

/// Whether this is a thread of the pool.
#[inline]
pub(crate) fn is_of(hub: &Arc<Hub>) -> bool {
    POST.try_with(|post| post.borrow().as_ref().is_some_and(|(own, _)| Arc::ptr_eq(own, hub)))
        .unwrap_or(false)
}

/// Runs work of this thread's own lane, whose result is waited for here, unless it has begun: whoever waits on
/// a thread of a pool for work of the same pool would wait in vain if he had the last thread.
#[inline]
pub(crate) fn run_by_waiter(home: Home, work: impl FnOnce() -> Arc<dyn Work>) {
    let own = |post: &Option<(Arc<Hub>, Which)>| {
        let (hub, which) = post.as_ref()?;
        (hub.home(*which) == home).then(|| (hub.clone(), *which))
    };
    // In the destructor of another thread-local there may be nothing left to ask.
    let Some((hub, which)) = POST.try_with(|post| own(&post.borrow())).ok().flatten() else { return };
    let (work, mut ended, mut aftermath) = (work(), Vec::new(), Aftermath::default());
    if let Err(entry) = hub.accept_for_waiter(which, &work) {
        return entry.work.discard(entry.parts, Lost::Closed);
    }
    as_part_of(work.clone(), || work.run_by_waiter(hub.before_each.as_ref(), &mut ended));
    hub.settle(&mut hub.lock(), &mut ended, &mut aftermath);
    hub.see_to(aftermath);
}

/// What a thread is called.
pub(crate) fn name(pool: &str, which: Which, number: usize) -> String {
    match which {
        Which::Cpu => format!("{pool}-cpu-{number}"),
        Which::Blocking => format!("{pool}-blocking-{number}"),
    }
}

/// Starts a thread that was hired.
pub(crate) fn start(hub: &Arc<Hub>, which: Which, (number, desk): Hired) -> io::Result<JoinHandle<()>> {
    let worker = Worker { hub: hub.clone(), which, number, desk };
    thread::Builder::new().name(name(&hub.name, which, number)).spawn(move || {
        POST.with(|post| post.replace(Some((worker.hub.clone(), worker.which))));
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
        let mut ended = Vec::new();
        loop {
            while let Some(entry) = self.next_of_share(&mut ended) {
                as_part_of(entry.work.clone(), || {
                    entry.work.run(entry.parts.clone(), self.hub.before_each.as_ref(), &mut ended);
                });
            }
            let mut found = self.come_to_the_queue(true);
            if found == Found::TimeToLinger {
                self.linger();
                found = self.come_to_the_queue(false);
            }
            if found == Found::TheEnd || (found == Found::TimeToSleep && !self.sleep(kind)) {
                return;
            }
        }
    }

    /// Takes the next of what it has taken already, and shows it. Says how what it ran has ended.
    #[inline]
    fn next_of_share(&self, ended: &mut Vec<Outcome>) -> Option<Entry> {
        // The end of one job is the beginning of the next.
        let now = self.hub.time.now();
        let mut desk = lock(&self.desk);
        desk.ended.append(ended);
        let entry = desk.share.pop_front();
        desk.running = entry.as_ref().map(|entry| (entry.work.tag().clone(), now));
        entry
    }

    /// Brings back what it has run, and takes what is to be run next. If there is nothing, it is known from now on to
    /// linger, or to sleep.
    fn come_to_the_queue(&self, may_linger: bool) -> Found {
        let (now, mut aftermath) = (self.hub.time.now(), Aftermath::default());
        let mut state = self.hub.lock();
        if !may_linger {
            state.lane(self.which).crew.ends_lingering();
            self.hub.beckoned[self.which as usize].store(false, Ordering::Relaxed);
        }
        let mut desk = lock(&self.desk);
        self.hub.settle(&mut state, &mut desk.ended, &mut aftermath);
        let found =
            if self.hub.take_share(&mut state, self.which, self.number, now, &mut desk.share, &mut aftermath)
            {
                Found::Share
            } else if state.has_ended {
                Found::TheEnd
            } else if may_linger && state.lane(self.which).crew.may_linger() {
                Found::TimeToLinger
            } else {
                state.lane(self.which).crew.sleeps(self.number);
                Found::TimeToSleep
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
        while !beckoned.load(Ordering::Relaxed) && (cfg!(loom) || SystemClock.now() < until) {
            thread::yield_now();
            if cfg!(loom) {
                return;
            }
        }
    }

    /// Sleeps until it is woken. Gives false if it is to leave, because it has slept for so long.
    fn sleep(&self, kind: Kind) -> bool {
        let until = match kind {
            Kind::Fixed(_) => None,
            Kind::Elastic { keep_alive, .. } => SystemClock.now().checked_add(keep_alive),
        };
        loop {
            park(until);
            let mut state = self.hub.lock();
            let crew = &mut state.lane(self.which).crew;
            // A job may have left a token behind that ends a park before its time.
            if !crew.is_asleep(self.number) {
                return true;
            }
            if crew.len() > 1 && until.is_some_and(|until| SystemClock.now() >= until) {
                crew.rises(self.number);
                crew.dismiss(self.number);
                return false;
            }
        }
    }
}

#[cfg(not(loom))]
fn park(until: Option<Instant>) {
    match until {
        None => thread::park(),
        Some(until) => thread::park_timeout(until.saturating_duration_since(SystemClock.now())),
    }
}

#[cfg(loom)]
fn park(_: Option<Instant>) {
    thread::park();
}
