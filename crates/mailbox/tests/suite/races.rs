//! What two threads do to each other, many times over: what goes wrong lies between two steps of one of them.

use std::{
    hint,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use ebbtide_lifecycle::{
    time::{Clock, Deadline, SystemClock},
    wait::block_on_by,
};
use ebbtide_mailbox::{Mailbox, Message, Pull, Span};

use crate::{SECOND, at_once, now, send, virtual_mailbox};

/// Enough to meet in the few nanoseconds that matter.
const ROUNDS: usize = 2_000;

/// Has two threads begin together, but for so many steps of one of them.
struct Start(AtomicUsize);

impl Start {
    fn wait(&self, lag: usize) {
        self.0.fetch_add(1, Ordering::SeqCst);
        while self.0.load(Ordering::SeqCst) < 2 {
            thread::yield_now();
        }
        for _ in 0..lag {
            hint::spin_loop();
        }
    }
}

/// Whoever else looks first when a delay has ended moves the message; who waits must not miss it.
#[test]
fn who_waits_sees_a_message_that_a_count_has_found_first() {
    for round in 0..ROUNDS {
        let (clock, mailbox) = virtual_mailbox();
        let delay = Span::new(SECOND).unwrap();
        now(mailbox.send(Message::new("one").delayed(delay))).unwrap();
        let start = Start(AtomicUsize::new(0));
        let received = thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                start.wait(0);
                let by = Deadline::at(SystemClock.now() + 10 * SECOND);
                block_on_by(mailbox.receive(Pull::default()), by)
            });
            start.wait(round % 300);
            clock.advance(SECOND);
            now(mailbox.counts()).unwrap();
            receiving.join().unwrap()
        });
        let received = received.unwrap_or_else(|_| panic!("round {round}: the wake-up was lost"));
        assert_eq!(received.unwrap().len(), 1);
    }
}

#[test]
fn nothing_is_given_out_when_the_close_has_returned() {
    for round in 0..ROUNDS {
        let (_clock, mailbox) = virtual_mailbox();
        for _ in 0..100 {
            send(&mailbox, "one");
        }
        let start = Start(AtomicUsize::new(0));
        let (at_close, later) = thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                start.wait(0);
                while now(mailbox.receive(at_once().max(1).unwrap())).is_ok() {}
            });
            start.wait(round % 300);
            mailbox.close();
            let at_close = now(mailbox.counts()).unwrap();
            receiving.join().unwrap();
            (at_close, now(mailbox.counts()).unwrap())
        });
        assert_eq!(at_close, later, "round {round}");
    }
}
