//! Hashes and lists in memory.

use std::{
    collections::{BTreeMap, HashMap},
    error, fmt,
    hash::{BuildHasherDefault, Hasher},
    ops::Range,
    path::Path,
    sync::Arc,
};

use ebbtide_redis::{Answer, Command, Link};
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};

use crate::{
    endpoint::IN_FLIGHT,
    item::Item,
    rows::{Rows, RowsBuilder, Scalar},
    text::text_of,
};

/// How large a file with data may be: what is in it takes as much memory again, and more than this is for a server.
pub const STORE_BYTES_MAX: u64 = 1 << 30;

/// Hashes and lists by key, in memory: what a Redis server holds, for those who have none.
///
/// It is filled from JSON. A key is a name and an id; what is an object is a hash, and what is a list is one of rows,
/// each an id, or an object with an `id` and fields.
///
/// ```
/// use ebbtide_rank::Store;
///
/// let store = Store::from_json(r#"{
///     "user:1": {"country": "US", "age": 31},
///     "follow:1": [2, 3],
///     "media:2": [{"id": 20, "score": 0.5}, {"id": 21, "score": 0.25}]
/// }"#)?;
/// let media = store.lists("media", &[2, 3], 10)?;
/// assert_eq!(media.ids().collect::<Vec<_>>(), [20, 21]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// All rows of a name are in the same columns, so that reading copies none: it selects. The values of a column are of
/// one kind, whatever key they are under.
#[derive(Debug, Default)]
pub struct Store {
    hashes: BTreeMap<Arc<str>, Family>,
    lists: BTreeMap<Arc<str>, Family>,
}

/// All keys of a name.
#[derive(Debug)]
struct Family {
    rows: Rows,
    places: Places,
}

/// Where the rows of each id are.
type Places = HashMap<i64, Range<u32>, BuildHasherDefault<IdHasher>>;

/// What cannot be put into a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError(String);

/// A key holds a list where a hash was asked for, or the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType {
    /// The id of the key.
    pub id: i64,
    /// What was asked for.
    pub wanted: &'static str,
    /// What it holds.
    pub found: &'static str,
}

impl Store {
    /// Reads a store.
    ///
    /// # Errors
    /// Says what cannot be read, and at which key.
    pub fn from_json(text: &str) -> Result<Self, StoreError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let draft = reader.deserialize_map(Draft::default()).and_then(|draft| reader.end().map(|()| draft));
        draft.map(Draft::build).map_err(|error| StoreError(error.to_string()))
    }

    /// The same, from JSON that is read already.
    ///
    /// # Errors
    /// Says what cannot be read, and at which key.
    pub fn from_value(json: &serde_json::Value) -> Result<Self, StoreError> {
        let draft = json.deserialize_map(Draft::default());
        draft.map(Draft::build).map_err(|error| StoreError(error.to_string()))
    }

    /// The same, from a file of [`STORE_BYTES_MAX`] at most.
    ///
    /// # Errors
    /// Says which file cannot be read, what is wrong, and at which key.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let read = text_of(path, STORE_BYTES_MAX).map_err(|error| StoreError(error.to_string()));
        let store = read.and_then(|text| Self::from_json(&text));
        store.map_err(|StoreError(message)| StoreError(format!("{}: {message}", path.display())))
    }

    /// The hash of this name and id, as a row with that id. One that is not there is a row of nulls.
    ///
    /// # Errors
    /// If the key holds a list.
    pub fn hash(&self, name: &str, id: i64) -> Result<Rows, WrongType> {
        let family = self.hashes.get(name);
        if let Some((family, place)) = family.and_then(|family| Some((family, family.places.get(&id)?))) {
            return Ok(family.rows.select(vec![place.start]));
        }
        if self.lists.get(name).is_some_and(|family| family.places.contains_key(&id)) {
            return Err(WrongType { id, wanted: "hash", found: "list" });
        }
        Ok(family.map_or_else(|| Rows::nulls(id, None), |family| Rows::nulls(id, Some(&family.rows))))
    }

    /// The lists of this name and these ids, one behind the other, the first `most` rows of each. One that is not
    /// there has none.
    ///
    /// # Errors
    /// If a key holds a hash.
    pub fn lists(&self, name: &str, ids: &[i64], most: usize) -> Result<Rows, WrongType> {
        let family = self.lists.get(name);
        let mut selection = Vec::new();
        for id in ids {
            match family.and_then(|family| family.places.get(id)) {
                Some(places) => selection.extend(places.clone().take(most)),
                None if self.hashes.get(name).is_some_and(|family| family.places.contains_key(id)) => {
                    return Err(WrongType { id: *id, wanted: "list", found: "hash" });
                }
                None => {}
            }
        }
        Ok(family.map_or_else(Rows::default, |family| family.rows.select(selection)))
    }

    /// How many keys it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.values().chain(self.lists.values()).map(|family| family.places.len()).sum()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts all of it onto a server, in place of what was there under the same keys. Gives how many keys it has put
    /// there.
    ///
    /// # Errors
    /// If the server does not take it. Some of it may be there then.
    pub async fn copy_to(&self, link: &Link) -> Result<usize, ebbtide_redis::Error> {
        let mut waiting: Vec<Answer> = Vec::new();
        for (key, command) in self.commands() {
            waiting.push(link.ask(Command::new("DEL").arg(&key)));
            waiting.extend(command.map(|command| link.ask(command)));
            if waiting.len() >= COMMANDS_IN_FLIGHT_MAX {
                for answer in waiting.drain(..) {
                    answer.await?;
                }
            }
        }
        for answer in waiting {
            answer.await?;
        }
        Ok(self.len())
    }

    /// Each key, and what puts it onto a server, if there is anything to put.
    fn commands(&self) -> impl Iterator<Item = (String, Option<Command>)> {
        let hashes = self.hashes.iter().flat_map(|(name, family)| {
            family.places.iter().map(move |(id, place)| {
                let key = format!("{name}:{id}");
                let command = hset(&key, &family.rows, place.start as usize);
                (key, command)
            })
        });
        let lists = self.lists.iter().flat_map(|(name, family)| {
            family.places.iter().map(move |(id, places)| {
                let key = format!("{name}:{id}");
                let command = rpush(&key, &family.rows, places.clone());
                (key, command)
            })
        });
        hashes.chain(lists)
    }
}

/// So many commands wait for their answers at a time, fewer than a link of an endpoint takes.
const COMMANDS_IN_FLIGHT_MAX: usize = IN_FLIGHT / 2;

fn hset(key: &str, rows: &Rows, row: usize) -> Option<Command> {
    let mut command = None;
    for (name, _) in rows.columns() {
        let text = match rows.get(row, name) {
            None | Some(Scalar::Null) => continue,
            Some(Scalar::Text(text)) => text.to_string(),
            Some(other) => other.to_string(),
        };
        let begun = command.take().unwrap_or_else(|| Command::new("HSET").arg(key));
        command = Some(begun.arg(&**name).arg(text));
    }
    command
}

fn rpush(key: &str, rows: &Rows, places: Range<u32>) -> Option<Command> {
    if places.is_empty() {
        return None;
    }
    let mut item = Vec::new();
    let command = places.fold(Command::new("RPUSH").arg(key), |command, place| {
        item.clear();
        rows.write_item(place as usize, &mut item);
        command.arg(&item)
    });
    Some(command)
}

/// A store that is read.
#[derive(Default)]
struct Draft {
    hashes: BTreeMap<Arc<str>, FamilyDraft>,
    lists: BTreeMap<Arc<str>, FamilyDraft>,
}

struct FamilyDraft {
    rows: RowsBuilder,
    places: Places,
}

impl Default for FamilyDraft {
    fn default() -> Self {
        Self { rows: RowsBuilder::interning(), places: Places::default() }
    }
}

impl Draft {
    fn build(self) -> Store {
        let families = |drafts: BTreeMap<Arc<str>, FamilyDraft>| {
            let built = drafts
                .into_iter()
                .map(|(name, FamilyDraft { rows, places })| (name, Family { rows: rows.build(), places }));
            built.collect()
        };
        Store { hashes: families(self.hashes), lists: families(self.lists) }
    }
}

impl<'de> Visitor<'de> for Draft {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with hashes and lists by key")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let parts = key.rsplit_once(':').and_then(|(name, id)| Some((name, id.parse::<i64>().ok()?)));
            let Some((name, id)) = parts.filter(|(name, _)| !name.is_empty()) else {
                return Err(A::Error::custom(format_args!(
                    "key {key:?} is not a name and an id, such as \"user:1\""
                )));
            };
            let entry = Entry { draft: &mut self, name, id };
            let placed = map
                .next_value_seed(entry)
                .map_err(|error| A::Error::custom(format_args!("key {key:?}: {error}")))?;
            if !placed {
                return Err(A::Error::custom(format_args!("key {key:?} is given twice")));
            }
        }
        Ok(self)
    }
}

/// What is under a key. Gives whether it was not there before.
struct Entry<'d> {
    draft: &'d mut Draft,
    name: &'d str,
    id: i64,
}

impl<'de> DeserializeSeed<'de> for Entry<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Entry<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a hash, which is an object, or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<bool, A::Error> {
        let is_list =
            self.draft.lists.get(self.name).is_some_and(|lists| lists.places.contains_key(&self.id));
        let family = self.draft.hashes.entry(self.name.into()).or_default();
        let start = family.rows.len() as u32;
        Item { rows: &mut family.rows, id: Some(self.id) }.visit_map(map)?;
        Ok(family.places.insert(self.id, start..start + 1).is_none() && !is_list)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let is_hash =
            self.draft.hashes.get(self.name).is_some_and(|hashes| hashes.places.contains_key(&self.id));
        let family = self.draft.lists.entry(self.name.into()).or_default();
        let start = family.rows.len() as u32;
        while items.next_element_seed(Item { rows: &mut family.rows, id: None })?.is_some() {}
        let end = family.rows.len() as u32;
        Ok(family.places.insert(self.id, start..end).is_none() && !is_hash)
    }
}

/// Spreads ids over a table. They are our own, so nobody can choose them to collide.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_i64(i64::from(*byte)));
    }

    fn write_i64(&mut self, id: i64) {
        // The golden ratio: multiples of it are far from each other. The upper bits are the good ones.
        let product = (self.0 ^ id.cast_unsigned()).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ (product >> 32);
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl error::Error for StoreError {}

impl fmt::Display for WrongType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it holds a {}, and a {} was asked for", self.found, self.wanted)
    }
}

impl error::Error for WrongType {}
