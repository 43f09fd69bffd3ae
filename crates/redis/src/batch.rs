//! Several commands at once.

use ebbtide_lifecycle::blame::Origin;

use crate::command::{Command, Frozen, HEADER_MAX, PACKED_MIN, write_header};

/// Several commands that are sent, done and answered in a row, with one [answer](crate::Link::ask_all) for all of them.
///
/// ```
/// use ebbtide_redis::{Batch, Command};
///
/// let batch: Batch = ["red", "blue"].into_iter().map(|colour| Command::new("GET").arg(colour)).collect();
/// assert_eq!(batch.len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Batch {
    /// The name and the origin of the first command; without one there is nothing to be asked.
    first: Option<(&'static str, Origin)>,
    commands: usize,
    /// How many bytes the longest of them has.
    longest: usize,
    /// All of them, as they go over the wire.
    packed: Vec<u8>,
}

impl Batch {
    /// One without commands, and with room for so many.
    #[must_use]
    pub fn with_capacity(commands: usize) -> Self {
        let packed = Vec::with_capacity(commands * (PACKED_MIN + HEADER_MAX));
        Self { first: None, commands: 0, longest: 0, packed }
    }

    /// Adds a command behind the others.
    pub fn add(&mut self, command: Command) {
        write_header(command.args, &mut self.packed);
        self.packed.extend_from_slice(&command.packed);
        self.commands += 1;
        self.longest = self.longest.max(command.packed.len());
        self.first.get_or_insert((command.name(), command.origin));
    }

    /// How many commands it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.commands
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.commands == 0
    }

    /// None if there is nothing to be sent.
    pub(crate) fn freeze(self) -> Option<Frozen> {
        let (name, origin) = self.first?;
        let (batch, longest, packed) = (Some(self.commands), self.longest, self.packed.into());
        Some(Frozen { name, origin, args: 0, batch, longest, packed, lead: None })
    }
}

impl Extend<Command> for Batch {
    fn extend<I: IntoIterator<Item = Command>>(&mut self, commands: I) {
        commands.into_iter().for_each(|command| self.add(command));
    }
}

impl FromIterator<Command> for Batch {
    fn from_iter<I: IntoIterator<Item = Command>>(commands: I) -> Self {
        let commands = commands.into_iter();
        let mut batch = Self::with_capacity(commands.size_hint().0);
        batch.extend(commands);
        batch
    }
}
