//! Reading a whole plan.

use std::{fmt, ops::Deref, panic::Location, sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    args::Scope,
    compile,
    mistakes::{Mistakes, Path},
    names::{Nodes, Table, Taken},
    node::{Entry, MILLISECONDS_MAX, Sketch},
    registry::Registry,
    text::Found,
};
use crate::{
    check::NODES_MAX,
    error::{Code, PlanError, PlanErrors},
    graph::Handle,
    plan::Plan,
};

/// The version of the format that is read.
const SCHEMA_VERSION: u64 = 1;

const FIELDS: [&str; 8] = [
    "schema_version",
    "plan_name",
    "nodes",
    "outputs",
    "expr_table",
    "pred_table",
    "deadline_ms",
    "sample_request",
];

/// A plan that was read: a [`Plan`] whose outputs are a `Vec`, in the order of its `outputs`. Made by
/// [`Registry::plan`].
pub struct JsonPlan<R, V: 'static> {
    pub(super) plan: Plan<R, Vec<Handle<V>>>,
    pub(super) outputs: Vec<Arc<str>>,
    pub(super) warnings: Vec<PlanError>,
    pub(super) deadline: Option<Duration>,
    pub(super) sample_request: Option<Value>,
}

impl<R, V: 'static> JsonPlan<R, V> {
    /// The names of the outputs, in the order in which a run gives their values.
    #[must_use]
    pub fn outputs(&self) -> &[Arc<str>] {
        &self.outputs
    }

    /// What is not wrong, but may not be meant: nodes that feed no output (W001), and timeouts beyond the deadline
    /// (W002).
    #[must_use]
    pub fn warnings(&self) -> &[PlanError] {
        &self.warnings
    }

    /// How long a run may take, for [`Run::within`](crate::Run::within): the plan says it, and whoever runs it
    /// decides.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// A request to try the plan with.
    #[must_use]
    pub fn sample_request(&self) -> Option<&Value> {
        self.sample_request.as_ref()
    }
}

impl<R, V: 'static> Deref for JsonPlan<R, V> {
    type Target = Plan<R, Vec<Handle<V>>>;

    fn deref(&self) -> &Self::Target {
        &self.plan
    }
}

impl<R, V: 'static> fmt::Debug for JsonPlan<R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonPlan")
            .field("plan", &self.plan)
            .field("outputs", &self.outputs)
            .finish_non_exhaustive()
    }
}

/// A plan that was read. What could not be is missing; then there are mistakes.
pub(super) struct Draft<'r, R, V> {
    pub(super) name: String,
    pub(super) nodes: Vec<Sketch<'r, R, V>>,
    pub(super) outputs: Vec<u32>,
    pub(super) deadline: Option<Duration>,
    pub(super) sample_request: Option<Value>,
}

pub(super) fn read<R, V>(
    registry: &Registry<R, V>,
    text: &str,
    site: &'static Location<'static>,
) -> Result<JsonPlan<R, V>, PlanErrors>
where
    R: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    let mut mistakes = Mistakes::of(text);
    let draft = draft(registry, text, &mut mistakes);
    if let Some(draft) = &draft {
        compile::circles(draft, &mut mistakes);
    }
    match draft {
        Some(draft) if mistakes.is_empty() => {
            let warnings = compile::warnings(&draft, mistakes);
            compile::compile(draft, warnings, site)
        }
        _ => Err(PlanErrors::new(mistakes.told())),
    }
}

/// Reads all of it; none if it goes so wrong that nothing else can be said.
fn draft<'t, 'r, R, V>(
    registry: &'r Registry<R, V>,
    text: &'t str,
    mistakes: &mut Mistakes<'t>,
) -> Option<Draft<'r, R, V>> {
    let plan = mistakes.keep(Code::P001, Path::Plan, Found::whole(text))?;
    let fields = mistakes.record(plan, Path::Plan, &FIELDS, Code::P002)?;
    let [version, name, nodes, outputs, expr_table, pred_table, deadline, sample] =
        <[_; FIELDS.len()]>::try_from(fields).expect("one for each that is known");
    read_version(plan, version, mistakes)?;
    let name = read_name(plan, name, mistakes);
    let entries = read_nodes(plan, nodes, mistakes);
    let mut known = Nodes::default();
    for entry in entries.iter().flatten() {
        let name = entry.as_ref().and_then(|entry| entry.name.clone());
        if let (Err(Taken(first)), Some(second)) = (known.add(name), entry) {
            twice(entries.as_deref().unwrap_or_default(), first, second, mistakes);
        }
    }
    let parser = registry.expressions.as_ref();
    let expressions = Table::read("expression", "expr_table", expr_table, parser, mistakes);
    let parser = registry.predicates.as_ref();
    let predicates = Table::read("predicate", "pred_table", pred_table, parser, mistakes);
    let scope = Scope {
        nodes: &known,
        expressions: &expressions,
        predicates: &predicates,
        endpoints: &registry.endpoints,
    };
    let outputs = read_outputs(plan, outputs, entries.is_some(), &known, mistakes);
    let deadline = deadline.and_then(|deadline| {
        let read = deadline.integer(1, MILLISECONDS_MAX);
        mistakes.keep(Code::P001, Path::Plan.field("deadline_ms"), read)
    });
    let sample_request = sample.and_then(|sample| {
        let path = Path::Plan.field("sample_request");
        let request = mistakes.keep(Code::P001, path, sample.json())?;
        if let Some(Err(message)) = registry.requests.as_ref().map(|check| check(&request)) {
            mistakes.add(Code::P001, sample.at, path, message);
        }
        Some(request)
    });
    let sketch = |entry: Option<Entry<'t>>| {
        entry.map_or_else(Sketch::hollow, |entry| entry.sketch(registry, &scope, mistakes))
    };
    Some(Draft {
        name,
        nodes: entries?.into_iter().map(sketch).collect(),
        outputs,
        deadline: deadline.map(Duration::from_millis),
        sample_request,
    })
}

/// A text of another version is not looked at: all that can be said of it is that.
fn read_version<'t>(plan: Found<'t>, version: Option<Found<'t>>, mistakes: &mut Mistakes<'t>) -> Option<()> {
    let Some(version) = version else {
        let message = format!("it has no `schema_version`, which is {SCHEMA_VERSION}");
        mistakes.add(Code::P001, plan.at, Path::Plan, message);
        return Some(());
    };
    let misfit = version.misfit(&SCHEMA_VERSION.to_string());
    let is_another = match version.integer(0, u64::MAX) {
        Ok(SCHEMA_VERSION) => return Some(()),
        read => read.is_ok(),
    };
    if is_another {
        // Its fields may well be other ones.
        mistakes.forget();
    }
    mistakes.add(Code::P001, misfit.at, Path::Plan.field("schema_version"), misfit.message);
    (!is_another).then_some(())
}

fn read_name<'t>(plan: Found<'t>, name: Option<Found<'t>>, mistakes: &mut Mistakes<'t>) -> String {
    let Some(name) = name else {
        mistakes.add(Code::P001, plan.at, Path::Plan, "it has no `plan_name`");
        return String::new();
    };
    let read = mistakes.keep(Code::P001, Path::Plan.field("plan_name"), name.string());
    if read.as_deref() == Some("") {
        mistakes.add(Code::P001, name.at, Path::Plan.field("plan_name"), "it is empty");
    }
    read.unwrap_or_default()
}

/// The nodes, each none if it is not an object; or none if there is no list of them.
fn read_nodes<'t>(
    plan: Found<'t>,
    nodes: Option<Found<'t>>,
    mistakes: &mut Mistakes<'t>,
) -> Option<Vec<Option<Entry<'t>>>> {
    let path = Path::Plan.field("nodes");
    let at = nodes.map_or(plan.at, |nodes| nodes.at);
    let list = nodes.map_or(Ok(Vec::new()), |nodes| nodes.list());
    let list = mistakes.keep(Code::P001, path, list)?;
    if list.is_empty() {
        mistakes.add(Code::P003, at, path, "it has no nodes: add one");
        return None;
    }
    if list.len() > NODES_MAX {
        let message = format!("it has {} nodes, and may have {NODES_MAX}: make it several plans", list.len());
        mistakes.add(Code::P018, at, path, message);
        return None;
    }
    Some(list.into_iter().enumerate().map(|(nth, node)| Entry::read(nth, node, mistakes)).collect())
}

fn twice(entries: &[Option<Entry<'_>>], first: u32, second: &Entry<'_>, mistakes: &mut Mistakes<'_>) {
    let first_at = entries[first as usize].as_ref().map_or(0, |entry| entry.name_at);
    let place = mistakes.place(first_at);
    let name = second.name.as_deref().unwrap_or_default().escape_debug();
    let message = format!("there are two nodes \"{name}\"; the first is nodes[{first}], at {place}");
    let nodes = Path::Plan.field("nodes");
    mistakes.add(Code::P005, second.name_at, nodes.item(second.nth).field("node_id"), message);
}

fn read_outputs<'t>(
    plan: Found<'t>,
    outputs: Option<Found<'t>>,
    has_nodes: bool,
    nodes: &Nodes,
    mistakes: &mut Mistakes<'t>,
) -> Vec<u32> {
    let path = Path::Plan.field("outputs");
    let at = outputs.map_or(plan.at, |outputs| outputs.at);
    let list = outputs.map_or(Ok(Vec::new()), |outputs| outputs.list());
    let Some(list) = mistakes.keep(Code::P001, path, list) else { return Vec::new() };
    if list.is_empty() {
        mistakes.add(Code::P015, at, path, "it has no outputs: name one");
    }
    if !has_nodes {
        return Vec::new();
    }
    let mut found = Vec::with_capacity(list.len());
    let mut seen = std::collections::HashSet::new();
    for (nth, name) in list.into_iter().enumerate() {
        let Some(node) = nodes.find(name, path.item(nth), (Code::P015, None), mistakes) else { continue };
        if seen.insert(node) {
            found.push(node);
        } else {
            let message = format!("the output \"{}\" is listed twice", nodes.name(node));
            mistakes.add(Code::P011, name.at, path.item(nth), message);
        }
    }
    found
}
