//! Columns that are filled value by value, whose kinds turn out on the way.

use std::{collections::HashMap, fmt, sync::Arc};

use super::{
    Fields, ID, Rows,
    column::{Column, Data, Nulls, Texts},
    scalar::{Kind, Scalar},
};
use crate::plain::Plain;

/// A value that does not go into its column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// What the column holds.
    pub column: Kind,
    /// What the value is.
    pub value: Kind,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value is {}, and the column is {}", self.value, self.column)
    }
}

impl std::error::Error for Misfit {}

impl Column {
    /// A column of these values, some of which may be null. Whole numbers become numbers if others are not whole.
    ///
    /// # Errors
    /// If they are of several kinds.
    pub fn collect<V: Into<Scalar>>(values: impl IntoIterator<Item = V>) -> Result<Self, Misfit> {
        let mut column = ColumnBuilder::new(Kind::Null);
        values.into_iter().try_for_each(|value| column.push(&value.into()))?;
        Ok(column.build())
    }
}

/// A column that is filled. It is of the kind of its first value; whole numbers become numbers when one comes that is
/// not whole.
pub(crate) struct ColumnBuilder {
    data: Data,
    /// Empty as long as there is no null.
    nulls: Vec<bool>,
    words: Vec<Arc<str>>,
    /// Where each word is, if each is to be there once. That takes time, for what is read often.
    known: Option<HashMap<Arc<str>, u32>>,
    /// If not, where some of those are that came last, by what they look like [at a glance](glance): what repeats is
    /// mostly found there. Empty as long as there are none.
    recent: Vec<u32>,
}

/// How many strings are remembered.
const RECENT: usize = 64;

/// A number less than [`RECENT`], mostly different for strings that are.
fn glance(text: &str) -> usize {
    let byte = |at: usize| text.as_bytes().get(at).map_or(0, |byte| usize::from(*byte));
    let (first, last, middle) = (byte(0), byte(text.len().wrapping_sub(1)), byte(text.len() / 2));
    (text.len() + first * 3 + last * 7 + middle * 13) % RECENT
}

impl ColumnBuilder {
    pub(crate) fn new(kind: Kind) -> Self {
        let data = match kind {
            Kind::Null => Data::Null(0),
            Kind::Bool => Data::Bool(Vec::new()),
            Kind::Int => Data::Int(Vec::new()),
            Kind::Float => Data::Float(Vec::new()),
            Kind::Text => Data::Text(Texts { words: Arc::default(), codes: Vec::new() }),
        };
        Self { data, nulls: Vec::new(), words: Vec::new(), known: None, recent: Vec::new() }
    }

    /// The same, with each string there once.
    fn interning(mut self) -> Self {
        self.known = Some(HashMap::new());
        self
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.data {
            Data::Null(_) => Kind::Null,
            Data::Bool(_) => Kind::Bool,
            Data::Int(_) => Kind::Int,
            Data::Float(_) => Kind::Float,
            Data::Text(_) => Kind::Text,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.data.len()
    }

    pub(crate) fn push_null(&mut self) {
        if let Data::Null(len) = &mut self.data {
            *len += 1;
            return;
        }
        self.nulls.resize(self.data.len(), false);
        self.nulls.push(true);
        match &mut self.data {
            Data::Null(_) => {}
            Data::Bool(values) => values.push(false),
            Data::Int(values) => values.push(0),
            Data::Float(values) => values.push(0.0),
            Data::Text(texts) => texts.codes.push(0),
        }
    }

    pub(crate) fn push_bool(&mut self, value: bool) -> Result<(), Misfit> {
        self.become_kind(Kind::Bool);
        let Data::Bool(values) = &mut self.data else { return Err(self.misfit(Kind::Bool)) };
        values.push(value);
        self.mark_value();
        Ok(())
    }

    #[inline]
    pub(crate) fn push_int(&mut self, value: i64) -> Result<(), Misfit> {
        self.become_kind(Kind::Int);
        match &mut self.data {
            Data::Int(values) => values.push(value),
            Data::Float(values) => values.push(value as f64),
            _ => return Err(self.misfit(Kind::Int)),
        }
        self.mark_value();
        Ok(())
    }

    #[inline]
    pub(crate) fn push_float(&mut self, value: f64) -> Result<(), Misfit> {
        self.become_kind(Kind::Float);
        if let Data::Int(values) = &self.data {
            self.data = Data::Float(values.iter().map(|value| *value as f64).collect());
        }
        let Data::Float(values) = &mut self.data else { return Err(self.misfit(Kind::Float)) };
        values.push(value);
        self.mark_value();
        Ok(())
    }

    #[inline]
    pub(crate) fn push_text(&mut self, value: &str) -> Result<(), Misfit> {
        self.become_kind(Kind::Text);
        let Data::Text(texts) = &mut self.data else { return Err(self.misfit(Kind::Text)) };
        let code = match &mut self.known {
            Some(known) => match known.get(value) {
                Some(code) => *code,
                None => {
                    let (word, code) = (Arc::<str>::from(value), self.words.len() as u32);
                    self.words.push(word.clone());
                    known.insert(word, code);
                    code
                }
            },
            None => {
                self.recent.resize(RECENT, u32::MAX);
                let recent = &mut self.recent[glance(value)];
                if self.words.get(*recent as usize).is_none_or(|word| **word != *value) {
                    *recent = self.words.len() as u32;
                    self.words.push(value.into());
                }
                *recent
            }
        };
        texts.codes.push(code);
        self.mark_value();
        Ok(())
    }

    pub(crate) fn push(&mut self, value: &Scalar) -> Result<(), Misfit> {
        match value {
            Scalar::Null => {
                self.push_null();
                Ok(())
            }
            Scalar::Bool(value) => self.push_bool(*value),
            Scalar::Int(value) => self.push_int(*value),
            Scalar::Float(value) => self.push_float(*value),
            Scalar::Text(value) => self.push_text(value),
        }
    }

    #[inline]
    pub(crate) fn push_plain(&mut self, value: &Plain<'_>) -> Result<(), Misfit> {
        match value {
            Plain::Null => {
                self.push_null();
                Ok(())
            }
            Plain::Bool(value) => self.push_bool(*value),
            Plain::Int(value) => self.push_int(*value),
            Plain::Float(value) => self.push_float(*value),
            Plain::Text(value) => self.push_text(value),
        }
    }

    /// Makes room for so many more values.
    fn reserve(&mut self, values: usize) {
        match &mut self.data {
            Data::Null(_) => {}
            Data::Bool(all) => all.reserve(values),
            Data::Int(all) => all.reserve(values),
            Data::Float(all) => all.reserve(values),
            Data::Text(all) => all.codes.reserve(values),
        }
    }

    /// Only the first `len` values.
    fn truncate(&mut self, len: usize) {
        self.nulls.truncate(len);
        match &mut self.data {
            Data::Null(count) => *count = len.min(*count),
            Data::Bool(values) => values.truncate(len),
            Data::Int(values) => values.truncate(len),
            Data::Float(values) => values.truncate(len),
            Data::Text(texts) => texts.codes.truncate(len),
        }
    }

    /// Nulls up to this length.
    #[inline]
    pub(crate) fn pad(&mut self, len: usize) {
        while self.len() < len {
            self.push_null();
        }
    }

    pub(crate) fn build(self) -> Column {
        let Self { mut data, nulls, words, known: _, recent: _ } = self;
        if let Data::Text(texts) = &mut data {
            texts.words = Arc::new(words);
        }
        let nulls: Nulls = (!nulls.is_empty()).then_some(nulls);
        Column::new(data, nulls)
    }

    /// A column of nothing but nulls takes any kind.
    #[inline]
    fn become_kind(&mut self, kind: Kind) {
        if let Data::Null(len) = self.data {
            self.begin(kind, len);
        }
    }

    #[cold]
    fn begin(&mut self, kind: Kind, nulls: usize) {
        let known = self.known.take();
        *self = Self { known, ..Self::new(kind) };
        self.pad(nulls);
    }

    /// The last value is not null.
    #[inline]
    fn mark_value(&mut self) {
        if !self.nulls.is_empty() {
            self.nulls.push(false);
        }
    }

    fn misfit(&self, value: Kind) -> Misfit {
        Misfit { column: self.kind(), value }
    }
}

/// Rows that are filled one by one, field by field. What a row does not say is null.
pub(crate) struct RowsBuilder {
    ids: Vec<i64>,
    columns: Vec<(Arc<str>, ColumnBuilder)>,
    /// Other columns than the declared ones are left out.
    is_closed: bool,
    /// Each string is kept once.
    is_interning: bool,
    /// Where the last field went: the next one probably goes beside it.
    last: usize,
}

/// Where a field goes.
#[derive(Clone, Copy)]
pub(crate) enum Slot {
    Id,
    /// The column of this number.
    Column(usize),
    /// It is left out.
    Nowhere,
    /// The row has a value there already.
    Taken,
}

impl RowsBuilder {
    /// With the columns that are declared; with any, if none is.
    pub(crate) fn new(fields: &Fields) -> Self {
        let columns: Vec<_> =
            fields.iter().map(|(name, kind)| (name.clone(), ColumnBuilder::new(kind))).collect();
        Self { ids: Vec::new(), is_closed: !columns.is_empty(), columns, is_interning: false, last: 0 }
    }

    /// With any columns, and each string once in each.
    pub(crate) fn interning() -> Self {
        Self { is_interning: true, ..Self::new(&Fields::default()) }
    }

    /// Makes room for so many more rows in the columns that are declared.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.ids.reserve(rows);
        self.columns.iter_mut().for_each(|(_, column)| column.reserve(rows));
    }

    /// How many rows are complete.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Where a field of the row that is being filled goes.
    pub(crate) fn slot(&mut self, name: &str) -> Slot {
        if name == ID {
            return Slot::Id;
        }
        let at = match self.position(name) {
            Some(at) => at,
            None if self.is_closed => return Slot::Nowhere,
            None => {
                let column = ColumnBuilder::new(Kind::Null);
                let column = if self.is_interning { column.interning() } else { column };
                self.columns.push((name.into(), column));
                self.columns.len() - 1
            }
        };
        self.last = at;
        let column = &mut self.columns[at].1;
        column.pad(self.ids.len());
        if column.len() == self.ids.len() { Slot::Column(at) } else { Slot::Taken }
    }

    /// The column of a slot, with its name.
    pub(crate) fn column(&mut self, at: usize) -> (&Arc<str>, &mut ColumnBuilder) {
        let (name, column) = &mut self.columns[at];
        (name, column)
    }

    /// The same column, for a value of the row that is being filled, if there is none yet.
    #[inline]
    pub(crate) fn next_in(&mut self, at: usize) -> &mut ColumnBuilder {
        let column = &mut self.columns[at].1;
        column.pad(self.ids.len());
        column
    }

    /// Completes a row.
    #[inline]
    pub(crate) fn row(&mut self, id: i64) {
        self.ids.push(id);
    }

    /// Takes back what there is of a row that is not complete.
    pub(crate) fn give_up_row(&mut self) {
        for (_, column) in &mut self.columns {
            column.truncate(self.ids.len());
        }
    }

    pub(crate) fn build(self) -> Rows {
        let Self { ids, columns, .. } = self;
        let columns = columns.into_iter().map(|(name, mut column)| {
            column.pad(ids.len());
            (name, column.build())
        });
        Rows::from_parts(columns.collect(), ids)
    }

    fn position(&self, name: &str) -> Option<usize> {
        let is_it = |at: &usize| self.columns.get(*at).is_some_and(|(known, _)| **known == *name);
        Some(self.last + 1).filter(is_it).or_else(|| (0..self.columns.len()).find(is_it))
    }
}
