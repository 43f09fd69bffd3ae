//! The loop itself.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    sync::atomic::Ordering,
    task::{Context, Poll},
    time::Duration,
};

use ebbtide_lifecycle::{Triggered, time::Timer, wait::Wait};
use futures_util::stream::{FuturesUnordered, Stream};

use super::{
    Event, Shared,
    attempt::{Held, attempt, release},
};
use crate::{error::ReceiveError, mailbox::Boxed, message::Delivery};

/// How long until messages are asked for again after that has failed, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A worker at work.
struct Work<'a, T: Timer> {
    shared: &'a Shared<T>,
    /// What is under way, and what is being given back.
    under_way: FuturesUnordered<Boxed<'a, ()>>,
    /// What was received and not begun.
    in_hand: VecDeque<Held>,
    asking: Option<Asking<'a, T>>,
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

enum Asking<'a, T: Timer> {
    /// For messages.
    Receiving(Boxed<'a, Result<Vec<Delivery>, ReceiveError>>),
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
        in_hand: VecDeque::new(),
        asking: None,
        iterations: 0,
        pause: PAUSE_MIN,
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
        loop {
            if !self.is_stopping && Pin::new(&mut self.stopped).poll(cx).is_ready() {
                self.stop();
            }
            self.begin();
            self.ask();
            if self.asking.is_none() && self.in_hand.is_empty() && self.under_way.is_empty() {
                return Poll::Ready(());
            }
            let mut has_moved = self.poll_asking(cx);
            while let Poll::Ready(Some(())) = Pin::new(&mut self.under_way).poll_next(cx) {
                has_moved = true;
            }
            if !has_moved {
                return Poll::Pending;
            }
        }
    }

    /// Gives back all that was not begun; what is being received is dropped, and has taken nothing.
    fn stop(&mut self) {
        self.is_stopping = true;
        self.asking = None;
        // The last first: each comes back in front of those that are there.
        for held in self.in_hand.drain(..).rev() {
            self.under_way.push(Box::pin(release(self.shared, held)));
        }
    }

    /// Begins as much as there is room for.
    fn begin(&mut self) {
        while self.under_way.len() < self.shared.settings.concurrency
            && let Some(held) = self.in_hand.pop_front()
        {
            if held.until <= self.shared.timer.now() {
                // It has waited here for too long, and may be in other hands.
                self.under_way.push(Box::pin(release(self.shared, held)));
                continue;
            }
            self.under_way.push(Box::pin(attempt(self.shared, held)));
        }
    }

    /// Asks for more once everything in hand has been begun, and there is room.
    fn ask(&mut self) {
        let settings = &self.shared.settings;
        let has_room = self.in_hand.is_empty() && self.under_way.len() < settings.concurrency;
        let is_enough = settings.max_iterations.is_some_and(|max| self.iterations >= max);
        if has_room && self.asking.is_none() && !self.is_stopping && !self.is_closed && !is_enough {
            self.asking = Some(Asking::Receiving(self.shared.mailbox.receive(settings.pull)));
        }
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
                self.take_in(batch);
            }
            Err(ReceiveError::Closed) => self.is_closed = true,
            Err(error) => {
                self.shared.tell(&Event::NotReceived(&error));
                let until = self.shared.timer.now() + self.pause;
                self.pause = (self.pause * 2).min(PAUSE_MAX);
                self.asking = Some(Asking::Pausing(Box::pin(self.shared.timer.sleep_until(until))));
            }
        }
        true
    }

    fn take_in(&mut self, batch: Vec<Delivery>) {
        let until = self.shared.timer.now() + self.shared.settings.pull.lease().duration();
        for delivery in batch {
            // Refused only once a stop has begun, and then it is given back, uncounted.
            match self.shared.gate.enter_owned() {
                Ok(permit) => self.in_hand.push_back(Held { delivery, permit, until }),
                Err(_) => {
                    let (mailbox, receipt) = (self.shared.mailbox.clone(), delivery.receipt);
                    self.under_way.push(Box::pin(async move {
                        // One that has expired is back already; for any other reason it comes back by itself.
                        let _ = mailbox.settle(receipt, crate::message::Settlement::Release).await;
                    }));
                }
            }
        }
    }
}
