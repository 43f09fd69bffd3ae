//! The soaks, for longer than CI has time for, and the memory of the first while it goes on.

use std::{
    fs,
    io::Read,
    process::Stdio,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use super::{
    finding::{Finding, after, before},
    proof::Tier,
    watch::watch,
};
use crate::{
    redis,
    shell::{cargo, line},
    soak::{example, limit},
    watched::Watched,
};

/// For how long each goes on.
struct Length {
    seconds: u32,
    runs: u32,
    signals: u32,
    storms: u32,
}

const FULL: Length = Length { seconds: 300, runs: 200, signals: 10_000, storms: 60 };
const SHORT: Length = Length { seconds: 3, runs: 3, signals: 40, storms: 2 };

pub(super) fn run(tier: Tier) -> Result<Vec<Finding>, String> {
    let length = if tier == Tier::Full { FULL } else { SHORT };
    let mut findings = soak_loop(length.seconds)?;
    for area in ["timeout", "dag"] {
        let said = watch(example(area)?.env("RUNS", length.runs.to_string()))?;
        findings.push(counted(area, &said, "requests", "requests")?);
    }
    let said = watch(example("signals")?.args(["--", &length.signals.to_string()]))?;
    findings.push(counted("signals", &said, "rounds", "processes")?);
    findings.push(counted("signals", &said, "requests", "requests")?);
    redis::install()?;
    let said = watch(example("mailbox")?.args(["--", &length.storms.to_string()]))?;
    findings.push(counted("mailbox", &said, "sent", "messages")?);
    Ok(findings)
}

fn counted(area: &str, said: &str, word: &str, unit: &'static str) -> Result<Finding, String> {
    let count = before(said, word).ok_or_else(|| format!("the soak {area} does not say how many {word}"))?;
    Ok(Finding::new(area, count, unit))
}

/// What a loop may hold more at the end of its soak than it did at the half: less than one post for each loop.
const GROWTH_MAX_KIB: u64 = 1024;

/// Runs the program itself, whose memory is looked at, and not cargo's.
fn soak_loop(seconds: u32) -> Result<Vec<Finding>, String> {
    watch(&mut cargo("build --release --package ebbtide-reactor --example soak"))?;
    let mut soak = example("loop")?;
    soak.args(["--", &seconds.to_string()]);
    println!("$ {}", line(&soak));
    let failed = |why: &str| format!("{why}\nrepeat it: cargo xtask soak loop --seconds {seconds}");
    let mut soak = Watched::spawn(soak.stdout(Stdio::piped()), limit(seconds)).map_err(|why| failed(&why))?;
    let (said, looks) = listen(&mut soak).map_err(|error| failed(&error.to_string()))?;
    println!("{said}");
    if !soak.ends().map_err(|why| failed(&why))?.success() {
        return Err(failed("the sums differ"));
    }
    let growth = growth(&looks);
    println!("{growth} KiB more at the end than at the half, in {} looks", looks.len());
    if growth > GROWTH_MAX_KIB {
        return Err(failed(&format!("its memory has grown by {growth} KiB in its second half")));
    }
    let accepted =
        after(&said, "accepted").ok_or_else(|| failed("the soak does not say how much it accepted"))?;
    Ok(vec![
        counted("loop", &said, "loops", "loops")?,
        Finding::new("loop", accepted, "posts and tasks"),
        Finding::new("memory", looks.len() as u64, "looks at its memory"),
    ])
}

/// All that the child says, and the KiB that it held, each second.
fn listen(child: &mut Watched) -> std::io::Result<(String, Vec<u64>)> {
    let mut stdout = child.stdout();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut said = String::new();
        let read = stdout.read_to_string(&mut said);
        // Nobody listens any more only if we are gone.
        let _ = sender.send(read.map(|_| said));
    });
    let (file, mut looks) = (format!("/proc/{}/status", child.id()), Vec::new());
    loop {
        match receiver.recv_timeout(Duration::from_secs(1)) {
            Ok(said) => return Ok((said?, looks)),
            Err(RecvTimeoutError::Timeout) => {
                let status = fs::read_to_string(&file).unwrap_or_default();
                looks.extend(after(&status, "VmRSS"));
            }
            Err(RecvTimeoutError::Disconnected) => unreachable!("it says something before it ends"),
        }
    }
}

/// How much more it held at most in the last quarter than in the second.
fn growth(looks: &[u64]) -> u64 {
    let most = |looks: &[u64]| looks.iter().copied().max().unwrap_or(0);
    let quarter = looks.len() / 4;
    most(&looks[looks.len() - quarter..]).saturating_sub(most(&looks[quarter..2 * quarter]))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn memory_grows_when_the_last_quarter_holds_more_than_the_second() {
        assert_eq!(growth(&[1, 9, 5, 5, 7, 7, 5, 6]), 1);
        assert_eq!(growth(&[1, 2, 5, 5, 7, 7, 5, 4]), 0);
        assert_eq!(growth(&[1, 2]), 0);
    }

    #[test]
    fn what_a_child_says_is_heard_to_the_end() {
        let mut says = Command::new("echo");
        says.arg("40 loops").stdout(Stdio::piped());
        let mut says = Watched::spawn(&mut says, Duration::from_secs(20)).unwrap();
        assert_eq!(listen(&mut says).unwrap().0, "40 loops\n");
        assert!(says.ends().unwrap().success());
    }
}
