//! What a plan's names stand for: nodes, and entries of tables.

use std::{collections::HashMap, sync::Arc};

use super::{
    mistakes::{Mistakes, Path, did_you_mean},
    params::Expression,
    registry::Parser,
    text::Found,
};
use crate::error::Code;

/// The nodes of a plan by name.
#[derive(Default)]
pub(super) struct Nodes {
    by_name: HashMap<Arc<str>, u32>,
    /// By number; empty if it could not be read.
    names: Vec<Arc<str>>,
    /// There is a node whose name could not be read: an unknown name may be meant for it.
    has_nameless: bool,
}

/// The first node of a name, which another one has as well.
pub(super) struct Taken(pub(super) u32);

impl Nodes {
    /// Adds the next node.
    pub(super) fn add(&mut self, name: Option<Arc<str>>) -> Result<(), Taken> {
        let nth = self.names.len() as u32;
        self.names.push(name.clone().unwrap_or_default());
        let Some(name) = name else {
            self.has_nameless = true;
            return Ok(());
        };
        let first = *self.by_name.entry(name).or_insert(nth);
        if first == nth { Ok(()) } else { Err(Taken(first)) }
    }

    pub(super) fn name(&self, node: u32) -> &Arc<str> {
        &self.names[node as usize]
    }

    /// The node that is named there, or an error of this code. `by` is the node that names it, which is never meant.
    pub(super) fn find(
        &self,
        name: Found<'_>,
        path: Path<'_>,
        (unknown, by): (Code, Option<u32>),
        mistakes: &mut Mistakes<'_>,
    ) -> Option<u32> {
        let at = name.at;
        let name = mistakes.keep(Code::P001, path, name.string())?;
        if let Some(node) = self.by_name.get(&*name) {
            return Some(*node);
        }
        let own = by.map(|by| self.name(by));
        let others = self.names.iter().filter(|name| Some(*name) != own).map(|name| &**name);
        let hint = mistakes.similar(&name, others).map(did_you_mean);
        if hint.is_some() || !self.has_nameless {
            let message = format!("there is no node \"{}\"", name.escape_debug());
            mistakes.add_with_hint(unknown, at, path, message, hint);
        }
        None
    }
}

/// A table of expressions or predicates.
pub(super) struct Table {
    /// As in "there is no expression".
    what: &'static str,
    /// None for those that cannot be read, which is told at their place in the table.
    entries: HashMap<String, Option<Arc<Expression>>>,
    /// The table is not an object: no name can be looked up.
    is_broken: bool,
}

impl Table {
    pub(super) fn read<'t>(
        what: &'static str,
        field: &'static str,
        table: Option<Found<'t>>,
        parser: Option<&Parser>,
        mistakes: &mut Mistakes<'t>,
    ) -> Self {
        let path = Path::Plan.field(field);
        let Some(table) = table else { return Self { what, entries: HashMap::new(), is_broken: false } };
        let Some(fields) = mistakes.keep(Code::P001, path, table.object()) else {
            return Self { what, entries: HashMap::new(), is_broken: true };
        };
        let mut entries: HashMap<String, Option<Arc<Expression>>> = HashMap::new();
        for field in fields {
            let path = path.field(&field.name);
            if entries.contains_key(&field.name) {
                mistakes.add(Code::P001, field.at, path, format!("there are two {what}s of this name"));
                continue;
            }
            let entry = entry(&field.name, field.value, path, parser, mistakes);
            entries.insert(field.name, entry.map(Arc::new));
        }
        Self { what, entries, is_broken: false }
    }

    /// The entry that is named there.
    pub(super) fn find(
        &self,
        name: Found<'_>,
        path: Path<'_>,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<Arc<Expression>> {
        let at = name.at;
        let name = mistakes.keep(Code::P012, path, name.string())?;
        match self.entries.get(&name) {
            Some(entry) => entry.clone(),
            None if self.is_broken => None,
            None => {
                let hint = mistakes.hint(&name, self.entries.keys().map(|name| &**name));
                let message = format!("there is no {} \"{}\"", self.what, name.escape_debug());
                mistakes.add_with_hint(Code::P014, at, path, message, hint);
                None
            }
        }
    }
}

fn entry(
    name: &str,
    value: Found<'_>,
    path: Path<'_>,
    parser: Option<&Parser>,
    mistakes: &mut Mistakes<'_>,
) -> Option<Expression> {
    let json = mistakes.keep(Code::P001, path, value.json())?;
    let parsed = match parser.map(|parser| parser(&json)).transpose() {
        Ok(parsed) => parsed,
        Err(error) => {
            // The place is that of the character itself where that is in the text as it is.
            let skipped = value.plain_string().map(|text| {
                let before = text.char_indices().nth(error.column.saturating_sub(1));
                1 + before.map_or(text.len(), |(at, _)| at)
            });
            mistakes.add(Code::P014, value.at + skipped.unwrap_or(0), path, error.to_string());
            return None;
        }
    };
    Some(Expression { name: name.into(), json, parsed })
}
