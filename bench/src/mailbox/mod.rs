//! Messages of 100 bytes, sent, received and acknowledged.

mod memory;
mod peers;
mod redis;

pub(crate) use self::memory::handle_one_by_one;
use crate::areas::{Need, Part};

pub(crate) const PARTS: [Part; 2] =
    [Part::new("memory", memory::run), Part::new("redis", redis::run).needs(&[Need::Redis])];
