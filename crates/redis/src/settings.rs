//! The choices that a link has.

use std::time::Duration;

use crate::command::Command;

/// How patient a link is, and how much it takes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// How long a command waits to be sent while there is no connection: five seconds unless told otherwise.
    pub patience: Duration,
    /// How long the server may be silent when it owes an answer, or take to take a connection: five seconds unless
    /// told otherwise. A connection on which nothing comes for longer is given up, with all that was sent on it. A
    /// long answer may take longer, while more of it comes; and so may a long command, while the server takes more of
    /// it.
    pub timeout: Duration,
    /// How long it waits before it tries to connect again, the first time: 50 ms unless told otherwise. Each further
    /// try waits twice as long as the one before; up to half of each wait is taken off, differently each time.
    pub backoff: Duration,
    /// The longest such wait: two seconds unless told otherwise.
    pub backoff_max: Duration,
    /// How many commands may be in flight: ten thousand unless told otherwise, for the sake of memory. More are
    /// refused.
    pub in_flight: usize,
    /// How many of them may block at the same time, each with a connection of its own: 64 unless told otherwise,
    /// because a server has ten thousand connections for all. More are refused. Of the connections that nobody waits on
    /// eight are kept.
    pub waits: usize,
    /// How many bytes a command may have: half a gibibyte unless told otherwise. A server takes no argument that is
    /// longer (`proto-max-bulk-len`), and closes the connection over it, with all that others have asked. Longer ones
    /// are refused.
    pub command_max: usize,
    /// What every connection begins with: `AUTH`, `SELECT`, `CLIENT SETNAME`. If the server refuses one, there is no
    /// connection.
    pub greeting: Vec<Command>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(5),
            timeout: Duration::from_secs(5),
            backoff: Duration::from_millis(50),
            backoff_max: Duration::from_secs(2),
            in_flight: 10_000,
            waits: 64,
            command_max: 512 << 20,
            greeting: Vec::new(),
        }
    }
}
