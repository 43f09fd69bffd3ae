//! What a worker writes down, a line each: it reaches who reads it, also when the worker is killed right after.

use std::{fmt, str::FromStr};

use ebbtide_mailbox::Receipt;

/// One delivery of one message. Later deliveries have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Handover {
    pub(crate) id: u64,
    pub(crate) delivery: u64,
}

impl From<Receipt> for Handover {
    fn from(receipt: Receipt) -> Self {
        Self { id: receipt.id.0, delivery: receipt.delivery }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// From here on a signal to stop is heard. Before that it ends the process as it ends any other.
    Listening,
    /// The message with this number, as its sender counts, was received.
    Got(u64, Handover),
    /// Its handler has done its work.
    Done(u64, Handover),
    /// The server says how a delivery was settled, or the worker does not know.
    Settled(Settled, Handover),
    /// How many messages a worker that has stopped had received, and what it says became of them all.
    Sums { accepted: u64, accounted: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Acked,
    Nacked,
    Released,
    /// It was too late.
    Expired,
    /// The server has not answered: it may be any of these.
    Unknown,
}

const WORDS: [(Settled, &str); 5] = [
    (Settled::Acked, "acked"),
    (Settled::Nacked, "nacked"),
    (Settled::Released, "released"),
    (Settled::Expired, "expired"),
    (Settled::Unknown, "unknown"),
];

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening => f.write_str("listening"),
            Self::Got(n, Handover { id, delivery }) => write!(f, "got {n} {id} {delivery}"),
            Self::Done(n, Handover { id, delivery }) => write!(f, "done {n} {id} {delivery}"),
            Self::Settled(how, Handover { id, delivery }) => {
                let word = WORDS.iter().find(|(settled, _)| settled == how).map_or("", |(_, word)| word);
                write!(f, "{word} {id} {delivery}")
            }
            Self::Sums { accepted, accounted } => write!(f, "sums {accepted} {accounted}"),
        }
    }
}

impl FromStr for Note {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut parts = line.split(' ');
        let word = parts.next().unwrap_or_default();
        let numbers: Option<Vec<u64>> = parts.map(|part| part.parse().ok()).collect();
        let settled = WORDS.iter().find(|(_, name)| *name == word);
        match (word, numbers.as_deref(), settled) {
            ("listening", Some(&[]), _) => Ok(Self::Listening),
            ("got", Some(&[n, id, delivery]), _) => Ok(Self::Got(n, Handover { id, delivery })),
            ("done", Some(&[n, id, delivery]), _) => Ok(Self::Done(n, Handover { id, delivery })),
            ("sums", Some(&[accepted, accounted]), _) => Ok(Self::Sums { accepted, accounted }),
            (_, Some(&[id, delivery]), Some((how, _))) => Ok(Self::Settled(*how, Handover { id, delivery })),
            _ => Err(format!("a worker says {line:?}")),
        }
    }
}
