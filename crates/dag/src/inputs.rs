//! What a node depends on, and what it gets of that.

use std::mem::{self, MaybeUninit};

use crate::{
    graph::Handle,
    input::Input,
    slot::{Place, Turn},
};

/// What a node depends on: nothing, `()`; a [`Handle`]; one that [may be missing](Handle::optional); a tuple of these,
/// an array, a `Vec` or a slice of handles. The same says which outputs a plan has.
///
/// | inputs | what the node gets |
/// |---|---|
/// | `()` | `()` |
/// | `Handle<T>` | [`Input<T>`](Input) |
/// | `handle.optional()` | `Option<Input<T>>` |
/// | `(A, B, …)`, up to twelve | `(…, …)` |
/// | `[A; N]` | an array |
/// | `Vec<A>`, `&[A]` | a `Vec` |
pub trait Inputs: Dependencies {}

impl<I: Dependencies> Inputs for I {}

/// The working side of [`Inputs`], which nobody else implements.
pub trait Dependencies: sealed::Sealed {
    /// What the node gets.
    type Values<'a>;
    /// The same inputs, as a plan keeps them.
    type Kept: for<'a> Sources<Values<'a> = Self::Values<'a>> + Send + Sync + 'static;

    /// Says which nodes it is about, in order.
    #[doc(hidden)]
    fn edges(&self, edges: &mut Vec<Edge>);

    /// To be kept once the edges have been checked.
    #[doc(hidden)]
    fn kept(&self) -> Self::Kept;
}

/// A plan trusts the inputs of its nodes: they say truly which slots they are taken from.
pub(crate) mod sealed {
    pub trait Sealed {}
}

/// An input of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The number of the graph that the input is a node of.
    pub(crate) graph: u64,
    pub(crate) node: u32,
    /// Without it the node is not run.
    pub(crate) required: bool,
}

/// Inputs that were checked: the slots that they are taken from have their types. All functions are called when it is
/// the turn of the node that has them as its inputs; `take`, not again, or `release` once in a run.
#[doc(hidden)]
pub trait Sources {
    /// What the node gets.
    type Values<'a>;

    /// The values, to be kept. The node consumes them no more; or, if it may want them `again`, shares them.
    fn take(&self, turn: Turn<'_>, again: bool) -> Self::Values<'static>;

    /// The values, for as long as the turn goes on. The node stays their consumer; it may want them `again`.
    fn lend<'a>(&self, turn: Turn<'a>, again: bool) -> Self::Values<'a>;

    /// The node does not want them any more that were lent to it, not to be wanted again.
    fn give_back(&self, turn: Turn<'_>);

    /// The node does not want them any more.
    fn release(&self, turn: Turn<'_>);
}

/// A required input is there.
#[inline]
fn filled<T>(input: Option<Input<'_, T>>) -> Input<'_, T> {
    input.expect("a node is run only if its required inputs have ended well")
}

/// One input, checked.
#[doc(hidden)]
pub struct Source<T>(Place<T>);

impl<T> std::fmt::Debug for Source<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Source").field(&self.0.node).finish()
    }
}

impl<T: 'static> Sources for Source<T> {
    type Values<'a> = Input<'a, T>;

    #[inline]
    fn take(&self, turn: Turn<'_>, again: bool) -> Input<'static, T> {
        filled(if again { turn.share(self.0) } else { turn.take(self.0) })
    }

    #[inline]
    fn lend<'a>(&self, turn: Turn<'a>, again: bool) -> Input<'a, T> {
        filled(turn.lend(self.0, again))
    }

    #[inline]
    fn give_back(&self, turn: Turn<'_>) {
        turn.give_back(self.0);
    }

    fn release(&self, turn: Turn<'_>) {
        turn.release(self.0);
    }
}

impl<T> sealed::Sealed for Handle<T> {}

impl<T: 'static> Dependencies for Handle<T> {
    type Values<'a> = Input<'a, T>;
    type Kept = Source<T>;

    fn edges(&self, edges: &mut Vec<Edge>) {
        edges.push(self.edge(true));
    }

    fn kept(&self) -> Source<T> {
        // SAFETY: the slot of a handle's node has the handle's type in its own graph; the graph has no plan if the
        // handle is of another one.
        Source(unsafe { Place::new(self.node()) })
    }
}

/// A handle whose node may fail, or be skipped; made by [`Handle::optional`].
#[derive(Debug)]
pub struct Optional<T>(pub(crate) Handle<T>);

impl<T> Clone for Optional<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Optional<T> {}

/// One input that may be missing, checked.
#[doc(hidden)]
pub struct OptionalSource<T>(Source<T>);

impl<T> std::fmt::Debug for OptionalSource<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OptionalSource").field(&self.0).finish()
    }
}

impl<T: 'static> Sources for OptionalSource<T> {
    type Values<'a> = Option<Input<'a, T>>;

    #[inline]
    fn take(&self, turn: Turn<'_>, again: bool) -> Option<Input<'static, T>> {
        if again { turn.share(self.0.0) } else { turn.take(self.0.0) }
    }

    #[inline]
    fn lend<'a>(&self, turn: Turn<'a>, again: bool) -> Option<Input<'a, T>> {
        turn.lend(self.0.0, again)
    }

    #[inline]
    fn give_back(&self, turn: Turn<'_>) {
        self.0.give_back(turn);
    }

    fn release(&self, turn: Turn<'_>) {
        self.0.release(turn);
    }
}

impl<T> sealed::Sealed for Optional<T> {}

impl<T: 'static> Dependencies for Optional<T> {
    type Values<'a> = Option<Input<'a, T>>;
    type Kept = OptionalSource<T>;

    fn edges(&self, edges: &mut Vec<Edge>) {
        edges.push(self.0.edge(false));
    }

    fn kept(&self) -> OptionalSource<T> {
        OptionalSource(self.0.kept())
    }
}

impl<S: Sources> Sources for Box<[S]> {
    type Values<'a> = Vec<S::Values<'a>>;

    fn take(&self, turn: Turn<'_>, again: bool) -> Vec<S::Values<'static>> {
        self.iter().map(|source| source.take(turn, again)).collect()
    }

    fn lend<'a>(&self, turn: Turn<'a>, again: bool) -> Vec<S::Values<'a>> {
        self.iter().map(|source| source.lend(turn, again)).collect()
    }

    #[inline]
    fn give_back(&self, turn: Turn<'_>) {
        for source in self {
            source.give_back(turn);
        }
    }

    fn release(&self, turn: Turn<'_>) {
        for source in self {
            source.release(turn);
        }
    }
}

impl<D: Dependencies> sealed::Sealed for &[D] {}

impl<D: Dependencies> Dependencies for &[D] {
    type Values<'a> = Vec<D::Values<'a>>;
    type Kept = Box<[D::Kept]>;

    fn edges(&self, edges: &mut Vec<Edge>) {
        self.iter().for_each(|one| one.edges(edges));
    }

    fn kept(&self) -> Self::Kept {
        self.iter().map(Dependencies::kept).collect()
    }
}

impl<D: Dependencies> sealed::Sealed for Vec<D> {}

impl<D: Dependencies> Dependencies for Vec<D> {
    type Values<'a> = Vec<D::Values<'a>>;
    type Kept = Box<[D::Kept]>;

    fn edges(&self, edges: &mut Vec<Edge>) {
        self.as_slice().edges(edges);
    }

    fn kept(&self) -> Self::Kept {
        self.as_slice().kept()
    }
}

/// An array of what `take` gives of each source. If that panicked, which would be a defect of ours, what was taken
/// would not be dropped: so the array need not be in memory, piece by piece, while it is made.
#[inline]
fn each<S, V, const N: usize>(sources: &[S; N], take: impl Fn(&S) -> V) -> [V; N] {
    let mut values = [const { MaybeUninit::<V>::uninit() }; N];
    for (value, source) in values.iter_mut().zip(sources) {
        value.write(take(source));
    }
    // SAFETY: all were written, and a value may be read as what it is.
    unsafe { mem::transmute_copy(&values) }
}

impl<S: Sources, const N: usize> Sources for [S; N] {
    type Values<'a> = [S::Values<'a>; N];

    #[inline]
    fn take(&self, turn: Turn<'_>, again: bool) -> [S::Values<'static>; N] {
        each(self, |source| source.take(turn, again))
    }

    #[inline]
    fn lend<'a>(&self, turn: Turn<'a>, again: bool) -> [S::Values<'a>; N] {
        each(self, |source| source.lend(turn, again))
    }

    #[inline]
    fn give_back(&self, turn: Turn<'_>) {
        for source in self {
            source.give_back(turn);
        }
    }

    fn release(&self, turn: Turn<'_>) {
        for source in self {
            source.release(turn);
        }
    }
}

impl<D: Dependencies, const N: usize> sealed::Sealed for [D; N] {}

impl<D: Dependencies, const N: usize> Dependencies for [D; N] {
    type Values<'a> = [D::Values<'a>; N];
    type Kept = [D::Kept; N];

    fn edges(&self, edges: &mut Vec<Edge>) {
        self.as_slice().edges(edges);
    }

    fn kept(&self) -> Self::Kept {
        self.each_ref().map(Dependencies::kept)
    }
}

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<$($name: Sources),*> Sources for ($($name,)*) {
            type Values<'a> = ($($name::Values<'a>,)*);

            #[inline]
            #[allow(clippy::unused_unit, non_snake_case, unused_variables, reason = "for tuples of all lengths")]
            fn take(&self, turn: Turn<'_>, again: bool) -> Self::Values<'static> {
                let ($($name,)*) = self;
                ($($name.take(turn, again),)*)
            }

            #[inline]
            #[allow(clippy::unused_unit, non_snake_case, unused_variables, reason = "for tuples of all lengths")]
            fn lend<'a>(&self, turn: Turn<'a>, again: bool) -> Self::Values<'a> {
                let ($($name,)*) = self;
                ($($name.lend(turn, again),)*)
            }

            #[inline]
            #[allow(non_snake_case, unused_variables, reason = "for tuples of all lengths")]
            fn give_back(&self, turn: Turn<'_>) {
                let ($($name,)*) = self;
                $(
                    $name.give_back(turn);
                )*
            }

            #[allow(non_snake_case, unused_variables, reason = "for tuples of all lengths")]
            fn release(&self, turn: Turn<'_>) {
                let ($($name,)*) = self;
                $(
                    $name.release(turn);
                )*
            }
        }

        impl<$($name: Dependencies),*> sealed::Sealed for ($($name,)*) {}

        impl<$($name: Dependencies),*> Dependencies for ($($name,)*) {
            type Values<'a> = ($($name::Values<'a>,)*);
            type Kept = ($($name::Kept,)*);

            #[allow(non_snake_case, unused_variables, reason = "for tuples of all lengths")]
            fn edges(&self, edges: &mut Vec<Edge>) {
                let ($($name,)*) = self;
                $($name.edges(edges);)*
            }

            #[allow(clippy::unused_unit, non_snake_case, reason = "for tuples of all lengths")]
            fn kept(&self) -> Self::Kept {
                let ($($name,)*) = self;
                ($($name.kept(),)*)
            }
        }
    };
}

tuples!();
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
tuples!(A B C D E F G H I);
tuples!(A B C D E F G H I J);
tuples!(A B C D E F G H I J K);
tuples!(A B C D E F G H I J K L);
