//! What the system refuses: threads, descriptors, calls. The tests are in `crates/testkit/tests/faults`.

use super::{
    finding::{Finding, of_tests},
    proof::Tier,
    watch::watch,
};
use crate::{shell::cargo, tool::Tool};

const STRACE: Tool = Tool {
    programs: &["strace"],
    package: "strace",
    needed_by: "calls that fail",
    otherwise: "`dnf install strace`",
};

pub(super) fn run(tier: Tier) -> Result<Vec<Finding>, String> {
    STRACE.install()?;
    // How many calls of each kind fail, and how many times a program is paused and goes on.
    let (calls, pauses) = if tier == Tier::Full { ("10", "500") } else { ("2", "20") };
    let mut command = cargo("test --package ebbtide-testkit --test faults");
    command.env("CALLS", calls).env("PAUSES", pauses);
    Ok(of_tests(&watch(command.args(["--", "--ignored", "--nocapture", "--test-threads=1"]))?))
}
