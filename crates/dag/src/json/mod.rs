//! Plans from data: a registry of named ops, and graphs of them in JSON.
//!
//! A [`Registry`] has the ops: how many inputs each takes, what it can be told, and what it does.
//! [`Registry::plan`] reads a text and checks all of it; the [`JsonPlan`] that it gives is bound and run like any
//! other.
//!
//! ```
//! use ebbtide_dag::{Env, json::{Param, Registry, ops}};
//! use ebbtide_lifecycle::time::VirtualClock;
//!
//! let clock = VirtualClock::new();
//! let mut registry = Registry::<(), u64>::new();
//! ops::fixed_source(&mut registry, |rows| rows);
//! ops::sleep(&mut registry, clock.clone(), || 0);
//! registry
//!     .op("sum")
//!     .inputs(1..)
//!     .param(Param::integer("at_most", 1..).optional().about("what is above is cut off"))
//!     .inline(|_, call| {
//!         let sum = call.inputs.iter().map(|input| **input).sum();
//!         let limit = call.params.get("at_most").and_then(|limit| limit.integer());
//!         Ok(limit.map_or(sum, |limit| limit.unsigned_abs().min(sum)))
//!     });
//!
//! let plan = registry.plan(r#"{
//!     "schema_version": 1,
//!     "plan_name": "feed",
//!     "nodes": [
//!         {"node_id": "sum", "op": "sum", "inputs": ["follow", "recs"], "params": {"at_most": 25}},
//!         {"node_id": "viewer", "op": "fixed_source", "params": {"row_count": 20}},
//!         {"node_id": "follow", "op": "sleep", "inputs": ["viewer"], "params": {"duration_ms": 30}},
//!         {"node_id": "recs", "op": "sleep", "inputs": ["viewer"], "params": {"duration_ms": 20}, "timeout_ms": 25}
//!     ],
//!     "outputs": ["sum"],
//!     "deadline_ms": 100
//! }"#)?;
//! let engine = plan.bind(Env::new(clock.clone()))?;
//! let run = engine.run(()).within(plan.deadline().expect("the plan has one"));
//! assert_eq!(*clock.block_on(run)?[0], 25);
//!
//! let errors = registry.plan(r#"{
//!     "schema_version": 1, "plan_name": "feed", "outputs": ["viewr"],
//!     "nodes": [{"node_id": "viewer", "op": "fixed_source", "params": {"row_count": -1}}]
//! }"#).unwrap_err();
//! assert_eq!(errors.to_string(), "\
//! P015 2:59 outputs[0]: there is no node \"viewr\" (did you mean \"viewer\"?)\n\
//! P012 3:83 nodes[0].params.row_count: expected an integer of 0 or more, got -1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is in a plan
//!
//! | of the plan | |
//! |---|---|
//! | `schema_version` | 1 |
//! | `plan_name` | for reports |
//! | `nodes` | in any order |
//! | `outputs` | the names of the nodes whose outputs a run gives, in this order |
//! | `expr_table`, `pred_table` | expressions and predicates by name, if parameters refer to some |
//! | `deadline_ms` | how long a run may take, for whoever runs it: [`JsonPlan::deadline`] |
//! | `sample_request` | anything: a request to try it with |
//!
//! | of a node | |
//! |---|---|
//! | `node_id`, `op` | its name, and what it does |
//! | `inputs` | the nodes whose outputs it gets; none if not given |
//! | `optional_inputs` | further ones, that it can do without: those that fail or are skipped are left out |
//! | `params` | what the op is told |
//! | `timeout_ms` | how long it may take |
//! | `class` | the name of a [class](Registry::class) whose limit holds for it |
//! | `retry` | `attempts`, the first included; `backoff_ms` before the second, doubled up to `max_backoff_ms` |
//!
//! A parameter that names a node is an edge like an input: the op runs after it, and has its output by
//! [the parameter's name](Call::node).
//!
//! # Mistakes
//! All are told at once, in the order of the text, each with a stable [`Code`](crate::Code), its line and column, and
//! its path in the plan. What follows from another mistake is not told: the parameters of an unknown op are not
//! looked at, and a misspelt field is read as the one that was probably meant. Two codes never come up here: all
//! nodes give a `V`, so that no input is of a wrong type (P013); and fallbacks are values (P017).
//!
//! # Reading order
//! 1. `registry`, `op`, `param`: what is declared. `params`, `call`: what an op gets of it.
//! 2. `plan`, `node`, `args`: how a text is read, from the whole to its parts. `names`: what it refers to.
//! 3. `compile`: how that becomes a graph.
//! 4. `text`, `lines`, `mistakes`, `nearest`: places, and what is said of them.

mod args;
mod call;
mod compile;
mod few;
mod lines;
mod mistakes;
mod names;
mod nearest;
mod node;
mod op;
pub mod ops;
mod param;
mod params;
mod plan;
mod registry;
mod text;
mod wanted;

pub use self::{
    call::Call,
    few::CallInputs,
    nearest::nearest,
    op::{OpDraft, OpInfo},
    param::{Param, ParamKind, Presence},
    params::{Arg, Expression, ExpressionError, Params},
    plan::JsonPlan,
    registry::Registry,
};
