//! The embedded data set: some two hundred users, whom they follow, who is recommended to them, and what they have
//! posted.
//!
//! | key | |
//! |---|---|
//! | `user:{id}` | a hash: `country`, `language`, `age`, which not all have, and `premium` |
//! | `follow:{id}`, `recommendation:{id}` | lists of users |
//! | `media:{id}` | a list of posts: `author`, `title`, `country`, `score`, which not all have, `likes`, `age_hours` |

use std::sync::{Arc, OnceLock};

use ebbtide_redis::Link;

use crate::store::Store;

/// The data set, as [`Store::from_json`] reads it.
pub const JSON: &str = include_str!("../data/demo.json");

/// The data set. It is read once.
#[must_use]
pub fn store() -> Arc<Store> {
    static STORE: OnceLock<Arc<Store>> = OnceLock::new();
    STORE.get_or_init(|| Store::from_json(JSON).expect("the embedded data set is well formed").into()).clone()
}

/// Puts the data set onto a server, in place of what was there under the same keys. Gives how many keys that are.
///
/// # Errors
/// If the server does not take it. Some of it may be there then.
pub async fn load(link: &Link) -> Result<usize, ebbtide_redis::Error> {
    store().copy_to(link).await
}
