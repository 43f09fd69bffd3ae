//! What may be waited for for good, read on a thread of its own: standard input, and files that are pipes.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    },
    task::Poll,
    thread,
};

use futures_util::task::AtomicWaker;

use crate::fault::Fault;

/// The exit code for a system that has no threads to give.
const NO_THREAD: u8 = 71;

/// What a thread reads, piece by piece.
pub(crate) struct Pieces<T> {
    taken: Receiver<T>,
    waker: Arc<AtomicWaker>,
}

/// Where the thread puts them.
pub(crate) struct Tray<T> {
    pieces: SyncSender<T>,
    /// Wakes whoever waits for the next piece, or for the end: when it is dropped, after `pieces`.
    bell: Bell,
}

struct Bell(Arc<AtomicWaker>);

impl Drop for Bell {
    fn drop(&mut self) {
        self.0.wake();
    }
}

impl<T> Tray<T> {
    /// Waits for room, and gives whether somebody takes it.
    pub(crate) fn put(&self, piece: T) -> bool {
        let is_taken = self.pieces.send(piece).is_ok();
        self.bell.0.wake();
        is_taken
    }

    #[cfg(test)]
    pub(crate) fn into(pieces: SyncSender<T>) -> Self {
        Self { pieces, bell: Bell(Arc::default()) }
    }
}

impl<T: Send + 'static> Pieces<T> {
    /// Begins to read, up to so many pieces ahead. The thread is not waited for: it may sit at a terminal that nobody
    /// types at.
    pub(crate) fn read(ahead: usize, read: impl FnOnce(&Tray<T>) + Send + 'static) -> Result<Self, Fault> {
        let ((pieces, taken), waker) = (sync_channel(ahead), Arc::new(AtomicWaker::new()));
        let tray = Tray { pieces, bell: Bell(waker.clone()) };
        let started = thread::Builder::new().name("stdin".to_owned()).spawn(move || read(&tray));
        started
            .map_err(|error| Fault::new(NO_THREAD, format!("cannot start a thread to read on: {error}")))?;
        Ok(Self { taken, waker })
    }

    /// The next one; none at the end. Dropped before its end, it has taken none.
    pub(crate) async fn next(&mut self) -> Option<T> {
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            match self.taken.try_recv() {
                Ok(piece) => Poll::Ready(Some(piece)),
                Err(TryRecvError::Empty) => Poll::Pending,
                Err(TryRecvError::Disconnected) => Poll::Ready(None),
            }
        })
        .await
    }
}
