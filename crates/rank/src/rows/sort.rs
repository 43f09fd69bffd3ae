//! Rows in the order of a column.

use super::{
    Column, Data, ID, Rows,
    column::{Texts, pick},
};
use crate::expr::UnknownColumn;

/// Which way rows are sorted. Nulls are last either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The least first.
    #[default]
    Ascending,
    /// The greatest first.
    Descending,
}

impl Rows {
    /// The rows in the order of a column, or of their ids, which is `id`. Those that are alike keep their order, and
    /// those without a value are last.
    ///
    /// # Errors
    /// If there is no such column. A set without rows is sorted whatever columns it has.
    pub fn sort(&self, by: &str, order: Order) -> Result<Self, UnknownColumn> {
        if self.is_empty() {
            return Ok(self.clone());
        }
        let places: Vec<u32> = match self.selection() {
            Some(selection) => selection.to_vec(),
            None => (0..self.table_ids().len() as u32).collect(),
        };
        if by == ID {
            let ids = self.table_ids();
            return Ok(self.select(by_key(places, order, |at| whole(ids[at]))));
        }
        let column = self.table_column(by)?;
        let (valued, nulls): (Vec<u32>, Vec<u32>) = match column.null_marks() {
            Some(marks) => places.into_iter().partition(|at| !marks[*at as usize]),
            None => (places, Vec::new()),
        };
        let mut sorted = by_column(column, valued, order);
        sorted.extend(nulls);
        Ok(self.select(sorted))
    }
}

fn by_column(column: &Column, places: Vec<u32>, order: Order) -> Vec<u32> {
    match column.data() {
        Data::Null(_) => places,
        Data::Bool(values) => by_key(places, order, |at| u64::from(values[at])),
        Data::Int(values) => by_key(places, order, |at| whole(values[at])),
        Data::Float(values) => by_key(places, order, |at| number(values[at])),
        Data::Text(texts) => by_text(places, order, texts),
    }
}

/// Sorts by keys that are computed once. Those that are alike are told apart by where they were, so that no memory is
/// needed to keep their order.
fn by_key(places: Vec<u32>, order: Order, key: impl Fn(usize) -> u64) -> Vec<u32> {
    let flip = if order == Order::Descending { u64::MAX } else { 0 };
    let mut keys: Vec<(u64, u32)> =
        (0..).zip(&places).map(|(nth, at)| (key(*at as usize) ^ flip, nth)).collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, nth)| places[nth as usize]).collect()
}

fn by_text(places: Vec<u32>, order: Order, texts: &Texts) -> Vec<u32> {
    let words: Vec<&str> =
        pick(&texts.codes, &places).into_iter().map(|code| &*texts.words[code as usize]).collect();
    let mut sorted: Vec<u32> = (0..places.len() as u32).collect();
    sorted.sort_by(|a, b| {
        let ordering = words[*a as usize].cmp(words[*b as usize]);
        if order == Order::Descending { ordering.reverse() } else { ordering }
    });
    pick(&places, &sorted)
}

const SIGN: u64 = 1 << 63;

/// In the order of the number.
const fn whole(value: i64) -> u64 {
    value.cast_unsigned() ^ SIGN
}

/// In the order of the number; both zeros are alike.
fn number(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}
