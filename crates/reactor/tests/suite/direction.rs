//! An order of one's choice, and a word before each step.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

use ebbtide_reactor::{Runtime, StepOf, spawn, yield_now};

use super::*;

/// The order in which six tasks of three polls each are polled.
fn polls(seed: Option<u64>) -> Vec<u32> {
    let builder = Runtime::builder();
    let mut runtime = match seed {
        None => builder,
        Some(seed) => builder.task_order(seed),
    }
    .runtime();
    let log = Rc::new(RefCell::new(Vec::new()));
    for task in 0..6 {
        let log = log.clone();
        let polled = async move {
            for _ in 0..3 {
                log.borrow_mut().push(task);
                yield_now().await;
            }
        };
        runtime.spawn(polled).ok().unwrap().detach();
    }
    runtime.shutdown_quiesce(std::time::Duration::from_secs(10)).unwrap();
    log.take()
}

#[test]
fn a_seed_says_which_task_is_polled_next_and_the_same_seed_the_same() {
    let in_turn: Vec<_> = (0..18).map(|poll| poll % 6).collect();
    assert_eq!(polls(None), in_turn);
    let orders: BTreeSet<_> = (0..20).map(|seed| polls(Some(seed))).collect();
    assert!(orders.len() > 15, "{} orders", orders.len());
    for seed in 0..20 {
        assert_eq!(polls(Some(seed)), polls(Some(seed)));
        let mut polled = polls(Some(seed));
        polled.sort_unstable();
        assert_eq!(polled, (0..18).map(|poll| poll / 3).collect::<Vec<_>>(), "each three times");
    }
}

#[test]
fn e2_posts_keep_their_order_whatever_the_seed() {
    for seed in 0..50 {
        let mut runtime = Runtime::builder().task_order(seed).runtime();
        let log = Log::default();
        let handle = runtime.handle();
        elsewhere(|| {
            for post in 0..200 {
                let log = log.clone();
                handle.post(move || log.note(post)).unwrap();
                handle.spawn(yield_now()).ok().unwrap().detach();
            }
        });
        runtime.block_on(async {
            for post in 200..210 {
                let log = log.clone();
                handle.post(move || log.note(post)).unwrap();
                yield_now().await;
            }
        });
        drop(runtime);
        assert_eq!(log.read(), (0..210).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn the_hook_is_called_before_each_step_with_its_number_and_may_work_on_the_loop() {
    let (steps, log) = (Arc::new(Mutex::new(Vec::new())), Log::default());
    let (told, noted) = (steps.clone(), log.clone());
    let hook = move |step: &ebbtide_reactor::LoopStep| {
        told.lock().unwrap().push((step.number, step.of));
        if step.number == 2 {
            let noted = noted.clone();
            spawn(async move { noted.note(2) }).ok().unwrap().detach();
        }
    };
    let mut runtime = Runtime::builder().before_each_step(hook).runtime();
    let noted = log.clone();
    runtime.handle().post(move || noted.note(1)).unwrap();
    runtime.block_on(async {
        yield_now().await;
        yield_now().await;
    });
    let numbers: Vec<_> = steps.lock().unwrap().iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let of = |number: usize| steps.lock().unwrap()[number - 1].1;
    assert_eq!((of(1), of(2), of(3)), (StepOf::Main, StepOf::Post, StepOf::Task));
    assert_eq!(log.read(), [1, 2]);
}

#[test]
fn a_hook_that_panics_keeps_nothing_from_running() {
    let mut runtime = Runtime::builder().before_each_step(|_| panic!("told to")).runtime();
    assert_eq!(runtime.block_on(async { spawn(async { 7 }).ok().unwrap().await }).unwrap(), 7);
}
