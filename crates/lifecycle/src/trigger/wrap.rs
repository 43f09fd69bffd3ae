//! A future that ends when its token is triggered.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::{Reason, Token, Triggered};
use crate::wait::Wait;

pin_project! {
    /// A future that runs until it ends or its token is triggered; made by [`Token::wrap`].
    ///
    /// A token that is triggered before the first poll wins: the future is not started. After that the future wins
    /// a tie: an output that is there is not thrown away. When the token wins, the future is dropped at once.
    #[must_use = "a future does nothing unless awaited"]
    pub struct Wrap<F> {
        #[pin]
        future: Option<F>,
        triggered: Wait<Triggered>,
        started: bool,
    }
}

impl<F: Future> Wrap<F> {
    pub(super) fn new(token: &Token, future: F) -> Self {
        Self { future: Some(future), triggered: token.triggered(), started: false }
    }
}

impl<F: Future> Future for Wrap<F> {
    type Output = Result<F::Output, Interrupted>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let mut triggered = Pin::new(this.triggered);
        if !*this.started {
            *this.started = true;
            if let Poll::Ready(reason) = triggered.as_mut().poll(cx) {
                this.future.set(None);
                return Poll::Ready(Err(Interrupted { reason }));
            }
        }
        let future = this.future.as_mut().as_pin_mut().expect("polled after it had ended");
        if let Poll::Ready(output) = future.poll(cx) {
            this.future.set(None);
            return Poll::Ready(Ok(output));
        }
        triggered.poll(cx).map(|reason| {
            this.future.set(None);
            Err(Interrupted { reason })
        })
    }
}

impl<F> fmt::Debug for Wrap<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wrap").field("triggered", &self.triggered).finish_non_exhaustive()
    }
}

/// The trigger fired before the future ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// Why it fired.
    pub reason: Reason,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted: {}", self.reason)
    }
}

impl std::error::Error for Interrupted {}
