//! What is known of those who have not stopped.

use std::{mem, sync::Arc, time::Duration};

use ebbtide_lifecycle::{
    Balance,
    blame::Stragglers,
    contain,
    time::{Deadline, SystemClock, Tempo},
};

use crate::{errand::Errand, subject::Subject};

/// How long all together are given to answer, at most. They should at once, but something is wrong with them already.
pub(crate) const ANSWER_MAX: Duration = Duration::from_millis(200);

/// A subject's own word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Testimony {
    pub(crate) balance: Option<Balance>,
    pub(crate) stragglers: Stragglers,
    /// What it panicked with when it was asked.
    pub(crate) panic: Option<String>,
}

impl Testimony {
    /// Asks here, at once.
    pub(crate) fn of(subject: &dyn Subject) -> Self {
        // In this order: what ends in between is named though it is not in flight any more, and not the other way
        // round.
        let stragglers = contain(|| subject.stragglers());
        let balance = contain(|| subject.balance());
        let panicked = balance.as_ref().err().or(stragglers.as_ref().err());
        let panic = panicked.map(|panicked| panicked.message().to_owned());
        Self { balance: balance.unwrap_or_default(), stragglers: stragglers.unwrap_or_default(), panic }
    }
}

/// Asks them all, side by side. Who does not answer within `patience` gives nothing.
pub(crate) fn ask(
    subjects: Vec<Arc<dyn Subject>>,
    tempo: &Tempo,
    patience: Duration,
) -> Vec<Option<Testimony>> {
    if matches!(tempo, Tempo::Virtual(_)) {
        // Where time stands still nobody can be late.
        return subjects.iter().map(|subject| Some(Testimony::of(&**subject))).collect();
    }
    let ask = |subject: Arc<dyn Subject>| {
        let (errand, begun) = Errand::begin("ebbtide-ask", tempo, move |_| Testimony::of(&*subject));
        match begun {
            Ok(()) => Some(errand),
            Err(undone) => {
                // It has the subject, whose drop may hang, and there is no thread to drop it on.
                mem::forget(undone);
                None
            }
        }
    };
    let errands: Vec<_> = subjects.into_iter().map(ask).collect();
    let deadline = Deadline::after(SystemClock, patience.min(ANSWER_MAX));
    let answer = |errand: &Errand<_>| errand.ended().wait_by(deadline).ok()?.ok();
    errands.iter().map(|errand| errand.as_ref().and_then(answer)).collect()
}
