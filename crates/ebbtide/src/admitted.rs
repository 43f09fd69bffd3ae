//! A task that the drain waits for.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use ebbtide_lifecycle::{Admission, Outcome, Refused, time::Tempo};
use pin_project_lite::pin_project;

pin_project! {
    /// A future with a permit, which it returns when it ends, and when it is dropped.
    pub(crate) struct Admitted<F> {
        // Before the permit: what it holds is dropped by the time that it is counted out.
        #[pin]
        future: F,
        permit: Permit,
    }
}

struct Permit {
    /// There until it is settled.
    admission: Option<Admission<Tempo>>,
    /// Set while the future is polled: if it is when the permit is dropped, that poll has panicked.
    is_polled: bool,
}

impl<F> Admitted<F> {
    pub(crate) fn new(future: F, admission: Admission<Tempo>) -> Self {
        Self { future, permit: Permit { admission: Some(admission), is_polled: false } }
    }

    /// The future alone, when the loop did not take it.
    pub(crate) fn hand_back(refused: Refused<Self>) -> Refused<F> {
        let Self { future, mut permit } = refused.work;
        permit.settle(Outcome::HandedBack);
        Refused { why: refused.why, work: future }
    }
}

impl<F: Future> Future for Admitted<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.permit.is_polled = true;
        let polled = this.future.poll(cx);
        this.permit.is_polled = false;
        let output = ready!(polled);
        this.permit.settle(Outcome::Completed);
        Poll::Ready(output)
    }
}

impl Permit {
    fn settle(&mut self, outcome: Outcome) {
        if let Some(admission) = self.admission.take() {
            admission.settle(outcome);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.settle(if self.is_polled { Outcome::Failed } else { Outcome::Cancelled });
    }
}
