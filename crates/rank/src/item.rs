//! Rows as they are kept: `7`, which is an id, or `{"id": 7, "country": "US"}`; and records without an id, whose key
//! has it.

use std::fmt;

use ebbtide_redis::Value;
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
};

use crate::{
    plain::{Plain, Reader},
    rows::{ColumnBuilder, Fields, Kind, Rows, RowsBuilder, Scalar, Slot},
};

/// Reads a row, and puts it behind the others.
pub(crate) struct Item<'b> {
    pub(crate) rows: &'b mut RowsBuilder,
    /// Its id, if that is known. Otherwise it has to have one.
    pub(crate) id: Option<i64>,
}

impl<'de> DeserializeSeed<'de> for Item<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Item<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.id {
            None => "an id, or an object with an `id` and fields",
            Some(_) => "an object",
        })
    }

    fn visit_i64<E: Error>(self, id: i64) -> Result<(), E> {
        if self.id.is_some() {
            return Err(E::invalid_type(serde::de::Unexpected::Signed(id), &self));
        }
        self.rows.row(id);
        Ok(())
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<(), E> {
        let whole = i64::try_from(id).map_err(|_| E::custom(format_args!("the id {id} is too large")))?;
        self.visit_i64(whole)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { rows, id: known } = self;
        let mut own = None;
        while let Some(slot) = map.next_key_seed(Field(rows))? {
            match slot {
                Slot::Column(at) => {
                    let (name, column) = rows.column(at);
                    map.next_value_seed(Cell { name, column })?;
                }
                Slot::Id if known.is_none() && own.is_none() => own = Some(map.next_value::<i64>()?),
                Slot::Id if known.is_none() => return Err(A::Error::custom("`id` is given twice")),
                Slot::Id | Slot::Nowhere => {
                    map.next_value::<IgnoredAny>()?;
                }
                Slot::Taken => return Err(A::Error::custom("a field is given twice")),
            }
        }
        let id = known.or(own).ok_or_else(|| A::Error::custom("it has no `id`"))?;
        rows.row(id);
        Ok(())
    }
}

/// Finds out where a field goes.
struct Field<'b>(&'b mut RowsBuilder);

impl<'de> DeserializeSeed<'de> for Field<'_> {
    type Value = Slot;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Slot, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Field<'_> {
    type Value = Slot;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Slot, E> {
        Ok(self.0.slot(name))
    }
}

/// Puts a value into its column.
struct Cell<'b> {
    name: &'b str,
    column: &'b mut ColumnBuilder,
}

impl Cell<'_> {
    fn push<E: Error>(self, value: &Scalar) -> Result<(), E> {
        let name = self.name;
        self.column.push(value).map_err(|misfit| E::custom(format_args!("column \"{name}\": {misfit}")))
    }
}

impl<'de> DeserializeSeed<'de> for Cell<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Cell<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string, a number, true, false or null for column \"{}\"", self.name)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.column.push_null();
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.push(&Scalar::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.push(&Scalar::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.push(&i64::try_from(value).map_or(Scalar::Float(value as f64), Scalar::Int))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.push(&Scalar::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        let (name, column) = (self.name, self.column);
        column.push_text(value).map_err(|misfit| E::custom(format_args!("column \"{name}\": {misfit}")))
    }
}

/// Reads the items of lists on a server.
pub(crate) struct Items {
    rows: RowsBuilder,
    outline: Outline,
}

/// What an object looked like: what stands before each of its values, and where those go. In a list most look the same,
/// but that some fields are not there, and then nothing has to be looked up.
#[derive(Default)]
struct Outline {
    /// All that stands between values, one behind the other.
    text: String,
    /// Up to where each begins in there, and the slot of the value behind it. Empty if there was no object yet.
    gaps: Vec<(usize, Slot)>,
}

impl Items {
    /// Into the columns that are declared; into any, if none is.
    pub(crate) fn new(fields: &Fields) -> Self {
        Self { rows: RowsBuilder::new(fields), outline: Outline::default() }
    }

    /// Makes room for so many more.
    pub(crate) fn reserve(&mut self, items: usize) {
        self.rows.reserve(items);
    }

    pub(crate) fn build(self) -> Rows {
        self.rows.build()
    }

    pub(crate) fn read(&mut self, item: &Value) -> Result<(), String> {
        match item {
            Value::Int(id) => self.rows.row(*id),
            Value::Bytes(bytes) => {
                if self.read_plain(bytes).is_some() {
                    return Ok(());
                }
                self.rows.give_up_row();
                let mut reader = serde_json::Deserializer::from_slice(bytes);
                let item = Item { rows: &mut self.rows, id: None };
                let read = item.deserialize(&mut reader).and_then(|()| reader.end());
                read.map_err(|error| format!("an item cannot be read: {error}: {}", excerpt(bytes)))?;
            }
            other => return Err(format!("an item is not a string: {other:?}")),
        }
        Ok(())
    }

    /// Reads an item that is what most are. If it is not, some of it may be in the row that is being filled.
    fn read_plain(&mut self, bytes: &[u8]) -> Option<()> {
        let text = str::from_utf8(bytes).ok()?;
        if !text.starts_with('{') {
            let mut reader = Reader::new(text);
            let Plain::Int(id) = reader.value()? else { return None };
            reader.end()?;
            self.rows.row(id);
            return Some(());
        }
        if !self.outline.gaps.is_empty() {
            if self.read_alike(text).is_some() {
                return Some(());
            }
            self.rows.give_up_row();
        }
        self.read_object(text)
    }

    /// Reads an object that looks like the one before it, but that some fields may not be there.
    fn read_alike(&mut self, text: &str) -> Option<()> {
        let (mut reader, mut id, mut begin) = (Reader::new(text), None, 0);
        for (end, slot) in &self.outline.gaps {
            let gap = &self.outline.text[begin..*end];
            begin = *end;
            if reader.exactly(gap).is_none() {
                continue;
            }
            match (slot, reader.value()?) {
                (Slot::Column(at), value) => self.rows.next_in(*at).push_plain(&value).ok()?,
                (Slot::Id, Plain::Int(own)) => id = Some(own),
                (Slot::Nowhere, _) => {}
                (Slot::Id | Slot::Taken, _) => return None,
            }
        }
        reader.exactly("}")?;
        reader.end()?;
        self.rows.row(id?);
        Some(())
    }

    /// Reads an object, and remembers what it looked like.
    fn read_object(&mut self, text: &str) -> Option<()> {
        let Self { rows, outline } = self;
        let (mut reader, mut id) = (Reader::new(text), None);
        outline.text.clear();
        outline.gaps.clear();
        let read = reader.object(|field| {
            let slot = rows.slot(field.name);
            outline.text.push_str(field.before);
            outline.gaps.push((outline.text.len(), slot));
            match (slot, field.value) {
                (Slot::Id, Plain::Int(own)) => id.replace(own).is_none().then_some(()),
                (Slot::Column(at), value) => rows.column(at).1.push_plain(&value).ok(),
                (Slot::Nowhere, _) => Some(()),
                (Slot::Id | Slot::Taken, _) => None,
            }
        });
        let Some(id) = read.and(reader.end()).and(id) else {
            outline.gaps.clear();
            return None;
        };
        rows.row(id);
        Some(())
    }
}

/// Reads a hash on a server, which has only strings: for a column that is declared they have to be what it holds, for
/// others it is guessed.
pub(crate) fn read_hash(rows: &mut RowsBuilder, id: i64, pairs: &[Value]) -> Result<(), String> {
    for pair in pairs.chunks(2) {
        let [Value::Bytes(name), Value::Bytes(text)] = pair else {
            return Err("the hash is not one of strings".to_owned());
        };
        let name = str::from_utf8(name).map_err(|_| "the name of a field is not text".to_owned())?;
        let text = str::from_utf8(text).map_err(|_| format!("field \"{name}\" is not text"))?;
        let Slot::Column(at) = rows.slot(name) else { continue };
        let (_, column) = rows.column(at);
        let value = match column.kind() {
            Kind::Text => Scalar::Text(text.into()),
            _ => Scalar::guess(text),
        };
        let misfit = |kind| format!("field \"{name}\" is not {kind} but {}", excerpt(text.as_bytes()));
        let kind = column.kind();
        column
            .push(&value)
            .ok()
            .filter(|()| column.kind() == kind || kind == Kind::Null)
            .ok_or_else(|| misfit(kind))?;
    }
    rows.row(id);
    Ok(())
}

/// So much of what cannot be read is shown.
const EXCERPT_MAX: usize = 60;

fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT_MAX)]);
    format!("{text}{}", if bytes.len() > EXCERPT_MAX { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(items: &[impl AsRef<str>]) -> Result<Rows, String> {
        let mut all = Items::new(&Fields::default());
        for item in items {
            all.read(&Value::Bytes(item.as_ref().as_bytes().to_vec().into()))?;
        }
        Ok(all.build())
    }

    /// The same, each item by the parser that knows all of JSON.
    fn parse(items: &[String]) -> Result<Rows, String> {
        let mut rows = RowsBuilder::new(&Fields::default());
        for item in items {
            let mut reader = serde_json::Deserializer::from_str(item);
            let read = Item { rows: &mut rows, id: None }.deserialize(&mut reader);
            read.and_then(|()| reader.end()).map_err(|error| error.to_string())?;
        }
        Ok(rows.build())
    }

    /// Some fields of an item, in some order, written in some way.
    fn item() -> impl Strategy<Value = String> {
        let number =
            prop_oneof![Just("null"), Just("7"), Just("-12"), Just("0.5"), Just("1e3"), Just("-0.25")];
        let text = prop_oneof![
            Just("null"),
            Just("\"DE\""),
            Just("\"a b c d e f g\""),
            Just("\"\\n\""),
            Just("\"ü\"")
        ];
        let field = prop_oneof![
            (prop_oneof![Just("likes"), Just("score")], number),
            (prop_oneof![Just("title"), Just("id2")], text),
        ];
        let fields = proptest::collection::vec(field, 0..4);
        (0_i64..3, fields, 0_usize..5, prop_oneof![3 => Just(""), 1 => Just(" ")]).prop_map(
            |(id, fields, at, space)| {
                let mut fields: Vec<_> =
                    fields.into_iter().map(|(name, value)| format!("\"{name}\":{space}{value}")).collect();
                fields.insert(at.min(fields.len()), format!("\"id\":{space}{id}"));
                format!("{{{}}}", fields.join(","))
            },
        )
    }

    proptest! {
        #[test]
        fn items_are_what_a_parser_makes_of_them_whatever_came_before(
            items in proptest::collection::vec(item(), 0..12)
        ) {
            match (read(&items), parse(&items)) {
                (Ok(read), Ok(parsed)) => prop_assert_eq!(read, parsed),
                (read, parsed) => prop_assert!(read.is_err() && parsed.is_err(), "{read:?} {parsed:?}"),
            }
        }
    }

    #[test]
    fn items_that_are_not_plain_are_read_like_others() {
        let plain = read(&[
            r#"{"id":1,"title":"a b","score":0.5,"likes":3,"new":true}"#,
            "2",
            r#"{"id":3,"title":"a b","score":100.0,"likes":null}"#,
        ]);
        let odd = read(&[
            r#"{"title":"a\u0020b","id":1,"score":5e-1,"likes":3,"new":true}"#,
            " 2 ",
            "{\"id\":3,\n\"title\":\"a b\",\"score\":1e2,\"likes\":null}",
        ]);
        assert_eq!(plain, odd);
        assert_eq!(plain.map(|rows| rows.len()), Ok(3));
    }

    #[test]
    fn what_was_read_of_an_item_before_it_turned_out_not_to_be_plain_is_not_there_twice() {
        let rows = read(&[
            r#"{"likes":1,"title":"x","score":null,"id":1}"#,
            r#"{"likes":2,"title":"y","score":0.5,"id":2,"more":"\n"}"#,
            r#"{"likes":3,"title":"z","score":1.5,"id":3}"#,
        ]);
        let rows = rows.expect("they can be read");
        let values = |name: &str| (0..3).map(|row| rows.get(row, name)).collect::<Vec<_>>();
        assert_eq!(rows.ids().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(values("likes"), [1, 2, 3].map(|likes| Some(Scalar::Int(likes))));
        assert_eq!(values("title"), ["x", "y", "z"].map(|title| Some(title.into())));
        assert_eq!(values("score"), [None, Some(0.5), Some(1.5)].map(|score| Some(score.into())));
        assert_eq!(values("more"), [None, Some("\n"), None].map(|more| Some(more.into())));
    }

    #[test]
    fn an_item_that_cannot_be_read_is_told_with_its_reason() {
        for (item, why) in [
            (r#"{"id":1,"id":2}"#, "`id` is given twice"),
            (r#"{"id":1,"a":1,"a":2}"#, "a field is given twice"),
            (r#"{"a":1}"#, "it has no `id`"),
            (r#"{"id":"x"}"#, "invalid type"),
            ("true", "invalid type"),
            ("7 8", "trailing characters"),
        ] {
            let error = read(&[item]).expect_err(item);
            assert!(error.contains(why), "{item}: {error}");
        }
        let misfit = read(&[r#"{"id":1,"a":1}"#, r#"{"id":2,"a":"x"}"#]).expect_err("not of one kind");
        assert!(misfit.contains("column \"a\""), "{misfit}");
    }
}
