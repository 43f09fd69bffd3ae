use std::{
    cell::Cell,
    collections::BTreeSet,
    future::pending,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::Poll,
    thread,
    time::Duration,
};

use ebbtide_lifecycle::Refusal;
use ebbtide_reactor::{EventLoop, Handle, JoinError, Runtime, spawn, spawn_named, yield_now};
use futures_lite::future::{block_on, poll_fn};

use crate::{Log, running};

#[test]
fn a_task_gives_its_output_to_whoever_awaits_it_wherever_that_is() {
    let events = running();
    assert_eq!(block_on(events.spawn(async { 6 * 7 }).unwrap()).unwrap(), 42);
    let other = running();
    let task = events.spawn(async { "across" }).unwrap();
    let awaited = other.spawn(async move { task.await.unwrap() }).unwrap();
    assert_eq!(block_on(awaited).unwrap(), "across");
}

#[test]
fn a_waker_knows_its_clones_and_those_of_later_polls() {
    let known = async {
        let mut kept = None;
        poll_fn(|cx| match kept.take() {
            None => {
                kept = Some(cx.waker().clone());
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(kept) => Poll::Ready(kept.will_wake(cx.waker()) && kept.clone().will_wake(&kept)),
        })
        .await
    };
    assert!(block_on(running().spawn(known).unwrap()).unwrap());
}

#[test]
fn a_runtime_runs_futures_that_stay_on_its_thread() {
    let mut runtime = Runtime::new();
    let counter = Rc::new(Cell::new(0));
    let inside = counter.clone();
    let outer = runtime.spawn(async move {
        for _ in 0..3 {
            let counted = inside.clone();
            spawn(async move { counted.set(counted.get() + 1) }).unwrap().await.unwrap();
            yield_now().await;
        }
        "done"
    });
    assert_eq!(runtime.block_on(outer.unwrap()).unwrap(), "done");
    assert_eq!(counter.get(), 3);
}

#[test]
fn a_task_that_is_dropped_goes_on() {
    let mut runtime = Runtime::new();
    let counter = Rc::new(Cell::new(0));
    let counted = counter.clone();
    runtime.spawn(async move { counted.set(1) }).unwrap().detach();
    runtime.block_on(yield_now());
    assert_eq!(counter.get(), 1);
}

#[test]
fn a_cancelled_task_is_dropped_and_says_so() {
    let events = running();
    let canary = Arc::new(());
    let inside = canary.clone();
    let task = events
        .spawn(async move {
            let _inside = inside;
            pending::<()>().await;
        })
        .unwrap();
    task.cancel();
    let error = block_on(task).unwrap_err();
    assert!(error.is_cancelled() && !error.is_panic());
    assert_eq!(error.to_string(), "the task was cancelled before it ended");
    assert!(matches!(error.try_into_panic(), Err(JoinError::Cancelled)));
    assert_eq!(Arc::strong_count(&canary), 1);
    assert_eq!(events.balance().to_string(), "accepted 1, cancelled 1");
}

#[test]
fn cancelling_a_task_that_is_done_changes_nothing() {
    let events = running();
    let task = events.spawn(async { 1 }).unwrap();
    while !task.is_finished() {
        thread::yield_now();
    }
    task.cancel();
    assert_eq!(block_on(task).unwrap(), 1);
}

#[test]
fn e11_a_refused_spawn_gives_the_future_back() {
    let events = EventLoop::new();
    let canary = Arc::new(());
    let inside = canary.clone();
    let refused = events
        .spawn(async move {
            let _inside = inside;
            "ran elsewhere"
        })
        .unwrap_err();
    assert_eq!(refused.why, Refusal::Closed);
    assert_eq!(Arc::strong_count(&canary), 2, "it was not dropped");
    assert_eq!(block_on(refused.work), "ran elsewhere");
    assert_eq!(Arc::strong_count(&canary), 1);
    assert_eq!(events.balance().to_string(), "accepted 0, refused 1");
}

#[test]
fn e11_an_ambient_spawn_outside_of_any_loop_gives_the_future_back() {
    let here = Rc::new(());
    let inside = here.clone();
    let refused = spawn(async move { drop(inside) }).unwrap_err();
    drop(refused.work);
    assert_eq!(Rc::strong_count(&here), 1);
}

#[test]
fn e11_a_spawn_while_tasks_are_dropped_gives_the_future_back() {
    struct Spawns(Arc<AtomicUsize>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            let refused = spawn(async { unreachable!("refused") }).is_err();
            self.0.fetch_add(usize::from(refused), Ordering::SeqCst);
        }
    }
    let refusals = Arc::new(AtomicUsize::new(0));
    let runtime = Runtime::new();
    let spawns = Spawns(refusals.clone());
    runtime
        .spawn(async move {
            let _spawns = spawns;
            pending::<()>().await;
        })
        .unwrap()
        .detach();
    let stats = runtime.shutdown_stats();
    drop(runtime);
    assert_eq!(refusals.load(Ordering::SeqCst), 1);
    assert_eq!(stats.snapshot().to_string(), "accepted 1, cancelled 1, refused 1");
}

#[test]
fn a_waker_outlives_its_task_and_its_loop() {
    let events = running();
    let (sent, wakers) = mpsc::channel();
    let done = sent.clone();
    let parked = events.spawn(poll_fn(move |cx| -> Poll<()> {
        sent.send(cx.waker().clone()).unwrap();
        Poll::Pending
    }));
    let ended = events.spawn(poll_fn(move |cx| {
        done.send(cx.waker().clone()).unwrap();
        Poll::Ready(())
    }));
    let kept = [wakers.recv().unwrap(), wakers.recv().unwrap()];
    block_on(ended.unwrap()).unwrap();
    drop(parked);
    events.stop();
    let stats = events.shutdown_stats();
    drop(events);
    for waker in kept {
        waker.wake_by_ref();
        waker.wake();
    }
    assert_eq!(stats.snapshot().undrained_wakes, 0, "a task that is done wants no wake-up");
}

#[test]
fn the_waker_of_a_joiner_that_moves_is_the_last_one() {
    let mut runtime = Runtime::new();
    let (first, second) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let mut slow = runtime
        .spawn(async {
            for _ in 0..10 {
                yield_now().await;
            }
            7
        })
        .unwrap();
    let polls = first.clone();
    let joined = runtime.block_on(async move {
        // Polled once by the main future, which then hands it to a task.
        let early = poll_fn(|cx| {
            polls.set(polls.get() + 1);
            Poll::Ready(std::pin::Pin::new(&mut slow).poll(cx).is_pending())
        });
        assert!(early.await);
        let polls = second.clone();
        spawn(async move {
            poll_fn(|cx| {
                polls.set(polls.get() + 1);
                std::pin::Pin::new(&mut slow).poll(cx)
            })
            .await
        })
        .unwrap()
        .await
    });
    assert_eq!(joined.unwrap().unwrap(), 7);
    assert_eq!(first.get(), 1);
}

#[test]
fn a_runtime_inside_another_works_and_leaves_it_in_place() {
    let mut outer = Runtime::new();
    let result = outer.block_on(async {
        let mut inner = Runtime::new();
        let inside = inner.block_on(async { spawn(async { 1 }).unwrap().await.unwrap() });
        drop(inner);
        inside + spawn(async { 2 }).unwrap().await.unwrap()
    });
    assert_eq!(result, 3);
}

#[test]
fn a_task_that_outlives_its_loop_is_let_go_of_wherever_it_ends() {
    let mut runtime = Runtime::new();
    let handle = runtime.handle();
    let waker = runtime.block_on(poll_fn(|_| {
        let task = spawn(poll_fn(|cx| Poll::Ready(cx.waker().clone()))).unwrap();
        Poll::Ready(task)
    }));
    let waker = runtime.block_on(waker).unwrap();
    drop(runtime);
    // Refused after the end, while a waker is still there, and after that too.
    drop(handle.spawn(async {}).unwrap_err());
    waker.wake_by_ref();
    thread::spawn(move || drop(waker)).join().unwrap();
    drop(handle.spawn(async {}).unwrap_err());
    assert!(handle.balance().is_balanced());
}

#[test]
fn a_task_is_called_by_its_name_in_reports() {
    let events = running();
    let handle = events.handle();
    let parked = handle.spawn_named("parked", pending::<()>()).unwrap();
    let unnamed = handle.spawn(pending::<()>()).unwrap();
    let names = |handle: &Handle| {
        let stragglers = handle.stragglers();
        stragglers.iter().map(|one| one.origin.name().map(str::to_owned)).collect::<BTreeSet<_>>()
    };
    assert_eq!(names(&handle), BTreeSet::from([Some("parked".to_owned()), None]));
    parked.cancel();
    unnamed.cancel();
    // One that blocks its loop is named by those who look from outside.
    let (release, released) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let blocking = handle.spawn_named("blocking", async move {
        begun.send(()).unwrap();
        let _ = released.recv();
    });
    has_begun.recv().unwrap();
    assert!(names(&handle).contains(&Some("blocking".to_owned())));
    drop(release);
    block_on(blocking.unwrap()).unwrap();
}

#[test]
fn a_task_that_has_ended_is_in_no_report() {
    let mut runtime = Runtime::new();
    let handle = runtime.handle();
    let names = || {
        let stragglers = handle.stragglers();
        stragglers.iter().filter_map(|one| one.origin.name().map(str::to_owned)).collect::<BTreeSet<_>>()
    };
    let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    runtime.block_on(async {
        let park = |name: &str| spawn_named(name, pending::<()>()).unwrap();
        let _stays = [park("0"), park("1")];
        let [first, second] = [park("2"), park("3")];
        for (task, left) in [(first, &["0", "1", "3"][..]), (second, &["0", "1"])] {
            task.cancel();
            task.await.unwrap_err();
            assert_eq!(names(), of(left));
        }
        // Each comes where another has been, with no look in between.
        for name in ["4", "5", "6"] {
            spawn_named(name, async {}).unwrap().await.unwrap();
        }
        let last = park("7");
        assert_eq!(names(), of(&["0", "1", "7"]));
        last.cancel();
        last.await.unwrap_err();
        assert_eq!(names(), of(&["0", "1"]));
    });
}

#[test]
fn a_panic_that_nobody_gets_is_told_with_the_name_of_its_task() {
    let told = Log::default();
    let hook = told.clone();
    let mut runtime = Runtime::builder()
        .panic_hook(move |report| {
            assert_eq!(report.origin.name(), Some("careless"));
            assert!(report.to_string().contains("\"careless\" at "), "{report}");
            hook.note(1);
        })
        .runtime();
    runtime.spawn_named("careless", async { panic!("oh") }).unwrap().detach();
    runtime.shutdown_quiesce(Duration::from_secs(10)).unwrap();
    assert_eq!(told.read(), [1]);
}
