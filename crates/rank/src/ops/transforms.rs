//! Ops that make rows of rows.

use ebbtide_dag::{
    Cx, Failure,
    json::{Call, CallInputs, Param, Params, Registry},
};

use crate::{
    expr::{Expr, Pred},
    request::Request,
    rows::{ID, Order, Rows},
};

/// With so many rows, an expression or a sort takes about as long as it takes to hand it to another thread.
pub const LIGHT_ROWS_MAX: usize = 512;

/// Whether an op on the CPU with so many rows is better done on the spot than on a pool.
#[must_use]
pub const fn is_light(rows: usize) -> bool {
    rows <= LIGHT_ROWS_MAX
}

/// So many rows are put together at most: their ids alone take half a gigabyte, and a process without memory is ended,
/// whatever else it does.
const CONCAT_ROWS_MAX: usize = 1 << 26;

fn is_light_call(_: Cx<'_, Request>, call: &Call<'_, Rows>) -> bool {
    is_light(rows_of(&call.inputs))
}

/// How many rows all inputs have.
fn rows_of(inputs: &CallInputs<'_, Rows>) -> usize {
    inputs.iter().map(|rows| rows.len()).sum()
}

pub(super) fn register(registry: &mut Registry<Request, Rows>) {
    registry
        .op("vm")
        .about("computes a column")
        .inputs(1..=1)
        .param(Param::expression("expr").about("what gives its values"))
        .param(Param::string("out").about("what it is called; one of this name is replaced"))
        .check(|params| match &**params.string("out") {
            "" => Err("`out` is empty: a column needs a name".to_owned()),
            ID => Err(format!("`out` is \"{ID}\", which is not computed: choose another name")),
            _ => Ok(()),
        })
        .weighed(is_light_call, |cx, call| {
            let named = call.params.expression("expr");
            let expr: &Expr = named.parsed().ok_or_else(|| unread(named.name()))?;
            let (out, vars) = (call.params.string("out").clone(), &cx.request().params);
            the_input(call.inputs)
                .compute(out, expr, vars)
                .map_err(|error| failed("expression", named.name(), &error))
        });
    registry
        .op("filter")
        .about("keeps the rows for which a predicate holds")
        .inputs(1..=1)
        .param(Param::predicate("pred").about("what has to hold"))
        .weighed(is_light_call, |cx, call| {
            let named = call.params.predicate("pred");
            let pred: &Pred = named.parsed().ok_or_else(|| unread(named.name()))?;
            let kept = call.inputs[0].filter(pred, &cx.request().params);
            kept.map_err(|error| failed("predicate", named.name(), &error))
        });
    registry
        .op("sort")
        .about("sorts by a column, those without a value last; those that are alike keep their order")
        .inputs(1..=1)
        .param(Param::string("by").about("the column, or id"))
        .param(Param::bool("desc").default(false).about("the greatest first"))
        .weighed(is_light_call, |_, call| {
            let order = if call.params.bool("desc") { Order::Descending } else { Order::Ascending };
            let most = call.params.looked_at().unwrap_or(usize::MAX);
            Ok(call.inputs[0].top(call.params.string("by"), order, most)?)
        });
    registry
        .op("take")
        .about("keeps the first rows")
        .inputs(1..=1)
        .param(Param::integer("count", 0..).about("how many"))
        .looks_at(count)
        .inline(|_, call| {
            let count = count(&call.params);
            Ok(the_input(call.inputs).take(count))
        });
    registry
        .op("concat")
        .about("puts the rows of all inputs one behind the other, with the columns of all")
        .inputs(1..)
        .weighed(is_light_call, |_, call| {
            let rows = rows_of(&call.inputs);
            if rows > CONCAT_ROWS_MAX {
                return Err(Failure::new(format!(
                    "{rows} rows are more than the {CONCAT_ROWS_MAX} that it makes"
                )));
            }
            Ok(Rows::concat(&call.inputs)?)
        });
}

/// The rows of an op that has one input.
fn the_input(inputs: CallInputs<'_, Rows>) -> Rows {
    inputs.into_first().expect("a plan is checked for the number of its inputs").into_inner()
}

/// How many rows a `take` keeps.
fn count(params: &Params) -> usize {
    usize::try_from(params.integer("count")).unwrap_or(usize::MAX)
}

/// Says which entry of its table has failed.
fn failed(what: &str, name: &str, error: &dyn std::error::Error) -> Failure {
    Failure::new(format!("{what} \"{name}\": {error}"))
}

/// A registry with other parsers than ours.
fn unread(name: &str) -> Failure {
    Failure::new(format!("\"{name}\" was not read by the parser of this crate"))
}
