//! Ops that get rows from elsewhere.

use std::sync::Arc;

use ebbtide_dag::{
    Cx, Failure,
    json::{Arg, OpDraft, Param, ParamKind, Params, Registry},
};
use ebbtide_lifecycle::time::{Clock as _, Deadline};
use ebbtide_redis::Link;
use serde::de::DeserializeSeed;
use serde_json::Value;

use crate::{
    endpoint::{DEFAULT, Endpoint},
    item::Item,
    request::Request,
    rows::{Fields, Kind, Rows, RowsBuilder},
};

/// So many rows a plan may ask for out of nothing: each takes memory.
const ROW_COUNT_MAX: i64 = 10_000_000;

/// So many rows are taken of each list, unless the plan says otherwise.
const FANOUT: i64 = 50;

/// So many rows are taken of one list at most.
const FANOUT_MAX: i64 = 100_000;

/// The parameters that declare columns.
const FIELDS: [(&str, Kind); 4] = [
    ("int_fields", Kind::Int),
    ("float_fields", Kind::Float),
    ("bool_fields", Kind::Bool),
    ("text_fields", Kind::Text),
];

pub(super) fn register(registry: &mut Registry<Request, Rows>) {
    registry
        .op("fixed_source")
        .about("gives rows that the plan has")
        .param(
            Param::integer("row_count", 0..=ROW_COUNT_MAX)
                .optional()
                .about("as many, with the ids from 1 on"),
        )
        .param(Param::json("rows").optional().about("these, such as [{\"id\": 1, \"country\": \"US\"}]"))
        .check(|params| match params.get("rows") {
            // So many rows are made when they are asked for.
            None if params.get("row_count").is_some() => Ok(()),
            _ => params.prepared(fixed).as_ref().map(drop).map_err(String::clone),
        })
        .inline(|_, call| call.params.prepared(fixed).clone().map_err(Failure::new));
    reading(registry.op("viewer")).about("reads the user, as one row").future(|cx, call| {
        let (endpoint, user) = (endpoint(&cx, &call.params), cx.request().user_id);
        let by = deadline(&cx, &endpoint);
        async move {
            Ok(endpoint?.hash_by("user", user, &call.params.prepared(Reading::of).fields, by).await?)
        }
    });
    let lists = [
        ("follow", "reads whom its input, or the user, follows"),
        ("recommendation", "reads who is recommended to its input, or to the user"),
        ("media", "reads what its input, or the user, has posted"),
    ];
    for (name, about) in lists {
        let fanout =
            Param::integer("fanout", 1..=FANOUT_MAX).default(FANOUT).about("how many of each at most");
        reading(registry.op(name)).about(about).inputs(0..=1).param(fanout).future(move |cx, call| {
            let (endpoint, user) = (endpoint(&cx, &call.params), cx.request().user_id);
            let by = deadline(&cx, &endpoint);
            async move {
                let ids: Vec<i64> =
                    call.inputs.first().map_or_else(|| vec![user], |rows| rows.ids().collect());
                let Reading { fields, fanout, .. } = call.params.prepared(Reading::of);
                Ok(endpoint?.lists_by(name, &ids, *fanout, fields, by).await?)
            }
        });
    }
}

/// What all that read have in common.
fn reading(op: OpDraft<'_, Request, Rows>) -> OpDraft<'_, Request, Rows> {
    let about = format!("where; \"{DEFAULT}\" if not given");
    let op = op.param(Param::endpoint("endpoint").optional().about(about));
    FIELDS.into_iter().fold(op, |op, (name, kind)| {
        let about = format!("columns of {kind}; if any are declared, there are no others");
        op.param(Param::list(name, ParamKind::String).optional().about(about))
    })
}

/// What a node that reads was told.
struct Reading {
    endpoint: Arc<str>,
    fields: Fields,
    /// Of those that read lists.
    fanout: usize,
}

impl Reading {
    fn of(params: &Params) -> Self {
        let endpoint = params.get("endpoint").and_then(Arg::endpoint);
        let fanout = params.get("fanout").and_then(Arg::integer).and_then(|most| usize::try_from(most).ok());
        Self {
            endpoint: endpoint.map_or_else(|| DEFAULT.into(), Arc::clone),
            fields: fields(params),
            fanout: fanout.unwrap_or_default(),
        }
    }
}

fn endpoint(cx: &Cx<'_, Request>, params: &Params) -> Result<Arc<Endpoint>, Failure> {
    let id = &*params.prepared(Reading::of).endpoint;
    cx.endpoint(id).ok_or_else(|| {
        Failure::new(format!(
            "the engine is not bound to the endpoint \"{id}\": bind it with `Endpoints::bind`"
        ))
    })
}

/// When a node that reads has had its time: that of its request, or its own.
fn deadline(cx: &Cx<'_, Request>, endpoint: &Result<Arc<Endpoint>, Failure>) -> Deadline {
    let clock = endpoint.as_ref().ok().and_then(|endpoint| endpoint.link()).map(Link::timer);
    match (cx.timeout(), clock) {
        (Some(timeout), Some(clock)) => cx.deadline().effective(clock.now(), Some(timeout)),
        // A store is read at once.
        _ => cx.deadline(),
    }
}

/// The columns that are declared.
fn fields(params: &Params) -> Fields {
    FIELDS.into_iter().fold(Fields::default(), |fields, (param, kind)| {
        let names = params.get(param).and_then(Arg::list).unwrap_or_default();
        names.iter().filter_map(Arg::string).fold(fields, |fields, name| fields.field(name.clone(), kind))
    })
}

/// The rows of the plan, or what is wrong with them.
fn fixed(params: &Params) -> Result<Rows, String> {
    let count = params.get("row_count").and_then(Arg::integer);
    match (count, params.get("rows").and_then(Arg::json)) {
        (Some(count), None) => Rows::new((1..=count).collect()).map_err(|error| error.to_string()),
        (None, Some(rows)) => literal(rows),
        (None, None) => Err("give it `row_count` or `rows`".to_owned()),
        (Some(_), Some(_)) => Err("it has both `row_count` and `rows`: leave one of them out".to_owned()),
    }
}

fn literal(rows: &Value) -> Result<Rows, String> {
    let items = rows.as_array().ok_or("`rows` is not a list")?;
    let mut builder = RowsBuilder::new(&Fields::default());
    for (nth, item) in items.iter().enumerate() {
        let read = Item { rows: &mut builder, id: None }.deserialize(item);
        read.map_err(|error| format!("`rows[{nth}]`: {error}"))?;
    }
    Ok(builder.build())
}
