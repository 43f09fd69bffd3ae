//! What is known of those who have not stopped.

use std::{sync::Arc, time::Duration};

use ebbtide_lifecycle::{
    Balance,
    blame::Stragglers,
    contain,
    time::{Deadline, SystemClock, Tempo},
};

use crate::{errand::Errand, subject::Subject};

/// How long all together are given to answer. They should at once, but something is wrong with them already.
const ANSWER_MAX: Duration = Duration::from_millis(200);

/// A subject's own word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Testimony {
    pub(crate) balance: Option<Balance>,
    pub(crate) stragglers: Stragglers,
}

impl Testimony {
    /// Asks here, at once.
    pub(crate) fn of(subject: &dyn Subject) -> Self {
        let balance = contain(|| subject.balance()).unwrap_or_default();
        Self { balance, stragglers: contain(|| subject.stragglers()).unwrap_or_default() }
    }
}

/// Asks them all, side by side. Who does not answer is left out of it.
pub(crate) fn ask(subjects: Vec<Arc<dyn Subject>>, tempo: &Tempo) -> Vec<Testimony> {
    if matches!(tempo, Tempo::Virtual(_)) {
        // Where time stands still nobody can be late.
        return subjects.iter().map(|subject| Testimony::of(&**subject)).collect();
    }
    let ask =
        |subject: Arc<dyn Subject>| Errand::begin("ebbtide-ask", tempo, move |_| Testimony::of(&*subject));
    let errands: Vec<_> = subjects.into_iter().map(ask).collect();
    let deadline = Deadline::after(SystemClock, ANSWER_MAX);
    let answer = |errand: &Errand<_>| errand.ended().wait_by(deadline).ok().and_then(Result::ok);
    errands.iter().map(|errand| answer(errand).unwrap_or_default()).collect()
}
