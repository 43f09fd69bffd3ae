//! Sleeps and I/O whose loop ends before them, or never runs.

use std::{
    future::Future,
    os::unix::net::UnixStream,
    pin::Pin,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::time::{Clock, SystemClock};
use ebbtide_reactor::{Async, EventLoop, Runtime, Sleep, sleep};
use futures_lite::future::{block_on, poll_once};

use super::{io::A_MOMENT, running};

/// Long enough to tell a hang from a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn a_sleep_of_a_handle_needs_neither_its_loop_nor_its_handle() {
    let unborn = EventLoop::new().handle().sleep_until(SystemClock.now() + A_MOMENT);
    block_on(unborn);
    let handle = Runtime::new().handle();
    let at = SystemClock.now() + A_MOMENT;
    let orphan = handle.sleep_until(at);
    drop(handle);
    block_on(orphan);
    assert!(SystemClock.now() >= at);
}

#[test]
fn a_sleep_keeps_its_time_when_its_loop_ends() {
    let events = running();
    let (made, taken) = mpsc::channel();
    let begin = SystemClock.now();
    let making = move || {
        let mut sleep = Box::pin(sleep(20 * A_MOMENT));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        made.send(sleep).ok().unwrap();
    };
    events.post(making).ok().unwrap();
    let sleep = taken.recv().unwrap();
    thread::park_timeout(15 * A_MOMENT);
    events.stop();
    block_on(sleep);
    let took = SystemClock.now() - begin;
    assert!(took >= 20 * A_MOMENT && took < 30 * A_MOMENT, "{took:?}");
}

#[test]
fn a_sleep_of_a_loop_that_is_stopped_before_it_starts_goes_on_alone() {
    let events = EventLoop::new();
    let mut sleep = Box::pin(events.handle().sleep_until(SystemClock.now() + A_MOMENT));
    assert!(block_on(poll_once(&mut sleep)).is_none());
    events.stop();
    block_on(sleep);
}

#[test]
fn io_of_a_loop_that_is_stopped_before_it_starts_is_an_error() {
    let events = EventLoop::new();
    let one = Async::new_on(&events.handle(), UnixStream::pair().unwrap().0).unwrap();
    let (other, _kept) = UnixStream::pair().unwrap();
    let other = Async::new_on(&events.handle(), other).unwrap();
    assert!(block_on(one.readable()).is_ok(), "its other side is closed");
    let mut readable = Box::pin(other.readable());
    assert!(block_on(poll_once(&mut readable)).is_none());
    events.stop();
    assert!(block_on(readable).unwrap_err().to_string().contains("has ended"));
    assert!(Async::new_on(&events.handle(), UnixStream::pair().unwrap().0).is_err());
}

#[test]
fn a_loop_that_never_ran_is_freed_with_what_was_sent_to_it() {
    let token = Arc::new(());
    let theirs = token.clone();
    let keep = move |_: &ebbtide_reactor::PanicReport<'_>| drop(theirs.clone());
    let events = EventLoop::builder().panic_hook(keep).event_loop();
    let mut sleep = Box::pin(events.handle().sleep_until(SystemClock.now() + PATIENCE));
    assert!(block_on(poll_once(&mut sleep)).is_none());
    drop(sleep);
    drop(events);
    assert_eq!(Arc::strong_count(&token), 1);
}

/// Polls its future wherever it is woken.
struct Inline(Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>);

impl Inline {
    fn begin(future: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let inline = Arc::new(Self(Mutex::new(Some(Box::pin(future)))));
        inline.clone().wake();
        inline
    }
}

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        let Some(mut future) = self.0.lock().unwrap().take() else { return };
        let waker = Waker::from(self.clone());
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            *self.0.lock().unwrap() = Some(future);
        }
    }
}

#[test]
fn e8_a_sleep_that_is_polled_while_its_loop_ends_is_not_early() {
    let events = running();
    let (ended, has_ended) = mpsc::channel();
    let (begun, has_begun) = mpsc::channel();
    let post = move || {
        let inline = Inline::begin(async move {
            sleep(PATIENCE).await;
            ended.send(()).unwrap();
        });
        begun.send(inline).ok().unwrap();
    };
    events.post(post).ok().unwrap();
    let _inline = has_begun.recv().unwrap();
    events.stop();
    assert_eq!(has_ended.try_recv(), Err(mpsc::TryRecvError::Empty));
}

#[test]
fn a_sleep_that_is_made_while_its_loop_ends_goes_on_alone() {
    let events = running();
    let (one, _other) = UnixStream::pair().unwrap();
    let one = Async::new_on(&events.handle(), one).unwrap();
    let (ended, has_ended) = mpsc::channel();
    let _inline = Inline::begin(async move {
        assert!(one.readable().await.is_err(), "nothing comes but the end of the loop");
        sleep(A_MOMENT).await;
        ended.send(()).unwrap();
    });
    events.stop();
    has_ended.recv_timeout(PATIENCE).expect("the sleep ends");
}

#[test]
fn a_sleep_without_end_has_none() {
    let mut runtime = Runtime::new();
    runtime.block_on(async {
        let mut forever: Sleep = sleep(Duration::MAX);
        assert!(poll_once(&mut forever).await.is_none());
        sleep(Duration::from_millis(1)).await;
        assert_eq!(poll_once(&mut forever).await, None);
        assert_eq!(Pin::new(&mut forever).poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
    });
}
