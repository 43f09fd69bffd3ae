use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Gate, Lifecycle, Reason, State, Step, Stopped, Stopping, Trigger,
    time::{Clock, Deadline, SystemClock, Timer, VirtualClock},
    wait::{Bell, Elapsed, Wait, Watch},
};

use crate::{Orphan, Panics, Wakes, poll_with};

/// Puts one kind of wait to all ways of waiting: it is not there at first, `come` makes it so.
fn waits_both_ways<W>(make: impl Fn() -> (Wait<W>, Box<dyn FnOnce() + Send>))
where
    W: Watch + Send,
    W::Seen: Send,
{
    // Awaited.
    let (mut wait, come) = make();
    let wakes = Wakes::new();
    assert!(poll_with(&wakes, &mut wait).is_pending());
    assert!(poll_with(&wakes, &mut wait).is_pending(), "polling again changes nothing");
    come();
    assert_eq!(wakes.count(), 1);
    assert!(poll_with(&wakes, &mut wait).is_ready());

    // Blocking.
    let (wait, come) = make();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            wait.wait();
        });
        come();
        waiter.join().unwrap();
    });

    // Blocking, with a deadline that passes: the first is over already, the second comes.
    for timeout in [Duration::ZERO, Duration::from_millis(5)] {
        let (wait, _come) = make();
        let deadline = Deadline::after(SystemClock, timeout);
        assert!(matches!(wait.wait_by(deadline), Err(Elapsed)));
        assert!(deadline.is_expired(SystemClock.now()), "a wait never gives up early");
    }

    // Blocking, with a deadline that does not pass.
    for deadline in [Deadline::never(), Deadline::after(SystemClock, Duration::from_secs(60))] {
        let (wait, come) = make();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| wait.wait_by(deadline).is_ok());
            come();
            assert!(waiter.join().unwrap());
        });
    }

    // Awaited with a deadline, in virtual time: one that passes, one that does not, none.
    let clock = VirtualClock::new();
    let minute = clock.now() + Duration::from_secs(60);
    let (wait, _come) = make();
    assert!(clock.block_on(wait.by(&clock, Deadline::at(minute))).is_err());
    assert_eq!(clock.now(), minute);

    for deadline in [Deadline::at(minute + Duration::from_secs(60)), Deadline::never()] {
        let (wait, come) = make();
        let mut wait = wait.by(&clock, deadline);
        let wakes = Wakes::new();
        assert!(poll_with(&wakes, &mut wait).is_pending());
        come();
        assert!(poll_with(&wakes, &mut wait).map(|seen| seen.is_ok()) == Poll::Ready(true));
    }

    // What is there already is seen even after the deadline.
    let (wait, come) = make();
    come();
    assert!(wait.wait_by(Deadline::at(minute)).is_ok());
    let (wait, come) = make();
    come();
    assert!(clock.block_on(wait.by(&clock, Deadline::at(minute))).is_ok());
}

#[test]
fn l4_an_idle_gate_is_waited_for_both_ways() {
    waits_both_ways(|| {
        let gate = Gate::new();
        let permit = gate.enter_owned().unwrap();
        (gate.idle(), Box::new(move || drop(permit)))
    });
}

#[test]
fn l4_a_drained_gate_is_waited_for_both_ways() {
    waits_both_ways(|| {
        let gate = Gate::new();
        (gate.drained(), Box::new(move || assert!(gate.close())))
    });
}

#[test]
fn l4_a_state_is_waited_for_both_ways() {
    waits_both_ways(|| {
        let life = Lifecycle::new();
        (life.reached(State::Starting), Box::new(move || assert!(life.step(Step::Start).is_ok())))
    });
}

#[test]
fn l4_a_trigger_is_waited_for_both_ways() {
    waits_both_ways(|| {
        let trigger = Trigger::new();
        let token = trigger.token();
        (token.triggered(), Box::new(move || assert!(trigger.fire(Reason::requested("test")))))
    });
}

#[test]
fn a_wait_that_was_dropped_is_not_woken() {
    let gate = Gate::new();
    let permit = gate.enter_owned().unwrap();
    let wakes = Wakes::new();
    let mut given_up = gate.idle();
    assert!(poll_with(&wakes, &mut given_up).is_pending());
    drop(given_up);
    let mut kept = gate.idle();
    let kept_wakes = Wakes::new();
    assert!(poll_with(&kept_wakes, &mut kept).is_pending());
    drop(permit);
    assert_eq!((wakes.count(), kept_wakes.count()), (0, 1));
}

#[test]
fn a_wait_for_idle_goes_on_when_the_idle_moment_has_passed() {
    let gate = Gate::new();
    let first = gate.enter_owned().unwrap();
    let mut idle = gate.idle();
    let wakes = Wakes::new();
    assert!(poll_with(&wakes, &mut idle).is_pending());
    drop(first);
    let second = gate.enter_owned().unwrap();
    assert!(poll_with(&wakes, &mut idle).is_pending());
    drop(second);
    assert_eq!(wakes.count(), 2);
    assert!(poll_with(&wakes, &mut idle).is_ready());
}

#[test]
fn a_wait_with_a_deadline_arms_no_timer_when_there_is_nothing_to_wait_for() {
    struct Unarmed(SystemClock);
    impl Clock for Unarmed {
        fn now(&self) -> std::time::Instant {
            self.0.now()
        }
    }
    impl Timer for Unarmed {
        type Sleep = std::future::Ready<()>;
        fn sleep_until(&self, _at: std::time::Instant) -> Self::Sleep {
            panic!("a timer was armed")
        }
    }

    let gate = Gate::new();
    let wait = gate.idle().by(Unarmed(SystemClock), Deadline::after(SystemClock, Duration::ZERO));
    assert!(futures_lite::future::block_on(wait).is_ok());
}

#[test]
fn a_waker_may_drop_the_wait_that_it_wakes() {
    let gate = Gate::new();
    let permit = gate.enter_owned().unwrap();
    assert!(Orphan::poll(gate.idle()).is_pending());
    drop(permit);

    let trigger = Trigger::new();
    assert!(Orphan::poll(trigger.token().triggered()).is_pending());
    trigger.fire(Reason::Signal(15));
}

#[test]
fn l3_a_waker_that_panics_costs_no_other_waiter_its_wake_up() {
    let gate = Gate::new();
    let permit = gate.enter_owned().unwrap();
    let (mut bad, mut good) = (gate.idle(), gate.idle());
    let waker = Waker::from(Arc::new(Panics));
    assert!(Pin::new(&mut bad).poll(&mut Context::from_waker(&waker)).is_pending());
    let wakes = Wakes::new();
    assert!(poll_with(&wakes, &mut good).is_pending());
    drop(permit);
    assert_eq!(wakes.count(), 1);
}

#[test]
fn a_wait_that_moves_to_another_task_wakes_that_one() {
    let gate = Gate::new();
    let permit = gate.enter_owned().unwrap();
    let mut idle = gate.idle();
    let [first, second] = [Wakes::new(), Wakes::new()];
    assert!(poll_with(&first, &mut idle).is_pending());
    assert!(poll_with(&second, &mut idle).is_pending());
    drop(permit);
    assert_eq!((first.count(), second.count()), (0, 1));
}

#[test]
fn a_blocking_wait_outlives_a_park_of_its_own_thread() {
    // Polling it parks the thread, and so takes the token of the wake that came before.
    let mut polls = 0;
    let stop = std::future::poll_fn(move |cx| {
        polls += 1;
        if polls == 2 {
            return Poll::Ready(Stopped::Clean);
        }
        cx.waker().wake_by_ref();
        thread::park();
        Poll::Pending
    });
    assert_eq!(Stopping::future(stop).wait(), Stopped::Clean);
}

#[test]
fn a_wait_with_a_deadline_takes_a_last_look() {
    /// There from the third look on, with nobody rung for.
    #[derive(Default)]
    struct Late(Cell<u32>, Bell);
    impl Watch for Late {
        type Seen = ();
        fn look(&self) -> Option<()> {
            self.0.set(self.0.get() + 1);
            (self.0.get() > 2).then_some(())
        }
        fn bell(&self) -> &Bell {
            &self.1
        }
    }

    let clock = VirtualClock::new();
    let now = Deadline::at(clock.now());
    assert!(clock.block_on(Wait::new(Late::default()).by(&clock, now)).is_ok());
    assert!(Wait::new(Late::default()).wait_by(now).is_ok());
}
