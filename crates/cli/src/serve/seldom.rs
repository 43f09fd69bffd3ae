//! What seldom has to do beside what is busy in the same task.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// `future`, polled when it was woken itself, and not whenever its task is.
pub(super) async fn seldom<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut kept: Option<(Arc<Bell>, Waker)> = None;
    poll_fn(|cx| {
        let fresh = || {
            let bell = Arc::new(Bell { rung: AtomicBool::new(true), task: cx.waker().clone() });
            (bell.clone(), Waker::from(bell))
        };
        let (bell, waker) = match &mut kept {
            Some(kept) if kept.0.task.will_wake(cx.waker()) => kept,
            // It is polled by another task from now on, or for the first time.
            kept => kept.insert(fresh()),
        };
        if !bell.rung.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        // Before the poll: who rings meanwhile wants another one. Acquire: what has happened before the ring.
        bell.rung.swap(false, Ordering::Acquire);
        future.as_mut().poll(&mut Context::from_waker(waker))
    })
    .await
}

/// The waker of the future.
struct Bell {
    rung: AtomicBool,
    task: Waker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Release: to the poll that takes the ring.
        self.rung.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, task::Poll};

    use super::*;

    #[derive(Default)]
    struct Task(AtomicBool);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn it_is_polled_once_for_each_time_that_it_was_woken() {
        let (polls, waker) = (Cell::new(0), Cell::new(None));
        let mut future = pin!(seldom(poll_fn(|cx| {
            polls.set(polls.get() + 1);
            waker.set(Some(cx.waker().clone()));
            if polls.get() < 3 { Poll::Pending } else { Poll::Ready(()) }
        })));
        let task = Waker::from(Arc::new(Task::default()));
        let mut poll = || {
            let poll = future.as_mut().poll(&mut Context::from_waker(&task));
            (poll.is_ready(), polls.get())
        };
        assert_eq!([poll(), poll()], [(false, 1); 2]);
        waker.take().expect("it was polled").wake();
        assert_eq!([poll(), poll()], [(false, 2); 2]);
        waker.take().expect("it was polled").wake();
        assert_eq!(poll(), (true, 3));
    }

    #[test]
    fn whoever_polls_it_last_is_woken() {
        let waker = Cell::new(None);
        let mut future = pin!(seldom(poll_fn(|cx| {
            waker.set(Some(cx.waker().clone()));
            Poll::<()>::Pending
        })));
        let tasks = [Arc::new(Task::default()), Arc::new(Task::default())];
        for task in &tasks {
            let task = Waker::from(task.clone());
            assert!(future.as_mut().poll(&mut Context::from_waker(&task)).is_pending());
        }
        waker.take().expect("it was polled").wake();
        assert_eq!(tasks.map(|task| task.0.load(Ordering::Relaxed)), [false, true]);
    }
}
