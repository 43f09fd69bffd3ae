//! Scripts that the server runs as one step.

use std::{num::NonZero, sync::Arc};

use ebbtide_lifecycle::blame::Origin;

use crate::{
    command::{Command, Frozen, Lead},
    sha1,
};

/// A script in Lua. The server is told its hash, and its text only when it does not know it.
#[derive(Clone, Debug)]
pub struct Script {
    text: Arc<str>,
    hash: Arc<str>,
}

/// A script with its keys and arguments.
#[derive(Clone, Debug)]
pub struct Call {
    text: Arc<str>,
    command: Command,
    /// How many bytes of the command come before the number of keys.
    head: usize,
}

/// How many arguments come before the number of keys: the name of the command, and the hash.
const HEAD: usize = 2;

impl Script {
    /// The script of that text.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        Self { hash: sha1::hex(text.as_bytes()).into(), text }
    }

    /// The script for these keys; arguments follow.
    #[must_use]
    #[track_caller]
    pub fn call<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K, IntoIter: ExactSizeIterator>,
    ) -> Call {
        let keys = keys.into_iter();
        let command = Command::new("EVALSHA").arg(&*self.hash);
        let head = command.packed_len();
        let command = command.int(keys.len() as u64);
        Call { text: self.text.clone(), command: keys.fold(command, Command::arg), head }
    }
}

impl Call {
    /// The same, with one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<[u8]>) -> Self {
        self.command = self.command.arg(arg);
        self
    }

    /// The same, with a number as one more argument.
    #[must_use]
    pub fn int(mut self, number: u64) -> Self {
        self.command = self.command.int(number);
        self
    }

    /// The same, known by `origin` to whoever asks who is in flight.
    #[must_use]
    pub fn known_as(mut self, origin: &Origin) -> Self {
        self.command = self.command.known_as(origin);
        self
    }

    /// With the whole text: needs nothing of what the server knows.
    #[must_use]
    #[track_caller]
    pub fn in_full(self) -> Command {
        let Frozen { origin, args, packed, .. } = self.command.freeze();
        Command::new("EVAL").arg(&*self.text).packed_args(args - HEAD, &packed[self.head..]).known_as(&origin)
    }

    /// With the hash, which the server may not know.
    pub(crate) fn by_hash(&self) -> Command {
        self.command.clone()
    }
}

/// A script with its keys and first arguments, that does the same for many, each with arguments of its own.
///
/// What is [asked of it](Part) goes to the server together, as one command, as long as it was asked in a row and the
/// connection has not sent it yet. The script has to give an array, with what becomes of each in their order.
#[derive(Clone, Debug)]
pub struct Joint {
    by_hash: Lead,
    in_full: Lead,
}

/// What is asked of a [`Joint`] script for one.
#[derive(Clone, Debug)]
pub struct Part {
    joint: Joint,
    command: Command,
}

impl Call {
    /// The script for many, with the arguments so far.
    #[must_use]
    pub fn joint(self) -> Joint {
        let lead = |command: Command| {
            let Frozen { args, packed, .. } = command.freeze();
            Lead { parts_max: PARTS_MAX, args, packed }
        };
        Joint { by_hash: lead(self.by_hash()), in_full: lead(self.in_full()) }
    }
}

/// More parts than this are not sent as one command: a script holds up everybody.
const PARTS_MAX: usize = 128;

impl Joint {
    /// The same, with no more than so many parts in one command. What comes of one command is handed out before that of
    /// the next: those who ask again for what they were given have the server do that while the others get theirs.
    #[must_use]
    pub fn at_most(mut self, parts: NonZero<usize>) -> Self {
        self.by_hash.parts_max = parts.get();
        self.in_full.parts_max = parts.get();
        self
    }

    /// What is asked for one; its arguments follow.
    #[must_use]
    #[track_caller]
    pub fn part(&self) -> Part {
        Part { joint: self.clone(), command: Command::part("EVALSHA") }
    }
}

impl Part {
    /// The same, with one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<[u8]>) -> Self {
        self.command = self.command.arg(arg);
        self
    }

    /// The same, with a number as one more argument.
    #[must_use]
    pub fn int(mut self, number: u64) -> Self {
        self.command = self.command.int(number);
        self
    }

    /// The same, known by `origin` to whoever asks who is in flight.
    #[must_use]
    pub fn known_as(mut self, origin: &Origin) -> Self {
        self.command = self.command.known_as(origin);
        self
    }

    pub(crate) fn by_hash(&self) -> Command {
        self.command.clone().led_by(&self.joint.by_hash)
    }

    pub(crate) fn in_full(self) -> Command {
        self.command.led_by(&self.joint.in_full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_the_same_by_hash_and_in_full_but_for_its_head() {
        let call = Script::new("return 1").call(["k"]).arg("a").int(2);
        let by_hash = Command::new("EVALSHA").arg("e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        assert_eq!(call.by_hash().pack(), by_hash.int(1).arg("k").arg("a").int(2).pack());
        let in_full = Command::new("EVAL").arg("return 1").int(1).arg("k").arg("a").int(2);
        assert_eq!(call.in_full().pack(), in_full.pack());
    }
}
