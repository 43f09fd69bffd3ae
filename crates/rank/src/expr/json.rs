//! Expressions and predicates as trees in JSON.
//!
//! Wherever one is expected there may also be a string, which is its short form, and for values a number, true, false
//! or null, which is itself.

use std::sync::Arc;

use ebbtide_dag::json::ExpressionError;
use serde_json::{Map, Value as Json};

use super::{
    DEPTH_MAX, pratt,
    tree::{Arith, Cmp, Set, Test, Value},
};
use crate::{hint::did_you_mean, rows::Scalar};

const VALUE_OPS: [&str; 16] = [
    "const_number",
    "const_string",
    "const_bool",
    "const_null",
    "column",
    "key_ref",
    "param",
    "add",
    "sub",
    "mul",
    "div",
    "min",
    "max",
    "neg",
    "abs",
    "coalesce",
];

const TEST_OPS: [&str; 9] = ["const_bool", "cmp", "in", "is_null", "not_null", "and", "or", "not", "regex"];

const COMPARISONS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];

/// The way to a part of a tree: `a.b.list`.
#[derive(Clone, Copy)]
struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    field: &'p str,
    depth: usize,
}

const ROOT: Path<'static> = Path { parent: None, field: "", depth: 0 };

impl<'p> Path<'p> {
    fn field(&'p self, field: &'p str) -> Self {
        Self { parent: Some(self), field, depth: self.depth + 1 }
    }

    fn text(&self) -> String {
        match self.parent {
            None => String::new(),
            Some(parent) if parent.parent.is_none() => self.field.to_owned(),
            Some(parent) => format!("{}.{}", parent.text(), self.field),
        }
    }

    /// Says where in the tree it is, unless it is the tree itself.
    fn error(&self, message: impl std::fmt::Display) -> ExpressionError {
        match &*self.text() {
            "" => ExpressionError::new(1, message.to_string()),
            path => ExpressionError::new(1, format!("`{path}`: {message}")),
        }
    }

    /// An error of a short form. If that is all there is, its column is that of the error.
    fn within(&self, error: ExpressionError) -> ExpressionError {
        if self.parent.is_none() { error } else { self.error(error) }
    }
}

pub(super) fn value(json: &Json) -> Result<Value, ExpressionError> {
    read_value(json, ROOT)
}

pub(super) fn test(json: &Json) -> Result<Test, ExpressionError> {
    read_test(json, ROOT)
}

fn read_value(json: &Json, path: Path<'_>) -> Result<Value, ExpressionError> {
    let fields = match json {
        Json::String(text) => return pratt::value(text).map_err(|error| path.within(error)),
        Json::Object(fields) => Node::new(fields, path)?,
        json => {
            let constant = Scalar::from_json(json).map(Value::Const);
            return constant.ok_or_else(|| path.error("expected an expression, got a list"));
        }
    };
    let (op, known) = fields.op(&VALUE_OPS)?;
    let binary = |arith| {
        let (a, b) = (fields.value("a")?, fields.value("b")?);
        Ok(Value::Binary(arith, a.into(), b.into()))
    };
    let read = match op {
        "const_number" | "const_string" | "const_bool" => fields.constant(op).map(Value::Const),
        "const_null" => Ok(Value::Const(Scalar::Null)),
        "column" => fields.text("name").map(Value::Column),
        "key_ref" => fields.text("key").map(Value::Column),
        "param" => fields.text("name").map(Value::Var),
        "add" => binary(Arith::Add),
        "sub" => binary(Arith::Sub),
        "mul" => binary(Arith::Mul),
        "div" => binary(Arith::Div),
        "min" => binary(Arith::Min),
        "max" => binary(Arith::Max),
        "neg" => fields.value("a").map(|value| Value::Neg(value.into())),
        "abs" => fields.value("a").map(|value| Value::Abs(value.into())),
        _ => Ok(Value::Coalesce(vec![fields.value("a")?, fields.value("b")?])),
    }?;
    fields.only(known)?;
    Ok(read)
}

fn read_test(json: &Json, path: Path<'_>) -> Result<Test, ExpressionError> {
    let fields = match json {
        Json::String(text) => return pratt::test(text).map_err(|error| path.within(error)),
        Json::Bool(value) => return Ok(Test::Is(Value::Const(Scalar::Bool(*value)))),
        Json::Object(fields) => Node::new(fields, path)?,
        json => return Err(path.error(format_args!("expected a predicate, got {json}"))),
    };
    let (op, known) = fields.op(&TEST_OPS)?;
    let read = match op {
        "const_bool" => fields.constant(op).map(|value| Test::Is(Value::Const(value))),
        "cmp" => Ok(Test::Cmp(fields.comparison()?, fields.value("a")?, fields.value("b")?)),
        "in" => Ok(Test::In(fields.value("a")?, fields.list()?)),
        "is_null" => fields.value("a").map(Test::Null),
        "not_null" => Ok(pratt::negated(true, Test::Null(fields.value("a")?))),
        "and" | "or" => Ok(pratt::chain(fields.test("a")?, fields.test("b")?, op == "and")),
        "not" => fields.test("a").map(|test| Test::Not(test.into())),
        _ => {
            let text = fields.text("pattern")?;
            let pattern =
                pratt::pattern(&text, 1).map_err(|error| path.field("pattern").error(error.message))?;
            Ok(Test::Match(fields.value("a")?, pattern))
        }
    }?;
    fields.only(known)?;
    Ok(read)
}

/// The fields that an op has.
fn known_fields(op: &str) -> &'static [&'static str] {
    match op {
        "const_number" | "const_string" | "const_bool" => &["op", "value"],
        "const_null" => &["op"],
        "column" | "param" => &["op", "name"],
        "key_ref" => &["op", "key"],
        "neg" | "abs" | "is_null" | "not_null" | "not" => &["op", "a"],
        "cmp" => &["op", "cmp", "a", "b"],
        "in" => &["op", "a", "list"],
        "regex" => &["op", "a", "pattern"],
        _ => &["op", "a", "b"],
    }
}

/// An object of a tree.
struct Node<'j> {
    fields: &'j Map<String, Json>,
    path: Path<'j>,
}

impl<'j> Node<'j> {
    fn new(fields: &'j Map<String, Json>, path: Path<'j>) -> Result<Self, ExpressionError> {
        if path.depth > DEPTH_MAX { Err(pratt::too_deep(1)) } else { Ok(Self { fields, path }) }
    }

    fn op(&self, ops: &[&'static str]) -> Result<(&'j str, &'static [&'static str]), ExpressionError> {
        let Some(op) = self.fields.get("op").and_then(Json::as_str) else {
            return Err(self.path.error("it has no `op`"));
        };
        if ops.contains(&op) {
            return Ok((op, known_fields(op)));
        }
        let hint = did_you_mean(op, ops.iter().copied());
        Err(self.path.error(format_args!("there is no op \"{op}\" here{hint}")))
    }

    /// There are no other fields than these.
    fn only(&self, known: &[&'static str]) -> Result<(), ExpressionError> {
        let Some(other) = self.fields.keys().find(|field| !known.contains(&&***field)) else { return Ok(()) };
        let hint = did_you_mean(other, known.iter().copied());
        Err(self.path.error(format_args!("there is no field \"{other}\"{hint}")))
    }

    fn field(&self, name: &str) -> Result<&'j Json, ExpressionError> {
        self.fields.get(name).ok_or_else(|| self.path.error(format_args!("it has no `{name}`")))
    }

    fn value(&self, name: &str) -> Result<Value, ExpressionError> {
        read_value(self.field(name)?, self.path.field(name))
    }

    fn test(&self, name: &str) -> Result<Test, ExpressionError> {
        read_test(self.field(name)?, self.path.field(name))
    }

    fn text(&self, name: &str) -> Result<Arc<str>, ExpressionError> {
        let field = self.field(name)?;
        let misfit = || self.path.field(name).error(format_args!("expected a string, got {field}"));
        field.as_str().map(Arc::from).ok_or_else(misfit)
    }

    /// The `value` of a constant.
    fn constant(&self, op: &str) -> Result<Scalar, ExpressionError> {
        let (field, expected) = (self.field("value")?, &op["const_".len()..]);
        let value = Scalar::from_json(field).filter(|value| match value {
            Scalar::Int(_) | Scalar::Float(_) => op == "const_number",
            Scalar::Text(_) => op == "const_string",
            Scalar::Bool(_) => op == "const_bool",
            Scalar::Null => false,
        });
        value
            .ok_or_else(|| self.path.field("value").error(format_args!("expected a {expected}, got {field}")))
    }

    fn comparison(&self) -> Result<Cmp, ExpressionError> {
        let sign = self.text("cmp")?;
        let by_name = match &*sign {
            "eq" => Some(Cmp::Eq),
            "ne" => Some(Cmp::Ne),
            "lt" => Some(Cmp::Lt),
            "le" => Some(Cmp::Le),
            "gt" => Some(Cmp::Gt),
            "ge" => Some(Cmp::Ge),
            _ => None,
        };
        by_name.or_else(|| pratt::cmp(&sign)).ok_or_else(|| {
            let known = COMPARISONS.join("\", \"");
            self.path.field("cmp").error(format_args!("expected one of \"{known}\", got \"{sign}\""))
        })
    }

    fn list(&self) -> Result<Set, ExpressionError> {
        let path = self.path.field("list");
        let field = self.field("list")?;
        let items =
            field.as_array().ok_or_else(|| path.error(format_args!("expected a list, got {field}")))?;
        let values: Option<Vec<Scalar>> = items.iter().map(Scalar::from_json).collect();
        values.as_deref().and_then(Set::of).ok_or_else(|| path.error(pratt::MIXED))
    }
}
