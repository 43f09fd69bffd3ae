//! What an expression gives, for all rows at once.

use std::{borrow::Cow, sync::Arc};

use crate::rows::{Column, Data, Kind, Nulls, Scalar, Texts, pick};

/// A value for each row.
pub(super) struct Lane<'a> {
    pub(super) values: Values<'a>,
    /// Which of them are null: one mark for each row; none if none is. What lies in the values there means nothing.
    pub(super) nulls: Option<Cow<'a, [bool]>>,
}

pub(super) enum Values<'a> {
    /// Null for each row.
    Null,
    Bool(Arg<'a, bool>),
    Int(Arg<'a, i64>),
    Float(Arg<'a, f64>),
    Text(Strings<'a>),
}

/// One value for all rows, or one for each.
pub(super) enum Arg<'a, T: Clone> {
    One(T),
    Many(Cow<'a, [T]>),
}

/// The same for strings.
pub(super) enum Strings<'a> {
    One(Arc<str>),
    Many {
        words: &'a Arc<Vec<Arc<str>>>,
        codes: Cow<'a, [u32]>,
    },
    /// A string for each row, null or not.
    Own(Vec<Arc<str>>),
}

impl<'a> Lane<'a> {
    pub(super) fn constant(value: &Scalar) -> Self {
        let values = match value {
            Scalar::Null => Values::Null,
            Scalar::Bool(value) => Values::Bool(Arg::One(*value)),
            Scalar::Int(value) => Values::Int(Arg::One(*value)),
            Scalar::Float(value) => Values::Float(Arg::One(*value)),
            Scalar::Text(value) => Values::Text(Strings::One(value.clone())),
        };
        Self { values, nulls: None }
    }

    /// The selected values of a column; all, if there is no selection.
    pub(super) fn column(column: &'a Column, selection: Option<&[u32]>) -> Self {
        let values = match column.data() {
            Data::Null(_) => Values::Null,
            Data::Bool(values) => Values::Bool(Arg::selected(values, selection)),
            Data::Int(values) => Values::Int(Arg::selected(values, selection)),
            Data::Float(values) => Values::Float(Arg::selected(values, selection)),
            Data::Text(texts) => {
                Values::Text(Strings::Many { words: &texts.words, codes: selected(&texts.codes, selection) })
            }
        };
        Self { values, nulls: column.null_marks().map(|marks| selected(marks, selection)) }
    }

    pub(super) fn ints(values: &'a [i64], selection: Option<&[u32]>) -> Self {
        Self { values: Values::Int(Arg::selected(values, selection)), nulls: None }
    }

    pub(super) const fn kind(&self) -> Kind {
        match self.values {
            Values::Null => Kind::Null,
            Values::Bool(_) => Kind::Bool,
            Values::Int(_) => Kind::Int,
            Values::Float(_) => Kind::Float,
            Values::Text(_) => Kind::Text,
        }
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        matches!(self.values, Values::Null) || self.nulls.as_ref().is_some_and(|nulls| nulls[row])
    }

    /// A column of so many rows.
    pub(super) fn into_column(self, rows: usize) -> Column {
        let nulls: Nulls = self.nulls.map(Cow::into_owned);
        let data = match self.values {
            Values::Null => Data::Null(rows),
            Values::Bool(arg) => Data::Bool(arg.into_vec(rows)),
            Values::Int(arg) => Data::Int(arg.into_vec(rows)),
            Values::Float(arg) => Data::Float(arg.into_vec(rows)),
            Values::Text(Strings::One(text)) => {
                Data::Text(Texts { words: Arc::new(vec![text]), codes: vec![0; rows] })
            }
            Values::Text(Strings::Many { words, codes }) => {
                Data::Text(Texts { words: words.clone(), codes: codes.into_owned() })
            }
            Values::Text(Strings::Own(words)) => {
                let codes = (0..words.len() as u32).collect();
                Data::Text(Texts { words: Arc::new(words), codes })
            }
        };
        Column::new(data, nulls)
    }
}

impl<'a, T: Copy> Arg<'a, T> {
    fn selected(values: &'a [T], selection: Option<&[u32]>) -> Self {
        Self::Many(selected(values, selection))
    }

    pub(super) fn at(&self, row: usize) -> T {
        match self {
            Self::One(value) => *value,
            Self::Many(values) => values[row],
        }
    }

    pub(super) fn into_vec(self, rows: usize) -> Vec<T> {
        match self {
            Self::One(value) => vec![value; rows],
            Self::Many(values) => values.into_owned(),
        }
    }

    pub(super) fn map<U: Copy>(&self, f: impl Fn(T) -> U) -> Arg<'static, U> {
        match self {
            Self::One(value) => Arg::One(f(*value)),
            Self::Many(values) => Arg::Many(values.iter().map(|value| f(*value)).collect()),
        }
    }

    /// What `f` makes of each pair. Each form has a loop of its own, without a decision in it.
    pub(super) fn zip<U: Copy>(&self, other: &Arg<'_, T>, mut f: impl FnMut(T, T) -> U) -> Arg<'static, U> {
        match (self, other) {
            (Self::One(a), Arg::One(b)) => Arg::One(f(*a, *b)),
            (Self::Many(a), Arg::One(b)) => Arg::Many(a.iter().map(|a| f(*a, *b)).collect()),
            (Self::One(a), Arg::Many(b)) => Arg::Many(b.iter().map(|b| f(*a, *b)).collect()),
            (Self::Many(a), Arg::Many(b)) => {
                Arg::Many(a.iter().zip(b.iter()).map(|(a, b)| f(*a, *b)).collect())
            }
        }
    }
}

impl Strings<'_> {
    /// Of a column that is null there, the string may be any.
    pub(super) fn at(&self, row: usize) -> &str {
        self.shared(row).map_or("", |text| &**text)
    }

    pub(super) fn shared(&self, row: usize) -> Option<&Arc<str>> {
        match self {
            Self::One(text) => Some(text),
            // A column of nulls has no words.
            Self::Many { words, codes } => words.get(codes[row] as usize),
            Self::Own(words) => words.get(row),
        }
    }

    /// What `f` says of each string: asked once for each word where words are fewer than rows.
    pub(super) fn test(&self, f: impl Fn(&str) -> bool) -> Arg<'static, bool> {
        match self {
            Self::One(text) => Arg::One(f(text)),
            Self::Many { words, codes } if words.len() < codes.len() => {
                let said: Vec<bool> = words.iter().map(|word| f(word)).collect();
                Arg::Many(
                    codes.iter().map(|code| said.get(*code as usize).copied().unwrap_or(false)).collect(),
                )
            }
            Self::Many { codes, .. } => Arg::Many((0..codes.len()).map(|row| f(self.at(row))).collect()),
            Self::Own(words) => Arg::Many(words.iter().map(|word| f(word)).collect()),
        }
    }
}

fn selected<'a, T: Copy>(values: &'a [T], selection: Option<&[u32]>) -> Cow<'a, [T]> {
    selection.map_or(Cow::Borrowed(values), |selection| Cow::Owned(pick(values, selection)))
}
