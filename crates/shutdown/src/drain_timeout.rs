//! How long a stop may take: from code, from an environment variable or from a flag.

use std::{env, time::Duration};

/// How long the work in flight, and everything that is stopped after it, may take: 30 seconds unless told otherwise,
/// between 1 and 300.
///
/// A value outside of that is clamped, and one that is no number is replaced by the default, both with a
/// [warning](DrainTimeout::warning) that ends up in the report: a bad setting must not keep a program from stopping.
///
/// ```
/// use std::time::Duration;
/// use ebbtide_shutdown::DrainTimeout;
///
/// assert_eq!(DrainTimeout::default().duration(), Duration::from_secs(30));
/// assert_eq!(DrainTimeout::parse("2.5").duration(), Duration::from_millis(2500));
/// let clamped = DrainTimeout::parse("900");
/// assert_eq!(clamped.duration(), Duration::from_secs(300));
/// assert_eq!(clamped.warning(), Some("a drain timeout of 900s is too long: 300s is used instead"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainTimeout {
    duration: Duration,
    warning: Option<String>,
}

impl DrainTimeout {
    /// Less would be no drain at all.
    pub const MIN: Duration = Duration::from_secs(1);
    /// More would be a hang to whoever waits for it.
    pub const MAX: Duration = Duration::from_secs(300);
    /// What it is unless told otherwise.
    pub const DEFAULT: Duration = Duration::from_secs(30);
    /// The environment variable that [`install`](crate::Coordinator::install) looks at.
    pub const VARIABLE: &'static str = "DRAIN_TIMEOUT_SECONDS";

    /// As long as `duration`, clamped.
    #[must_use]
    pub fn new(duration: Duration) -> Self {
        let clamped = duration.clamp(Self::MIN, Self::MAX);
        let is = if duration < clamped { "short" } else { "long" };
        let warning = (clamped != duration)
            .then(|| format!("a drain timeout of {duration:?} is too {is}: {clamped:?} is used instead"));
        Self { duration: clamped, warning }
    }

    /// As many seconds as `text` says, as a flag gives it.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let seconds = text.trim().parse::<f64>().ok().filter(|seconds| seconds.is_finite());
        match seconds {
            Some(seconds) if seconds < 0.0 => Self {
                duration: Self::MIN,
                warning: Some(format!(
                    "a drain timeout of {seconds} seconds is too short: {:?} is used instead",
                    Self::MIN
                )),
            },
            Some(seconds) => Self::new(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)),
            None => Self {
                duration: Self::DEFAULT,
                warning: Some(format!(
                    "{text:?} is not a number of seconds: a drain timeout of {:?} is used instead",
                    Self::DEFAULT
                )),
            },
        }
    }

    /// What the environment variable `name` says; the default where it is not set.
    #[must_use]
    pub fn from_env(name: &str) -> Self {
        match env::var_os(name) {
            None => Self::default(),
            Some(value) => {
                let mut parsed = Self::parse(&value.to_string_lossy());
                parsed.warning = parsed.warning.map(|warning| format!("{name}: {warning}"));
                parsed
            }
        }
    }

    /// How long it is.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.duration
    }

    /// What was wrong with what it was made from.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }
}

impl Default for DrainTimeout {
    fn default() -> Self {
        Self::new(Self::DEFAULT)
    }
}

impl From<Duration> for DrainTimeout {
    fn from(duration: Duration) -> Self {
        Self::new(duration)
    }
}
