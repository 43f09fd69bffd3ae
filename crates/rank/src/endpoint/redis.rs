//! Reading from a server.

use std::fmt::Write as _;

use ebbtide_redis::{Batch, Command, Link, Value, Why};

use super::{ReadWhy, turnstile::Turnstile};
use crate::{
    item::{Items, read_hash},
    rows::{Fields, Rows, RowsBuilder},
};

/// So many commands of an endpoint are in flight at a time, unless it says otherwise: enough to keep a server busy, and
/// few enough to be answered soon.
pub const IN_FLIGHT: usize = 256;

/// So many rows there is room for at once, however many were asked for: lists are mostly shorter than they may be.
const ROWS_EXPECTED_MAX: usize = 256;

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

    pub(super) async fn hash(&self, name: &str, id: i64, fields: &Fields) -> Result<Rows, ReadWhy> {
        let pass = self.turnstile.enter(1).await;
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
    ) -> Result<Rows, (i64, ReadWhy)> {
        let last = (most as u64).saturating_sub(1);
        let mut all = Items::new(fields);
        let mut key = String::with_capacity(name.len() + 12);
        for ids in ids.chunks(self.turnstile.limit()) {
            let pass = self.turnstile.enter(ids.len()).await;
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
