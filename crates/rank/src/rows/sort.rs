//! Rows in the order of a column.

use std::cmp::Ordering;

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
        self.top(by, order, usize::MAX)
    }

    /// The first `count` rows in the order of a column, as [`sort`](Self::sort) and [`take`](Self::take) would give
    /// them. What is not kept is not sorted.
    ///
    /// # Errors
    /// As for [`sort`](Self::sort).
    pub fn top(&self, by: &str, order: Order, count: usize) -> Result<Self, UnknownColumn> {
        if self.is_empty() {
            return Ok(self.clone());
        }
        let places: Vec<u32> = match self.selection() {
            Some(selection) => selection.to_vec(),
            None => (0..self.table_ids().len() as u32).collect(),
        };
        if by == ID {
            let ids = self.table_ids();
            return Ok(self.select(by_key(places, order, count, |at| whole(ids[at]))));
        }
        let column = self.table_column(by)?;
        let (valued, nulls): (Vec<u32>, Vec<u32>) = match column.null_marks() {
            Some(marks) => places.into_iter().partition(|at| !marks[*at as usize]),
            None => (places, Vec::new()),
        };
        let mut sorted = by_column(column, valued, order, count);
        sorted.extend(nulls.into_iter().take(count - sorted.len()));
        Ok(self.select(sorted))
    }
}

/// The first `count` of the places.
fn by_column(column: &Column, mut places: Vec<u32>, order: Order, count: usize) -> Vec<u32> {
    match column.data() {
        Data::Null(_) => {
            places.truncate(count);
            places
        }
        Data::Bool(values) => by_key(places, order, count, |at| u64::from(values[at])),
        Data::Int(values) => by_key(places, order, count, |at| whole(values[at])),
        Data::Float(values) => by_key(places, order, count, |at| number(values[at])),
        Data::Text(texts) => by_text(places, order, count, texts),
    }
}

/// Sorts by keys that are computed once. Those that are alike are told apart by where they were, so that no memory is
/// needed to keep their order.
fn by_key(places: Vec<u32>, order: Order, count: usize, key: impl Fn(usize) -> u64) -> Vec<u32> {
    let flip = if order == Order::Descending { u64::MAX } else { 0 };
    // Both in one number, which is compared faster than a pair.
    let mut keys: Vec<u128> =
        (0..).zip(&places).map(|(nth, at)| u128::from(key(*at as usize) ^ flip) << u32::BITS | nth).collect();
    sort_first(&mut keys, count, Ord::cmp);
    keys.into_iter().map(|key| places[key as u32 as usize]).collect()
}

fn by_text(places: Vec<u32>, order: Order, count: usize, texts: &Texts) -> Vec<u32> {
    let words: Vec<&str> =
        pick(&texts.codes, &places).into_iter().map(|code| &*texts.words[code as usize]).collect();
    let mut sorted: Vec<u32> = (0..places.len() as u32).collect();
    sort_first(&mut sorted, count, |a, b| {
        let ordering = words[*a as usize].cmp(words[*b as usize]);
        let ordering = if order == Order::Descending { ordering.reverse() } else { ordering };
        ordering.then(a.cmp(b))
    });
    pick(&places, &sorted)
}

/// Keeps the first `count` of what no two are alike in, in order.
fn sort_first<T>(all: &mut Vec<T>, count: usize, compare: impl Fn(&T, &T) -> Ordering) {
    if count < all.len() {
        all.select_nth_unstable_by(count, &compare);
        all.truncate(count);
    }
    all.sort_unstable_by(compare);
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
