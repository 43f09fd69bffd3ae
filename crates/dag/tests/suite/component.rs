//! An engine as a component.

use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use ebbtide_dag::{Engine, Env, Graph, Handle};
use ebbtide_lifecycle::{
    conformance::{self, Finish, Specimen},
    time::{Deadline, SystemClock, ThreadTimer},
    wait::block_on,
};

type Held = Engine<Mutex<Option<Request>>, Handle<()>, ThreadTimer>;

/// What a run waits for, and tells when it has begun.
struct Request {
    begun: mpsc::Sender<()>,
    released: mpsc::Receiver<()>,
}

struct Bench {
    engine: Held,
    pool: ebbtide_offload::Pool,
}

impl Bench {
    fn new() -> Self {
        let mut graph = Graph::<Mutex<Option<Request>>>::new("held");
        let node = graph.blocking("held", (), |cx, ()| {
            let request = cx.request().lock().unwrap().take().unwrap();
            request.begun.send(()).unwrap();
            let _: Result<(), _> = request.released.recv();
            Ok(())
        });
        let pool = ebbtide_offload::Pool::builder().cpu_threads(1).start().unwrap();
        let env = Env::new(ThreadTimer::start().unwrap()).pool(&pool);
        Self { engine: graph.plan(node).unwrap().bind(env).unwrap(), pool }
    }
}

impl Specimen for Bench {
    type Component = Held;

    fn component(&self) -> &Held {
        &self.engine
    }

    fn submit(&self) -> Option<Finish> {
        let ((begun, is_begun), (release, released)) = (mpsc::channel(), mpsc::channel());
        let request = Arc::new(Mutex::new(Some(Request { begun, released })));
        let run = self.engine.run(request);
        let running = thread::spawn(move || block_on(run).is_ok());
        // If the run is refused, its request goes, and with it what would tell that it has begun.
        if is_begun.recv().is_err() {
            assert!(!running.join().unwrap());
            return None;
        }
        Some(Box::new(move || {
            drop(release);
            running.join().unwrap();
        }))
    }

    fn soon(&self) -> Deadline {
        Deadline::after(SystemClock, Duration::from_millis(5))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.pool.close();
    }
}

#[test]
fn an_engine_conforms() {
    conformance::component(Bench::new);
}
