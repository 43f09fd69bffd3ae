//! The long poll: one call that finds nothing, and one that blocks at the bell until there may be something.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes};
use ebbtide_lifecycle::time::{Clock, Timer};
use ebbtide_redis::{Command, Unclaimed, Value};

use super::{
    Desk,
    keys::{Keys, horizon, micros, receipt},
    scripts::SCRIPTS,
};
use crate::{
    error::{BackendError, ReceiveError},
    message::{Address, Delivery, Settlement},
    pull::Pull,
};

/// What the server counts in when it blocks.
const TICK: Duration = Duration::from_millis(1);

/// What a look has found.
struct Found {
    deliveries: Vec<Delivery>,
    /// In how long the next message comes back by itself.
    due: Option<Duration>,
}

impl Desk {
    pub(super) async fn receive(&self, pull: Pull) -> Result<Vec<Delivery>, ReceiveError> {
        let timer = self.link.timer();
        let mut until: Option<Instant> = None;
        loop {
            let now = timer.now();
            let patience = until.get_or_insert(now + pull.patience()).saturating_duration_since(now);
            let found = self.look(pull, !patience.is_zero()).await?;
            if !found.deliveries.is_empty() || patience.is_zero() {
                return Ok(found.deliveries);
            }
            let rung = self.wait(patience, found.due.filter(|due| *due < patience)).await?;
            // Who leaves while something comes back soon looks once more, so that somebody is there then.
            let soon = found.due.is_some_and(|due| due < Pull::WAIT_MAX);
            if !rung && !soon {
                return Ok(Vec::new());
            }
        }
    }

    /// Takes what there is.
    async fn look(&self, pull: Pull, waits: bool) -> Result<Found, ReceiveError> {
        let call = self.keys.call(&SCRIPTS.receive).int(pull.batch() as u64).int(micros(pull.lease()));
        let call = call.int(u64::from(waits)).int(horizon()).arg(&*self.limits_text).known_as(&self.origin);
        let answer = self.closing.token().wrap(self.link.run_or(call, &self.release)).await;
        let value = match answer.map_err(|_closed| ReceiveError::Closed)? {
            Ok(value) => value,
            Err(error) => return Err(ReceiveError::Backend(self.keys.explain(&self.link, error).await)),
        };
        let found = parse(value).ok_or_else(|| ReceiveError::Backend(nonsense("receive")))?;
        if !found.deliveries.is_empty() && self.closing.is_triggered() {
            // If the link takes nothing more, they come back when their time is over.
            let _ = self.link.tell(release(&self.keys, &found.deliveries));
            return Err(ReceiveError::Closed);
        }
        Ok(found)
    }

    /// Waits at the bell, but not for longer than `due`. Gives whether there may be something.
    async fn wait(&self, patience: Duration, due: Option<Duration>) -> Result<bool, ReceiveError> {
        // Rounded up: a wait that is over too early would look in vain.
        let patience = patience + TICK;
        let seconds = format!("{}.{:03}", patience.as_secs(), patience.subsec_millis());
        let bell = Command::new("BLPOP").arg(self.keys.bell()).arg(seconds).known_as(&self.origin);
        let mut rung = pin!(self.closing.token().wrap(self.link.wait_or(bell, patience, &self.pass)));
        // By the timer of the link, because the server lets go of those who wait up to a tenth of a second too late.
        let timer = self.link.timer();
        let mut alarm = due.map(|due| timer.sleep_until(timer.now() + due + TICK));
        let rung = poll_fn(|cx| match (rung.as_mut().poll(cx), &mut alarm) {
            (Poll::Ready(rung), _) => Poll::Ready(Some(rung)),
            (Poll::Pending, Some(alarm)) => alarm.as_mut().poll(cx).map(|()| None),
            (Poll::Pending, None) => Poll::Pending,
        });
        let Some(rung) = rung.await else { return Ok(true) };
        match rung.map_err(|_closed| ReceiveError::Closed)? {
            Ok(value) => Ok(value != Value::Nil),
            Err(error) => Err(ReceiveError::Backend(self.keys.explain(&self.link, error).await)),
        }
    }
}

/// What becomes of messages that were handed out to a receiver who has gone: they are released.
pub(super) fn releases(keys: Arc<Keys>) -> Unclaimed {
    Arc::new(move |value| {
        let Found { deliveries, due } = parse(value)?;
        if !deliveries.is_empty() {
            return Some(release(&keys, &deliveries));
        }
        due.is_some_and(|due| due < Pull::WAIT_MAX).then(|| keys.pass().in_full())
    })
}

/// What becomes of the bell when a receiver who waited at it has gone: somebody else has to look in his place.
pub(super) fn passes(keys: Arc<Keys>) -> Unclaimed {
    Arc::new(move |_| Some(keys.pass().in_full()))
}

/// The last first, because each goes to the front.
fn release(keys: &Keys, deliveries: &[Delivery]) -> Command {
    let receipts = deliveries.iter().rev().map(|delivery| delivery.receipt);
    keys.settle(receipts, Settlement::Release).in_full()
}

fn parse(value: Value) -> Option<Found> {
    let mut values = value.array()?.into_iter();
    let mut number = || u64::try_from(values.next()?.int()?).ok();
    let now = number()?;
    let due = number().map(Duration::from_micros);
    let mut deliveries = Vec::with_capacity(values.len() / PARTS);
    while values.len() >= PARTS {
        let mut number = || u64::try_from(values.next()?.int()?).ok();
        let (id, delivery, count) = (number()?, number()?, number()?);
        let (sent, reply_to, body) = unpack(values.next()?.bytes()?)?;
        let age = Duration::from_micros(now.saturating_sub(sent));
        let count_shown = u32::try_from(count).unwrap_or(u32::MAX);
        let mut delivered = Delivery::new(body, receipt(id, delivery, count), count_shown, age);
        delivered.reply_to = reply_to;
        delivered.checkpoint = values.next()?.bytes();
        deliveries.push(delivered);
    }
    Some(Found { deliveries, due })
}

/// How many values the server gives for each message.
const PARTS: usize = 5;

/// What is sent with a body: the address for replies, after its length.
pub(super) fn pack(reply_to: Option<&Address>) -> String {
    reply_to.map_or_else(|| "-:".to_owned(), |address| format!("{}:{address}", address.0.len()))
}

/// When it was sent, where a reply is wanted, and the body.
fn unpack(mut stored: Bytes) -> Option<(u64, Option<Address>, Bytes)> {
    let sent = take_field(&mut stored)?.parse().ok()?;
    let length = take_field(&mut stored)?;
    if length == "-" {
        return Some((sent, None, stored));
    }
    let length = length.parse().ok().filter(|length| *length <= stored.len())?;
    let address = stored.split_to(length);
    Some((sent, Some(std::str::from_utf8(&address).ok()?.into()), stored))
}

/// What comes before the next colon.
fn take_field(stored: &mut Bytes) -> Option<String> {
    let end = stored.iter().position(|byte| *byte == b':')?;
    let field = stored.split_to(end);
    stored.advance(1);
    String::from_utf8(field.into()).ok()
}

pub(super) fn nonsense(what: &str) -> BackendError {
    format!("the server's answer to {what} makes no sense: is something else using the keys of this mailbox?")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_taken_apart_again() {
        for (address, body) in [(None, ""), (None, "1:2:3"), (Some("a:b"), "c"), (Some(""), ":")] {
            let address = address.map(Address::from);
            let stored = format!("17:{}{body}", pack(address.as_ref()));
            assert_eq!(unpack(stored.into()), Some((17, address, Bytes::from(body))));
        }
        for broken in ["", "17", "x:-:", "17:9:short", "17:-"] {
            assert_eq!(unpack(broken.into()), None, "{broken}");
        }
    }
}
