//! The long poll: a look that finds nothing, and a bell that rings when there may be something.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, PoisonError},
    task::Poll,
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes};
use ebbtide_lifecycle::time::{Clock, Timer};
use ebbtide_redis::{Command, Joint, Unclaimed, Value};

use super::{
    Desk,
    bell::{Bell, HANGS, HORIZON, Quiet},
    keys::Keys,
};
use crate::{
    error::{BackendError, ReceiveError},
    message::{Address, Delivery, Settlement},
    pull::Pull,
    span::Span,
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
        let until = timer.now() + pull.patience();
        // Who does not wait is told of nothing, and has to look.
        let mut known = if pull.patience().is_zero() { None } else { self.bells.quiet(until) };
        loop {
            let quiet = match known.take() {
                Some(quiet) => quiet,
                None => {
                    let since = timer.now();
                    let waits = since < until;
                    // Whatever comes of it, what was known before is not known any more.
                    self.bells.know(None);
                    let found = self.look(pull, waits).await?;
                    if !found.deliveries.is_empty() || !waits {
                        return Ok(found.deliveries);
                    }
                    let quiet = Quiet { since, due: found.due.map(|due| timer.now() + due + TICK) };
                    self.bells.know(Some(quiet));
                    quiet
                }
            };
            let is_told = self.wait(until, quiet.due.filter(|due| *due < until)).await?;
            // Who leaves while something comes back soon looks once more, so that somebody is there then.
            if !is_told && !quiet.is_soon() {
                return Ok(Vec::new());
            }
        }
    }

    /// Takes what there is.
    async fn look(&self, pull: Pull, waits: bool) -> Result<Found, ReceiveError> {
        let part = self.receives(pull.lease()).part().int(pull.batch() as u64).int(u64::from(waits));
        let asked = self.link.run_part_or(part.known_as(&self.origin), &self.release);
        let answer = self.closing.token().wrap(Box::pin(asked)).await;
        let value = match answer.map_err(|_closed| ReceiveError::Closed)? {
            Ok(value) => value,
            Err(error) => return Err(ReceiveError::Backend(self.keys.explain(&self.link, error).await)),
        };
        let found = parse(&self.keys, value).ok_or_else(|| ReceiveError::Backend(nonsense("receive")))?;
        if !found.deliveries.is_empty() && self.closing.is_triggered() {
            // If the link takes nothing more, they come back when their time is over.
            let _ = self.link.tell(release(&self.keys, &found.deliveries));
            return Err(ReceiveError::Closed);
        }
        Ok(found)
    }

    /// What receives with this visibility. It is kept, because those that are to go together need the same one.
    fn receives(&self, visibility: Span) -> Joint {
        let mut kept = self.receives.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((of, joint)) if *of == visibility => joint.clone(),
            _ => {
                let joint = self.keys.receives(visibility, &self.limits_text);
                *kept = Some((visibility, joint.clone()));
                joint
            }
        }
    }

    /// Waits at a bell, but not for longer than until `due`. Gives whether there may be something.
    async fn wait(&self, until: Instant, due: Option<Instant>) -> Result<bool, ReceiveError> {
        let timer = self.link.timer();
        // By the timer of the link, because the server lets go of those who wait up to a tenth of a second too late.
        let mut alarm = timer.sleep_until(due.unwrap_or(until));
        loop {
            let now = timer.now();
            if now >= until {
                return Ok(false);
            }
            let mut bell = self.bells.take(now).unwrap_or_else(|| self.hang(now));
            let mut rung = self.closing.token().wrap(&mut bell.answer);
            let rung = poll_fn(|cx| match Pin::new(&mut rung).poll(cx) {
                Poll::Ready(rung) => Poll::Ready(Some(rung)),
                Poll::Pending => alarm.as_mut().poll(cx).map(|()| None),
            });
            let Some(rung) = rung.await else {
                self.bells.put(bell);
                return Ok(due.is_some());
            };
            match rung.map_err(|_closed| ReceiveError::Closed)? {
                // The server has let go of it.
                Ok(Value::Nil) => {}
                Ok(_) => return Ok(true),
                // It may have broken while nobody was there: whoever looks finds out.
                Err(_) if bell.is_old => return Ok(true),
                Err(error) => {
                    // A server that comes back may have forgotten whom it has told.
                    self.bells.know(None);
                    return Err(ReceiveError::Backend(self.keys.explain(&self.link, error).await));
                }
            }
        }
    }

    fn hang(&self, now: Instant) -> Bell {
        let bell = Command::new("BLPOP").arg(self.keys.bell()).int(HANGS.as_secs()).known_as(&self.origin);
        Bell { answer: self.link.wait_or(bell, HANGS, &self.pass), until: now + HANGS, is_old: false }
    }
}

/// What becomes of messages that were handed out to a receiver who has gone: they are released.
pub(super) fn releases(keys: Arc<Keys>) -> Unclaimed {
    Arc::new(move |value| {
        let Found { deliveries, due } = parse(&keys, value)?;
        if !deliveries.is_empty() {
            return Some(release(&keys, &deliveries));
        }
        due.is_some_and(|due| due < HORIZON).then(|| keys.pass().in_full())
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

fn parse(keys: &Keys, value: Value) -> Option<Found> {
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
        let count = u32::try_from(count).ok()?;
        let mut delivered = Delivery::new(body, keys.receipt(id, delivery, count), count, age);
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
