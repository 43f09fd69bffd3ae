//! Reading from a server.

use std::{
    fmt::Write as _,
    future::{Future as _, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use ebbtide_lifecycle::time::{Alarm, Clock as _, Deadline};
use ebbtide_redis::{Batch, Command, Link, Value, Why};

use super::{
    ReadWhy,
    turnstile::{Pass, Turnstile},
};
use crate::{
    item::{Items, read_hash},
    rows::{Fields, Rows, RowsBuilder},
};

/// So many commands of an endpoint are in flight at a time, unless it says otherwise: enough to keep a server busy, and
/// few enough to be answered soon.
pub const IN_FLIGHT: usize = 256;

/// So many rows there is room for at once, however many were asked for: lists are mostly shorter than they may be.
const ROWS_EXPECTED_MAX: usize = 256;

/// How long a read waits for its turn, whatever time it has: at a server that answers, a turn takes milliseconds.
const LINE_PATIENCE: Duration = Duration::from_secs(5);

/// So long after its deadline a read that waits leaves the line. Its run is told at the deadline itself, and has to be
/// the first to say so: what it says is that the time was up.
const AFTER: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct Redis {
    link: Link,
    turnstile: Turnstile,
}

impl Redis {
    pub(super) fn new(link: Link, max_in_flight: usize) -> Self {
        Self { link, turnstile: Turnstile::new(max_in_flight) }
    }

    pub(super) const fn link(&self) -> &Link {
        &self.link
    }

    /// Waits for places at the server, but not for good: what has not been sent by its deadline is of no use to
    /// anybody, and would be in the way of those who have time.
    async fn turn(&self, places: usize, deadline: Deadline) -> Result<Pass<'_>, ReadWhy> {
        let timer = self.link.timer();
        let mut enter = pin!(self.turnstile.enter(places));
        let mut alarm = pin!(None);
        poll_fn(|cx| {
            if let Poll::Ready(pass) = enter.as_mut().poll(cx) {
                return Poll::Ready(Ok(pass));
            }
            if alarm.is_none() {
                let at_last = Deadline::after(timer, LINE_PATIENCE);
                let late = deadline.instant().and_then(|at| at.checked_add(AFTER));
                alarm.set(Some(Alarm::by(timer, late.map_or(at_last, |at| at_last.min(at.into())))));
            }
            let rings = alarm.as_mut().as_pin_mut().map_or(Poll::Pending, |alarm| alarm.poll(cx));
            rings.map(|()| Err(ReadWhy::NoTurn))
        })
        .await
    }

    pub(super) async fn hash(
        &self,
        name: &str,
        id: i64,
        fields: &Fields,
        deadline: Deadline,
    ) -> Result<Rows, ReadWhy> {
        let pass = self.turn(1, deadline).await?;
        let command = Command::new("HGETALL").arg(format!("{name}:{id}"));
        let answer = self.link.ask(command).await.map_err(ReadWhy::Redis)?;
        drop(pass);
        let pairs = answer.array().ok_or_else(|| ReadWhy::Content("the answer is not a hash".to_owned()))?;
        let mut rows = RowsBuilder::new(fields);
        read_hash(&mut rows, id, &pairs).map_err(ReadWhy::Content)?;
        Ok(rows.build())
    }

    /// On an error, with the id whose list it is about.
    pub(super) async fn lists(
        &self,
        name: &str,
        ids: &[i64],
        most: usize,
        fields: &Fields,
        deadline: Deadline,
    ) -> Result<Rows, (i64, ReadWhy)> {
        let last = (most as u64).saturating_sub(1);
        let mut all = Items::new(fields);
        let mut key = String::with_capacity(name.len() + 12);
        for (nth, ids) in ids.chunks(self.turnstile.limit()).enumerate() {
            if nth > 0 && deadline.is_expired(self.link.timer().now()) {
                return Err((ids[0], ReadWhy::NoTurn));
            }
            let pass = self.turn(ids.len(), deadline).await.map_err(|why| (ids[0], why))?;
            let mut batch = Batch::with_capacity(ids.len());
            for id in ids {
                key.clear();
                write!(key, "{name}:{id}").expect("a string takes whatever is written");
                batch.add(Command::new("LRANGE").arg(&key).int(0).int(last));
            }
            let answer = self.link.ask_all(batch).await.map_err(|error| (ids[0], ReadWhy::Redis(error)))?;
            drop(pass);
            all.reserve(ids.len().saturating_mul(most).min(ROWS_EXPECTED_MAX));
            for (id, list) in ids.iter().zip(answer.array().unwrap_or_default()) {
                let items = match list {
                    Value::Array(items) => items,
                    Value::Refusal(error) => {
                        let error = self.link.error("LRANGE", Why::Server(error));
                        return Err((*id, ReadWhy::Redis(error)));
                    }
                    _ => return Err((*id, ReadWhy::Content("the answer is not a list".to_owned()))),
                };
                // No range of a server is empty: of none at all it gives one.
                for item in items.iter().take(most) {
                    all.read(item).map_err(|message| (*id, ReadWhy::Content(message)))?;
                }
            }
        }
        Ok(all.build())
    }
}
