//! What an op is called with.

use std::{fmt, sync::Arc};

use super::{few::CallInputs, params::Params, wanted::Values};
use crate::input::Input;

/// What an op gets, beside what it [knows of its run](crate::Cx): parameters and inputs. For an op that is not async
/// they are lent; a future owns them.
pub struct Call<'a, V> {
    /// What the node was told.
    pub params: Input<'a, Params>,
    /// The outputs that the node depends on, as listed: `inputs`, and then those of `optional_inputs` that are there.
    /// They are as many as the op has declared to take, whichever are missing.
    pub inputs: CallInputs<'a, V>,
    /// The outputs of the nodes that parameters refer to.
    references: Vec<Input<'a, V>>,
}

impl<'a, V> Call<'a, V> {
    /// For an op that is done when it returns.
    pub(super) fn lent(params: &'a Params, values: Values<'a, V>) -> Self {
        Self { params: Input::lent(params), inputs: values.inputs, references: values.references }
    }

    /// For a future.
    pub(super) fn kept(params: &Arc<Params>, values: Values<'a, V>) -> Self {
        Self { params: Input::shared(params.clone()), inputs: values.inputs, references: values.references }
    }

    /// The output of the node that this parameter refers to. None if it was not given.
    ///
    /// # Panics
    /// If the op has no such parameter.
    #[must_use]
    #[track_caller]
    pub fn node(&self, param: &str) -> Option<&Input<'a, V>> {
        self.nodes(param).first()
    }

    /// The outputs of the nodes that this parameter lists.
    ///
    /// # Panics
    /// If the op has no such parameter.
    #[must_use]
    #[track_caller]
    pub fn nodes(&self, param: &str) -> &[Input<'a, V>] {
        let Some(nth) = self.params.position(param) else {
            panic!("op \"{}\" has no parameter \"{param}\"", self.params.op)
        };
        &self.references[self.params.nodes[nth].clone()]
    }
}

impl<V: fmt::Debug> fmt::Debug for Call<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("params", &self.params)
            .field("inputs", &self.inputs)
            .field("references", &self.references)
            .finish()
    }
}
