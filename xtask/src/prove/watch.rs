//! Commands whose output is shown and kept.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

use crate::{shell::line, watched::Watched};

/// No command of a proof takes as long, not the longest soak nor the suites under valgrind: one that does hangs.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);

/// Echoes the command, runs it, shows what it prints as it comes, and gives it.
///
/// # Errors
/// With the command as one would type it, if it fails or hangs.
pub(super) fn watch(command: &mut Command) -> Result<String, String> {
    watch_within(command, PATIENCE)
}

/// The same for one that may take this long, and no longer.
pub(super) fn watch_within(command: &mut Command, limit: Duration) -> Result<String, String> {
    let typed = line(command);
    println!("$ {typed}");
    let failed = |why: String| format!("{why}\nrepeat it: {typed}");
    let mut watched = Watched::spawn(command.stdout(Stdio::piped()), limit).map_err(failed)?;
    let mut kept = String::new();
    for said in BufReader::new(watched.stdout()).split(b'\n') {
        let said = said.map_err(|error| failed(error.to_string()))?;
        let said = String::from_utf8_lossy(&said);
        println!("{said}");
        kept.push_str(&said);
        kept.push('\n');
    }
    let status = watched.ends().map_err(failed)?;
    if status.success() { Ok(kept) } else { Err(failed(format!("it ended with {status}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Result<String, String> {
        watch(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn what_is_printed_is_given() {
        assert_eq!(sh("echo one; printf two").unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_failure_says_how_it_is_repeated() {
        let failed = sh("exit 3").unwrap_err();
        assert!(failed.ends_with("repeat it: sh -c exit 3") && failed.contains('3'), "{failed}");
        assert!(watch(&mut Command::new("no-such-program")).unwrap_err().contains("repeat it"));
    }

    #[test]
    fn a_hang_is_a_failure_that_says_what_hung() {
        let mut hangs = Command::new("sh");
        let failed = watch_within(hangs.args(["-c", "sleep 1000"]), Duration::from_millis(100)).unwrap_err();
        assert!(failed.starts_with("it hangs: sh -c sleep 1000"), "{failed}");
    }
}
