//! The ops that ranking plans are made of.
//!
//! | op | kind | |
//! |---|---|---|
//! | `fixed_source` | inline | rows that the plan itself has |
//! | `viewer` | async | the hash `user:{user_id}`, as one row |
//! | `follow`, `recommendation`, `media` | async | the lists of that name of the input's ids, or of the user |
//! | `vm` | CPU | a column that an expression gives |
//! | `filter`, `sort` | CPU | rows for which a predicate holds; rows in an order |
//! | `concat` | CPU | all rows of all inputs |
//! | `take` | inline | the first rows |
//! | `sleep`, `busy_cpu` | async, CPU | time that passes, to try plans with |
//!
//! `vm`, `filter`, `sort` and `concat` are run on the spot when they have few rows: [`is_light`].

mod sources;
mod transforms;

use ebbtide_dag::json::{Registry, ops};
use ebbtide_lifecycle::time::Timer;

pub use self::transforms::{LIGHT_ROWS_MAX, is_light};
use crate::{
    endpoint::Endpoints,
    expr::{Expr, Pred},
    request::Request,
    rows::Rows,
};

/// All ops, the language of expressions, and the names of endpoints. `timer` is what `sleep` sleeps with.
///
/// ```
/// use ebbtide_dag::Env;
/// use ebbtide_lifecycle::{time::ThreadTimer, wait::block_on};
/// use ebbtide_offload::Pool;
/// use ebbtide_rank::{Endpoints, Request, registry};
///
/// let (timer, pool, endpoints) = (ThreadTimer::start()?, Pool::new()?, Endpoints::demo());
/// let plan = registry(timer.clone(), &endpoints).plan(r#"{
///     "schema_version": 1,
///     "plan_name": "follows",
///     "expr_table": {"even": "id * 0.5"},
///     "nodes": [
///         {"node_id": "follow", "op": "follow", "params": {"fanout": 3}},
///         {"node_id": "vm", "op": "vm", "inputs": ["follow"], "params": {"expr": "even", "out": "half"}}
///     ],
///     "outputs": ["vm"]
/// }"#)?;
/// let engine = plan.bind(endpoints.bind(Env::new(timer).pool(&pool)))?;
/// let rows = block_on(engine.run(Request::new(1)))?.remove(0);
/// assert_eq!(rows.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn registry<T>(timer: T, endpoints: &Endpoints) -> Registry<Request, Rows>
where
    T: Timer<Sleep: Send> + Clone + Send + Sync + 'static,
{
    let mut registry = Registry::new();
    registry.expressions(Expr::from_json).predicates(Pred::from_json);
    registry.requests(|json| Request::check(json).map_err(|error| error.to_string()));
    endpoints.declare(&mut registry);
    sources::register(&mut registry);
    transforms::register(&mut registry);
    ops::sleep(&mut registry, timer, Rows::default);
    ops::busy_cpu(&mut registry);
    registry
}
