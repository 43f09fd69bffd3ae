//! Waiting on Linux: epoll, edge-triggered, with an eventfd to be woken by and a timerfd for the time.
//!
//! Neither is read, unless its count is full: each write to the one, and each expiry of the other, is an edge of its
//! own. So a wait is one system call, and a second one only when the loop has to wake earlier than the timerfd would
//! have it.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use ebbtide_lifecycle::time::{Clock, SystemClock};
use rustix::{
    event::{EventfdFlags, Timespec, epoll, eventfd},
    io::Errno,
    time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime},
};

use super::{poll::Limit, source::News};

/// What is registered on this system.
pub(crate) type RawSource = std::os::fd::RawFd;
pub(crate) type BorrowedSource<'a> = BorrowedFd<'a>;

/// How many reports are taken at once.
const BATCH: usize = 256;

/// How often the bell is rung if that fails. A loop that is not woken hangs, and whoever wakes it must not hang
/// instead.
const RINGS_MAX: usize = 8;

/// Stands for the eventfd and the timerfd, which nobody waits for.
const OURS: u64 = u64::MAX;

/// The system's side, for any thread.
#[derive(Debug)]
pub(crate) struct Poll {
    epoll: OwnedFd,
    bell: OwnedFd,
}

/// What the loop's thread needs to wait.
#[derive(Debug)]
pub(crate) struct Waiting {
    timer: OwnedFd,
    /// When the timer goes off next.
    armed: Option<Instant>,
}

impl Poll {
    /// Edges are reported by themselves.
    pub(crate) const MAY_BE_ONESHOT: bool = false;

    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(
            &epoll,
            &bell,
            epoll::EventData::new_u64(OURS),
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )?;
        Ok(Self { epoll, bell })
    }

    /// What the loop's thread needs to wait.
    pub(crate) fn waiting(&self) -> io::Result<Waiting> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.epoll, &timer, epoll::EventData::new_u64(OURS), flags)?;
        Ok(Waiting { timer, armed: None })
    }

    pub(crate) fn add(&self, source: BorrowedFd<'_>, key: usize) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        let flags = Flags::IN | Flags::OUT | Flags::PRI | Flags::RDHUP | Flags::ET;
        Ok(epoll::add(&self.epoll, source, epoll::EventData::new_u64(key as u64), flags)?)
    }

    pub(crate) fn delete(&self, source: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// Whether a source has to be asked for again after each report.
    #[expect(clippy::unused_self, reason = "it depends on the system elsewhere")]
    pub(crate) const fn is_oneshot(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "it is done elsewhere")]
    pub(crate) fn ask(&self, _: BorrowedFd<'_>, _: usize, _: [bool; 2]) -> io::Result<()> {
        unreachable!("what is registered here is reported again by itself")
    }

    /// Ends the wait that is under way, or else the next one.
    pub(crate) fn notify(&self) {
        for _ in 0..RINGS_MAX {
            match rustix::io::write(&self.bell, &1_u64.to_ne_bytes()) {
                Ok(_) => return,
                Err(Errno::INTR) => {}
                // The count is full: only one that has been emptied has an edge again.
                Err(_) => drop(rustix::io::read(&self.bell, &mut [0; 8])),
            }
        }
    }

    /// Waits, and gives what is reported.
    pub(crate) fn wait(
        &self,
        waiting: &mut Waiting,
        limit: Limit,
        mut report: impl FnMut(usize, News),
    ) -> io::Result<()> {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let timeout = match limit {
            Limit::Now => Some(&now),
            Limit::Until(until) if waiting.arm(until)? => None,
            Limit::Until(_) => Some(&now),
            Limit::Never => None,
        };
        let mut events = [const { MaybeUninit::uninit() }; BATCH];
        let events = match epoll::wait(&self.epoll, &mut events[..], timeout) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        for event in events {
            if event.data.u64() != OURS {
                report(event.data.u64() as usize, news(event.flags));
            }
        }
        Ok(())
    }
}

fn news(flags: epoll::EventFlags) -> News {
    use epoll::EventFlags as Flags;
    let broken = flags.intersects(Flags::HUP | Flags::ERR);
    // A read ends at urgent data, and short of what is there: it says as little as a read at the end of a stream.
    let hung_up = broken || flags.intersects(Flags::RDHUP | Flags::PRI);
    News::new(hung_up || flags.contains(Flags::IN), broken || flags.contains(Flags::OUT))
        .closed(hung_up, broken)
}

impl Waiting {
    /// Sees to it that the timer goes off at `at` or before. Gives false if that has passed.
    ///
    /// Most timeouts are cancelled: then the time to wake at moves on, and the timer stays where it is. It goes
    /// off once for nothing, where moving it would be a system call for each wait.
    fn arm(&mut self, at: Instant) -> io::Result<bool> {
        let now = SystemClock.now();
        let Some(left) = at.checked_duration_since(now).filter(|left| !left.is_zero()) else {
            return Ok(false);
        };
        if self.armed.is_some_and(|armed| now < armed && armed <= at) {
            return Ok(true);
        }
        let once = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(left) };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        self.armed = Some(at);
        Ok(true)
    }
}

fn timespec(duration: Duration) -> Timespec {
    let tv_sec = duration.as_secs().try_into().unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: duration.subsec_nanos().into() }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_bell_whose_count_is_full_still_rings() {
        let poll = Poll::new().expect("there are descriptors");
        let edges = || {
            let (mut events, now) = ([MaybeUninit::uninit(); 2], Timespec { tv_sec: 0, tv_nsec: 0 });
            let (seen, _) = epoll::wait(&poll.epoll, &mut events[..], Some(&now)).expect("it is open");
            seen.len()
        };
        rustix::io::write(&poll.bell, &(u64::MAX - 1).to_ne_bytes()).expect("there is room for just that");
        assert_eq!([edges(), edges()], [1, 0]);
        poll.notify();
        assert_eq!(edges(), 1);
    }
}
