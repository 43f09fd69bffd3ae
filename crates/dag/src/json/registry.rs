//! The ops that plans are made of.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use serde_json::Value;

use super::{
    op::{Op, OpDraft, OpInfo},
    params::ExpressionError,
    plan::{self, JsonPlan},
};
use crate::{class::Class, error::PlanErrors};

/// Reads an entry of `expr_table` or `pred_table`.
pub(super) type Parser =
    Box<dyn Fn(&Value) -> Result<Arc<dyn Any + Send + Sync>, ExpressionError> + Send + Sync>;

/// Says why a request is none.
pub(super) type RequestCheck = Box<dyn Fn(&Value) -> Result<(), String> + Send + Sync>;

/// What plans from data are made of: ops by name, and the classes, endpoints and languages that they may use. The
/// request is an `R`; every node gives a `V`.
///
/// ```
/// use ebbtide_dag::json::{Param, Registry};
///
/// let mut registry = Registry::<(), f64>::new();
/// registry
///     .op("scale")
///     .about("multiplies its input")
///     .inputs(1..=1)
///     .param(Param::float("by", 0.0..=f64::INFINITY).default(1.0))
///     .run(|_, call| Ok(*call.inputs[0] * call.params.float("by")));
/// let text = "scale (cpu, takes 1 input): multiplies its input\n  by: a number of 0 or more, 1.0 if not given";
/// assert_eq!(registry.to_string(), text);
/// ```
pub struct Registry<R, V> {
    pub(super) ops: BTreeMap<Arc<str>, Op<R, V>>,
    pub(super) classes: BTreeMap<Arc<str>, Class>,
    pub(super) endpoints: BTreeSet<Arc<str>>,
    pub(super) expressions: Option<Parser>,
    pub(super) predicates: Option<Parser>,
    pub(super) requests: Option<RequestCheck>,
}

impl<R, V> Registry<R, V>
where
    R: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// A registry without ops.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins an op.
    ///
    /// # Panics
    /// If there is one of this name.
    pub fn op(&mut self, name: impl Into<Arc<str>>) -> OpDraft<'_, R, V> {
        let name = name.into();
        assert!(!self.ops.contains_key(&name), "there are two ops \"{name}\"");
        OpDraft::new(self, name)
    }

    /// A resource that plans may name as the `class` of a node. Another one of its name is replaced.
    pub fn class(&mut self, class: &Class) -> &mut Self {
        self.classes.insert(class.name().into(), class.clone());
        self
    }

    /// The name of something outside that plans may give as a parameter. An engine of such a plan has to be
    /// [bound to it](crate::Env::endpoint).
    pub fn endpoint(&mut self, name: impl Into<Arc<str>>) -> &mut Self {
        self.endpoints.insert(name.into());
        self
    }

    /// How expressions are read: each entry of a plan's `expr_table`, once, when the plan is made.
    pub fn expressions<T, F>(&mut self, parser: F) -> &mut Self
    where
        T: Any + Send + Sync,
        F: Fn(&Value) -> Result<T, ExpressionError> + Send + Sync + 'static,
    {
        self.expressions = Some(Box::new(move |value| Ok(Arc::new(parser(value)?))));
        self
    }

    /// How predicates are read: each entry of a plan's `pred_table`, once, when the plan is made.
    pub fn predicates<T, F>(&mut self, parser: F) -> &mut Self
    where
        T: Any + Send + Sync,
        F: Fn(&Value) -> Result<T, ExpressionError> + Send + Sync + 'static,
    {
        self.predicates = Some(Box::new(move |value| Ok(Arc::new(parser(value)?))));
        self
    }

    /// What requests have to be: a plan's `sample_request` is shown to `check`, and an error is a mistake of the plan.
    pub fn requests(
        &mut self,
        check: impl Fn(&Value) -> Result<(), String> + Send + Sync + 'static,
    ) -> &mut Self {
        self.requests = Some(Box::new(check));
        self
    }

    /// Makes a plan of its text; see the [module](super) for what is in it.
    ///
    /// # Errors
    /// All that is wrong with it, in the order of the text.
    #[track_caller]
    pub fn plan(&self, text: &str) -> Result<JsonPlan<R, V>, PlanErrors> {
        plan::read(self, text, std::panic::Location::caller())
    }
}

impl<R, V> Registry<R, V> {
    /// What is known of each op, by name.
    pub fn ops(&self) -> impl Iterator<Item = &OpInfo> {
        self.ops.values().map(|op| &op.info)
    }

    pub(super) fn add(&mut self, op: Op<R, V>) {
        self.ops.insert(op.info.name.clone(), op);
    }
}

impl<R, V> Default for Registry<R, V> {
    fn default() -> Self {
        Self {
            ops: BTreeMap::new(),
            classes: BTreeMap::new(),
            endpoints: BTreeSet::new(),
            expressions: None,
            predicates: None,
            requests: None,
        }
    }
}

/// The ops, by name, with their parameters.
impl<R, V> fmt::Display for Registry<R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, op) in self.ops().enumerate() {
            let separator = if nth == 0 { "" } else { "\n" };
            write!(f, "{separator}{op}")?;
        }
        Ok(())
    }
}

impl<R, V> fmt::Debug for Registry<R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classes: Vec<_> = self.classes.keys().collect();
        f.debug_struct("Registry")
            .field("ops", &self.ops.keys().collect::<Vec<_>>())
            .field("classes", &classes)
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}
