//! A limit that is waited for: first come, first served.

use std::{
    collections::VecDeque,
    future::Future,
    mem,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// Lets so many in at a time. Others wait in line.
#[derive(Debug)]
pub(super) struct Turnstile {
    limit: usize,
    line: Mutex<Line>,
}

#[derive(Debug)]
struct Line {
    free: usize,
    tickets: u64,
    /// Those who wait, in the order in which they came. The first one wants more than is free.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    places: usize,
    waker: Waker,
}

/// Places inside. They are free again when it is dropped.
#[derive(Debug)]
pub(super) struct Pass<'t> {
    turnstile: &'t Turnstile,
    places: usize,
}

/// Waits for places. Dropped before, it leaves the line.
pub(super) struct Enter<'t> {
    turnstile: &'t Turnstile,
    places: usize,
    state: State,
}

enum State {
    Outside,
    /// In line, or let in if the ticket is not in line any more.
    Waiting(u64),
    Gone,
}

impl Turnstile {
    pub(super) fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        Self { limit, line: Mutex::new(Line { free: limit, tickets: 0, waiting: VecDeque::new() }) }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Waits until so many places are free, of which there are not more than the limit.
    pub(super) fn enter(&self, places: usize) -> Enter<'_> {
        Enter { turnstile: self, places: places.min(self.limit), state: State::Outside }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        // Nothing that can panic runs under the lock.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees places, and lets in who waits for them.
    fn free(&self, places: usize) {
        let mut line = self.lock();
        line.free += places;
        let let_in = line.advance();
        drop(line);
        let_in.into_iter().for_each(Waker::wake);
    }
}

impl Line {
    /// Lets in those at the head of the line for whom there are places. They have to be woken.
    fn advance(&mut self) -> Vec<Waker> {
        let mut let_in = Vec::new();
        while let Some(first) = self.waiting.pop_front_if(|first| first.places <= self.free) {
            self.free -= first.places;
            let_in.push(first.waker);
        }
        let_in
    }
}

impl<'t> Future for Enter<'t> {
    type Output = Pass<'t>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Pass<'t>> {
        let waker = cx.waker().clone();
        let mut line = self.turnstile.lock();
        match self.state {
            State::Outside if line.waiting.is_empty() && line.free >= self.places => line.free -= self.places,
            State::Outside => {
                let ticket = line.tickets;
                line.tickets += 1;
                line.waiting.push_back(Waiting { ticket, places: self.places, waker });
                drop(line);
                self.state = State::Waiting(ticket);
                return Poll::Pending;
            }
            State::Waiting(ticket) => {
                if let Some(own) = line.waiting.iter_mut().find(|waiting| waiting.ticket == ticket) {
                    let old = mem::replace(&mut own.waker, waker);
                    drop(line);
                    drop(old);
                    return Poll::Pending;
                }
            }
            State::Gone => return Poll::Pending,
        }
        drop(line);
        self.state = State::Gone;
        Poll::Ready(Pass { turnstile: self.turnstile, places: self.places })
    }
}

impl Drop for Enter<'_> {
    fn drop(&mut self) {
        let State::Waiting(ticket) = self.state else { return };
        let mut line = self.turnstile.lock();
        let own = line.waiting.iter().position(|waiting| waiting.ticket == ticket);
        let own = own.and_then(|at| line.waiting.remove(at));
        if own.is_none() {
            // Let in, and never came.
            line.free += self.places;
        }
        let let_in = line.advance();
        drop(line);
        drop(own);
        let_in.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.turnstile.free(self.places);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn poll<'t>(enter: Pin<&mut Enter<'t>>) -> Option<Pass<'t>> {
        match enter.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(pass) => Some(pass),
            Poll::Pending => None,
        }
    }

    #[test]
    fn who_comes_first_is_let_in_first_also_if_he_wants_more() {
        let turnstile = Turnstile::new(3);
        let inside = poll(pin!(turnstile.enter(2))).expect("there is room");
        let (mut large, mut small) = (pin!(turnstile.enter(2)), pin!(turnstile.enter(1)));
        assert!(poll(large.as_mut()).is_none());
        assert!(poll(small.as_mut()).is_none(), "not past who waits already");
        drop(inside);
        assert!(poll(large.as_mut()).is_some());
        assert!(poll(small.as_mut()).is_some());
    }

    #[test]
    fn who_leaves_the_line_makes_room_for_those_behind_whether_let_in_or_not() {
        let turnstile = Turnstile::new(1);
        let inside = poll(pin!(turnstile.enter(1))).expect("there is room");
        let (mut first, mut second) = (Box::pin(turnstile.enter(1)), Box::pin(turnstile.enter(1)));
        let mut third = pin!(turnstile.enter(1));
        assert!(poll(first.as_mut()).is_none() && poll(second.as_mut()).is_none());
        assert!(poll(third.as_mut()).is_none());
        drop(first);
        drop(inside);
        // The second is let in now, but never comes.
        drop(second);
        assert!(poll(third.as_mut()).is_some());
    }

    #[test]
    fn more_places_than_there_are_is_all_of_them() {
        let turnstile = Turnstile::new(2);
        assert!(poll(pin!(turnstile.enter(9))).is_some());
        assert!(poll(pin!(turnstile.enter(2))).is_some(), "all came back");
    }
}
