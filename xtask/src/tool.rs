//! Programs of others that a step needs, and that are installed where they are missing.

use std::process::Command;

use crate::shell::{cargo, output, run as shell};

/// A program, and where it comes from.
pub(crate) struct Tool {
    /// What it may be called; the first that is there is taken.
    pub(crate) programs: &'static [&'static str],
    /// The package that has it: of Debian and its kin, or of the registry.
    pub(crate) package: &'static str,
    /// Who needs it.
    pub(crate) needed_by: &'static str,
    /// How it is installed elsewhere.
    pub(crate) otherwise: &'static str,
}

impl Tool {
    /// Sees to it that it is there: installs it where it is missing and that is possible. Gives what it is called.
    pub(crate) fn install(&self) -> Result<&'static str, String> {
        self.install_with(is_there, || {
            let apt = |args: &[&str]| {
                shell(Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive"))
            };
            let install = ["install", "-y", "--no-install-recommends", self.package];
            apt(&install).or_else(|_| {
                // The lists of packages may be missing, or older than the packages.
                apt(&["update"])?;
                apt(&install)
            })
        })
    }

    /// The same for a program of the registry, whose package has its name.
    pub(crate) fn install_by_cargo(&self) -> Result<&'static str, String> {
        let install = || shell(&mut cargo(&format!("install {} --locked", self.package)));
        self.install_with(is_command, install)
    }

    fn install_with(
        &self,
        is_there: impl Fn(&str) -> bool,
        install: impl FnOnce() -> Result<(), String>,
    ) -> Result<&'static str, String> {
        let found = || self.programs.iter().copied().find(|program| is_there(program));
        if let Some(program) = found() {
            return Ok(program);
        }
        let why = match (install(), found()) {
            (Ok(()), Some(program)) => return Ok(program),
            (Ok(()), None) => format!("{} was installed, but is not in the path", self.package),
            (Err(why), _) => why,
        };
        let Self { programs, package, needed_by, otherwise } = self;
        Err(format!(
            "{needed_by} need {} in the path, and it cannot be installed from here: {why}\n\
             install it: `apt-get install -y {package}`, {otherwise}",
            programs[0]
        ))
    }
}

fn is_there(program: &str) -> bool {
    output(Command::new(program).arg("--version")).is_ok_and(|output| output.status.success())
}

/// The same for one that is a command of cargo: `cargo-mutants` knows no option but as `cargo mutants`.
fn is_command(program: &str) -> bool {
    let name = program.strip_prefix("cargo-").unwrap_or(program);
    output(&mut cargo(&format!("{name} --version"))).is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const TOOL: Tool = Tool {
        programs: &["saw", "old-saw"],
        package: "saws",
        needed_by: "carpenters",
        otherwise: "or buy one",
    };

    #[test]
    fn what_is_there_is_not_installed() {
        assert_eq!(TOOL.install_with(|_| true, || unreachable!("it is there")), Ok("saw"));
        assert_eq!(
            TOOL.install_with(|name| name == "old-saw", || unreachable!("it is there")),
            Ok("old-saw")
        );
    }

    #[test]
    fn a_command_of_cargo_is_asked_as_one() {
        assert!(is_command("cargo-clippy") && !is_command("cargo-no-such-command"));
    }

    #[test]
    fn what_is_missing_is_installed() {
        let there = Cell::new(false);
        let install = || {
            there.set(true);
            Ok(())
        };
        assert_eq!(TOOL.install_with(|_| there.get(), install), Ok("saw"));
    }

    #[test]
    fn what_cannot_be_installed_is_named_with_what_to_do() {
        for outcome in [Ok(()), Err("not allowed".to_owned())] {
            let said = TOOL.install_with(|_| false, || outcome).unwrap_err();
            assert!(said.contains("carpenters need saw in the path"), "{said}");
            assert!(said.contains("apt-get install -y saws"), "{said}");
        }
    }
}
