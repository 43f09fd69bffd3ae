//! What an op is called with.

use std::{fmt, sync::Arc};

use super::params::Params;
use crate::{
    graph::Handle,
    input::Input,
    inputs::{Dependencies, Optional},
};

/// What an op gets, beside what it [knows of its run](crate::Cx): parameters and inputs. For an op that is not async
/// the inputs are lent; a future owns them.
pub struct Call<'a, V> {
    /// What the node was told.
    pub params: Arc<Params>,
    /// The outputs that the node depends on, as listed: `inputs`, and then those of `optional_inputs` that are there.
    /// They are as many as the op has declared to take, whichever are missing.
    pub inputs: Vec<Input<'a, V>>,
    /// The outputs of the nodes that parameters refer to.
    references: Vec<Input<'a, V>>,
}

/// What a node of a plan from data depends on: inputs, optional inputs, references.
pub(super) type Sources<V> = (Vec<Handle<V>>, Vec<Optional<V>>, Vec<Handle<V>>);

impl<'a, V: 'static> Call<'a, V> {
    pub(super) fn new(params: &Arc<Params>, values: <Sources<V> as Dependencies>::Values<'a>) -> Self {
        let (mut inputs, optional, references) = values;
        inputs.extend(optional.into_iter().flatten());
        Self { params: params.clone(), inputs, references }
    }
}

impl<'a, V> Call<'a, V> {
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
