use std::{sync::Barrier, thread};

use ebbtide_lifecycle::{Illegal, Lifecycle, State, Step};

/// Every pair of state and step. What is not in the first column is refused.
#[test]
fn l1_the_table_is_all_there_is() {
    use State::{Idle, Running, Starting, Stopped, Stopping};
    use Step::{End, Ready, Start, Stop};

    let legal = [
        (Idle, Start, Starting),
        (Idle, Stop, Stopped),
        (Starting, Ready, Running),
        (Starting, Stop, Stopping),
        (Running, Stop, Stopping),
        (Stopping, End, Stopped),
    ];
    for state in State::ALL {
        for step in Step::ALL {
            let expected = legal.iter().find(|(from, by, _)| (*from, *by) == (state, step));
            let expected = expected.map(|(_, _, to)| *to).ok_or(Illegal { step, state });
            assert_eq!(state.after(step), expected);

            let life = Lifecycle::new();
            bring_to(&life, state);
            assert_eq!(life.step(step), expected);
            assert_eq!(life.state(), expected.unwrap_or(state), "a refused step changes nothing");
        }
    }
}

fn bring_to(life: &Lifecycle, state: State) {
    let steps: &[Step] = match state {
        State::Idle => &[],
        State::Starting => &[Step::Start],
        State::Running => &[Step::Start, Step::Ready],
        State::Stopping => &[Step::Start, Step::Ready, Step::Stop],
        State::Stopped => &[Step::Stop],
    };
    for step in steps {
        life.step(*step).unwrap();
    }
    assert_eq!(life.state(), state);
}

#[test]
fn l1_a_stop_before_the_start_sticks() {
    let life = Lifecycle::new();
    assert_eq!(life.step(Step::Stop), Ok(State::Stopped));
    let refused = life.step(Step::Start).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot start while stopped: a stop came first; make a new one to start again"
    );
}

#[test]
fn l1_a_stop_during_the_start_abandons_it() {
    let life = Lifecycle::new();
    life.step(Step::Start).unwrap();
    life.step(Step::Stop).unwrap();
    let refused = life.step(Step::Ready).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot become ready while stopping: a stop came first, the start is abandoned"
    );
}

#[test]
fn every_refusal_says_what_and_why() {
    for state in State::ALL {
        for step in Step::ALL {
            if let Err(illegal) = state.after(step) {
                let message = illegal.to_string();
                assert!(message.contains(&format!("while {state}: ")), "{message}");
            }
        }
    }
}

#[test]
fn of_many_threads_that_take_the_same_step_one_succeeds() {
    const THREADS: usize = 4;
    let life = Lifecycle::new();
    for step in [Step::Start, Step::Ready, Step::Stop, Step::End] {
        let line = Barrier::new(THREADS);
        let take = || {
            line.wait();
            life.step(step).is_ok()
        };
        let succeeded = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).filter(|ok| *ok).count()
        });
        assert_eq!(succeeded, 1, "{step:?}");
    }
    assert_eq!(life.state(), State::Stopped);
}

#[test]
fn a_wait_for_a_state_ends_at_a_later_one_too() {
    let life = Lifecycle::new();
    life.step(Step::Stop).unwrap();
    assert_eq!(life.reached(State::Running).wait(), State::Stopped);
}
