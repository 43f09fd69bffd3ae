//! `cargo xtask soak AREA --seconds N`: work without end, counted by those who bring it and by those who take it.

use crate::shell::{cargo, run as shell};

/// What there is to soak, and the package whose example `soak` does it.
const AREAS: &[(&str, &str)] = &[("loop", "ebbtide-reactor")];

const SECONDS: u32 = 60;

pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    match args {
        [area] => soak(area, SECONDS),
        [area, "--seconds", seconds] => {
            let seconds = seconds.parse().map_err(|_| format!("{seconds:?} is not a number of seconds"))?;
            soak(area, seconds)
        }
        _ => Err(format!("soak AREA [--seconds N], with an area of: {}", names())),
    }
}

pub(crate) fn soak(area: &str, seconds: u32) -> Result<(), String> {
    let found = AREAS.iter().find(|(name, _)| *name == area);
    let (_, package) = found.ok_or_else(|| format!("there is no area {area:?}; there are: {}", names()))?;
    shell(&mut cargo(&format!("run --release --package {package} --example soak -- {seconds}")))
}

fn names() -> String {
    AREAS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}
