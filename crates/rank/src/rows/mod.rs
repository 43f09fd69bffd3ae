//! Rows, in columns.

mod builder;
mod column;
mod concat;
mod fields;
mod json;
mod scalar;
mod sort;

use std::{fmt, sync::Arc};

pub use self::{
    builder::Misfit,
    column::Column,
    fields::Fields,
    scalar::{Kind, Scalar},
    sort::Order,
};
pub(crate) use self::{
    builder::{ColumnBuilder, RowsBuilder, Slot},
    column::{Data, Nulls, Texts, pick},
};
use crate::{
    expr::{EvalError, Expr, Pred, UnknownColumn},
    request::Vars,
};

/// So many rows there may be in one set: they are counted with 32 bits.
pub const ROWS_MAX: usize = u32::MAX as usize;

/// The name by which expressions and sorts know the ids. No column has it.
pub const ID: &str = "id";

/// A set of rows: an id for each, and columns with names, in an order.
///
/// Columns are shared: what an operation does not change it does not copy. Filtering, sorting and taking copy nothing
/// at all, they select.
///
/// ```
/// use ebbtide_rank::{Column, Order, Rows, Vars};
///
/// let rows = Rows::new(vec![1, 2, 3])?
///     .with("country", Column::texts(["US", "DE", "US"]))?
///     .with("likes", Column::ints(vec![5, 70, 9]))?;
/// let vars = Vars::default();
/// let best = rows
///     .filter(&"country == 'US'".parse()?, &vars)?
///     .compute("score", &"likes * 0.5".parse()?, &vars)?
///     .sort("score", Order::Descending)?
///     .take(1);
/// assert_eq!(
///     best.to_json("r1"),
///     r#"{"request_id":"r1","candidates":[{"id":3,"fields":{"country":"US","likes":9,"score":4.5}}]}"#,
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Rows {
    table: Arc<Table>,
    /// The rows of the table that are meant, in this order; all, if none.
    selection: Option<Vec<u32>>,
}

/// Ids and columns, all of one length.
#[derive(Default)]
struct Table {
    ids: Arc<Vec<i64>>,
    /// Few, so they are found by looking at each.
    columns: Vec<(Arc<str>, Column)>,
}

/// Columns that do not make up a set of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeError {
    /// A column is longer or shorter than there are rows.
    Length {
        /// Its name.
        column: Arc<str>,
        /// How long it is.
        len: usize,
        /// How many rows there are.
        rows: usize,
    },
    /// There is a column of this name already, or it is `id`, which is none.
    Taken {
        /// The name.
        column: Arc<str>,
    },
    /// Columns of one name hold what does not go into one column.
    Clash {
        /// The name.
        column: Arc<str>,
        /// What they hold.
        kinds: [Kind; 2],
    },
    /// A column holds something else than was declared.
    Undeclared {
        /// The name.
        column: Arc<str>,
        /// What it was to hold.
        declared: Kind,
        /// What it holds.
        found: Kind,
    },
    /// More rows than [`ROWS_MAX`].
    TooMany {
        /// How many.
        rows: usize,
    },
}

impl Rows {
    /// Rows with these ids, and no columns yet.
    ///
    /// # Errors
    /// If there are more than [`ROWS_MAX`].
    pub fn new(ids: Vec<i64>) -> Result<Self, ShapeError> {
        if ids.len() > ROWS_MAX {
            return Err(ShapeError::TooMany { rows: ids.len() });
        }
        Ok(Self::from_parts(Vec::new(), ids))
    }

    /// Columns that are as long as there are ids.
    fn from_parts(columns: Vec<(Arc<str>, Column)>, ids: Vec<i64>) -> Self {
        debug_assert!(columns.iter().all(|(_, column)| column.len() == ids.len()), "a value for each row");
        Self { table: Arc::new(Table { ids: Arc::new(ids), columns }), selection: None }
    }

    /// The same, with one more column, behind the others.
    ///
    /// # Errors
    /// If it is not as long as there are rows, or if there is one of this name.
    pub fn with(self, name: impl Into<Arc<str>>, column: Column) -> Result<Self, ShapeError> {
        let name = name.into();
        if column.len() != self.len() {
            return Err(ShapeError::Length { column: name, len: column.len(), rows: self.len() });
        }
        if &*name == ID || self.table.position(&name).is_some() {
            return Err(ShapeError::Taken { column: name });
        }
        let mut rows = self.compact();
        rows.own_table().columns.push((name, column));
        Ok(rows)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.selection.as_ref().map_or(self.table.ids.len(), Vec::len)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their ids, in order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = i64> {
        (0..self.len()).map(|row| self.id(row))
    }

    /// The names of the columns, and what they hold, in order.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, Kind)> {
        self.table.columns.iter().map(|(name, column)| (name, column.kind()))
    }

    /// The column of this name. None if there is none.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<Column> {
        let (_, column) = &self.table.columns[self.table.position(name)?];
        Some(self.selection.as_ref().map_or_else(|| column.clone(), |at| column.gather(at)))
    }

    /// The value of a row in a column. None if there is no such row or column.
    #[must_use]
    pub fn get(&self, row: usize, column: &str) -> Option<Scalar> {
        if row >= self.len() {
            return None;
        }
        self.table.columns[self.table.position(column)?].1.get(self.place(row))
    }

    /// The rows for which the predicate is true, in the same order.
    ///
    /// # Errors
    /// If the predicate cannot be evaluated: says for which row, or which column is not there.
    pub fn filter(&self, pred: &Pred, vars: &Vars) -> Result<Self, EvalError> {
        let mask = pred.evaluate(self, vars)?;
        // Written always, and kept if the row is: there is no branch that a processor could guess wrong.
        let (mut selection, mut kept) = (vec![0; mask.len()], 0);
        for (row, is_kept) in mask.into_iter().enumerate() {
            selection[kept] = self.place(row) as u32;
            kept += usize::from(is_kept);
        }
        selection.truncate(kept);
        Ok(self.select(selection))
    }

    /// The same rows, with what the expression gives in the column `out`. It is behind the others, or in the place of
    /// the one that had this name.
    ///
    /// # Errors
    /// If the expression cannot be evaluated: says for which row, or which column is not there.
    pub fn compute(self, out: impl Into<Arc<str>>, expr: &Expr, vars: &Vars) -> Result<Self, EvalError> {
        let out = out.into();
        if &*out == ID {
            return Err(EvalError::reserved(out));
        }
        // A selection is made a table of its own first, so that what the expression looks at is gathered once.
        let mut rows = self.compact();
        let column = expr.evaluate(&rows, vars)?;
        let table = rows.own_table();
        match table.position(&out) {
            Some(at) => table.columns[at].1 = column,
            None => table.columns.push((out, column)),
        }
        Ok(rows)
    }

    /// The first `count` rows, or all.
    #[must_use]
    pub fn take(mut self, count: usize) -> Self {
        match &mut self.selection {
            Some(selection) => selection.truncate(count),
            None if count < self.table.ids.len() => self.selection = Some((0..count as u32).collect()),
            None => {}
        }
        self
    }

    /// One row of nothing but nulls, in the columns of others.
    pub(crate) fn nulls(id: i64, like: Option<&Self>) -> Self {
        let columns = like.into_iter().flat_map(Self::columns);
        let columns = columns.map(|(name, kind)| (name.clone(), Column::nulls(kind, 1)));
        Self::from_parts(columns.collect(), vec![id])
    }

    /// Some rows of the table.
    pub(crate) fn select(&self, selection: Vec<u32>) -> Self {
        Self { table: self.table.clone(), selection: Some(selection) }
    }

    pub(crate) fn selection(&self) -> Option<&[u32]> {
        self.selection.as_deref()
    }

    /// All ids of the table, selected or not.
    pub(crate) fn table_ids(&self) -> &[i64] {
        &self.table.ids
    }

    /// The column of this name, with the values of all rows of the table, selected or not.
    pub(crate) fn table_column(&self, name: &str) -> Result<&Column, UnknownColumn> {
        match self.table.position(name) {
            Some(at) => Ok(&self.table.columns[at].1),
            None => Err(UnknownColumn::among(name, self.table.columns.iter().map(|(name, _)| name))),
        }
    }

    pub(crate) fn id(&self, row: usize) -> i64 {
        self.table.ids[self.place(row)]
    }

    /// Where a row is in the table.
    fn place(&self, row: usize) -> usize {
        self.selection.as_ref().map_or(row, |selection| selection[row] as usize)
    }

    /// The table, to be changed: one that others have, too, is copied, with room for one more column.
    fn own_table(&mut self) -> &mut Table {
        if Arc::get_mut(&mut self.table).is_none() {
            let Table { ids, columns } = &*self.table;
            let mut own = Vec::with_capacity(columns.len() + 1);
            own.extend_from_slice(columns);
            self.table = Arc::new(Table { ids: ids.clone(), columns: own });
        }
        Arc::get_mut(&mut self.table).expect("it is ours alone")
    }

    /// The same rows, in a table of their own if they are a selection.
    fn compact(self) -> Self {
        let Some(selection) = &self.selection else { return self };
        let gathered =
            self.table.columns.iter().map(|(name, column)| (name.clone(), column.gather(selection)));
        // Who wants a table of his own mostly has a column to add.
        let mut columns = Vec::with_capacity(self.table.columns.len() + 1);
        columns.extend(gathered);
        Self::from_parts(columns, pick(&self.table.ids, selection))
    }
}

impl Table {
    fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(known, _)| **known == *name)
    }
}

/// The same ids and the same columns in the same order, whatever they lie in.
impl PartialEq for Rows {
    fn eq(&self, other: &Self) -> bool {
        let names = self.columns().map(|(name, _)| name);
        self.ids().eq(other.ids())
            && self.columns().eq(other.columns())
            && names.into_iter().all(|name| self.column(name) == other.column(name))
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        map.entry(&ID, &self.ids().collect::<Vec<_>>());
        for (name, _) in self.columns() {
            map.entry(name, &self.column(name));
        }
        map.finish()
    }
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { column, len, rows } => {
                write!(f, "column \"{column}\" has {len} values for {rows} rows")
            }
            Self::Taken { column } if &**column == ID => {
                f.write_str("a column cannot be called \"id\": the ids are that")
            }
            Self::Taken { column } => write!(f, "there are two columns \"{column}\""),
            Self::Clash { column, kinds: [a, b] } => {
                write!(f, "column \"{column}\" is {a} in one input and {b} in another: rename one of them")
            }
            Self::Undeclared { column, declared, found } => {
                write!(f, "column \"{column}\" is {found}, and was declared as {declared}")
            }
            Self::TooMany { rows } => write!(f, "{rows} rows are too many: there may be {ROWS_MAX}"),
        }
    }
}

impl std::error::Error for ShapeError {}
