//! The loop itself.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{Triggered, time::Timer, wait::Wait};
use futures_util::stream::{FuturesUnordered, Stream};

use super::{
    Event, Shared,
    attempt::{Hand, Held, attempt, discard, give_back, release},
};
use crate::{error::ReceiveError, mailbox::Boxed, message::Delivery};

/// How long until messages are asked for again after that has failed, at first and at most; and, for those who do not
/// wait for any, after there were none.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// No more batches than this are asked for at the same time, however many messages may be handled: they are hundreds
/// already, and those who get none have cost a question each.
const BATCHES_MAX: usize = 64;

/// How often it looks at everything before others on the executor get their turn.
const ROUNDS_MAX: usize = 64;

/// What has not been begun is given back when this part of its time is left: a server may be slow to hear of it.
const RETURN_PART: u32 = 4;

/// A worker at work.
struct Work<'a, T: Timer> {
    shared: &'a Shared<T>,
    /// What is under way, and what is being given back.
    under_way: FuturesUnordered<Boxed<'a, ()>>,
    /// How many of these are handled, and not settled yet.
    busy: Arc<AtomicUsize>,
    /// What was received and not begun.
    in_hand: VecDeque<Held>,
    /// When the first of these is to be given back, or before; none if there is none.
    return_by: Option<(Instant, Pin<Box<T::Sleep>>)>,
    asking: Option<Asking<'a, T>>,
    /// Further batches that were asked for, which nobody waits for: there was room. Each is taken in when it comes:
    /// one that were kept back until those before it are there would be in nobody's hands after a stop.
    more: FuturesUnordered<Receiving<'a>>,
    /// The last batch was: there may be more.
    was_full: bool,
    /// How often it has received.
    iterations: u64,
    /// How long it pauses the next time that it cannot receive.
    pause: Duration,
    stopped: Wait<Triggered>,
    /// Nothing more is received, and nothing more is begun.
    is_stopping: bool,
    /// Nothing more is received.
    is_closed: bool,
}

type Receiving<'a> = Boxed<'a, Result<Vec<Delivery>, ReceiveError>>;

enum Asking<'a, T: Timer> {
    /// For messages.
    Receiving(Receiving<'a>),
    /// For time to pass.
    Pausing(Pin<Box<T::Sleep>>),
}

/// Works until there is no more to do.
pub(super) async fn work<T>(shared: &Shared<T>)
where
    T: Timer + Clone + Send + Sync + 'static,
    T::Sleep: Send,
{
    let mut work = Work {
        shared,
        under_way: FuturesUnordered::new(),
        busy: Arc::default(),
        in_hand: VecDeque::new(),
        asking: None,
        more: FuturesUnordered::new(),
        was_full: false,
        iterations: 0,
        pause: PAUSE_MIN,
        return_by: None,
        stopped: shared.stop.token().triggered(),
        is_stopping: false,
        is_closed: false,
    };
    poll_fn(|cx| work.poll(cx)).await;
}

impl<T> Work<'_, T>
where
    T: Timer + Clone + Send + Sync + 'static,
    T::Sleep: Send,
{
    /// Ready when there is nothing under way, and nothing more will be.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..ROUNDS_MAX {
            if !self.is_stopping && Pin::new(&mut self.stopped).poll(cx).is_ready() {
                self.stop();
            }
            self.begin();
            let was_busy = self.busy.load(Ordering::Relaxed);
            let mut has_moved = false;
            while let Poll::Ready(Some(())) = Pin::new(&mut self.under_way).poll_next(cx) {
                has_moved = true;
            }
            has_moved |= self.busy.load(Ordering::Relaxed) < was_busy;
            // After that: those that had nothing to wait for have left room, and all that is asked for goes together.
            self.ask();
            let asks = self.asking.is_some() || !self.more.is_empty();
            if !asks && self.in_hand.is_empty() && self.under_way.is_empty() {
                return Poll::Ready(());
            }
            has_moved |= self.poll_asking(cx) | self.poll_more(cx) | self.poll_return(cx);
            if !has_moved {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Gives back all that was not begun; what is being received is dropped, and has taken nothing.
    fn stop(&mut self) {
        self.is_stopping = true;
        self.asking = None;
        self.more = FuturesUnordered::new();
        self.give_back(self.in_hand.len());
    }

    /// How many more may be begun. One that is settled leaves its place to another; but only so many are settled at a
    /// time, and where one is handled at a time it is settled before the next.
    fn room(&self) -> usize {
        let (most, busy) = (self.shared.settings.concurrency, self.busy.load(Ordering::Relaxed));
        let most_unsettled = most.saturating_mul(2).saturating_sub(1);
        most.saturating_sub(busy).min(most_unsettled.saturating_sub(self.under_way.len()))
    }

    /// Begins as much as there is room for.
    fn begin(&mut self) {
        // Those that are never out of sight are begun all the same, or none would be.
        let expire = !self.shared.settings.pull.lease().duration().is_zero();
        while self.room() > 0
            && let Some(held) = self.in_hand.pop_front()
        {
            if expire && held.until <= self.shared.timer.now() {
                // It has waited here for too long, and may be in other hands.
                self.under_way.push(Box::pin(release(self.shared, held)));
                continue;
            }
            self.under_way.push(Box::pin(attempt(self.shared, held, Hand::new(&self.busy))));
        }
    }

    /// Gives back in time what is not begun in time: otherwise it would come back by itself, counted as if it had been
    /// tried. Gives whether there was any.
    fn poll_return(&mut self, cx: &mut Context<'_>) -> bool {
        let lease = self.shared.settings.pull.lease().duration();
        let Some(first) = self.in_hand.front().filter(|_| !lease.is_zero()) else {
            self.return_by = None;
            return false;
        };
        let at = first.until - lease / RETURN_PART;
        // A timer that goes off too early is set again: those in hand change with every batch.
        let armed = match &mut self.return_by {
            Some((armed, sleep)) if *armed <= at => sleep,
            armed => &mut armed.insert((at, Box::pin(self.shared.timer.sleep_until(at)))).1,
        };
        if armed.as_mut().poll(cx).is_pending() {
            return false;
        }
        self.return_by = None;
        let by = self.shared.timer.now() + lease / RETURN_PART;
        let due = self.in_hand.iter().take_while(|held| held.until <= by).count();
        self.give_back(due);
        true
    }

    /// The first so many in hand, the last first: each comes back in front of those that are there.
    fn give_back(&mut self, count: usize) {
        for held in self.in_hand.drain(..count).rev() {
            self.under_way.push(Box::pin(release(self.shared, held)));
        }
    }

    /// Asks for more once everything in hand has been begun, and there is room. If the last batch was full, for as many
    /// batches as there is room for; but not while it pauses.
    fn ask(&mut self) {
        let settings = &self.shared.settings;
        if !self.in_hand.is_empty() || self.is_stopping || self.is_closed {
            return;
        }
        let mut asked = self.iterations + self.more.len() as u64;
        asked += u64::from(matches!(self.asking, Some(Asking::Receiving(_))));
        let mut may_ask = settings.max_iterations.map_or(u64::MAX, |max| max.saturating_sub(asked));
        let room = self.room();
        if self.asking.is_none() && room > 0 && may_ask > 0 {
            self.asking = Some(Asking::Receiving(self.shared.mailbox.receive(settings.pull)));
            may_ask -= 1;
        }
        if !self.was_full || !matches!(self.asking, Some(Asking::Receiving(_))) {
            return;
        }
        let batches = (room / settings.pull.batch()).min(BATCHES_MAX);
        while self.more.len() + 1 < batches && may_ask > 0 {
            self.more.push(self.shared.mailbox.receive(settings.pull.at_once()));
            may_ask -= 1;
        }
    }

    /// Gives whether one of the further batches has come, or will not.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> bool {
        let mut has_moved = false;
        while let Poll::Ready(Some(received)) = Pin::new(&mut self.more).poll_next(cx) {
            has_moved = true;
            match received {
                Ok(batch) => {
                    self.iterations += 1;
                    self.take_in(batch);
                }
                Err(ReceiveError::Closed) => self.is_closed = true,
                Err(error) => {
                    // The one that waits is the one that tries again.
                    self.was_full = false;
                    self.shared.tell(&Event::NotReceived(&error));
                }
            }
        }
        has_moved
    }

    /// Gives whether it came to something.
    fn poll_asking(&mut self, cx: &mut Context<'_>) -> bool {
        let received = match &mut self.asking {
            None => return false,
            Some(Asking::Pausing(sleep)) => {
                let is_over = sleep.as_mut().poll(cx).is_ready();
                if is_over {
                    self.asking = None;
                }
                return is_over;
            }
            Some(Asking::Receiving(receiving)) => match receiving.as_mut().poll(cx) {
                Poll::Pending => return false,
                Poll::Ready(received) => received,
            },
        };
        self.asking = None;
        let was_answered = received.is_ok();
        // Relaxed: a view.
        self.shared.answered.store(was_answered, Ordering::Relaxed);
        match received {
            Ok(batch) => {
                self.iterations += 1;
                self.pause = PAUSE_MIN;
                let (pull, max) = (self.shared.settings.pull, self.shared.settings.max_iterations);
                let is_last = max.is_some_and(|max| self.iterations >= max);
                if batch.is_empty() && pull.patience().is_zero() && !is_last {
                    self.rest(PAUSE_MIN);
                }
                self.take_in(batch);
            }
            Err(ReceiveError::Closed) => self.is_closed = true,
            Err(error) => {
                self.shared.tell(&Event::NotReceived(&error));
                self.rest(self.pause);
                self.pause = (self.pause * 2).min(PAUSE_MAX);
            }
        }
        true
    }

    /// Asks for nothing for so long.
    fn rest(&mut self, pause: Duration) {
        let until = self.shared.timer.now() + pause;
        self.asking = Some(Asking::Pausing(Box::pin(self.shared.timer.sleep_until(until))));
    }

    fn take_in(&mut self, batch: Vec<Delivery>) {
        self.was_full = batch.len() == self.shared.settings.pull.batch();
        let until = self.shared.timer.now() + self.shared.settings.pull.lease().duration();
        let mut refused = Vec::new();
        for delivery in batch {
            match self.shared.gate.enter_owned() {
                Ok(permit) => self.in_hand.push_back(Held { delivery, permit, until }),
                Err(_) => {
                    refused.push(delivery.receipt);
                    discard(delivery);
                }
            }
        }
        // Only once a stop has begun: they are given back uncounted, the last first, as in `stop`.
        for receipt in refused.into_iter().rev() {
            let shared = self.shared;
            self.under_way.push(Box::pin(async move {
                // If it is not back, that is told, and it comes back by itself.
                let _ = give_back(shared, receipt).await;
            }));
        }
    }
}
