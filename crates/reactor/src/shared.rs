//! The side of a loop that other threads see.

use std::{
    any::Any,
    io,
    panic::Location,
    ptr::{self, NonNull},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering},
    },
    task::Wake,
    thread::{self, Thread},
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Ledger, Lifecycle, Panicked, Trigger,
    blame::{Activity, Origin, Straggler},
    contain,
    time::{Clock, SystemClock, VirtualClock},
};

use crate::{
    core::Core,
    hook::{PanicHook, PanicReport},
    inbox::{Door, Inbox, Kind, Link, Sort, Wake as WakeUp},
    io::Driver,
    lease::Leases,
    stats::Counts,
    sync::{Mutex, lock},
    time::{Times, Wheel},
};

pub(crate) struct Shared {
    pub(crate) name: Arc<str>,
    pub(crate) inbox: Inbox,
    pub(crate) life: Lifecycle,
    pub(crate) ledger: Ledger,
    pub(crate) stats: Arc<Counts>,
    pub(crate) shutdown: Trigger,
    pub(crate) hook: PanicHook,
    /// What keeps this alive for tasks and timers.
    pub(crate) leases: Leases,
    /// The clock that the loop lives by, if it is not the system's.
    pub(crate) clock: Option<VirtualClock>,
    /// Stamps are nanoseconds since this.
    pub(crate) epoch: Instant,
    /// Nothing more is to be run.
    forced: AtomicBool,
    /// The loop has ended, and with it its timers: these are the times that they had.
    timers_ended: OnceLock<Times>,
    /// How many posts and tasks the end of the loop cut off.
    pub(crate) cut_off: AtomicU64,
    /// The loop's thread, once it has one.
    thread: OnceLock<Thread>,
    /// The loop's I/O, once it has any; then the loop sleeps there. None for good, if the loop ended without.
    driver: OnceLock<Option<Arc<Driver>>>,
    /// Where what is being run at this moment was submitted; null between runs. Always null or `&'static`.
    running: AtomicPtr<Location<'static>>,
    /// What is called by a name of what ran last, and where it was submitted.
    named: Mutex<Option<(&'static Location<'static>, Arc<str>)>>,
    /// The stamp of the turn that `running` belongs to.
    turn: AtomicU64,
    /// Stands for the future of `block_on` in the run queue and in the inbox.
    main: Standby,
    /// Makes a sleeping loop look around.
    nudge: Standby,
}

/// A link that is put in at most once at a time, and lives as long as the loop. Aligned as an inbox wants it.
#[repr(C, align(16))]
struct Standby {
    link: Link,
    /// Whether it is in a list. Who sets it puts the link there.
    scheduled: AtomicBool,
}

impl Standby {
    fn new(kind: &'static Kind) -> Self {
        Self { link: Link::new(kind), scheduled: AtomicBool::new(false) }
    }
}

const MAIN: &Kind = &Kind { run: run_main, abandon: run_main, discard: |_| (), sort: Sort::Errand };
const NUDGE: &Kind = &Kind { run: run_nudge, abandon: run_nudge, discard: |_| (), sort: Sort::Errand };

unsafe fn run_main(_: NonNull<Link>, core: &Core) {
    // AcqRel: what the waker did, to the poll that follows.
    core.shared().main.scheduled.swap(false, Ordering::AcqRel);
    core.main_is_ready();
}

unsafe fn run_nudge(_: NonNull<Link>, core: &Core) {
    core.shared().nudge.scheduled.swap(false, Ordering::AcqRel);
}

impl Shared {
    pub(crate) fn new(name: Arc<str>, hook: PanicHook, clock: Option<VirtualClock>, shut: bool) -> Self {
        let epoch = clock.as_ref().map_or_else(|| SystemClock.now(), Clock::now);
        Self {
            clock,
            forced: AtomicBool::new(false),
            timers_ended: OnceLock::new(),
            cut_off: AtomicU64::new(0),
            name,
            inbox: Inbox::new(shut),
            life: Lifecycle::new(),
            ledger: Ledger::new(),
            stats: Arc::default(),
            shutdown: Trigger::new(),
            hook,
            epoch,
            thread: OnceLock::new(),
            driver: OnceLock::new(),
            running: AtomicPtr::new(ptr::null_mut()),
            named: Mutex::new(None),
            leases: Leases::default(),
            turn: AtomicU64::new(0),
            main: Standby::new(MAIN),
            nudge: Standby::new(NUDGE),
        }
    }

    /// Says which thread runs the loop, and is to be woken.
    pub(crate) fn set_thread(&self, thread: Thread) {
        // A loop stays on one thread: it is not `Send`.
        let _ = self.thread.set(thread);
    }

    pub(crate) fn wake(&self, wake: WakeUp) {
        if wake == WakeUp::Needed {
            match self.driver() {
                Some(driver) => driver.notify(),
                None => self.unpark_thread(),
            }
        }
    }

    fn unpark_thread(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    pub(crate) fn driver(&self) -> Option<&Arc<Driver>> {
        self.driver.get()?.as_ref()
    }

    /// The loop's I/O; made now if it has none yet.
    pub(crate) fn driver_or_new(&self) -> io::Result<&Arc<Driver>> {
        if self.driver.get().is_none() {
            let new = Arc::new(Driver::new()?);
            let driver = self.driver.get_or_init(|| Some(new));
            // The loop may be about to sleep without it, or asleep; or it has found the driver, and somebody
            // else who had not has just woken it where it is not any more. In any case it has to look again.
            self.unpark_thread();
            if let Some(driver) = driver {
                driver.notify();
            }
        }
        self.driver().ok_or_else(crate::io::ended)
    }

    /// Says that there will be no I/O, if there is none yet. Gives the driver, to be told.
    pub(crate) fn end_io(&self) -> Option<&Arc<Driver>> {
        self.driver.get_or_init(|| None).as_ref()
    }

    /// Wakes the loop's thread in any case.
    pub(crate) fn unpark(&self) {
        self.wake(WakeUp::Needed);
    }

    /// Makes the loop look around, also if it sleeps.
    pub(crate) fn nudge(&self) {
        self.put(&self.nudge);
    }

    fn put(&self, standby: &Standby) {
        // AcqRel: what the waker did before, to the run that follows.
        if standby.scheduled.swap(true, Ordering::AcqRel) {
            return;
        }
        let link = NonNull::from(&standby.link);
        if let Some(core) = Core::current_of(self) {
            // SAFETY: it lives as long as the loop's side that others see, which the loop keeps; by the mark
            // that we set it is in no list.
            unsafe { core.queue.push(link) };
        // SAFETY: as above.
        } else if let Ok(wake) = unsafe { self.inbox.put(link, Door::Inner) } {
            self.wake(wake);
        }
    }

    /// Says what runs now.
    #[inline]
    pub(crate) fn show(&self, site: &'static Location<'static>) {
        self.running.store(ptr::from_ref(site).cast_mut(), Ordering::Relaxed);
    }

    /// Says what runs now, and what it is called.
    pub(crate) fn show_named(&self, site: &'static Location<'static>, name: &Arc<str>) {
        let before = {
            let named = &mut *lock(&self.named);
            let same = named.as_ref().is_some_and(|(at, kept)| ptr::eq(*at, site) && Arc::ptr_eq(kept, name));
            if same { None } else { named.replace((site, name.clone())) }
        };
        drop(before);
        self.show(site);
    }

    /// Says that nothing runs, or that a turn begins.
    pub(crate) fn hide(&self, stamp: u64) {
        self.running.store(ptr::null_mut(), Ordering::Relaxed);
        self.turn.store(stamp, Ordering::Relaxed);
    }

    /// What runs now, for who asks from another thread. It may be in its turn for less long than is said.
    pub(crate) fn running(&self, now: Instant) -> Option<Straggler> {
        // SAFETY: it is null or came from a `&'static` in `show`.
        let site = unsafe { self.running.load(Ordering::Relaxed).as_ref() }?;
        let since = Duration::from_nanos(self.turn.load(Ordering::Relaxed));
        let age = now.saturating_duration_since(self.epoch).saturating_sub(since);
        let named =
            lock(&self.named).as_ref().filter(|(at, _)| ptr::eq(*at, site)).map(|(_, name)| name.clone());
        let origin = match named {
            Some(name) => Origin::from(site).named(name),
            None => site.into(),
        };
        Some(Straggler::new(origin, Activity::Running, age).on(self.name.clone()))
    }

    /// A panic that was caught, and that nobody is there to be handed to.
    pub(crate) fn panicked(&self, origin: Origin, panic: Box<dyn Any + Send>) {
        self.stats.panic();
        self.report(origin, panic);
    }

    /// A panic that has been counted, and that nobody is there to be handed to any more.
    pub(crate) fn report(&self, origin: Origin, panic: Box<dyn Any + Send>) {
        let panic = &Panicked::new(panic);
        self.hook.call(&PanicReport { loop_name: &self.name, origin: &origin, panic });
    }

    /// Whether this is the loop's thread, turning it or not.
    pub(crate) fn is_own_thread(&self) -> bool {
        self.thread.get().is_some_and(|thread| thread.id() == thread::current().id())
    }

    /// Says that there are no timers any more.
    pub(crate) fn end_timers(&self, times: Times) {
        // A loop ends once.
        let _ = self.timers_ended.set(times);
    }

    /// When the timers of a loop were due that has ended. It may have closed its inbox just now: then it is
    /// about to say it.
    pub(crate) fn times_left_behind(&self) -> &Times {
        self.timers_ended.wait()
    }

    /// Whether whoever is woken by a timer is woken because the loop has ended.
    pub(crate) fn timers_have_ended(&self) -> bool {
        self.timers_ended.get().is_some()
    }

    /// Has the loop run nothing more.
    pub(crate) fn force(&self) {
        self.forced.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_forced(&self) -> bool {
        self.forced.load(Ordering::Relaxed)
    }

    /// A time in nanoseconds since the loop's epoch, at which what is earlier is taken to be.
    #[inline]
    pub(crate) fn nanos(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.epoch);
        // 584 years: what is later is as good as never.
        since.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(since.subsec_nanos()))
    }

    pub(crate) fn instant(&self, nanos: u64) -> Option<Instant> {
        self.epoch.checked_add(Duration::from_nanos(nanos))
    }

    /// The time by the loop's clock.
    pub(crate) fn now(&self) -> Instant {
        self.clock.as_ref().map_or_else(|| SystemClock.now(), Clock::now)
    }
}

impl Shared {
    /// Ends a loop that never ran: nobody else does.
    pub(crate) fn end_unrun(&self) {
        while !self.inbox.die() {
            self.discard_all();
        }
        self.end_timers(Wheel::new().into_times_and_wakers().0);
        let mut due = Vec::new();
        if let Some(driver) = self.end_io() {
            driver.end(&mut due);
        }
        for waker in due {
            drop(contain(|| waker.wake()));
        }
    }

    /// Frees what is in the inbox.
    fn discard_all(&self) {
        let mut list = self.inbox.take().map(|(first, _)| first);
        while let Some(link) = list {
            // SAFETY: the inbox gave the link up; it lives until it is discarded.
            let left = unsafe { link.as_ref() };
            list = NonNull::new(left.next.load(Ordering::Relaxed));
            // SAFETY: `discard` is of the link's own kind.
            unsafe { (left.kind().discard)(link) };
        }
    }
}

/// A loop that ran has left nothing in its inbox. One that never did may have been asked something.
impl Drop for Shared {
    fn drop(&mut self) {
        self.discard_all();
    }
}

/// Wakes the future of `block_on`.
impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.put(&self.main);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.put(&self.main);
    }
}
