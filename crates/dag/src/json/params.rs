//! What a node of a plan was told, checked.

use std::{
    any::{Any, type_name},
    fmt,
    ops::Range,
    sync::{Arc, OnceLock},
};

use serde_json::Value;

use super::param::Param;

/// The parameters of one node, as its op has declared them: checked when the plan was made, shared by all runs.
///
/// A getter panics only for a parameter that the op has not declared so, or that is optional and was not given: ask
/// for that one with [`get`](Params::get).
pub struct Params {
    pub(super) op: Arc<str>,
    pub(super) declared: Arc<[Param]>,
    /// One for each that is declared.
    pub(super) args: Box<[Option<Arg>]>,
    /// Where among the node's references those of each parameter are.
    pub(super) nodes: Box<[Range<usize>]>,
    /// How much of the output is looked at, if not all.
    pub(super) looked_at: Option<usize>,
    /// What the op has made of them.
    pub(super) prepared: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// The value of a parameter.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Arg {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// A string, or one of some words.
    String(Arc<str>),
    /// A list.
    List(Box<[Arg]>),
    /// An entry of `expr_table`.
    Expression(Arc<Expression>),
    /// An entry of `pred_table`.
    Predicate(Arc<Expression>),
    /// The name of a node. Its output is in the [call](super::Call::node).
    Node(Arc<str>),
    /// The name of an endpoint, for [`Cx::endpoint`](crate::Cx::endpoint).
    Endpoint(Arc<str>),
    /// Anything.
    Json(Value),
}

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident, $variant:ident, $what:literal, $output:ty, $arg:ident => $value:expr;)*) => {
        impl Params {
            $(
                $(#[$doc])*
                ///
                /// # Panics
                /// If the op has no such parameter, or it was not given.
                #[must_use]
                #[track_caller]
                pub fn $name(&self, name: &str) -> $output {
                    match self.get(name) {
                        Some(Arg::$variant($arg)) => $value,
                        other => panic!("op \"{}\" has no {} \"{name}\" but {other:?}", self.op, $what),
                    }
                }
            )*
        }

        impl Arg {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(&self) -> Option<$output> {
                    match self {
                        Self::$variant($arg) => Some($value),
                        _ => None,
                    }
                }
            )*
        }
    };
}

getters! {
    /// The value of one that is true or false.
    bool, Bool, "true or false", bool, value => *value;
    /// The value of a whole number.
    integer, Integer, "integer", i64, value => *value;
    /// The value of a number.
    float, Float, "number", f64, value => *value;
    /// The value of a string, or of one of some words.
    string, String, "string", &Arc<str>, value => value;
    /// The items of a list.
    list, List, "list", &[Arg], items => items;
    /// The expression.
    expression, Expression, "expression", &Arc<Expression>, expression => expression;
    /// The predicate.
    predicate, Predicate, "predicate", &Arc<Expression>, predicate => predicate;
    /// The name of the endpoint, for [`Cx::endpoint`](crate::Cx::endpoint).
    endpoint, Endpoint, "endpoint", &Arc<str>, name => name;
    /// The value of one that can be anything.
    json, Json, "JSON", &Value, value => value;
}

impl Params {
    /// The value of a parameter, if it was given or has a default.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arg> {
        self.position(name).and_then(|nth| self.args[nth].as_ref())
    }

    /// All that have a value, with their names, as declared.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arg)> {
        let pairs = self.declared.iter().zip(&self.args);
        pairs.filter_map(|(param, arg)| arg.as_ref().map(|arg| (&**param.name(), arg)))
    }

    /// How many items of the node's output are looked at, if all who get it [look](super::OpDraft::looks_at) at its
    /// beginning only, and the plan does not give it to others. None if it is looked at as a whole.
    #[must_use]
    pub fn looked_at(&self) -> Option<usize> {
        self.looked_at
    }

    /// What `prepare` makes of the parameters: when it is first asked for, and then kept for all runs of the node.
    ///
    /// # Panics
    /// If the op has asked for something of another type before.
    #[track_caller]
    pub fn prepared<T: Any + Send + Sync>(&self, prepare: impl FnOnce(&Self) -> T) -> &T {
        let prepared = self.prepared.get_or_init(|| Box::new(prepare(self)));
        let Some(prepared) = prepared.downcast_ref() else {
            panic!("op \"{}\" has prepared something else than a {}", self.op, type_name::<T>())
        };
        prepared
    }

    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.declared.iter().position(|param| **param.name() == *name)
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// An entry of a plan's `expr_table` or `pred_table`.
pub struct Expression {
    pub(super) name: Arc<str>,
    pub(super) json: Value,
    pub(super) parsed: Option<Arc<dyn Any + Send + Sync>>,
}

impl Expression {
    /// What it is called in its table.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// As the plan has it.
    #[must_use]
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// What the registry's [parser](super::Registry::expressions) has made of it, if it is a `T`.
    #[must_use]
    pub fn parsed<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.parsed.as_ref().and_then(|parsed| parsed.downcast_ref())
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expression")
            .field("name", &self.name)
            .field("json", &self.json)
            .finish_non_exhaustive()
    }
}

/// Why an expression or a predicate cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// The character that it fails at, from 1 on; for one that is not a string, 1.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

impl ExpressionError {
    /// An error at `column`.
    #[must_use]
    pub fn new(column: usize, message: impl Into<String>) -> Self {
        Self { column, message: message.into() }
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at column {}", self.message, self.column)
    }
}

impl std::error::Error for ExpressionError {}
