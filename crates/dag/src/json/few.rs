//! Inputs of a call, without an allocation where they are few.

use std::{fmt, ops::Deref};

use crate::input::Input;

/// The outputs that an op gets, in order: a slice, of which the first can be [taken out](Self::into_first).
///
/// Most ops take one or two, and a run does not allocate for those.
pub struct CallInputs<'a, V>(Few<'a, V>);

enum Few<'a, V> {
    One([Input<'a, V>; 1]),
    Two([Input<'a, V>; 2]),
    /// None, or more.
    Any(Vec<Input<'a, V>>),
}

impl<'a, V> CallInputs<'a, V> {
    /// Just one.
    #[inline]
    pub(super) const fn one(input: Input<'a, V>) -> Self {
        Self(Few::One([input]))
    }

    /// The first, to be owned or passed on. None if the node has no inputs.
    #[must_use]
    pub fn into_first(self) -> Option<Input<'a, V>> {
        match self.0 {
            Few::One([first]) | Few::Two([first, _]) => Some(first),
            Few::Any(inputs) => inputs.into_iter().next(),
        }
    }
}

impl<'a, V> FromIterator<Input<'a, V>> for CallInputs<'a, V> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = Input<'a, V>>>(inputs: I) -> Self {
        let mut inputs = inputs.into_iter();
        let Some(first) = inputs.next() else { return Self(Few::Any(Vec::new())) };
        let Some(second) = inputs.next() else { return Self(Few::One([first])) };
        let Some(third) = inputs.next() else { return Self(Few::Two([first, second])) };
        let mut all = vec![first, second, third];
        all.extend(inputs);
        Self(Few::Any(all))
    }
}

impl<'a, V> Deref for CallInputs<'a, V> {
    type Target = [Input<'a, V>];

    fn deref(&self) -> &[Input<'a, V>] {
        match &self.0 {
            Few::One(inputs) => inputs,
            Few::Two(inputs) => inputs,
            Few::Any(inputs) => inputs,
        }
    }
}

impl<V: fmt::Debug> fmt::Debug for CallInputs<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
