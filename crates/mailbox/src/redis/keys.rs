//! Where the messages of one mailbox are on the server.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    num::NonZero,
};

use ebbtide_redis::{Call, Command, Joint, Link, Script};

use super::{bell::HORIZON, scripts::SCRIPTS};
use crate::{
    error::{BackendError, SettleError},
    message::{Address, MessageId, Receipt, Settlement},
    span::Span,
};

/// What each key is called after the name of the mailbox, and what it holds. In the order in which `lua/prelude.lua`
/// takes them.
const PARTS: [(&str, &str); 8] = [
    ("issued", "string"),
    ("pending", "list"),
    ("delayed", "zset"),
    ("leased", "zset"),
    ("bodies", "hash"),
    ("saved", "hash"),
    ("bell", "list"),
    ("limits", "string"),
];

/// Which of them receivers wait at.
const BELL: usize = 6;

/// The keys of one mailbox.
pub(super) struct Keys {
    /// `{name}:pending` and so on. What stands in braces decides on the slot of a cluster.
    names: [String; PARTS.len()],
    /// What its receipts are known by. It has to be the same within a process only.
    mark: u64,
}

impl Keys {
    /// # Errors
    /// If the name cannot stand in braces.
    pub(super) fn new(name: &Address) -> Result<Self, BackendError> {
        if name.0.is_empty() || name.0.starts_with('}') {
            return Err(
                format!("a mailbox cannot be called {name:?}: its keys would not stay together").into()
            );
        }
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        Ok(Self { names: PARTS.map(|(part, _)| format!("{{{name}}}:{part}")), mark: hasher.finish() })
    }

    pub(super) fn bell(&self) -> &str {
        &self.names[BELL]
    }

    pub(super) fn call(&self, script: &Script) -> Call {
        script.call(&self.names)
    }

    pub(super) fn unlink(&self) -> Command {
        self.names.iter().fold(Command::new("UNLINK"), |command, key| command.arg(key))
    }

    pub(super) const fn receipt(&self, id: u64, delivery: u64, count: u32) -> Receipt {
        Receipt { mailbox: self.mark, id: MessageId(id), delivery, count }
    }

    /// # Errors
    /// If the receipt is that of another mailbox: the numbers of two mailboxes may be the same.
    pub(super) const fn own(&self, receipt: Receipt) -> Result<(), SettleError> {
        if receipt.mailbox == self.mark { Ok(()) } else { Err(SettleError::ReceiptExpired) }
    }

    pub(super) fn settle(&self, receipts: impl IntoIterator<Item = Receipt>, how: Settlement) -> Call {
        let (how, span) = match how {
            Settlement::Ack => ("ack", Span::ZERO),
            Settlement::Nack(delay) => ("nack", delay),
            Settlement::Release => ("release", Span::ZERO),
            Settlement::Extend(visibility) => ("extend", visibility),
        };
        let call = self.call(&SCRIPTS.settle).arg(how).int(micros(span)).int(horizon());
        receipts.into_iter().fold(call, with_receipt)
    }

    /// Acknowledges as many as are acknowledged at the same time.
    pub(super) fn acks(&self) -> Joint {
        self.settle([], Settlement::Ack).joint()
    }

    /// Receives for as many as receive at the same time, with the same visibility.
    pub(super) fn receives(&self, visibility: Span, limits: &str) -> Joint {
        let call = self.call(&SCRIPTS.receive).int(micros(visibility)).int(horizon()).arg(limits);
        call.joint().at_most(RECEIVES_MAX)
    }

    pub(super) fn pass(&self) -> Call {
        self.call(&SCRIPTS.pass).int(horizon())
    }

    /// Says which key it is that holds something else than it should.
    pub(super) async fn explain(&self, link: &Link, error: ebbtide_redis::Error) -> BackendError {
        if !error.server().is_some_and(|error| error.text().contains("WRONGTYPE")) {
            return error.into();
        }
        let held = self.names.each_ref().map(|key| link.ask(Command::new("TYPE").arg(key)));
        for ((key, answer), (_, kind)) in self.names.iter().zip(held).zip(PARTS) {
            let Some(found) = answer.await.ok().and_then(ebbtide_redis::Value::bytes) else { continue };
            if found != kind && found != "none" {
                let found = String::from_utf8_lossy(&found).into_owned();
                return format!("the key {key} holds a {found}, where a mailbox has a {kind}: {error}")
                    .into();
            }
        }
        error.into()
    }
}

/// So many receive in one step. There is more than one step for those that are handled at a time, as a rule: while the
/// server is at one, what the one before it has given is handled. And a script holds up everybody.
const RECEIVES_MAX: NonZero<usize> = NonZero::new(3).expect("it is not zero");

/// See [`HORIZON`], in microseconds.
pub(super) const fn horizon() -> u64 {
    HORIZON.as_micros() as u64
}

pub(super) fn micros(span: Span) -> u64 {
    // Rounded up: nothing comes back too early.
    span.duration().as_nanos().div_ceil(1000) as u64
}

/// The same, with what a delivery is known by.
pub(super) fn with_receipt(call: Call, receipt: Receipt) -> Call {
    numbers(receipt).into_iter().fold(call, Call::int)
}

/// What a delivery is known by: the message, the delivery, and which of the message's it is.
pub(super) fn numbers(receipt: Receipt) -> [u64; 3] {
    [receipt.id.0, receipt.delivery, receipt.count.into()]
}
