//! What is asked of the server.

use std::{fmt, panic::Location};

use bytes::{BufMut, Bytes, BytesMut};
use ebbtide_lifecycle::blame::Origin;

/// A command with its arguments, as it goes over the wire.
///
/// ```
/// use ebbtide_redis::Command;
///
/// let command = Command::new("SET").arg("colour").arg("blue").arg("PX").int(1500);
/// assert_eq!(command.to_string(), "SET with 4 arguments");
/// ```
#[derive(Clone)]
pub struct Command {
    name: &'static str,
    pub(crate) origin: Origin,
    pub(crate) args: usize,
    /// The arguments, the name included, without the count before them.
    pub(crate) packed: Vec<u8>,
    /// What comes before them, if they are a part of what several are asked in.
    lead: Option<Lead>,
}

/// What commands have in common that are sent as one: the name, and the arguments before those that differ.
#[derive(Clone, Debug)]
pub(crate) struct Lead {
    /// How many are sent as one, at most.
    pub(crate) parts_max: usize,
    pub(crate) args: usize,
    pub(crate) packed: Bytes,
}

impl Lead {
    /// Whether it is this one, not one that looks the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.packed.as_ptr() == other.packed.as_ptr() && self.packed.len() == other.packed.len()
    }
}

impl Command {
    /// The command of that name, known by the caller's location to whoever asks who is in flight.
    #[must_use]
    #[track_caller]
    pub fn new(name: &'static str) -> Self {
        let origin = Origin::from(Location::caller());
        Self { name, origin, args: 0, packed: Vec::with_capacity(PACKED_MIN), lead: None }.arg(name)
    }

    /// A part of a command that `lead` begins.
    #[track_caller]
    pub(crate) fn part(name: &'static str) -> Self {
        let origin = Origin::from(Location::caller());
        Self { name, origin, args: 0, packed: Vec::with_capacity(PACKED_MIN), lead: None }
    }

    /// The same, begun by `lead`.
    pub(crate) fn led_by(mut self, lead: &Lead) -> Self {
        self.lead = Some(lead.clone());
        self
    }

    /// The same, with one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<[u8]>) -> Self {
        let (arg, mut digits) = (arg.as_ref(), [0; DIGITS_MAX]);
        let length = digits_of(arg.len() as u64, &mut digits);
        self.packed.reserve("$\r\n\r\n".len() + length.len() + arg.len());
        self.packed.push(b'$');
        self.packed.extend_from_slice(length);
        self.packed.extend_from_slice(b"\r\n");
        self.packed.extend_from_slice(arg);
        self.packed.extend_from_slice(b"\r\n");
        self.args += 1;
        self
    }

    /// The same, with a number as one more argument.
    #[must_use]
    pub fn int(self, number: u64) -> Self {
        let mut digits = [0; DIGITS_MAX];
        self.arg(digits_of(number, &mut digits))
    }

    /// The same, known by `origin` to whoever asks who is in flight.
    #[must_use]
    pub fn known_as(mut self, origin: &Origin) -> Self {
        self.origin.clone_from(origin);
        self
    }

    /// What it is called.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The same, not to be changed any more.
    pub(crate) fn freeze(self) -> Frozen {
        let Self { name, origin, args, packed, lead } = self;
        let longest = packed.len();
        Frozen { name, origin, args, batch: None, longest, packed: packed.into(), lead }
    }

    pub(crate) fn packed_len(&self) -> usize {
        self.packed.len()
    }

    /// The same, with `count` more arguments that are packed already.
    pub(crate) fn packed_args(mut self, count: usize, packed: &[u8]) -> Self {
        self.packed.extend_from_slice(packed);
        self.args += count;
        self
    }

    /// All of it, on the wire.
    #[must_use]
    pub fn pack(&self) -> Bytes {
        let mut out = BytesMut::new();
        self.clone().freeze().write_to(&mut out);
        out.freeze()
    }
}

/// There is room for so much in a command from the start: most are not longer.
pub(crate) const PACKED_MIN: usize = 64;

/// What is complete, and can be sent. A clone costs little.
#[derive(Clone, Debug)]
pub(crate) struct Frozen {
    pub(crate) name: &'static str,
    pub(crate) origin: Origin,
    pub(crate) args: usize,
    /// How many commands it is, if it is a batch. Those are packed with their numbers of arguments.
    pub(crate) batch: Option<usize>,
    /// How many bytes it has; or the longest of them, if it is a batch.
    pub(crate) longest: usize,
    pub(crate) packed: Bytes,
    pub(crate) lead: Option<Lead>,
}

impl Frozen {
    pub(crate) fn write_to(&self, out: &mut BytesMut) {
        match &self.lead {
            Some(lead) => write_parts(lead, [self].into_iter(), out),
            None => {
                out.reserve(self.packed.len() + HEADER_MAX);
                if self.batch.is_none() {
                    write_header(self.args, out);
                }
                out.put_slice(&self.packed);
            }
        }
    }
}

/// How much comes before the arguments of a command at most: a star, the number of arguments, and the end of the line.
pub(crate) const HEADER_MAX: usize = 24;

/// Writes the parts of one command, which all have the same lead.
pub(crate) fn write_parts<'a>(
    lead: &Lead,
    parts: impl Iterator<Item = &'a Frozen> + Clone,
    out: &mut BytesMut,
) {
    let (args, length) = parts.clone().fold((lead.args, lead.packed.len()), |(args, length), part| {
        (args + part.args, length + part.packed.len())
    });
    out.reserve(length + HEADER_MAX);
    write_header(args, out);
    out.put_slice(&lead.packed);
    parts.for_each(|part| out.put_slice(&part.packed));
}

pub(crate) fn write_header(args: usize, out: &mut impl BufMut) {
    out.put_u8(b'*');
    out.put_slice(digits_of(args as u64, &mut [0; DIGITS_MAX]));
    out.put_slice(b"\r\n");
}

/// A number has so many digits at most.
const DIGITS_MAX: usize = 20;

fn digits_of(mut number: u64, digits: &mut [u8; DIGITS_MAX]) -> &[u8] {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[first..];
        }
    }
}

/// Without the arguments: they may be large, or secret.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} arguments", self.name, self.args.saturating_sub(1))
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("name", &self.name).field("args", &self.args).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_its_name_and_arguments() {
        let command = Command::new("SET").arg(b"\r\n").int(0).int(u64::MAX).arg("");
        let wire = "*5\r\n$3\r\nSET\r\n$2\r\n\r\n\r\n$1\r\n0\r\n$20\r\n18446744073709551615\r\n$0\r\n\r\n";
        assert_eq!(command.pack(), wire.as_bytes());
    }
}
