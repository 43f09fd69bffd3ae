//! Rows as JSON.

use serde::Serialize;

use super::{Column, Data, Rows};
use crate::plain::end_of_string;

impl Rows {
    /// The answer to a request, as JSON:
    /// `{"request_id":"r1","candidates":[{"id":1,"fields":{"country":"US","age":null}}]}`.
    #[must_use]
    pub fn to_json(&self, request_id: &str) -> String {
        let mut out = Vec::new();
        self.write_json(request_id, &mut out);
        String::from_utf8(out).expect("JSON of strings and numbers is text")
    }

    /// The same, behind what is in `out`.
    pub fn write_json(&self, request_id: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"request_id\":");
        write_text(out, request_id);
        out.extend_from_slice(b",\"candidates\":");
        self.write_candidates(out);
        out.push(b'}');
    }

    /// Only the list of candidates, behind what is in `out`.
    pub fn write_candidates(&self, out: &mut Vec<u8>) {
        let columns = Columns::of(self);
        out.reserve(self.len() * (24 + columns.width));
        out.push(b'[');
        for row in 0..self.len() {
            if row > 0 {
                out.push(b',');
            }
            let at = self.place(row);
            out.extend_from_slice(b"{\"id\":");
            write_value(out, &self.table_ids()[at]);
            out.extend_from_slice(b",\"fields\":{");
            let mut start = 0;
            for (end, column) in &columns.all {
                out.extend_from_slice(&columns.keys[start..*end]);
                write_cell(out, column, at);
                start = *end;
            }
            out.extend_from_slice(b"}}");
        }
        out.push(b']');
    }

    /// One row as a flat object, `{"id":1,"country":"US"}`, without what is null; only its id if nothing else is
    /// left. This is how items of lists are kept in stores.
    pub(crate) fn write_item(&self, row: usize, out: &mut Vec<u8>) {
        let at = self.place(row);
        let start = out.len();
        out.extend_from_slice(b"{\"id\":");
        write_value(out, &self.table_ids()[at]);
        let mut has_fields = false;
        for (name, column) in &self.table.columns {
            if !column.is_null(at) && !matches!(column.data(), Data::Null(_)) {
                has_fields = true;
                out.push(b',');
                write_text(out, name);
                out.push(b':');
                write_cell(out, column, at);
            }
        }
        if has_fields {
            out.push(b'}');
        } else {
            out.truncate(start);
            write_value(out, &self.table_ids()[at]);
        }
    }
}

/// The columns, each with what is written before its values.
struct Columns<'r> {
    /// What is written before the values of each, one behind the other.
    keys: Vec<u8>,
    /// Each with where its key ends.
    all: Vec<(usize, &'r Column)>,
    /// How much a row takes, roughly.
    width: usize,
}

/// How much a value takes, roughly; and its key, mostly no more.
const VALUE_WIDTH: usize = 12;

impl<'r> Columns<'r> {
    fn of(rows: &'r Rows) -> Self {
        let columns = &rows.table.columns;
        let mut keys = Vec::with_capacity(columns.len() * VALUE_WIDTH);
        let all: Vec<_> = columns
            .iter()
            .enumerate()
            .map(|(nth, (name, column))| {
                if nth > 0 {
                    keys.push(b',');
                }
                write_text(&mut keys, name);
                keys.push(b':');
                (keys.len(), column)
            })
            .collect();
        let width = keys.len() + all.len() * VALUE_WIDTH;
        Self { keys, all, width }
    }
}

fn write_cell(out: &mut Vec<u8>, column: &Column, at: usize) {
    if column.is_null(at) {
        return out.extend_from_slice(b"null");
    }
    match column.data() {
        Data::Null(_) => out.extend_from_slice(b"null"),
        Data::Bool(values) => write_value(out, &values[at]),
        Data::Int(values) => write_value(out, &values[at]),
        Data::Float(values) => write_value(out, &values[at]),
        Data::Text(texts) => write_text(out, &texts.words[texts.codes[at] as usize]),
    }
}

/// A string. Most have nothing in them that has to be escaped.
fn write_text(out: &mut Vec<u8>, text: &str) {
    if end_of_string(text.as_bytes()).is_some() {
        return write_value(out, text);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

fn write_value<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("memory takes whatever is written, and scalars can be");
}
