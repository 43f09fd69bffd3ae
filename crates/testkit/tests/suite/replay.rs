//! A replay: what the environment has a test run first.

use std::{
    env,
    process::Command,
    sync::{Arc, Mutex},
};

use ebbtide::sleep;
use ebbtide_testkit::{Code, Explorer, Program};

use super::SECOND;

const VARIABLE: &str = "EBBTIDE_SEED";

/// The environment is that of a process, so this one is another for each kind of case.
#[test]
fn a_replay_runs_its_case_before_the_sweeps_of_its_kind_and_leaves_their_summaries_as_they_are() {
    let Ok(wanted) = env::var(VARIABLE) else {
        for wanted in ["seed:7", "step:2"] {
            let mut again = Command::new(env::current_exe().unwrap());
            let again = again.arg("a_replay_runs_its_case").env(VARIABLE, wanted).output().unwrap();
            let said = String::from_utf8_lossy(&again.stdout);
            assert!(again.status.success() && said.contains("1 passed"), "{wanted}: {said}");
        }
        return;
    };
    let first = wanted.parse::<Code>().unwrap();
    let made = Arc::new(Mutex::new(Vec::new()));
    let makes = made.clone();
    let explorer = Explorer::of_each(move |seed| {
        makes.lock().unwrap().push(seed);
        Program::new(async |app: ebbtide::App| {
            let _ = app.token().wrap(sleep(SECOND)).await;
            Ok(())
        })
    });
    let run = || std::mem::take(&mut *made.lock().unwrap());
    let seeds = explorer.seeds(0..3).unwrap();
    assert_eq!(seeds.cases, 3);
    match first {
        Code::Seed(seed) => assert_eq!(run(), [seed, 0, 1, 2]),
        Code::Step(_) => assert_eq!(run(), [0, 1, 2]),
    }
    let steps = explorer.stop_at_every_step().unwrap();
    assert!(steps.stopped > 3, "{steps}");
    let before = u64::from(matches!(first, Code::Step(_)));
    assert_eq!(run().len() as u64, steps.cases + before);
}
