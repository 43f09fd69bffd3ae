//! What an op can be told in a plan.

use std::{
    fmt,
    ops::{Bound, RangeBounds, RangeInclusive},
    sync::Arc,
};

use serde_json::Value;

use super::params::Arg;

/// A parameter of an op: required unless it is [optional](Param::optional) or has a [default](Param::default).
///
/// ```
/// use ebbtide_dag::json::Param;
///
/// let limit = Param::integer("limit", 1..=500).about("how many are kept").default(100);
/// assert_eq!(limit.to_string(), "limit: an integer of 1 to 500, 100 if not given; how many are kept");
/// ```
#[derive(Clone, Debug)]
pub struct Param {
    name: Arc<str>,
    kind: ParamKind,
    presence: Presence,
    about: Arc<str>,
}

/// What a parameter can be.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParamKind {
    /// True or false.
    Bool,
    /// A whole number within these limits.
    Integer(RangeInclusive<i64>),
    /// A number within these limits.
    Float(RangeInclusive<f64>),
    /// Any string.
    String,
    /// One of these strings.
    OneOf(Vec<Arc<str>>),
    /// A list, each item of this kind.
    List(Box<ParamKind>),
    /// The name of an entry of the plan's `expr_table`.
    Expression,
    /// The name of an entry of the plan's `pred_table`.
    Predicate,
    /// The name of another node, whose output the op gets: a dependency like an input.
    Node,
    /// The name of an endpoint of the registry. An engine is not bound without it.
    Endpoint,
    /// Anything.
    Json,
}

/// Whether a parameter has to be given.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Presence {
    /// It has to.
    Required,
    /// The op can do without.
    Optional,
    /// If not, it is this.
    Default(Value),
}

impl Param {
    /// A parameter of any kind, lists among them.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, kind: ParamKind) -> Self {
        Self { name: name.into(), kind, presence: Presence::Required, about: Arc::from("") }
    }

    /// True or false.
    #[must_use]
    pub fn bool(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, ParamKind::Bool)
    }

    /// A whole number of this range.
    #[must_use]
    pub fn integer(name: impl Into<Arc<str>>, range: impl RangeBounds<i64>) -> Self {
        let least = match range.start_bound() {
            Bound::Included(least) => *least,
            Bound::Excluded(below) => below.saturating_add(1),
            Bound::Unbounded => i64::MIN,
        };
        let most = match range.end_bound() {
            Bound::Included(most) => *most,
            Bound::Excluded(above) => above.saturating_sub(1),
            Bound::Unbounded => i64::MAX,
        };
        Self::new(name, ParamKind::Integer(least..=most))
    }

    /// A number of this range.
    #[must_use]
    pub fn float(name: impl Into<Arc<str>>, range: RangeInclusive<f64>) -> Self {
        Self::new(name, ParamKind::Float(range))
    }

    /// Any string.
    #[must_use]
    pub fn string(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, ParamKind::String)
    }

    /// One of these strings.
    #[must_use]
    pub fn one_of<W: Into<Arc<str>>>(name: impl Into<Arc<str>>, words: impl IntoIterator<Item = W>) -> Self {
        Self::new(name, ParamKind::OneOf(words.into_iter().map(Into::into).collect()))
    }

    /// A list of such items.
    #[must_use]
    pub fn list(name: impl Into<Arc<str>>, of: ParamKind) -> Self {
        Self::new(name, ParamKind::List(Box::new(of)))
    }

    /// The name of an entry of `expr_table`.
    #[must_use]
    pub fn expression(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, ParamKind::Expression)
    }

    /// The name of an entry of `pred_table`.
    #[must_use]
    pub fn predicate(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, ParamKind::Predicate)
    }

    /// The name of another node.
    #[must_use]
    pub fn node(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, ParamKind::Node)
    }

    /// The name of an endpoint.
    #[must_use]
    pub fn endpoint(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, ParamKind::Endpoint)
    }

    /// Anything that JSON can say.
    #[must_use]
    pub fn json(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, ParamKind::Json)
    }

    /// A sentence for those who write plans.
    #[must_use]
    pub fn about(mut self, about: impl Into<Arc<str>>) -> Self {
        self.about = about.into();
        self
    }

    /// The op can do without.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.presence = Presence::Optional;
        self
    }

    /// What it is if a plan does not give it.
    ///
    /// # Panics
    /// If the value is not one that a plan could give, or has to be looked up in a plan.
    #[must_use]
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        let value = value.into();
        assert!(
            self.kind.literal(&value).is_some(),
            "the default of parameter \"{}\" is not {}: {value}",
            self.name,
            self.kind
        );
        self.presence = Presence::Default(value);
        self
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What it can be.
    #[must_use]
    pub fn kind(&self) -> &ParamKind {
        &self.kind
    }

    /// Whether it has to be given.
    #[must_use]
    pub fn presence(&self) -> &Presence {
        &self.presence
    }

    /// What was said about it; empty if nothing was.
    #[must_use]
    pub fn sentence(&self) -> &str {
        &self.about
    }
}

impl ParamKind {
    /// The value as an argument, if it is of this kind and needs nothing looked up.
    pub(super) fn literal(&self, value: &Value) -> Option<Arg> {
        match self {
            Self::Bool => value.as_bool().map(Arg::Bool),
            Self::Integer(range) => value.as_i64().filter(|n| range.contains(n)).map(Arg::Integer),
            Self::Float(range) => value.as_f64().filter(|n| range.contains(n)).map(Arg::Float),
            Self::String => value.as_str().map(|text| Arg::String(text.into())),
            Self::OneOf(words) => {
                let word = words.iter().find(|word| Some(&***word) == value.as_str());
                word.map(|word| Arg::String(word.clone()))
            }
            Self::List(kind) => {
                let items: Option<_> = value.as_array()?.iter().map(|item| kind.literal(item)).collect();
                items.map(Arg::List)
            }
            Self::Json => Some(Arg::Json(value.clone())),
            Self::Expression | Self::Predicate | Self::Node | Self::Endpoint => None,
        }
    }
}

/// As in "expected …, got 7".
impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("true or false"),
            Self::Integer(range) => {
                f.write_str("an integer")?;
                let (least, most) = (*range.start(), *range.end());
                limits(f, (least > i64::MIN).then_some(least), (most < i64::MAX).then_some(most))
            }
            Self::Float(range) => {
                f.write_str("a number")?;
                let bound = |limit: f64| limit.is_finite().then_some(limit);
                limits(f, bound(*range.start()), bound(*range.end()))
            }
            Self::String => f.write_str("a string"),
            Self::OneOf(words) => write!(f, "one of \"{}\"", words.join("\", \"")),
            Self::List(kind) => write!(f, "a list, each item {kind}"),
            Self::Expression => f.write_str("the name of an expression"),
            Self::Predicate => f.write_str("the name of a predicate"),
            Self::Node => f.write_str("the name of a node"),
            Self::Endpoint => f.write_str("the name of an endpoint"),
            Self::Json => f.write_str("any JSON"),
        }
    }
}

fn limits(
    f: &mut fmt::Formatter<'_>,
    least: Option<impl fmt::Display>,
    most: Option<impl fmt::Display>,
) -> fmt::Result {
    match (least, most) {
        (Some(least), Some(most)) => write!(f, " of {least} to {most}"),
        (Some(least), None) => write!(f, " of {least} or more"),
        (None, Some(most)) => write!(f, " of {most} or less"),
        (None, None) => Ok(()),
    }
}

/// One line.
impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.kind)?;
        match &self.presence {
            Presence::Required => {}
            Presence::Optional => f.write_str(", optional")?,
            Presence::Default(value) => write!(f, ", {value} if not given")?,
        }
        if self.about.is_empty() { Ok(()) } else { write!(f, "; {}", self.about) }
    }
}
