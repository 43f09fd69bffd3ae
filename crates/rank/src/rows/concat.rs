//! Several sets of rows, one behind the other.

use std::{borrow::Borrow, sync::Arc};

use super::{Column, Data, Kind, ROWS_MAX, Rows, ShapeError, Texts};

impl Rows {
    /// All rows of all sets, in order, with every column that one of them has; where one has it not, it is null.
    ///
    /// Sets that select from the same rows, such as two reads of one store, are joined without copying any.
    ///
    /// # Errors
    /// If columns of one name hold what does not go into one column, or if there are too many rows. Whole numbers and
    /// others become numbers.
    pub fn concat<R: Borrow<Self>>(parts: &[R]) -> Result<Self, ShapeError> {
        let len = parts.iter().map(|part| part.borrow().len()).sum();
        if len > ROWS_MAX {
            return Err(ShapeError::TooMany { rows: len });
        }
        // A set without rows has a say only in which columns there are.
        let Some(first) = parts.first().map(Borrow::borrow) else { return Ok(Self::default()) };
        if parts.iter().all(|part| Arc::ptr_eq(&part.borrow().table, &first.table)) {
            let mut selection = Vec::with_capacity(len);
            for part in parts.iter().map(Borrow::borrow) {
                match part.selection() {
                    Some(places) => selection.extend_from_slice(places),
                    None => selection.extend(0..part.table_ids().len() as u32),
                }
            }
            return Ok(first.select(selection));
        }
        let mut names: Vec<(&Arc<str>, Kind)> = Vec::new();
        for (name, kind) in parts.iter().flat_map(|part| part.borrow().columns()) {
            match names.iter_mut().find(|(known, _)| *known == name) {
                None => names.push((name, kind)),
                Some((_, known)) => {
                    let clash = ShapeError::Clash { column: name.clone(), kinds: [*known, kind] };
                    *known = known.with(kind).ok_or(clash)?;
                }
            }
        }
        let mut ids = Vec::with_capacity(len);
        for part in parts.iter().map(Borrow::borrow) {
            append(&mut ids, part.table_ids(), part.selection());
        }
        let columns = names.into_iter().map(|(name, kind)| (name.clone(), joined(parts, name, kind, len)));
        Ok(Self::from_parts(columns.collect(), ids))
    }
}

/// The columns of this name, one behind the other. All go into this kind.
fn joined<R: Borrow<Rows>>(parts: &[R], name: &str, kind: Kind, len: usize) -> Column {
    let mut nulls: Vec<bool> = Vec::new();
    let mut data = match kind {
        Kind::Null => return Column::nulls(kind, len),
        Kind::Bool => Data::Bool(Vec::with_capacity(len)),
        Kind::Int => Data::Int(Vec::with_capacity(len)),
        Kind::Float => Data::Float(Vec::with_capacity(len)),
        Kind::Text => Data::Text(Texts { words: Arc::default(), codes: Vec::with_capacity(len) }),
    };
    let mut words: Option<Vec<Arc<str>>> = None;
    for part in parts.iter().map(Borrow::borrow).filter(|part| !part.is_empty()) {
        let (start, rows) = (data.len(), part.len());
        let column = part.table_column(name).ok();
        let selection = part.selection();
        match (&mut data, column.map(Column::data)) {
            (_, None | Some(Data::Null(_))) => {
                fill(&mut data, rows);
                nulls.resize(start, false);
                nulls.resize(start + rows, true);
                continue;
            }
            (Data::Bool(all), Some(Data::Bool(values))) => append(all, values, selection),
            (Data::Int(all), Some(Data::Int(values))) => append(all, values, selection),
            (Data::Float(all), Some(Data::Float(values))) => append(all, values, selection),
            (Data::Float(all), Some(Data::Int(values))) => match selection {
                Some(places) => all.extend(places.iter().map(|at| values[*at as usize] as f64)),
                None => all.extend(values.iter().map(|value| *value as f64)),
            },
            (Data::Text(all), Some(Data::Text(texts))) => append_texts(all, &mut words, texts, selection),
            _ => debug_assert!(false, "kinds were compared before"),
        }
        if let Some(marks) = column.and_then(Column::null_marks) {
            nulls.resize(start, false);
            append(&mut nulls, marks, selection);
        }
    }
    if let (Data::Text(texts), Some(words)) = (&mut data, words) {
        texts.words = Arc::new(words);
    }
    if !nulls.is_empty() {
        nulls.resize(len, false);
    }
    Column::new(data, (!nulls.is_empty()).then_some(nulls))
}

/// So many values that mean nothing.
fn fill(data: &mut Data, rows: usize) {
    match data {
        Data::Null(len) => *len += rows,
        Data::Bool(values) => values.resize(values.len() + rows, false),
        Data::Int(values) => values.resize(values.len() + rows, 0),
        Data::Float(values) => values.resize(values.len() + rows, 0.0),
        Data::Text(texts) => texts.codes.resize(texts.codes.len() + rows, 0),
    }
}

fn append<T: Copy>(all: &mut Vec<T>, values: &[T], selection: Option<&[u32]>) {
    match selection {
        Some(places) => all.extend(places.iter().map(|at| values[*at as usize])),
        None => all.extend_from_slice(values),
    }
}

/// As long as all have one list of words, that is shared; otherwise `own` has the words, of each part those of its list
/// or one for each row, whichever are fewer.
fn append_texts(all: &mut Texts, own: &mut Option<Vec<Arc<str>>>, more: &Texts, selection: Option<&[u32]>) {
    if own.is_none() {
        if all.words.is_empty() {
            all.words = more.words.clone();
        }
        if Arc::ptr_eq(&all.words, &more.words) {
            return append(&mut all.codes, &more.codes, selection);
        }
    }
    let words = own.get_or_insert_with(|| {
        if all.words.len() <= all.codes.len() {
            return all.words.to_vec();
        }
        let words = all.codes.iter().map(|code| all.words[*code as usize].clone()).collect();
        all.codes = (0..all.codes.len() as u32).collect();
        words
    });
    let rows = selection.map_or(more.codes.len(), <[u32]>::len);
    if !more.words.is_empty() && more.words.len() <= rows {
        // Fewer words than rows: they are taken over as they are.
        let (first, start) = (words.len() as u32, all.codes.len());
        words.extend_from_slice(&more.words);
        append(&mut all.codes, &more.codes, selection);
        return all.codes[start..].iter_mut().for_each(|code| *code += first);
    }
    let mut push = |code: u32| {
        all.codes.push(words.len() as u32);
        // Of a column of nulls there are no words.
        words.push(more.words.get(code as usize).cloned().unwrap_or_default());
    };
    match selection {
        Some(places) => places.iter().for_each(|at| push(more.codes[*at as usize])),
        None => more.codes.iter().copied().for_each(push),
    }
}
