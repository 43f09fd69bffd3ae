//! What is decided about one case before it is run: all of it by its code.

use std::{fmt, str::FromStr, time::Duration};

use crate::{draws::Draws, faults::Faults};

/// What draws are made for.
const ORDER: u64 = 1;
const STOP: u64 = 2;

/// How late a stop by step may come: below two to this power. Most programs that are worth exploring are over by then.
const STEP_BITS: u32 = 10;

/// What one case is, in few letters: a seed, or the step at which it is stopped. What [`Explorer::replay`] and the
/// environment variable `EBBTIDE_SEED` take: `seed:17`, `step:3`.
///
/// [`Explorer::replay`]: crate::Explorer::replay
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// Everything is drawn from this seed.
    Seed(u64),
    /// Tasks run in turn, nothing goes wrong, and it is stopped before this step, counted from one.
    Step(u64),
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seed(seed) => write!(f, "seed:{seed}"),
            Self::Step(step) => write!(f, "step:{step}"),
        }
    }
}

/// It is neither `seed:17` nor `step:17`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotACode(String);

impl fmt::Display for NotACode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no case: say `seed:17`, or `step:3`", self.0)
    }
}

impl std::error::Error for NotACode {}

impl FromStr for Code {
    type Err = NotACode;

    fn from_str(text: &str) -> Result<Self, NotACode> {
        let parsed = match text.split_once(':') {
            Some(("seed", seed)) => seed.parse().map(Self::Seed).ok(),
            Some(("step", step)) => step.parse().map(Self::Step).ok(),
            _ => text.parse().map(Self::Seed).ok(),
        };
        parsed.ok_or_else(|| NotACode(text.to_owned()))
    }
}

/// When a program is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// When its main ends, or its lifetime is over.
    None,
    /// Before this step of its loop.
    AtStep(u64, By),
    /// After so much virtual time.
    After(Duration, By),
}

/// What stops it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum By {
    /// SIGTERM.
    Signal,
    /// SIGTERM, and so many steps later another one, which would end the process.
    TwoSignals {
        /// How many steps later.
        apart: u64,
    },
    /// `app.stop(…)`.
    Call,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no stop but its own end"),
            Self::AtStep(step, by) => write!(f, "stop before step {step}, by {by}"),
            Self::After(time, by) => write!(f, "stop after {time:?}, by {by}"),
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal => f.write_str("a signal"),
            Self::TwoSignals { apart } => write!(f, "a signal and, {apart} steps later, another"),
            Self::Call => f.write_str("a call"),
        }
    }
}

/// All that is decided about a case. What threads do among each other is not: see the crate.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Decisions {
    /// What all this follows from.
    pub code: Code,
    /// What says which task runs next; none if they run in turn.
    pub order: Option<u64>,
    /// When it is stopped.
    pub stop: Stop,
    /// What may go wrong: drawn for each job and thread, when it comes.
    pub faults: Faults,
}

impl Decisions {
    /// Those of a whole program.
    #[cfg(feature = "app")]
    pub(crate) fn of_program(code: Code, faults: &Faults, lifetime: Duration) -> Self {
        match code {
            Code::Step(step) => Self::at_step(code, None, step),
            Code::Seed(seed) => {
                let draws = &mut Draws::new(seed, STOP);
                let by = match draws.below(5) {
                    0 | 1 => By::Signal,
                    2 => By::TwoSignals { apart: draws.magnitude(6) - 1 },
                    _ => By::Call,
                };
                let stop = match draws.below(5) {
                    0 => Stop::None,
                    1 => Stop::After(draws.duration(lifetime), by),
                    _ => Stop::AtStep(draws.magnitude(STEP_BITS), by),
                };
                Self { code, order: Some(order_of(seed)), stop, faults: faults.clone() }
            }
        }
    }

    /// Those of a component, which is always stopped by a call.
    pub(crate) fn of_component(code: Code) -> Self {
        match code {
            Code::Step(step) => Self::at_step(code, None, step),
            Code::Seed(seed) => {
                let step = Draws::new(seed, STOP).magnitude(STEP_BITS);
                Self::at_step(code, Some(order_of(seed)), step)
            }
        }
    }

    fn at_step(code: Code, order: Option<u64>, step: u64) -> Self {
        Self { code, order, stop: Stop::AtStep(step, By::Signal), faults: Faults::none() }
    }

    /// What faults are drawn from.
    pub(crate) fn seed(&self) -> u64 {
        match self.code {
            Code::Seed(seed) => seed,
            Code::Step(_) => 0,
        }
    }
}

fn order_of(seed: u64) -> u64 {
    Draws::new(seed, ORDER).next()
}

impl fmt::Display for Decisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.order {
            None => f.write_str("tasks in turn")?,
            Some(order) => write!(f, "tasks in the order {order:#x}")?,
        }
        write!(f, "; {}", self.stop)?;
        if !self.faults.is_none() {
            write!(f, "; {}", self.faults)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_it_is_written() {
        for code in [Code::Seed(0), Code::Seed(u64::MAX), Code::Step(3)] {
            assert_eq!(code.to_string().parse(), Ok(code));
        }
        assert_eq!("17".parse(), Ok(Code::Seed(17)));
        for wrong in ["", "seed", "seed:", "step:-1", "time:3"] {
            assert!(wrong.parse::<Code>().is_err(), "{wrong}");
        }
    }

    #[cfg(feature = "app")]
    #[test]
    fn all_kinds_of_stops_are_drawn_and_the_same_for_the_same_seed() {
        let minute = Duration::from_secs(60);
        let of = |seed| Decisions::of_program(Code::Seed(seed), &Faults::none(), minute);
        let stops: Vec<_> = (0..200).map(|seed| of(seed).stop).collect();
        assert!(stops.contains(&Stop::None));
        assert!(stops.iter().any(|stop| matches!(stop, Stop::After(time, By::Call) if *time <= minute)));
        for by in ["a signal", "by a call", "another"] {
            let has = |stop: &Stop| matches!(stop, Stop::AtStep(..)) && stop.to_string().contains(by);
            assert!(stops.iter().any(has), "{by}");
        }
        assert_eq!(of(7).to_string(), of(7).to_string());
    }
}
