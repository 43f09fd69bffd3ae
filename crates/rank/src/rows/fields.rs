//! Columns that are declared before there are rows.

use std::sync::Arc;

use super::{Column, Kind, Rows, ShapeError};

/// The columns that a source is told to give, in order. If none is declared it gives what it finds.
///
/// ```
/// use ebbtide_rank::{Fields, Kind};
///
/// let fields = Fields::default().field("age", Kind::Int).field("country", Kind::Text);
/// assert_eq!(fields.iter().count(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(Arc<str>, Kind)>);

impl Fields {
    /// The same, with one more. One that is declared twice is of the kind that was said last.
    #[must_use]
    pub fn field(mut self, name: impl Into<Arc<str>>, kind: Kind) -> Self {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = kind,
            None => self.0.push((name, kind)),
        }
        self
    }

    /// Whether none is declared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each, with its kind.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, Kind)> {
        self.0.iter().map(|(name, kind)| (name, *kind))
    }
}

impl Rows {
    /// The same rows, with exactly the columns that are declared; if none is, with all that they have. Columns that
    /// are not there are null.
    ///
    /// # Errors
    /// If a column holds something else than was declared. Whole numbers are numbers, too.
    pub fn project(self, fields: &Fields) -> Result<Self, ShapeError> {
        // As it is, it can be joined with others of the same table.
        if fields.is_empty() || self.columns().eq(fields.iter()) {
            return Ok(self);
        }
        let len = self.table.ids.len();
        let mut columns = Vec::with_capacity(fields.0.len());
        for (name, kind) in &fields.0 {
            let column = match self.table_column(name) {
                Err(_) => Column::nulls(*kind, len),
                Ok(column) => column.widened(*kind).ok_or_else(|| ShapeError::Undeclared {
                    column: name.clone(),
                    declared: *kind,
                    found: column.kind(),
                })?,
            };
            columns.push((name.clone(), column));
        }
        let table = super::Table { ids: self.table.ids.clone(), columns };
        Ok(Self { table: table.into(), selection: self.selection })
    }
}
