//! What is wrong with a plan, gathered until all of it is known.

use std::fmt;

use super::{
    lines::Lines,
    nearest::{nearest, same_beginning},
    text::{Field, Found, Misfit},
};
use crate::error::{Code, PlanError};

/// For so many unknown names of a plan a similar one is looked for; who has more has another problem.
const HINTS_MAX: usize = 32;

/// So many names are listed where none is similar.
const NAMES_LISTED_MAX: usize = 8;

/// The way from the whole plan to a part of it, such as `nodes[3].inputs[1]`.
#[derive(Clone, Copy)]
pub(super) enum Path<'p> {
    Plan,
    Field(&'p Path<'p>, &'p str),
    Item(&'p Path<'p>, usize),
}

impl<'p> Path<'p> {
    pub(super) const fn field(&'p self, name: &'p str) -> Self {
        Self::Field(self, name)
    }

    pub(super) const fn item(&'p self, nth: usize) -> Self {
        Self::Item(self, nth)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |name: &str| {
            !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "_-".contains(letter))
        };
        match self {
            Self::Plan => f.write_str("plan"),
            Self::Field(Self::Plan, name) if is_plain(name) => f.write_str(name),
            Self::Field(parent, name) if is_plain(name) => write!(f, "{parent}.{name}"),
            Self::Field(parent, name) => write!(f, "{parent}[{name:?}]"),
            Self::Item(parent, nth) => write!(f, "{parent}[{nth}]"),
        }
    }
}

/// All that is wrong, or worth a warning, in the text of a plan.
pub(super) struct Mistakes<'t> {
    lines: Lines<'t>,
    /// Each with the byte that it is at.
    list: Vec<(usize, PlanError)>,
    hints: usize,
}

impl<'t> Mistakes<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        Self { lines: Lines::of(text), list: Vec::new(), hints: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn forget(&mut self) {
        self.list.clear();
    }

    pub(super) fn add(&mut self, code: Code, at: usize, path: Path<'_>, message: impl Into<String>) {
        self.add_with_hint(code, at, path, message, None);
    }

    pub(super) fn add_with_hint(
        &mut self,
        code: Code,
        at: usize,
        path: Path<'_>,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.list.push((at, PlanError::new(code, path.to_string(), message).hint(hint)));
    }

    /// Keeps what went well, and notes what did not.
    pub(super) fn keep<T>(&mut self, code: Code, path: Path<'_>, read: Result<T, Misfit>) -> Option<T> {
        read.map_err(|Misfit { at, message }| self.add(code, at, path, message)).ok()
    }

    /// The similar name, if there is one.
    pub(super) fn similar<'n>(
        &mut self,
        word: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Option<&'n str> {
        self.hints += 1;
        if self.hints > HINTS_MAX { None } else { nearest(word, names) }
    }

    /// Names the similar name; or all, if they are few.
    pub(super) fn hint<'n>(
        &mut self,
        word: &str,
        names: impl IntoIterator<Item = &'n str, IntoIter: Clone>,
    ) -> Option<String> {
        let names = names.into_iter();
        if let Some(name) = self.similar(word, names.clone()) {
            return Some(did_you_mean(name));
        }
        let listed: Vec<_> = names.take(NAMES_LISTED_MAX + 1).map(|name| format!("\"{name}\"")).collect();
        match listed.len() {
            0 => None,
            1 => Some(format!("there is only {}", listed[0])),
            2..=NAMES_LISTED_MAX => Some(format!("there are {}", listed.join(", "))),
            _ => None,
        }
    }

    /// The fields of an object, in the order of `known`. A field that is not known is told as `unknown`; if a field of
    /// a similar name is missing it is read as that one, so that it is not told twice.
    pub(super) fn record(
        &mut self,
        object: Found<'t>,
        path: Path<'_>,
        known: &[&str],
        unknown: Code,
    ) -> Option<Vec<Option<Found<'t>>>> {
        let fields = self.keep(Code::P001, path, object.object())?;
        let mut places: Vec<Option<&Field<'t>>> = vec![None; known.len()];
        let mut strangers = Vec::new();
        for field in &fields {
            let Some(nth) = known.iter().position(|name| *name == field.name) else {
                strangers.push(field);
                continue;
            };
            if let Some(first) = places[nth] {
                let message = format!("it is given twice; the first is at {}", self.place(first.at));
                self.add(Code::P001, field.at, path.field(&field.name), message);
            } else {
                places[nth] = Some(field);
            }
        }
        for field in strangers {
            let free = |nth: &usize| places[*nth].is_none();
            let missing: Vec<&str> = (0..known.len()).filter(free).map(|nth| known[nth]).collect();
            let similar = self.similar(&field.name, missing.iter().copied());
            let meant = similar.or_else(|| same_beginning(&field.name, missing));
            let hint = match meant {
                Some(name) => Some(did_you_mean(name)),
                None => self.hint(&field.name, known.iter().copied()),
            };
            if let Some(nth) = known.iter().position(|name| Some(*name) == meant) {
                places[nth] = Some(field);
            }
            let what = if unknown == Code::P012 { "parameter" } else { "field" };
            let message = format!("there is no {what} \"{}\"", field.name.escape_debug());
            self.add_with_hint(unknown, field.at, path.field(&field.name), message, hint);
        }
        Some(places.into_iter().map(|field| field.map(|field| field.value)).collect())
    }

    /// All of it in the order of the text, with lines and columns.
    pub(super) fn told(mut self) -> Vec<PlanError> {
        self.list.sort_by_key(|(at, _)| *at);
        let list = std::mem::take(&mut self.list);
        let told = |(at, error): (usize, PlanError)| {
            let place = format!("{} {}", self.place(at), error.place);
            PlanError { place, ..error }
        };
        list.into_iter().map(told).collect()
    }

    /// `line:column`
    pub(super) fn place(&self, at: usize) -> String {
        let (line, column) = self.lines.place(at);
        format!("{line}:{column}")
    }
}

pub(super) fn did_you_mean(name: &str) -> String {
    format!("did you mean \"{name}\"?")
}
