use std::{
    future::{Future, pending, poll_fn, ready},
    pin::Pin,
    sync::{Arc, Barrier},
    task::{Context, Poll, Wake, Waker},
    thread,
};

use ebbtide_lifecycle::{Interrupted, Reason, Token, Trigger};
use futures_lite::future::block_on;

use crate::{Wakes, poll_with};

#[test]
fn the_first_reason_wins() {
    const THREADS: i32 = 4;
    let trigger = Trigger::new();
    let token = trigger.token();
    let line = Barrier::new(THREADS as usize);
    let winners: Vec<_> = thread::scope(|scope| {
        let fire = |number| {
            let (trigger, line) = (&trigger, &line);
            scope.spawn(move || {
                line.wait();
                trigger.fire(Reason::Signal(number)).then_some(number)
            })
        };
        let threads: Vec<_> = (0..THREADS).map(fire).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(winners.len(), 1);
    assert_eq!(token.reason(), Some(&Reason::Signal(winners[0])));
    assert!(token.is_triggered() && trigger.is_triggered());
}

#[test]
fn any_number_of_waiters_get_the_reason() {
    let trigger = Trigger::new();
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let triggered = trigger.token().triggered();
            thread::spawn(move || triggered.wait())
        })
        .collect();
    assert!(trigger.fire(Reason::input_closed("orders")));
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap().to_string(), "input orders closed");
    }
    assert_eq!(block_on(trigger.token().triggered()), Reason::input_closed("orders"));
}

#[test]
fn a_parent_reaches_its_children_and_not_the_other_way() {
    let root = Trigger::new();
    let [left, right] = [root.token().child(), root.token().child()];
    let below = left.token().child();

    assert!(left.fire(Reason::requested("left")));
    assert_eq!(below.token().reason(), Some(&Reason::requested("left")));
    assert!(!root.is_triggered() && !right.is_triggered());

    assert!(root.fire(Reason::Signal(15)));
    assert_eq!(right.token().reason(), Some(&Reason::Signal(15)));
    assert_eq!(left.token().reason(), Some(&Reason::requested("left")), "its own reason came first");
}

#[test]
fn a_child_of_a_fired_trigger_is_born_fired() {
    let root = Trigger::new();
    root.fire(Reason::requested("early"));
    assert_eq!(root.token().child().token().reason(), Some(&Reason::requested("early")));
}

#[test]
fn a_grandchild_is_reached_when_its_parent_is_gone() {
    let root = Trigger::new();
    let grandchild = root.token().child().token().child();
    assert!(root.fire(Reason::Signal(2)));
    assert!(grandchild.is_triggered());
}

#[test]
fn a_child_made_while_the_parent_fires_is_reached() {
    for _ in 0..2_000 {
        let root = Trigger::new();
        let line = Barrier::new(2);
        let child = thread::scope(|scope| {
            let maker = scope.spawn(|| {
                line.wait();
                root.token().child()
            });
            line.wait();
            root.fire(Reason::Signal(15));
            maker.join().unwrap()
        });
        assert!(child.is_triggered());
    }
}

#[test]
fn a_long_line_of_children_overflows_no_stack() {
    const GENERATIONS: usize = 200_000;
    let root = Trigger::new();
    let mut line = vec![root.clone()];
    for _ in 0..GENERATIONS {
        line.push(line.last().unwrap().token().child());
    }
    let youngest = line.pop().unwrap();
    let kept = line.clone();
    drop(line);
    assert!(root.fire(Reason::Signal(15)));
    assert!(youngest.is_triggered());
    drop(kept);
    drop(root);
    drop(youngest);
}

#[test]
fn a_wrapped_future_gives_its_output() {
    let trigger = Trigger::new();
    assert_eq!(block_on(trigger.token().wrap(ready(7))), Ok(7));
}

#[test]
fn a_wrapped_future_ends_with_the_trigger() {
    let trigger = Trigger::new();
    let mut wrapped = Box::pin(trigger.token().wrap(pending::<()>()));
    let wakes = Wakes::new();
    assert!(poll_with(&wakes, &mut wrapped).is_pending());
    trigger.fire(Reason::requested("enough"));
    assert_eq!(wakes.count(), 1);
    let interrupted = Interrupted { reason: Reason::requested("enough") };
    assert_eq!(interrupted.to_string(), "interrupted: requested: enough");
    assert_eq!(poll_with(&wakes, &mut wrapped), Poll::Ready(Err(interrupted)));
}

#[test]
fn a_token_that_is_triggered_first_keeps_the_future_from_starting() {
    let trigger = Trigger::new();
    trigger.fire(Reason::requested("before"));
    let never = poll_fn(|_| -> Poll<()> { panic!("the future was started") });
    assert!(block_on(trigger.token().wrap(never)).is_err());
}

#[test]
fn an_output_that_is_there_is_not_thrown_away() {
    let trigger = Trigger::new();
    let mut polls = 0;
    let second_time = poll_fn(|_| {
        polls += 1;
        if polls == 2 { Poll::Ready("output") } else { Poll::Pending }
    });
    let mut wrapped = Box::pin(trigger.token().wrap(second_time));
    assert!(poll_with(&Wakes::new(), &mut wrapped).is_pending());
    trigger.fire(Reason::requested("tie"));
    assert_eq!(poll_with(&Wakes::new(), &mut wrapped), Poll::Ready(Ok("output")));
}

#[test]
fn an_interrupted_future_is_dropped_at_once() {
    let canary = Arc::new(());
    let trigger = Trigger::new();
    let inside = canary.clone();
    let mut wrapped = Box::pin(trigger.token().wrap(async move {
        let _inside = inside;
        pending::<()>().await;
    }));
    assert!(poll_with(&Wakes::new(), &mut wrapped).is_pending());
    trigger.fire(Reason::requested("stop"));
    assert!(poll_with(&Wakes::new(), &mut wrapped).is_ready());
    assert_eq!(Arc::strong_count(&canary), 1);
}

#[test]
fn a_reason_reads_as_a_sentence() {
    for (reason, text) in [
        (Reason::Signal(15), "SIGTERM"),
        (Reason::Signal(2), "SIGINT"),
        (Reason::Signal(1), "SIGHUP"),
        (Reason::Signal(3), "SIGQUIT"),
        (Reason::Signal(10), "signal 10"),
        (Reason::failed("pool", &"no threads"), "pool failed: no threads"),
    ] {
        assert_eq!(reason.to_string(), text);
    }
}

#[test]
fn nobody_is_woken_before_everybody_can_know() {
    /// Looks at the grandchild when the root's waiter is woken, and panics.
    struct Looks(Token);
    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            assert!(self.0.is_triggered());
            panic!("a waker that panics, on purpose");
        }
    }

    let root = Trigger::new();
    let child = root.token().child();
    let grandchild = child.token().child();
    let mut waits = [root.token().triggered(), child.token().triggered()];
    let waker = Waker::from(Arc::new(Looks(grandchild.token())));
    for wait in &mut waits {
        assert!(Pin::new(wait).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let wakes = Wakes::new();
    let mut last = grandchild.token().triggered();
    assert!(poll_with(&wakes, &mut last).is_pending());
    assert!(root.fire(Reason::Signal(15)));
    assert_eq!(wakes.count(), 1);
    assert_eq!(root.reason(), grandchild.reason());
}
