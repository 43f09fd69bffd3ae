//! A table of seats: whoever is in flight sits in one, and writes down who he is.
//!
//! Taking a seat is a pop from a free list, leaving it a push; between them the owner writes with plain stores and
//! an asker reads all seats without stopping anybody. No lock is taken and nothing is allocated once the table has
//! grown to the number of those in flight, except for names.

use std::{
    fmt,
    panic::Location,
    ptr,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence},
    },
    time::{Duration, Instant},
};

use super::{Activity, Origin, Straggler, Stragglers};

/// The first row has so many seats, each further row twice as many as the one before it.
const FIRST_ROW: u32 = 64;

/// How many rows there can be: some 67 million seats. Work beyond them is in flight without a record.
const ROWS: usize = 20;

const SEATS_MAX: u32 = FIRST_ROW * ((1 << ROWS) - 1);

/// How often an asker reads a seat that changes under his eyes before he leaves it out.
const READS_MAX: usize = 8;

/// The end of the free list. Not the number of a seat, because it is above `SEATS_MAX`.
const NONE: u32 = u32::MAX;

/// Who is in flight, readable from any thread at any time.
pub struct Roster {
    /// Ages are counted from here.
    epoch: Instant,
    rows: [OnceLock<Box<[Place]>>; ROWS],
    /// How many seats were ever taken for the first time; may overshoot `SEATS_MAX`.
    opened: AtomicU32,
    /// The free list: the number of its first seat below, and above it a tag that changes with every exchange, so
    /// that a head that was taken and put back in between is not mistaken for the same.
    free: AtomicU64,
}

/// One seat's memory. A cache line of its own: neighbours belong to different threads.
#[repr(align(64))]
struct Place {
    /// Odd while the owner of the seat changes what is below, and two more after each change: a reader that
    /// sees the same even number before and after has read what belongs together.
    version: AtomicU32,
    /// The next in the free list, while this one is in it.
    next: AtomicU32,
    /// Nanoseconds since the epoch, times four, plus an [`Activity`]; zero while nobody is shown.
    stamp: AtomicU64,
    /// Always null or a `&'static Location<'static>`.
    site: AtomicPtr<Location<'static>>,
    name: Mutex<Option<Arc<str>>>,
}

/// A place in a [`Roster`], from [`Roster::take`] until it is given to [`Roster::leave`].
///
/// A seat that is dropped instead stays taken for as long as the roster lives. It can be shown and left only at
/// the roster that gave it out.
#[must_use = "a seat stays taken until it is given back with `Roster::leave`"]
#[derive(Debug)]
pub struct Seat {
    /// `NONE` if the table was full.
    number: u32,
    named: bool,
}

/// A time as a [`Roster`] writes it down, from [`Roster::moment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since the roster's epoch; 62 bits of them last for 146 years.
    nanos: u64,
}

impl Roster {
    /// An empty table. `now` is the earliest time from which an age can be told.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            epoch: now,
            rows: [const { OnceLock::new() }; ROWS],
            opened: AtomicU32::new(0),
            free: AtomicU64::new(u64::from(NONE)),
        }
    }

    /// What is written down for `at`. A loop works it out once a turn, and not for each of its tasks.
    #[inline]
    #[must_use]
    pub fn moment(&self, at: Instant) -> Moment {
        Moment { nanos: at.saturating_duration_since(self.epoch).as_nanos() as u64 }
    }

    /// Takes a seat for work that came in at `since` and is shown from now on, until it is
    /// [left](Roster::leave).
    #[inline]
    pub fn take(&self, origin: &Origin, activity: Activity, since: Moment) -> Seat {
        let mut seat = self.reserve();
        self.show(&mut seat, origin, activity, since);
        seat
    }

    /// Takes a seat in which nobody is shown yet.
    #[inline]
    pub fn reserve(&self) -> Seat {
        Seat { number: self.pop_free().unwrap_or_else(|| self.open_seat()), named: false }
    }

    /// Shows other work in `seat`, or the same in another activity.
    #[inline]
    pub fn show(&self, seat: &mut Seat, origin: &Origin, activity: Activity, since: Moment) {
        let Some(place) = self.place(seat.number) else { return };
        place.change(|| {
            if seat.named || origin.name.is_some() {
                place.set_name(origin.name.clone());
            }
            place.show(origin.site, stamp(activity, since));
        });
        seat.named = origin.name.is_some();
    }

    /// Shows work without a name in `seat`: the same as [`show`](Roster::show), for a loop that has the location
    /// at hand and does it for every poll.
    #[inline]
    pub fn show_site(
        &self,
        seat: &mut Seat,
        site: &'static Location<'static>,
        activity: Activity,
        since: Moment,
    ) {
        let Some(place) = self.place(seat.number) else { return };
        place.change(|| {
            if seat.named {
                place.set_name(None);
            }
            place.show(site, stamp(activity, since));
        });
        seat.named = false;
    }

    /// Shows nobody in `seat`, which stays taken.
    #[inline]
    pub fn hide(&self, seat: &Seat) {
        if let Some(place) = self.place(seat.number) {
            place.change(|| place.hide());
        }
    }

    /// Gives the seat back.
    #[inline]
    pub fn leave(&self, seat: Seat) {
        let Some(place) = self.place(seat.number) else { return };
        place.change(|| {
            place.hide();
            if seat.named {
                place.set_name(None);
            }
        });
        self.push_free(seat.number, place);
    }

    /// Who is in flight, oldest first. Stops nobody, and may be asked from any thread, also when all others hang.
    #[must_use]
    pub fn stragglers(&self, now: Instant) -> Stragglers {
        let opened = self.opened.load(Ordering::Relaxed).min(SEATS_MAX);
        let now = now.saturating_duration_since(self.epoch);
        (0..opened).filter_map(|number| self.place(number)?.read(now)).collect()
    }

    /// The memory of a seat; none if the table has no such seat, or not yet.
    #[inline]
    fn place(&self, number: u32) -> Option<&Place> {
        if number >= SEATS_MAX {
            return None;
        }
        // Row r begins at FIRST_ROW * (2^r - 1).
        let row = (number / FIRST_ROW + 1).ilog2();
        let first = FIRST_ROW * ((1 << row) - 1);
        self.rows[row as usize].get().map(|row| &row[(number - first) as usize])
    }

    #[cold]
    fn open_seat(&self) -> u32 {
        if self.opened.load(Ordering::Relaxed) >= SEATS_MAX {
            return NONE;
        }
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        if number >= SEATS_MAX {
            return NONE;
        }
        let row = (number / FIRST_ROW + 1).ilog2();
        self.rows[row as usize].get_or_init(|| (0..FIRST_ROW << row).map(|_| Place::empty()).collect());
        number
    }

    #[inline]
    fn pop_free(&self) -> Option<u32> {
        // Acquire: the seat's `next`, and what its last owner did to it.
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            let number = head as u32;
            let place = self.place(number)?;
            let next = place.next.load(Ordering::Relaxed);
            match self.free.compare_exchange_weak(
                head,
                retag(head, next),
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(number),
                Err(seen) => head = seen,
            }
        }
    }

    #[inline]
    fn push_free(&self, number: u32, place: &Place) {
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            place.next.store(head as u32, Ordering::Relaxed);
            // Release: `next`, and what we did to the seat.
            match self.free.compare_exchange_weak(
                head,
                retag(head, number),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(seen) => head = seen,
            }
        }
    }
}

/// What a place is stamped with.
#[inline]
const fn stamp(activity: Activity, since: Moment) -> u64 {
    since.nanos << 2 | activity as u64
}

/// The free list's next head: another seat, the tag one on.
const fn retag(head: u64, number: u32) -> u64 {
    ((head >> 32) + 1) << 32 | number as u64
}

impl Place {
    fn empty() -> Self {
        Self {
            version: AtomicU32::new(0),
            next: AtomicU32::new(NONE),
            stamp: AtomicU64::new(0),
            site: AtomicPtr::new(ptr::null_mut()),
            name: Mutex::new(None),
        }
    }

    /// Lets the owner of the seat change it. Only he does, so plain loads and stores count the version.
    #[inline]
    fn change(&self, change: impl FnOnce()) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        // Release: the odd version, to a reader who sees any of the change.
        fence(Ordering::Release);
        change();
        // Release: the change, to the reader who sees the even version.
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    #[inline]
    fn show(&self, site: &'static Location<'static>, stamp: u64) {
        self.site.store(ptr::from_ref(site).cast_mut(), Ordering::Relaxed);
        self.stamp.store(stamp, Ordering::Relaxed);
    }

    #[inline]
    fn hide(&self) {
        self.stamp.store(0, Ordering::Relaxed);
    }

    #[cold]
    fn set_name(&self, name: Option<Arc<str>>) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
    }

    /// Who sits here, unless it is nobody, or changes whenever we look: then nobody is stuck here.
    fn read(&self, now: Duration) -> Option<Straggler> {
        (0..READS_MAX).find_map(|_| self.try_read(now))?
    }

    /// What was read; none if it changed meanwhile.
    fn try_read(&self, now: Duration) -> Option<Option<Straggler>> {
        let version = self.version.load(Ordering::Acquire);
        let stamp = self.stamp.load(Ordering::Relaxed);
        let site = self.site.load(Ordering::Relaxed);
        let name = self.name.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Acquire: if any of these came from a later change, then so does the version that is read next.
        fence(Ordering::Acquire);
        if version % 2 == 1 || self.version.load(Ordering::Relaxed) != version {
            return None;
        }
        let Some(activity) = Activity::from_bits(stamp & 3) else { return Some(None) };
        // SAFETY: `site` is null or came from a `&'static Location` in `show`, and only ever read.
        let site = unsafe { site.as_ref() }?;
        let age = now.saturating_sub(Duration::from_nanos(stamp >> 2));
        Some(Some(Straggler::new(Origin { site, name }, activity, age)))
    }
}

impl fmt::Debug for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roster").field("opened", &self.opened).finish_non_exhaustive()
    }
}
