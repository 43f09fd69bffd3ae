//! The life of a component: five states, six transitions, and nothing else.
//!
//! ```text
//!   Idle ──Start──► Starting ──Ready──► Running
//!     │                 │                  │
//!     │               Stop                Stop
//!     │                 ▼                  ▼
//!     │              Stopping ◄────────────┘
//!     │                 │
//!    Stop              End
//!     ▼                 ▼
//!   Stopped ◄───────────┘
//! ```
//!
//! States only ever move to the right and down, so a wait for a state ends when that state *or a later one* is
//! there. A stop before the start sticks: the start is then refused.

use std::{fmt, sync::Arc};

use crate::{
    sync::{AtomicU8, Ordering},
    wait::{Bell, Wait, Watch},
};

/// Where a component is in its life, in the order in which it gets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum State {
    /// Made, not started. Accepts no work.
    Idle,
    /// Being started. Accepts no work.
    Starting,
    /// Accepts work and runs it.
    Running,
    /// Accepts no new work; runs, hands back or names what it has.
    Stopping,
    /// Nothing of it runs any more, or ever will.
    Stopped,
}

impl State {
    /// All states, in order.
    pub const ALL: [Self; 5] = [Self::Idle, Self::Starting, Self::Running, Self::Stopping, Self::Stopped];

    /// Where `step` leads from here.
    ///
    /// # Errors
    /// [`Illegal`] for a pair that is not in the table.
    pub const fn after(self, step: Step) -> Result<Self, Illegal> {
        match (self, step) {
            (Self::Idle, Step::Start) => Ok(Self::Starting),
            (Self::Idle, Step::Stop) => Ok(Self::Stopped),
            (Self::Starting, Step::Ready) => Ok(Self::Running),
            (Self::Starting | Self::Running, Step::Stop) => Ok(Self::Stopping),
            (Self::Stopping, Step::End) => Ok(Self::Stopped),
            (state, step) => Err(Illegal { step, state }),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        })
    }
}

/// What moves a component from one [`State`] to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Its owner starts it.
    Start,
    /// It has come up, and takes work from here on.
    Ready,
    /// Somebody wants it to stop.
    Stop,
    /// Its last work has ended.
    End,
}

impl Step {
    /// All steps.
    pub const ALL: [Self; 4] = [Self::Start, Self::Ready, Self::Stop, Self::End];
}

/// A step that does not exist from the state it was tried in. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Illegal {
    /// What was tried.
    pub step: Step,
    /// The state that it was tried in.
    pub state: State,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match (self.step, self.state) {
            (Step::Start, State::Starting | State::Running) => "it was started before",
            (Step::Start, _) => "a stop came first; make a new one to start again",
            (Step::Ready, State::Stopping | State::Stopped) => "a stop came first, the start is abandoned",
            (Step::Ready, State::Running) => "it is ready already",
            (Step::Ready, _) => "it was not started",
            (Step::Stop, _) => "a stop came first; wait for it to end",
            (Step::End, State::Stopped) => "it has ended already",
            (Step::End, _) => "it was not told to stop",
        };
        let step = match self.step {
            Step::Start => "start",
            Step::Ready => "become ready",
            Step::Stop => "stop",
            Step::End => "end",
        };
        write!(f, "cannot {step} while {}: {why}", self.state)
    }
}

impl std::error::Error for Illegal {}

/// The state of one component, shared by all who move it or wait for it.
///
/// A clone is another handle to the same component's state. The state is a view for people and for waits: what
/// decides over a piece of work is the component's [`Gate`](crate::Gate). It is closed at first; a start opens
/// it before it takes the step `Ready`, and a stop [seals](crate::Gate::seal) it before it takes the step
/// `Stop`. So whoever comes last finds out: a sealed gate does not open, and after the stop `Ready` is refused.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    machine: Arc<Machine>,
}

#[derive(Debug)]
struct Machine {
    /// A [`State`] as its number. Changed only by the compare-exchange in [`Lifecycle::step`].
    state: AtomicU8,
    /// Rung after every change of `state`.
    moved: Bell,
}

impl Lifecycle {
    /// The life of something that is not started.
    #[must_use]
    pub fn new() -> Self {
        Self { machine: Arc::new(Machine { state: AtomicU8::new(State::Idle as u8), moved: Bell::new() }) }
    }

    /// The state at this moment; another thread may move it before the caller looks.
    #[must_use]
    pub fn state(&self) -> State {
        // Acquire: what was done before the step that led here.
        State::ALL[usize::from(self.machine.state.load(Ordering::Acquire))]
    }

    /// Takes `step`, and says which state it led to. Of several threads that try the same step, one succeeds.
    ///
    /// # Errors
    /// [`Illegal`] if the step does not exist from the state that the component is in.
    pub fn step(&self, step: Step) -> Result<State, Illegal> {
        let mut state = self.state();
        loop {
            let next = state.after(step)?;
            // AcqRel: what was done before this step, to those who see it; and what came before it, to us.
            match self.machine.state.compare_exchange(
                state as u8,
                next as u8,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    self.machine.moved.ring();
                    return Ok(next);
                }
                Err(seen) => state = State::ALL[usize::from(seen)],
            }
        }
    }

    /// Waits until `state` or a later one is there, and gives the one that is. A wait for `Running` therefore
    /// also ends when the start was abandoned: look at what it gives.
    pub fn reached(&self, state: State) -> Wait<Reached> {
        Wait::new(Reached { lifecycle: self.clone(), state })
    }
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self::new()
    }
}

/// What [`Lifecycle::reached`] waits for.
#[derive(Debug)]
pub struct Reached {
    lifecycle: Lifecycle,
    state: State,
}

impl Watch for Reached {
    type Seen = State;

    fn look(&self) -> Option<State> {
        Some(self.lifecycle.state()).filter(|state| *state >= self.state)
    }

    fn bell(&self) -> &Bell {
        &self.lifecycle.machine.moved
    }
}
