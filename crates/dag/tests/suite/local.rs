//! Graphs whose runs stay on their thread.

use std::{cell::Cell, rc::Rc};

use ebbtide_dag::{Env, LocalGraph};
use ebbtide_lifecycle::time::VirtualClock;
use ebbtide_reactor::{Local, Runtime, sleep};
use ebbtide_timeout::LocalRunners;

use super::MS;

#[test]
fn a_local_graph_takes_what_cannot_leave_its_thread() {
    let mut runtime = Runtime::new();
    runtime.block_on(async {
        let seen = Rc::new(Cell::new(0));
        let mut graph = LocalGraph::<Rc<Cell<u32>>>::new_local("local");
        let count = graph.inline("count", (), |cx, ()| {
            cx.request().set(cx.request().get() + 1);
            Ok(Rc::new(cx.request().get()))
        });
        let waits = graph.future("waits", count, |_, count| async move {
            sleep(MS).await;
            Ok(Rc::new(**count + 1))
        });
        let engine = graph.plan(waits).unwrap().bind(Env::new(Local)).unwrap();
        for n in 1..4 {
            assert_eq!(**engine.run(seen.clone()).await.unwrap(), n + 1);
        }
        assert_eq!((seen.get(), Rc::strong_count(&seen)), (3, 1));
    });
}

#[test]
fn what_is_too_late_on_its_thread_goes_on_there() {
    let mut runtime = Runtime::builder().clock(&VirtualClock::new()).runtime();
    let ended = Rc::new(Cell::new(false));
    let seen = ended.clone();
    runtime.block_on(async move {
        let runners = LocalRunners::new_local(&Local, Local).unwrap();
        let mut graph = LocalGraph::<()>::new_local("late");
        let late = graph.future("late", (), move |_, ()| {
            let ended = ended.clone();
            async move {
                sleep(3 * MS).await;
                ended.set(true);
                Ok(())
            }
        });
        graph.node(late).timeout(MS);
        let engine = graph.plan(late).unwrap().bind(Env::new(Local).runners(&runners)).unwrap();
        assert_eq!(engine.run(()).await.unwrap_err().code(), "R003");
        assert_eq!(runners.in_flight(), 1);
        runners.wait_idle().await;
    });
    assert!(seen.get());
}
