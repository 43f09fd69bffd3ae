//! The lifecycle with its gate against a plain reference model, by random sequences of steps.

use std::sync::Once;

use ebbtide_lifecycle::{Gate, Ledger, Lifecycle, Outcome, OwnedPermit, Refusal, State, Step, Terms};
use proptest::{prelude::*, sample::Index};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

#[derive(Clone, Debug)]
enum Act {
    Take(Step),
    Enter,
    Settle(Index, Outcome),
    DropPermit(Index),
    Fork,
    Close,
    Seal,
    Open,
    Abandon,
}

/// What a plain, single-threaded component would be.
#[derive(Clone, Debug, Default)]
struct Plain {
    state: usize,
    closed: bool,
    sealed: bool,
    given_up: bool,
    permits: usize,
    accepted: u64,
    settled: u64,
    failed: u64,
    refused: u64,
    abandoned: u64,
    returned_after: u64,
}

const LIMIT: usize = 3;

/// The table once more, a row for each step: what it leads to from Idle, Starting, Running, Stopping and Stopped.
fn plain_step(state: usize, step: Step) -> Option<usize> {
    let row: [Option<usize>; 5] = match step {
        Step::Start => [Some(1), None, None, None, None],
        Step::Ready => [None, Some(2), None, None, None],
        Step::Stop => [Some(4), Some(3), Some(3), None, None],
        Step::End => [None, None, None, Some(4), None],
    };
    row[state]
}

impl Plain {
    fn leave(&mut self, failed: bool) {
        self.permits -= 1;
        if self.given_up {
            self.returned_after += 1;
        } else if failed {
            self.failed += 1;
        } else {
            self.settled += 1;
        }
    }
}

impl ReferenceStateMachine for Plain {
    type State = Self;
    type Transition = Act;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self::default()).boxed()
    }

    /// Only what is possible: of what is refused later there may be no more than so much in all cases together.
    fn transitions(state: &Self) -> BoxedStrategy<Act> {
        let always = prop_oneof![
            4 => prop::sample::select(Step::ALL.to_vec()).prop_map(Act::Take),
            6 => Just(Act::Enter),
            1 => Just(Act::Close),
            1 => Just(Act::Seal),
            2 => Just(Act::Open),
            1 => Just(Act::Abandon),
        ];
        if state.permits == 0 {
            return always.boxed();
        }
        let outcome = prop::sample::select(vec![
            Outcome::Completed,
            Outcome::Late,
            Outcome::Failed,
            Outcome::HandedBack,
            Outcome::Cancelled,
        ]);
        prop_oneof![
            15 => always,
            3 => (any::<Index>(), outcome).prop_map(|(index, outcome)| Act::Settle(index, outcome)),
            2 => any::<Index>().prop_map(Act::DropPermit),
            2 => Just(Act::Fork),
        ]
        .boxed()
    }

    /// A sequence that is made shorter may lose the permit that a later act needs.
    fn preconditions(state: &Self, act: &Act) -> bool {
        !matches!(act, Act::Settle(..) | Act::DropPermit(_) | Act::Fork) || state.permits > 0
    }

    fn apply(mut state: Self, act: &Act) -> Self {
        match act {
            Act::Take(step) => state.state = plain_step(state.state, *step).unwrap_or(state.state),
            Act::Enter if state.closed || state.permits >= LIMIT => state.refused += 1,
            Act::Fork if state.given_up || state.permits >= LIMIT => state.refused += 1,
            Act::Enter | Act::Fork => {
                state.permits += 1;
                state.accepted += 1;
            }
            Act::Settle(_, outcome) => state.leave(*outcome == Outcome::Failed),
            Act::DropPermit(_) => state.leave(true),
            Act::Close => state.closed = true,
            Act::Seal => (state.closed, state.sealed) = (true, true),
            Act::Open => state.closed &= state.sealed,
            Act::Abandon => {
                (state.closed, state.sealed) = (true, true);
                if !state.given_up && state.permits > 0 {
                    state.given_up = true;
                    state.abandoned = state.permits as u64;
                }
            }
        }
        state
    }
}

struct Real {
    life: Lifecycle,
    gate: Gate,
    ledger: Ledger,
    permits: Vec<OwnedPermit>,
}

impl StateMachineTest for Real {
    type SystemUnderTest = Self;
    type Reference = Plain;

    fn init_test(_: &Plain) -> Self {
        let ledger = Ledger::new();
        let gate = Gate::with(Terms { limit: Some(LIMIT), ledger: Some(ledger.clone()), ..Terms::default() });
        Self { life: Lifecycle::new(), gate, ledger, permits: Vec::new() }
    }

    fn apply(mut real: Self, plain: &Plain, act: Act) -> Self {
        match act {
            Act::Take(step) => match real.life.step(step) {
                Ok(state) => assert_eq!(state as usize, plain.state),
                Err(illegal) => assert_eq!(illegal.state as usize, plain.state),
            },
            Act::Enter => match real.gate.enter_owned() {
                Ok(permit) => real.permits.push(permit),
                Err(refusal) => {
                    let expected = if plain.closed { Refusal::Closed } else { Refusal::Full };
                    assert_eq!(refusal, expected);
                }
            },
            Act::Settle(index, outcome) => {
                real.permits.swap_remove(index.index(real.permits.len())).settle(outcome);
            }
            Act::DropPermit(index) => drop(real.permits.swap_remove(index.index(real.permits.len()))),
            Act::Fork => match real.permits[0].fork() {
                Ok(permit) => real.permits.push(permit),
                Err(refusal) => {
                    let expected = if plain.given_up { Refusal::Closed } else { Refusal::Full };
                    assert_eq!(refusal, expected);
                }
            },
            Act::Close => assert!(real.gate.close() || plain.closed),
            Act::Seal => assert!(real.gate.seal() || plain.closed),
            Act::Open => assert_eq!(real.gate.open(), !plain.closed),
            Act::Abandon => assert!(real.gate.abandon() as u64 <= plain.abandoned),
        }
        real
    }

    fn check_invariants(real: &Self, plain: &Plain) {
        assert_eq!(real.life.state(), State::ALL[plain.state]);
        assert_eq!(real.gate.is_closed(), plain.closed);
        assert_eq!(real.gate.is_abandoned(), plain.given_up);
        assert_eq!(real.gate.outstanding(), plain.permits);
        assert_eq!(real.gate.is_idle(), plain.permits == 0);
        let balance = real.gate.balance().unwrap();
        assert_eq!(balance, real.ledger.balance(real.gate.in_flight() as u64));
        assert_eq!(balance.check(), Ok(()));
        assert_eq!(balance.accepted, plain.accepted);
        assert_eq!(balance.failed, plain.failed);
        assert_eq!(balance.completed + balance.handed_back + balance.cancelled, plain.settled);
        assert_eq!(balance.refused, plain.refused);
        assert_eq!(balance.abandoned, plain.abandoned);
        assert_eq!(balance.returned_after, plain.returned_after);
    }
}

/// As many as are asked for, by the variable that proptest has for that.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").map_or(2_000, |given| given.parse().unwrap());
    // The macro asks more than once.
    static SAID: Once = Once::new();
    SAID.call_once(|| println!("{cases} cases"));
    // A failing sequence is printed, shrunk; nothing is written to the tree.
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

prop_state_machine! {
    #![proptest_config(config())]

    #[test]
    fn the_lifecycle_is_what_its_plain_model_says(sequential 1..60 => Real);
}
