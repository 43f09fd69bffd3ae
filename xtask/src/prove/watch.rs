//! Commands whose output is shown and kept.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use crate::shell::line;

/// Echoes the command, runs it, shows what it prints as it comes, and gives it.
///
/// # Errors
/// With the command as one would type it, if it fails.
pub(super) fn watch(command: &mut Command) -> Result<String, String> {
    let typed = line(command);
    println!("$ {typed}");
    let failed = |why: String| format!("{why}\nrepeat it: {typed}");
    let spawned = command.stdout(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| failed(error.to_string()))?;
    let mut kept = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    for said in BufReader::new(stdout).split(b'\n') {
        let said = said.map_err(|error| failed(error.to_string()))?;
        let said = String::from_utf8_lossy(&said);
        println!("{said}");
        kept.push_str(&said);
        kept.push('\n');
    }
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
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
}
