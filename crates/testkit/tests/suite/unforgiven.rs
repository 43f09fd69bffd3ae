//! What the kit forgives nobody for: a bug beside something else that went wrong, sweeps that look at nothing, and its
//! own means used so that they would see nothing.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
        mpsc,
    },
    thread,
};

use ebbtide::{
    App,
    reactor::Runtime,
    shutdown::{Priority, Verdict},
    sleep, spawn,
};
use ebbtide_testkit::{Explorer, Failing, Scene, Summary, Witness};

use super::{MS, SECOND, Ticket};

const LOST: &str = "1 accepted and never answered";

/// A program that loses a request at the word of a stop, beside `other` work that does not end well either.
fn loses_a_request<F, M>(other: M) -> Explorer
where
    M: Fn(App) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + 'static,
{
    let witness = Witness::new();
    let seen = witness.clone();
    Explorer::new(async move |app: App| {
        let request = seen.promise("request");
        other(app.clone()).await;
        if app.token().wrap(sleep(SECOND)).await.is_ok() {
            request.keep();
        }
        Ok(())
    })
    .witness(&witness)
}

#[test]
fn a_lost_request_is_found_beside_a_job_that_panics_and_is_borne() {
    let explorer = loses_a_request(async |app| {
        // Told, and borne.
        assert!(app.pool().offload(|| std::panic::resume_unwind(Box::new("planted"))).await.is_err());
    });
    assert!(explorer.stop_at_every_step().unwrap_err().to_string().contains(LOST));
}

#[test]
fn a_lost_request_is_found_beside_a_task_that_is_cancelled() {
    let explorer = loses_a_request(async |_| {
        if let Ok(task) = spawn(sleep(SECOND)) {
            task.cancel();
        }
    });
    assert!(explorer.stop_at_every_step().unwrap_err().to_string().contains(LOST));
}

#[test]
fn a_lost_request_is_found_beside_an_admission_that_is_dropped() {
    let explorer = loses_a_request(async |app| drop(app.admit()));
    assert!(explorer.stop_at_every_step().unwrap_err().to_string().contains(LOST));
}

/// A request that can be answered only if the drain waits long enough, and one that is lost when `loses` is set.
fn cut_short(loses: bool) -> Result<Summary, Failing> {
    let witness = Witness::new();
    let seen = witness.clone();
    let program = async move |app: App| {
        let request = Ticket::new(&seen, "stuck");
        let answers = request.clone();
        let stuck = async move {
            pending::<()>().await;
            answers.settle();
        };
        match app.spawn(stuck) {
            Ok(task) => task.detach(),
            Err(_) => request.excuse("it was refused"),
        }
        drop(request);
        let other = seen.promise("other");
        if !loses {
            other.keep();
        }
        app.token().triggered().await;
        Ok(())
    };
    let explorer = Explorer::new(program).witness(&witness).lifetime(SECOND);
    explorer.may_break("intake").allow(Verdict::Abandoned).seeds(0..10)
}

#[test]
fn a_stop_that_is_cut_short_breaks_as_many_promises_as_it_abandons_and_no_more() {
    let summary = cut_short(false).unwrap();
    assert_eq!(summary.excused["the stop was cut short"], summary.endings["work was abandoned"], "{summary}");
    let said = cut_short(true).unwrap_err().to_string();
    assert!(
        said.contains("2 accepted and never answered, of which a stop that was cut short may break 1"),
        "{said}"
    );
}

#[test]
fn a_leak_is_found_beside_work_that_is_allowed_to_be_given_up_on() {
    let witness = Witness::new();
    let seen = witness.clone();
    let program = async move |app: App| {
        std::mem::forget(seen.canary());
        if let Ok(task) = app.spawn_named("stuck", pending::<()>()) {
            task.detach();
        }
        Ok(())
    };
    let explorer = Explorer::new(program).witness(&witness).allow(Verdict::Abandoned);
    let said = explorer.stop_at_every_step().unwrap_err().to_string();
    assert!(said.contains("1 alive after the end"), "{said}");
}

/// A thread of which nobody knows, which gets on a moment after the program has ended.
#[test]
fn what_runs_a_moment_after_the_end_is_found_also_in_the_last_case_and_when_it_is_replayed() {
    let witness = Witness::new();
    let seen = witness.clone();
    let program = async move |_: App| {
        let (mark, (hold, held)) = (seen.mark(), mpsc::channel::<()>());
        thread::spawn(move || {
            assert!(held.recv_timeout(20 * MS).is_err(), "nobody sends");
            drop(hold);
            mark.ran();
        });
        Ok(())
    };
    let explorer = Explorer::new(program).witness(&witness);
    let failing = explorer.seeds(7..8).unwrap_err();
    assert!(failing.to_string().contains("it ran after the end"), "{failing}");
    assert!(explorer.replay("seed:7").is_err());
}

#[test]
fn a_sweep_that_explores_nothing_is_an_error() {
    let fine = || Explorer::new(async |_: App| Ok(()));
    let said = fine().seeds(0..0).unwrap_err().to_string();
    assert!(said.contains("nothing was explored"), "{said}");
    assert!(fine().steps(0).stop_at_every_step().is_err());
    let not_of_the_scene = |_: &Scene| Runtime::new().block_on(sleep(MS));
    let said = Scene::stop_at_every_step(not_of_the_scene).unwrap_err().to_string();
    assert!(said.contains("no loop of the scene has made a step"), "{said}");
    assert!(Scene::seeds(0..3, not_of_the_scene).is_err());
}

#[test]
fn a_summary_says_that_steps_were_left_out_and_how_many_lived_to_the_end() {
    let program = async |app: App| {
        while app.token().wrap(sleep(SECOND)).await.is_ok() {}
        Ok(())
    };
    let explorer = Explorer::new(program).lifetime(5 * SECOND);
    let all = explorer.stop_at_every_step().unwrap();
    assert!(!all.is_truncated && all.outlived >= all.cases - all.stopped, "{all}");
    let some = explorer.steps(3).stop_at_every_step().unwrap();
    assert!(some.is_truncated && some.outlived == 0, "{some}");
    let both = all.and(&some).to_string();
    assert!(both.contains(" lifetimes over, not stopped at later steps than the limit"), "{both}");
}

#[test]
fn a_witness_that_was_given_to_nobody_fails_the_case_that_uses_it() {
    let nobodys = Witness::new();
    let program = async move |_: App| {
        drop(nobodys.promise("request"));
        Ok(())
    };
    let said = Explorer::new(program).seeds(0..1).unwrap_err().to_string();
    assert!(said.contains("a witness that nobody asks: give it to `Explorer::witness`"), "{said}");
}

#[test]
fn a_witness_that_serves_another_sweep_is_an_error_and_no_false_alarm() {
    let witness = Witness::new();
    let both = witness.clone();
    let program = async move |_: App| {
        let other = Explorer::new(async |_: App| Ok(())).witness(&both);
        let refused = thread::spawn(move || other.seeds(0..1).unwrap_err().to_string());
        let said = refused.join().unwrap();
        if said.contains("serves another sweep") { Ok(()) } else { Err(said.into()) }
    };
    Explorer::new(program).witness(&witness).seeds(0..1).unwrap();
}

#[test]
fn a_case_that_panics_is_told_as_one_that_panicked() {
    let said = Scene::seeds(0..1, |scene| {
        let _runtime = scene.runtime();
        let _canary = scene.witness().canary();
        panic!("told to");
    });
    let said = said.unwrap_err().to_string();
    assert!(said.contains("the case panicked: told to") && said.contains("in the end: panicked"), "{said}");
}

#[test]
fn a_hook_of_the_user_is_called_at_each_step_beside_that_of_the_kit() {
    let steps = Arc::new(AtomicU64::new(0));
    let counted = steps.clone();
    let explorer = Explorer::new(async |app: App| {
        app.spawn_component("one", Priority::WORKERS, async |_| Ok(()))?;
        Ok(())
    });
    let explorer = explorer.before_each_step(move || {
        counted.fetch_add(1, SeqCst);
    });
    let summary = explorer.seeds(0..10).unwrap();
    assert_eq!(steps.load(SeqCst), summary.steps, "{summary}");
}
