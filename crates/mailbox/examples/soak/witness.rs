//! A mailbox that writes down what is received from it, and how it is settled.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
};

use ebbtide_mailbox::{
    Address, BackendError, Boxed, Bytes, Counts, Delivery, Mailbox, Message, MessageId, Pull, Receipt,
    ReceiveError, RedisMailbox, ReplyError, SendError, SettleError, Settlement,
};

use crate::note::{Note, Settled};

pub(crate) struct Witness(pub(crate) RedisMailbox);

/// The number that the sender gave it.
pub(crate) fn number(body: &[u8]) -> u64 {
    std::str::from_utf8(body).ok().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}

/// In one step, so that a process that is killed has said all or nothing.
pub(crate) fn note(notes: impl IntoIterator<Item = Note>) {
    let mut lines = String::new();
    for note in notes {
        let _ = writeln!(lines, "{note}");
    }
    // Nobody reads it any more: then nobody counts it.
    let _ = io::stdout().lock().write_all(lines.as_bytes());
}

impl Mailbox for Witness {
    fn send(&self, message: Message) -> Boxed<'_, Result<MessageId, SendError>> {
        self.0.send(message)
    }

    fn receive(&self, pull: Pull) -> Boxed<'_, Result<Vec<Delivery>, ReceiveError>> {
        Box::pin(async move {
            let received = self.0.receive(pull).await?;
            note(received.iter().map(|one| Note::Got(number(&one.body), one.receipt.into())));
            Ok(received)
        })
    }

    fn settle(&self, receipt: Receipt, how: Settlement) -> Boxed<'_, Result<(), SettleError>> {
        Box::pin(async move {
            let settled = self.0.settle(receipt, how).await;
            let said = match (&settled, how) {
                (_, Settlement::Extend(_)) => return settled,
                (Ok(()), Settlement::Ack) => Settled::Acked,
                (Ok(()), Settlement::Release) => Settled::Released,
                (Ok(()), _) => Settled::Nacked,
                (Err(SettleError::ReceiptExpired), _) => Settled::Expired,
                (Err(_), _) => Settled::Unknown,
            };
            note([Note::Settled(said, receipt.into())]);
            settled
        })
    }

    fn checkpoint(&self, receipt: Receipt, progress: Bytes) -> Boxed<'_, Result<(), SettleError>> {
        self.0.checkpoint(receipt, progress)
    }

    fn reply(&self, address: Address, body: Bytes) -> Boxed<'_, Result<(), ReplyError>> {
        self.0.reply(address, body)
    }

    fn purge(&self) -> Boxed<'_, Result<u64, BackendError>> {
        self.0.purge()
    }

    fn counts(&self) -> Boxed<'_, Result<Counts, BackendError>> {
        self.0.counts()
    }

    fn close(&self) -> bool {
        self.0.close()
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}
