//! A thread that lives in somebody's time.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Instant,
};

use ebbtide_lifecycle::{
    time::{Clock, Deadline, Hold, Tempo, Timer, VirtualClock},
    wait::block_on_by,
};

/// What a thread of ours waits by. In virtual time it takes part: time stands still while the thread does something,
/// and may move while it waits.
///
/// Made before the thread is started, so that time does not move in between.
pub(crate) struct Pace {
    tempo: Tempo,
    /// There while the thread does not wait, in virtual time.
    hold: Option<Hold>,
}

impl Pace {
    pub(crate) fn new(tempo: &Tempo) -> Self {
        Self { hold: tempo.hold(), tempo: tempo.clone() }
    }

    pub(crate) fn now(&self) -> Instant {
        self.tempo.now()
    }

    /// Blocks until `future` has ended. Gives nothing if `deadline` came first.
    pub(crate) fn wait<F: Future>(&mut self, future: F, deadline: Deadline) -> Option<F::Output> {
        match &self.tempo {
            Tempo::Real => block_on_by(future, deadline).ok(),
            Tempo::Virtual(clock) => {
                let hold = &mut self.hold;
                clock.block_on(async {
                    // Given up and taken again inside, where the thread takes part.
                    *hold = None;
                    let _again = HoldAgain { hold, clock };
                    first_of(future, clock, deadline).await
                })
            }
        }
    }
}

/// Takes the hold again, also when what was waited for panics.
struct HoldAgain<'a> {
    hold: &'a mut Option<Hold>,
    clock: &'a VirtualClock,
}

impl Drop for HoldAgain<'_> {
    fn drop(&mut self) {
        *self.hold = Some(self.clock.hold());
    }
}

async fn first_of<F: Future>(future: F, clock: &VirtualClock, deadline: Deadline) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut sleep = pin!(deadline.instant().map(|at| clock.sleep_until(at)));
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        match sleep.as_mut().as_pin_mut() {
            Some(sleep) => sleep.poll(cx).map(|()| None),
            None => Poll::Pending,
        }
    })
    .await
}
