//! The facts about rows, expressions, stores and ops.

#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod endpoints;
mod expressions;
mod ops;
mod plans;
mod redis;
mod reference;
mod requests;
mod rows;
mod stores;

use ebbtide_dag::{
    Env, RunError,
    json::{JsonPlan, Registry},
};
use ebbtide_lifecycle::time::VirtualClock;
use ebbtide_offload::Pool;
use ebbtide_rank::{Endpoints, Request, Rows, Scalar, registry};

/// The ids of rows.
fn ids(rows: &Rows) -> Vec<i64> {
    rows.ids().collect()
}

/// The values of a column.
fn values(rows: &Rows, column: &str) -> Vec<Scalar> {
    (0..rows.len()).map(|row| rows.get(row, column).expect("there is such a column")).collect()
}

/// Nulls and values of one kind.
fn scalars<V: Into<Scalar>>(values: impl IntoIterator<Item = V>) -> Vec<Scalar> {
    values.into_iter().map(Into::into).collect()
}

/// A program that runs plans, in virtual time.
struct Site {
    clock: VirtualClock,
    pool: Pool,
    endpoints: Endpoints,
}

impl Site {
    fn new(endpoints: Endpoints) -> Self {
        let clock = VirtualClock::new();
        let pool = Pool::builder().clock(&clock).start().expect("threads can be started");
        Self { clock, pool, endpoints }
    }

    fn registry(&self) -> Registry<Request, Rows> {
        registry(self.clock.clone(), &self.endpoints)
    }

    fn plan(&self, text: &str) -> JsonPlan<Request, Rows> {
        self.registry().plan(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
    }

    /// The first output of a plan.
    fn run(&self, text: &str, request: Request) -> Result<Rows, RunError> {
        let env = self.endpoints.bind(Env::new(self.clock.clone()).pool(&self.pool));
        let engine = self.plan(text).bind(env).expect("nothing is missing");
        let mut outputs = self.clock.block_on(engine.run(request))?;
        Ok(outputs.remove(0).into_inner())
    }
}

/// A plan with these nodes and tables, whose output is the last node, `n`.
fn with_node(tables: &str, nodes: &str) -> String {
    format!(
        "{{\"schema_version\": 1, \"plan_name\": \"p\", {tables} \"nodes\": [{nodes}], \"outputs\": [\"n\"]}}"
    )
}
