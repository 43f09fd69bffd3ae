//! What an explorer runs, and how often.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering::SeqCst},
};

use ebbtide::{
    App,
    shutdown::{Stage, Verdict},
    sleep,
};
use ebbtide_testkit::{Code, Explorer, Faults, Program};

use super::{MS, SECOND};

/// Sleeps three times, or less if it is stopped.
async fn sleeper(app: App) -> Result<(), ebbtide::Error> {
    for _ in 0..3 {
        if app.token().wrap(sleep(SECOND)).await.is_err() {
            break;
        }
    }
    Ok(())
}

#[test]
fn every_step_is_stopped_at_once_until_the_program_ends_before() {
    let summary = Explorer::new(sleeper).stop_at_every_step().unwrap();
    assert_eq!(summary.stopped, summary.cases - 3, "the last ones ended before they were stopped");
    assert_eq!(summary.endings["clean"], summary.cases);
    assert!((5..50).contains(&summary.cases), "{summary}");
    let some = Explorer::new(sleeper).steps(3).stop_at_every_step().unwrap();
    assert_eq!((some.cases, some.stopped), (3, 3));
}

#[test]
fn a_program_that_waits_for_a_signal_gets_one_when_its_lifetime_is_over() {
    let lived = Arc::new(Mutex::new(Vec::new()));
    let told = lived.clone();
    let program = async move |app: App| {
        let since = app.handle().now();
        app.token().triggered().await;
        told.lock().unwrap().push(app.handle().now() - since);
        Ok(())
    };
    let explorer = Explorer::new(program).lifetime(7 * SECOND);
    explorer.stop_at_every_step().unwrap();
    let lived = lived.lock().unwrap();
    assert_eq!(*lived.last().unwrap(), 7 * SECOND);
    assert!(lived.iter().all(|lived| *lived <= 7 * SECOND));
}

#[test]
fn seeds_stop_by_step_by_time_by_signals_by_call_or_not_at_all() {
    let reasons = Arc::new(Mutex::new(std::collections::BTreeMap::<String, u64>::new()));
    let told = reasons.clone();
    let explorer = Explorer::of_each(move |_| {
        let told = told.clone();
        Program::new(sleeper).check(move |ended| {
            let report = ended.exit.report().ok_or("it was started")?;
            assert_eq!(report.stage(), Stage::Stopped);
            *told.lock().unwrap().entry(report.reason().to_string()).or_default() += 1;
            Ok(())
        })
    });
    let summary = explorer.seeds(0..300).unwrap();
    assert_eq!(summary.cases, 300);
    assert!((50..250).contains(&summary.stopped), "{summary}");
    let reasons = reasons.lock().unwrap();
    assert_eq!(reasons.len(), 3, "a signal, a call, and its own end: {reasons:?}");
}

#[test]
fn the_program_and_its_check_are_those_of_the_seed_and_a_check_can_fail() {
    let seeds = Arc::new(Mutex::new(Vec::new()));
    let seen = seeds.clone();
    let explorer = Explorer::of_each(move |seed| {
        let seen = seen.clone();
        let main = move |_| async move {
            seen.lock().unwrap().push(seed);
            Ok(())
        };
        Program::new(main).check(move |_| if seed == 12 { Err("twelve".into()) } else { Ok(()) })
    });
    let failing = explorer.seeds(10..15).unwrap_err();
    assert_eq!((failing.code, failing.findings), (Some(Code::Seed(12)), vec!["twelve".to_owned()]));
    assert!(seeds.lock().unwrap().iter().all(|seed| (10..=12).contains(seed)));
    assert!(explorer.replay("seed:13").is_ok());
    assert!(explorer.replay("seed:12").is_err());
    let failing = explorer.replay("never").unwrap_err();
    assert_eq!(failing.to_string().trim(), "\"never\" is no case: say `seed:17`, or `step:3`");
}

#[test]
fn faults_are_those_of_the_seed_and_a_pool_without_threads_is_a_program_that_is_not_started() {
    let failed = Arc::new(AtomicU64::new(0));
    let told = failed.clone();
    let program = async move |app: App| {
        for _ in 0..5 {
            let job = app.pool().offload(|| ()).await;
            told.fetch_add(u64::from(job.is_err()), SeqCst);
        }
        Ok(())
    };
    let faults = Faults::none().job_panics(4).slow_jobs(4, 100 * MS).refused_threads(2).refused_starts(5);
    let explorer = Explorer::new(program).app(|app| app.pool(|pool| pool.cpu_threads(1))).faults(faults);
    let summary = explorer.allow(Verdict::Failed).seeds(0..100).unwrap();
    assert!((5..50).contains(&summary.endings["not started"]), "{summary}");
    assert!(failed.load(SeqCst) > 20);
}

#[test]
fn the_second_of_two_signals_would_end_the_process_and_the_stop_goes_on() {
    let explorer = Explorer::new(sleeper);
    // A seed whose stop is by two signals, which its failure would say.
    let seed = (0..).find(|seed| {
        let failing = Explorer::of_each(|_| Program::new(sleeper).check(|_| Err("look".into())));
        let said = failing.replay(&format!("seed:{seed}")).unwrap_err().to_string();
        said.contains("another") && said.contains("the process would have ended with 76")
    });
    assert!(explorer.replay(&format!("seed:{}", seed.unwrap())).is_ok());
}
