//! The Redis server that tests start, kill and start again.

use std::process::Command;

use crate::shell::{output, run as shell};

const SERVER: &str = "redis-server";

/// Sees to it that there is a server to start: installs one where it is missing and that is possible.
pub(crate) fn install() -> Result<(), String> {
    install_with(is_there, || {
        let apt = |args: &[&str]| {
            shell(Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive"))
        };
        apt(&["install", "-y", SERVER]).or_else(|_| {
            // The lists of packages may be missing, or older than the packages.
            apt(&["update"])?;
            apt(&["install", "-y", SERVER])
        })
    })
}

fn is_there() -> bool {
    output(Command::new(SERVER).arg("--version")).is_ok_and(|output| output.status.success())
}

fn install_with(
    is_there: impl Fn() -> bool,
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    if is_there() {
        return Ok(());
    }
    let why = match install() {
        Ok(()) if is_there() => return Ok(()),
        Ok(()) => format!("{SERVER} was installed, but is not in the path"),
        Err(why) => why,
    };
    Err(format!(
        "tests need {SERVER} in the path, and it cannot be installed from here: {why}\n\
         install it: `apt-get install -y redis-server`, `dnf install redis`, or `brew install redis`"
    ))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_is_there_is_not_installed() {
        assert_eq!(install_with(|| true, || unreachable!("it is there")), Ok(()));
    }

    #[test]
    fn what_is_missing_is_installed() {
        let there = Cell::new(false);
        let install = || {
            there.set(true);
            Ok(())
        };
        assert_eq!(install_with(|| there.get(), install), Ok(()));
    }

    #[test]
    fn what_cannot_be_installed_is_named_with_what_to_do() {
        for outcome in [Ok(()), Err("not allowed".to_owned())] {
            let said = install_with(|| false, || outcome).unwrap_err();
            assert!(said.contains("apt-get install -y redis-server"), "{said}");
        }
    }
}
