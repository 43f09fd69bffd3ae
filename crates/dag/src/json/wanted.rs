//! What a node of a plan from data depends on.

use std::fmt;

use super::few::CallInputs;
use crate::{
    graph::Handle,
    input::Input,
    inputs::{Dependencies, Edge, Optional, OptionalSource, Source, Sources, sealed},
    slot::Turn,
};

/// The nodes that a node wants the outputs of.
pub(super) struct Wanted<V> {
    pub(super) inputs: Vec<Handle<V>>,
    pub(super) optional: Vec<Optional<V>>,
    /// Those that parameters refer to.
    pub(super) references: Vec<Handle<V>>,
}

/// Their outputs: the inputs with those of the optional ones that are there, and the references.
pub(super) struct Values<'a, V> {
    pub(super) inputs: CallInputs<'a, V>,
    pub(super) references: Vec<Input<'a, V>>,
}

/// The same, as a plan keeps it.
pub(super) struct Kept<V> {
    inputs: Box<[Source<V>]>,
    optional: Box<[OptionalSource<V>]>,
    references: Box<[Source<V>]>,
}

impl<V> sealed::Sealed for Wanted<V> {}

impl<V: 'static> Dependencies for Wanted<V> {
    type Values<'a> = Values<'a, V>;
    type Kept = Kept<V>;

    fn edges(&self, edges: &mut Vec<Edge>) {
        self.inputs.edges(edges);
        self.optional.edges(edges);
        self.references.edges(edges);
    }

    fn kept(&self) -> Kept<V> {
        Kept {
            inputs: self.inputs.kept(),
            optional: self.optional.kept(),
            references: self.references.kept(),
        }
    }
}

impl<V: 'static> Kept<V> {
    /// The inputs, and the optional ones that are there. Almost all nodes have one, which is no list to walk through.
    #[inline]
    fn inputs<'a>(
        &self,
        required: impl Fn(&Source<V>) -> Input<'a, V>,
        optional: impl Fn(&OptionalSource<V>) -> Option<Input<'a, V>>,
    ) -> CallInputs<'a, V> {
        match (&*self.inputs, &*self.optional) {
            ([one], []) => CallInputs::one(required(one)),
            (inputs, others) => {
                inputs.iter().map(required).chain(others.iter().filter_map(optional)).collect()
            }
        }
    }
}

impl<V: 'static> Sources for Kept<V> {
    type Values<'a> = Values<'a, V>;

    #[inline]
    fn take(&self, turn: Turn<'_>, again: bool) -> Values<'static, V> {
        Values {
            inputs: self.inputs(|source| source.take(turn, again), |source| source.take(turn, again)),
            references: self.references.take(turn, again),
        }
    }

    #[inline]
    fn lend<'a>(&self, turn: Turn<'a>, again: bool) -> Values<'a, V> {
        Values {
            inputs: self.inputs(|source| source.lend(turn, again), |source| source.lend(turn, again)),
            references: self.references.lend(turn, again),
        }
    }

    #[inline]
    fn give_back(&self, turn: Turn<'_>) {
        self.inputs.give_back(turn);
        self.optional.give_back(turn);
        self.references.give_back(turn);
    }

    fn release(&self, turn: Turn<'_>) {
        self.inputs.release(turn);
        self.optional.release(turn);
        self.references.release(turn);
    }
}

impl<V: fmt::Debug> fmt::Debug for Values<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").field("inputs", &self.inputs).field("references", &self.references).finish()
    }
}

impl<V> fmt::Debug for Kept<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("inputs", &self.inputs)
            .field("optional", &self.optional)
            .field("references", &self.references)
            .finish()
    }
}
