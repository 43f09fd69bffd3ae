//! The Redis server that tests start, kill and start again.

use crate::tool::Tool;

const SERVER: Tool = Tool {
    programs: &["redis-server"],
    package: "redis-server",
    needed_by: "tests and benchmarks",
    otherwise: "`dnf install redis`, or `brew install redis`",
};

/// Sees to it that there is a server to start.
pub(crate) fn install() -> Result<(), String> {
    SERVER.install().map(drop)
}
