//! Reading one node of a plan.

use std::{collections::HashSet, sync::Arc, time::Duration};

use super::{
    args::{self, References, Scope},
    mistakes::{Mistakes, Path},
    op::{Op, OpInfo},
    params::Params,
    registry::Registry,
    text::Found,
};
use crate::{class::Class, error::Code, graph::NodeTerms, reach::Reach, retry::Retry};

/// Times in a plan are at most so many milliseconds, which is 49 days: what is longer was made by mistake.
pub(super) const MILLISECONDS_MAX: u64 = u32::MAX as u64;

const FIELDS: [&str; 8] =
    ["node_id", "op", "inputs", "params", "optional_inputs", "timeout_ms", "class", "retry"];

/// A node whose fields have been found, and perhaps its name.
pub(super) struct Entry<'t> {
    at: usize,
    pub(super) nth: usize,
    pub(super) name: Option<Arc<str>>,
    /// Where its name is.
    pub(super) name_at: usize,
    /// In the order of `FIELDS`, but for the name.
    fields: [Option<Found<'t>>; 7],
}

/// A node that was read. What could not be is missing; then the plan has mistakes.
pub(super) struct Sketch<'r, R, V> {
    pub(super) name: Arc<str>,
    pub(super) at: usize,
    pub(super) op: Option<&'r Op<R, V>>,
    pub(super) params: Option<Params>,
    pub(super) inputs: Vec<u32>,
    pub(super) optional: Vec<u32>,
    pub(super) references: References,
    /// With its place, for the warning that it is longer than the deadline.
    pub(super) timeout: Option<(Duration, usize)>,
    class: Option<Class>,
    retry: Option<Retry>,
}

impl<'t> Entry<'t> {
    /// Finds the fields of a node, and its name.
    pub(super) fn read(nth: usize, node: Found<'t>, mistakes: &mut Mistakes<'t>) -> Option<Self> {
        let nodes = Path::Plan.field("nodes");
        let path = nodes.item(nth);
        let fields = mistakes.record(node, path, &FIELDS, Code::P002)?;
        let [id, fields @ ..] = <[_; FIELDS.len()]>::try_from(fields).expect("one for each that is known");
        let name = match id {
            None => {
                mistakes.add(Code::P004, node.at, path, "it has no `node_id`: errors and reports need one");
                None
            }
            Some(id) => {
                let name = mistakes.keep(Code::P004, path.field("node_id"), id.string());
                if name.as_deref() == Some("") {
                    let message = "it is empty: errors and reports need a name";
                    mistakes.add(Code::P004, id.at, path.field("node_id"), message);
                }
                name.filter(|name| !name.is_empty()).map(Arc::from)
            }
        };
        Some(Self { at: node.at, nth, name, name_at: id.map_or(node.at, |id| id.at), fields })
    }

    /// Reads the rest, once the names of all nodes are known.
    pub(super) fn sketch<'r, R, V>(
        &self,
        registry: &'r Registry<R, V>,
        scope: &Scope<'_>,
        mistakes: &mut Mistakes<'t>,
    ) -> Sketch<'r, R, V> {
        let nodes = Path::Plan.field("nodes");
        let path = nodes.item(self.nth);
        let [op, inputs, params, optional, timeout, class, retry] = self.fields;
        let op = self.op(registry, op, path, mistakes);

        let mut seen = HashSet::new();
        let (listed, required) = self.nodes(inputs, path.field("inputs"), scope, &mut seen, mistakes);
        let (may_be_listed, optional_nodes) =
            self.nodes(optional, path.field("optional_inputs"), scope, &mut seen, mistakes);
        if let (Some(op), Some(listed), Some(optional)) = (op, listed, may_be_listed) {
            let at = inputs.map_or(self.at, |inputs| inputs.at);
            arity(&op.info, listed, optional, at, path.field("inputs"), mistakes);
        }
        let here = (self.at, self.nth as u32, path.field("params"));
        let before = mistakes.len();
        let read = op.and_then(|op| args::read(&op.info, params, here, scope, mistakes));
        if let (Some(check), Some((read, _))) = (op.and_then(|op| op.check.as_ref()), &read)
            && mistakes.len() == before
            && let Err(message) = check(read)
        {
            let at = params.map_or(self.at, |params| params.at);
            mistakes.add(Code::P012, at, path.field("params"), message);
        }
        let (params, references) = read.unzip();

        let milliseconds = |value: Found<'t>| value.integer(1, MILLISECONDS_MAX);
        let timeout = timeout.and_then(|value| {
            let read = mistakes.keep(Code::P001, path.field("timeout_ms"), milliseconds(value));
            read.map(|read| (Duration::from_millis(read), value.at))
        });
        Sketch {
            name: self.name.clone().unwrap_or_default(),
            at: self.at,
            op,
            params,
            inputs: required,
            optional: optional_nodes,
            references: references.unwrap_or_default(),
            timeout,
            class: class.and_then(|class| known_class(registry, class, path.field("class"), mistakes)),
            retry: retry.and_then(|retry| read_retry(retry, path.field("retry"), mistakes)),
        }
    }

    fn op<'r, R, V>(
        &self,
        registry: &'r Registry<R, V>,
        op: Option<Found<'t>>,
        path: Path<'_>,
        mistakes: &mut Mistakes<'t>,
    ) -> Option<&'r Op<R, V>> {
        let Some(op) = op else {
            mistakes.add(Code::P001, self.at, path, "it has no `op`");
            return None;
        };
        let path = path.field("op");
        let name = mistakes.keep(Code::P001, path, op.string())?;
        let known = registry.ops.get(&*name);
        if known.is_none() {
            let hint = mistakes.hint(&name, registry.ops.keys().map(|name| &**name));
            let message = format!("there is no op \"{}\"", name.escape_debug());
            mistakes.add_with_hint(Code::P006, op.at, path, message, hint);
        }
        known
    }

    /// The nodes that are listed, and how many there are, known or not; none if it is not a list.
    fn nodes(
        &self,
        list: Option<Found<'t>>,
        path: Path<'_>,
        scope: &Scope<'_>,
        seen: &mut HashSet<u32>,
        mistakes: &mut Mistakes<'t>,
    ) -> (Option<usize>, Vec<u32>) {
        let Some(list) = list else { return (Some(0), Vec::new()) };
        let Some(list) = mistakes.keep(Code::P001, path, list.list()) else { return (None, Vec::new()) };
        let mut nodes = Vec::with_capacity(list.len());
        for (nth, name) in list.iter().enumerate() {
            let path = path.item(nth);
            let by = (Code::P007, Some(self.nth as u32));
            let Some(node) = scope.nodes.find(*name, path, by, mistakes) else { continue };
            if node as usize == self.nth {
                mistakes.add(Code::P008, name.at, path, "it depends on itself");
            } else if !seen.insert(node) {
                let message = format!("the input \"{}\" is listed twice", scope.nodes.name(node));
                mistakes.add(Code::P011, name.at, path, message);
            } else {
                nodes.push(node);
            }
        }
        (Some(list.len()), nodes)
    }
}

/// Whichever of the optional ones are missing, the op has to get as many as it takes.
fn arity(
    op: &OpInfo,
    listed: usize,
    optional: usize,
    at: usize,
    path: Path<'_>,
    mistakes: &mut Mistakes<'_>,
) {
    if op.inputs.contains(&listed) && op.inputs.contains(&(listed + optional)) {
        return;
    }
    let besides = if optional == 0 { String::new() } else { format!(" and {optional} optional") };
    let message = format!("op \"{}\" takes {}, got {listed}{besides}", op.name, op.arity());
    mistakes.add(Code::P010, at, path, message);
}

fn known_class<R, V>(
    registry: &Registry<R, V>,
    class: Found<'_>,
    path: Path<'_>,
    mistakes: &mut Mistakes<'_>,
) -> Option<Class> {
    let name = mistakes.keep(Code::P001, path, class.string())?;
    let known = registry.classes.get(&*name);
    if known.is_none() {
        let hint = mistakes.hint(&name, registry.classes.keys().map(|name| &**name));
        let message = format!("there is no class \"{}\"", name.escape_debug());
        mistakes.add_with_hint(Code::P016, class.at, path, message, hint);
    }
    known.cloned()
}

fn read_retry<'t>(retry: Found<'t>, path: Path<'_>, mistakes: &mut Mistakes<'t>) -> Option<Retry> {
    let fields = mistakes.record(retry, path, &["attempts", "backoff_ms", "max_backoff_ms"], Code::P002)?;
    let [attempts, first, longest] = <[_; 3]>::try_from(fields).expect("one for each that is known");
    if attempts.is_none() {
        mistakes.add(Code::P001, retry.at, path, "it has no `attempts`");
    }
    let attempts = attempts.and_then(|attempts| {
        let read = attempts.integer(1, u64::from(u32::MAX));
        mistakes.keep(Code::P001, path.field("attempts"), read)
    });
    let first = match first {
        Some(first) => {
            mistakes.keep(Code::P001, path.field("backoff_ms"), first.integer(0, MILLISECONDS_MAX))?
        }
        None => 0,
    };
    let longest = match longest {
        Some(longest) => {
            let read = longest.integer(first, MILLISECONDS_MAX);
            mistakes.keep(Code::P001, path.field("max_backoff_ms"), read)?
        }
        None => first,
    };
    let retry = Retry::times(u32::try_from(attempts?).expect("its limit was checked"));
    Some(retry.backoff(Duration::from_millis(first), Duration::from_millis(longest)))
}

impl<R, V> Sketch<'_, R, V> {
    /// A node of which nothing could be read.
    pub(super) fn hollow() -> Self {
        Self {
            name: Arc::default(),
            at: 0,
            op: None,
            params: None,
            inputs: Vec::new(),
            optional: Vec::new(),
            references: References::default(),
            timeout: None,
            class: None,
            retry: None,
        }
    }

    /// All that it depends on.
    pub(super) fn edges(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let references = &self.references.nodes;
        self.inputs.iter().chain(&self.optional).chain(references).copied()
    }

    /// Says on what terms it runs.
    pub(super) fn set_terms<T, M: Reach>(&self, mut terms: NodeTerms<'_, R, T, M>) {
        if let Some((timeout, _)) = self.timeout {
            terms = terms.timeout(timeout);
        }
        if let Some(class) = &self.class {
            terms = terms.class(class);
        }
        if let Some(retry) = self.retry {
            terms = terms.retry(retry);
        }
        for endpoint in &self.references.endpoints {
            terms = terms.endpoint(endpoint.clone());
        }
    }
}
