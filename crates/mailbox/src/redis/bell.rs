//! Where receivers wait: a bell is a command that blocks at the server until somebody rings.
//!
//! A bell hangs for longer than a wait, and between waits it is parked: rung then, it is passed on to others at once.
//! So a wait that finds a bell up has to do no more than look; and one that has to hang one up need not look, if the
//! last look is recent enough. In turn, that is one command for each wait:
//!
//! ```text
//!   wait        1       2      3      4       5      6
//!   commands  bell    look   look   bell    look   look
//!   bell up   ├────────────────────┼────────────────────┤
//! ```

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ebbtide_redis::{Answer, Parked};

use crate::pull::Pull;

/// How long a bell hangs. A connection that is dead is noticed after that, and one that something in between forgets
/// when it is silent for minutes is not forgotten.
pub(super) const HANGS: Duration = Duration::from_secs(60);

/// A receiver looks by himself at least so often while he waits: what is due later need not be told to those who wait
/// at this moment. Three of the longest waits, because a bell may be let go of between the second and the third; and
/// what they are late by.
pub(super) const HORIZON: Duration = Pull::WAIT_MAX.saturating_mul(3).saturating_add(Duration::from_secs(5));

/// The bells that hang while nobody waits at them, and what is known meanwhile.
#[derive(Default)]
pub(super) struct Bells(Mutex<Board>);

#[derive(Default)]
struct Board {
    hung: Vec<Hung>,
    /// There after a look that found nothing. Whatever has come since then was rung for, if it is due before
    /// [`HORIZON`] is over.
    quiet: Option<Quiet>,
    is_closed: bool,
}

struct Hung {
    bell: Parked,
    /// When the server lets go of it.
    until: Instant,
}

/// A bell that somebody waits at.
pub(super) struct Bell {
    pub(super) answer: Answer,
    pub(super) until: Instant,
    /// Whether it was parked before.
    pub(super) is_old: bool,
}

/// What a look that found nothing has told.
#[derive(Clone, Copy)]
pub(super) struct Quiet {
    /// When it was asked for.
    pub(super) since: Instant,
    /// When the next message comes back by itself.
    pub(super) due: Option<Instant>,
}

impl Quiet {
    /// Whether others may not know when the next message comes back.
    pub(super) fn is_soon(&self) -> bool {
        self.due.is_some_and(|due| due < self.since + HORIZON)
    }
}

impl Bells {
    fn lock(&self) -> MutexGuard<'_, Board> {
        // Nothing that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known, for a wait that ends at `until`, if it need not look: it has to hang up a bell, and will be
    /// told of all else.
    pub(super) fn quiet(&self, until: Instant) -> Option<Quiet> {
        let board = self.lock();
        let hangs = board.hung.iter().any(|hung| hung.until >= until);
        board.quiet.filter(|quiet| !hangs && until <= quiet.since + HORIZON)
    }

    pub(super) fn know(&self, quiet: Option<Quiet>) {
        self.lock().quiet = quiet;
    }

    /// A bell that hangs, the one that hangs for longest.
    pub(super) fn take(&self, now: Instant) -> Option<Bell> {
        let mut board = self.lock();
        let last = board.hung.iter().enumerate().max_by_key(|(_, hung)| hung.until)?.0;
        let Hung { bell, until } = board.hung.swap_remove(last);
        // The others have been let go of, or soon are.
        let over: Vec<_> = board.hung.extract_if(.., |hung| hung.until <= now).collect();
        drop(board);
        drop(over);
        Some(Bell { answer: bell.resume(), until, is_old: true })
    }

    /// Leaves a bell hanging.
    pub(super) fn put(&self, bell: Bell) {
        let Some(parked) = bell.answer.park() else { return };
        let mut board = self.lock();
        if !board.is_closed {
            board.hung.push(Hung { bell: parked, until: bell.until });
        }
    }

    /// Takes all bells down, and leaves none hanging from now on.
    pub(super) fn close(&self) {
        let mut board = self.lock();
        board.is_closed = true;
        let hung = std::mem::take(&mut board.hung);
        drop(board);
        drop(hung);
    }
}
