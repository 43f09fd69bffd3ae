//! Timers of other runtimes.

/// The timers of tokio, with its clock, which its tests can pause.
///
/// Its sleeps have to be made and polled on a tokio runtime with time enabled; else they panic, as tokio's do.
/// They may be a millisecond late. What blocks a thread until a deadline, as the stop of a
/// [`Tracker`](crate::Tracker) does, keeps to the system's time also while tokio's is paused.
#[cfg(feature = "tokio")]
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioTimer;

#[cfg(feature = "tokio")]
mod on_tokio {
    use std::time::Instant;

    use ebbtide_lifecycle::time::{Clock, Timer};

    use super::TokioTimer;

    impl Clock for TokioTimer {
        fn now(&self) -> Instant {
            tokio::time::Instant::now().into_std()
        }
    }

    impl Timer for TokioTimer {
        type Sleep = tokio::time::Sleep;

        fn sleep_until(&self, at: Instant) -> Self::Sleep {
            tokio::time::sleep_until(tokio::time::Instant::from_std(at))
        }
    }
}

/// The timers of async-io, for smol and every other executor: they run on a thread of async-io's own.
#[cfg(feature = "async-io")]
#[derive(Clone, Copy, Debug, Default)]
pub struct AsyncIoTimer;

#[cfg(feature = "async-io")]
mod on_async_io {
    use std::{
        future::Future,
        pin::Pin,
        task::{Context, Poll},
        time::Instant,
    };

    use ebbtide_lifecycle::time::{Clock, SystemClock, Timer};

    use super::AsyncIoTimer;

    impl Clock for AsyncIoTimer {
        fn now(&self) -> Instant {
            SystemClock.now()
        }
    }

    impl Timer for AsyncIoTimer {
        type Sleep = AsyncIoSleep;

        fn sleep_until(&self, at: Instant) -> AsyncIoSleep {
            AsyncIoSleep(async_io::Timer::at(at))
        }
    }

    /// A sleep on async-io's timers.
    #[derive(Debug)]
    #[must_use = "a sleep does nothing unless awaited"]
    pub struct AsyncIoSleep(async_io::Timer);

    impl Future for AsyncIoSleep {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            Pin::new(&mut self.0).poll(cx).map(drop)
        }
    }
}

#[cfg(feature = "async-io")]
pub use self::on_async_io::AsyncIoSleep;
