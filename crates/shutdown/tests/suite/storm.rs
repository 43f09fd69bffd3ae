//! Many threads that register, unregister, trigger and wait.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use ebbtide_shutdown::{Coordinator, Priority};

use crate::reason;

/// However registering, unregistering and triggering meet: what stays registered is stopped once, what is taken out in
/// time is not, and everybody who waits gets a report.
#[test]
fn in_a_storm_what_is_registered_is_stopped_once() {
    for round in 0..200 {
        let coordinator = Coordinator::builder().observer(|_| ()).start().unwrap();
        let (stopped, called) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let barrier = Barrier::new(4);
        let kept: usize = thread::scope(|scope| {
            let worker = |number: usize| {
                let (coordinator, stopped, called, barrier) = (&coordinator, &stopped, &called, &barrier);
                move || {
                    barrier.wait();
                    for n in 0..5 {
                        let count = stopped.clone();
                        let name = format!("{number}-{n}");
                        let act = move |_: _, _: &_| {
                            count.fetch_add(1, Ordering::Relaxed);
                            Ok(())
                        };
                        coordinator.on_stop(name, Priority(n), act).unwrap().keep();
                        let out =
                            coordinator.on_stop(format!("out-{number}-{n}"), Priority(n), |_, _| Ok(()));
                        drop(out.unwrap());
                        let count = called.clone();
                        coordinator.on_trigger("counts", move || {
                            count.fetch_add(1, Ordering::Relaxed);
                        });
                        if round % 5 == n as usize {
                            coordinator.trigger(reason());
                        }
                    }
                    5
                }
            };
            let threads: Vec<_> = (0..3).map(|number| scope.spawn(worker(number))).collect();
            barrier.wait();
            let report = coordinator.stop(reason()).wait();
            assert_eq!(report.to_string(), coordinator.run().to_string());
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        // Those that came after the end are stopped on threads that nobody waits for.
        while stopped.load(Ordering::Relaxed) < kept {
            thread::yield_now();
        }
        assert_eq!(stopped.load(Ordering::Relaxed), kept);
        assert_eq!(called.load(Ordering::Relaxed), kept);
    }
}
