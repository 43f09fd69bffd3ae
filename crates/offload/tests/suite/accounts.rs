//! Any order of events ends with the books balanced.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Component, Reason,
    time::{Deadline, SystemClock},
};
use ebbtide_offload::{Batch, Offload, OnDrop, Pool};
use proptest::{collection::vec, prelude::*};

#[derive(Clone, Copy, Debug)]
enum Step {
    Offload,
    Try,
    Blocking,
    Batch(usize),
    Nested,
    Panic,
    Drop,
    Detach,
    Await,
    AwaitBy,
    Close,
    HandBack,
    Stop,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Offload),
        4 => Just(Step::Try),
        2 => Just(Step::Blocking),
        2 => (0_usize..40).prop_map(Step::Batch),
        1 => Just(Step::Nested),
        1 => Just(Step::Panic),
        4 => Just(Step::Drop),
        2 => Just(Step::Detach),
        3 => Just(Step::Await),
        1 => Just(Step::AwaitBy),
        1 => Just(Step::Close),
        1 => Just(Step::HandBack),
        1 => Just(Step::Stop),
    ]
}

/// What the steps hold on to.
#[derive(Default)]
struct Hands {
    jobs: Vec<Offload<u64>>,
    batches: Vec<Batch<u64>>,
}

impl Hands {
    fn take(&mut self, step: Step, pool: &Pool, ran: &Arc<AtomicU64>) {
        let job = || {
            let ran = ran.clone();
            move || ran.fetch_add(1, Ordering::Relaxed)
        };
        let soon = Deadline::after(SystemClock, Duration::from_micros(50));
        match step {
            Step::Offload => self.jobs.push(pool.offload(job())),
            Step::Try => self.jobs.extend(pool.try_offload(job())),
            Step::Blocking => self.jobs.push(pool.blocking().offload(job())),
            Step::Batch(len) => self.batches.push(pool.offload_all((0..len).map(|_| job()))),
            Step::Nested => {
                let (inside, job) = (pool.clone(), job());
                self.jobs.push(pool.offload(move || inside.offload(job).wait().unwrap_or(0)));
            }
            Step::Panic => self.jobs.push(pool.offload(|| panic!("on purpose"))),
            Step::Drop => {
                self.jobs.pop();
                self.batches.pop();
            }
            Step::Detach => {
                if let Some(job) = self.jobs.pop() {
                    job.detach();
                }
                if let Some(batch) = self.batches.pop() {
                    drop(batch.on_drop(OnDrop::Run));
                }
            }
            Step::Await => drop(self.jobs.pop().map(Offload::wait)),
            Step::AwaitBy => drop(self.jobs.pop().map(|job| job.wait_by(soon))),
            Step::Close => drop(pool.close()),
            Step::HandBack => {
                for (nth, unstarted) in pool.close_and_hand_back().into_iter().enumerate() {
                    if nth % 2 == 0 {
                        unstarted.run();
                    }
                }
            }
            Step::Stop => drop(pool.stop(soon, &Reason::requested("test")).wait()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_books_balance(
        steps in vec(step(), 1..60),
        others in vec(step(), 1..60),
        threads in 1_usize..4,
        queue in prop_oneof![Just(None), (1_usize..5).prop_map(Some)],
    ) {
        let builder = Pool::builder().cpu_threads(threads).blocking_threads(3);
        let builder = match queue {
            Some(queue) => builder.cpu_queue(queue),
            None => builder,
        };
        let (pool, ran) = (builder.start().unwrap(), Arc::new(AtomicU64::new(0)));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut hands = Hands::default();
                others.iter().for_each(|step| hands.take(*step, &pool, &ran));
            });
            let mut hands = Hands::default();
            steps.iter().for_each(|step| hands.take(*step, &pool, &ran));
            // Whoever still waits is answered: nothing is left without an outcome.
            for job in hands.jobs {
                let _ = job.wait();
            }
            for batch in hands.batches {
                let _ = batch.wait();
            }
        });
        let idle = pool.wait_idle().wait_by(Deadline::after(SystemClock, Duration::from_secs(5)));
        let balance = pool.balance();
        prop_assert!(idle.is_ok(), "{:?}, {}, {}", pool, balance, pool.stragglers());
        prop_assert!(balance.is_balanced(), "{balance}");
        prop_assert_eq!(balance.in_flight, 0);
        prop_assert_eq!(pool.stragglers().len(), 0);
        drop(pool);
    }
}
