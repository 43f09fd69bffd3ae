//! A column: values of one kind, some of which may be null.

use std::{fmt, sync::Arc};

use super::scalar::{Kind, Scalar};

/// Values of one kind, one for each row, some of which may be null. A clone is another handle to the same values.
#[derive(Clone)]
pub struct Column(Arc<Body>);

pub(crate) struct Body {
    pub(crate) data: Data,
    /// As many as there are values; none if no value is null. What lies in the data where a null is means nothing.
    pub(crate) nulls: Nulls,
}

/// Which values are null: a byte for each, because that is as fast to combine as it is to look at.
pub(crate) type Nulls = Option<Vec<bool>>;

pub(crate) enum Data {
    /// So many nulls.
    Null(usize),
    Bool(Vec<bool>),
    Int(Vec<i64>),
    Float(Vec<f64>),
    Text(Texts),
}

/// Strings, by their numbers in a list: rows that are copied leave the strings where they are, and columns of one
/// source share the list.
#[derive(Clone)]
pub(crate) struct Texts {
    pub(crate) words: Arc<Vec<Arc<str>>>,
    /// Each less than there are words. Where a null is as well, unless there are no words.
    pub(crate) codes: Vec<u32>,
}

impl Column {
    pub(crate) fn new(data: Data, nulls: Nulls) -> Self {
        debug_assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() == data.len()), "one for each value");
        Self(Arc::new(Body { data, nulls }))
    }

    /// A column of whole numbers.
    #[must_use]
    pub fn ints(values: Vec<i64>) -> Self {
        Self::new(Data::Int(values), None)
    }

    /// A column of numbers. Those that are not finite are written as null in JSON.
    #[must_use]
    pub fn floats(values: Vec<f64>) -> Self {
        Self::new(Data::Float(values), None)
    }

    /// A column of truths.
    #[must_use]
    pub fn bools(values: Vec<bool>) -> Self {
        Self::new(Data::Bool(values), None)
    }

    /// A column of strings.
    #[must_use]
    pub fn texts<T: Into<Arc<str>>>(values: impl IntoIterator<Item = T>) -> Self {
        let words: Vec<Arc<str>> = values.into_iter().map(Into::into).collect();
        let codes = (0..words.len() as u32).collect();
        Self::new(Data::Text(Texts { words: Arc::new(words), codes }), None)
    }

    /// So many nulls, of a kind.
    #[must_use]
    pub fn nulls(kind: Kind, len: usize) -> Self {
        let data = match kind {
            Kind::Null => return Self::new(Data::Null(len), None),
            Kind::Bool => Data::Bool(vec![false; len]),
            Kind::Int => Data::Int(vec![0; len]),
            Kind::Float => Data::Float(vec![0.0; len]),
            Kind::Text => Data::Text(Texts { words: Arc::default(), codes: vec![0; len] }),
        };
        Self::new(data, (len > 0).then(|| vec![true; len]))
    }

    /// How many values it has, nulls included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.data.len()
    }

    /// Whether it has no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it holds.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.0.data {
            Data::Null(_) => Kind::Null,
            Data::Bool(_) => Kind::Bool,
            Data::Int(_) => Kind::Int,
            Data::Float(_) => Kind::Float,
            Data::Text(_) => Kind::Text,
        }
    }

    /// The value there. None if there are not so many.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<Scalar> {
        if at >= self.len() {
            return None;
        }
        if self.is_null(at) {
            return Some(Scalar::Null);
        }
        Some(match &self.0.data {
            Data::Null(_) => Scalar::Null,
            Data::Bool(values) => Scalar::Bool(values[at]),
            Data::Int(values) => Scalar::Int(values[at]),
            Data::Float(values) => Scalar::Float(values[at]),
            Data::Text(texts) => Scalar::Text(texts.words[texts.codes[at] as usize].clone()),
        })
    }

    pub(crate) fn data(&self) -> &Data {
        &self.0.data
    }

    pub(crate) fn null_marks(&self) -> Option<&[bool]> {
        self.0.nulls.as_deref()
    }

    pub(crate) fn is_null(&self, at: usize) -> bool {
        self.0.nulls.as_ref().is_some_and(|nulls| nulls[at])
    }

    /// The values there, in this order.
    pub(crate) fn gather(&self, at: &[u32]) -> Self {
        let data = match &self.0.data {
            Data::Null(_) => Data::Null(at.len()),
            Data::Bool(values) => Data::Bool(pick(values, at)),
            Data::Int(values) => Data::Int(pick(values, at)),
            Data::Float(values) => Data::Float(pick(values, at)),
            Data::Text(Texts { words, codes }) => {
                Data::Text(Texts { words: words.clone(), codes: pick(codes, at) })
            }
        };
        Self::new(data, self.0.nulls.as_ref().map(|nulls| pick(nulls, at)))
    }

    /// The same as a column of this kind, if its own goes into that.
    pub(crate) fn widened(&self, kind: Kind) -> Option<Self> {
        match (&self.0.data, kind) {
            _ if self.kind() == kind => Some(self.clone()),
            (Data::Null(len), kind) => Some(Self::nulls(kind, *len)),
            (Data::Int(values), Kind::Float) => {
                let values = values.iter().map(|value| *value as f64).collect();
                Some(Self::new(Data::Float(values), self.0.nulls.clone()))
            }
            _ => None,
        }
    }
}

impl Data {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Null(len) => *len,
            Self::Bool(values) => values.len(),
            Self::Int(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Text(texts) => texts.codes.len(),
        }
    }
}

/// The values at these places.
pub(crate) fn pick<T: Copy>(values: &[T], at: &[u32]) -> Vec<T> {
    at.iter().map(|at| values[*at as usize]).collect()
}

/// The same values, whatever they lie in.
impl PartialEq for Column {
    fn eq(&self, other: &Self) -> bool {
        let mut places = 0..self.len();
        self.kind() == other.kind()
            && self.len() == other.len()
            && places.all(|at| self.get(at) == other.get(at))
    }
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind())?;
        f.debug_list().entries((0..self.len()).filter_map(|at| self.get(at))).finish()
    }
}
