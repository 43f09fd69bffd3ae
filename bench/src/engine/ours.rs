//! The plan, read from its file and run by the engine.

use std::{
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use ebbtide_dag::{Env, Handle};
use ebbtide_offload::Pool;
use ebbtide_rank::{Endpoint, Endpoints, Request, Rows, demo, registry};
use ebbtide_reactor::{Async, EventLoop, Runtime, yield_now};
use ebbtide_redis::{Link, Settings};

use super::crowd::{Contender, Crowd};

/// The plan that is answered.
const PLAN: &str = include_str!("../../../plans/feed.json");

type Loop = ebbtide_reactor::Handle;
type Engine = ebbtide_dag::Engine<Request, Vec<Handle<Rows>>, Loop>;

/// The engine, bound to loops and a pool as the program `ebbtide` binds it.
pub(super) struct Ours {
    /// The loop that is driven by the thread of the benchmark.
    runtime: Runtime,
    /// The loops beside it.
    _others: Vec<EventLoop>,
    /// One for each loop.
    engines: Vec<(Loop, Engine)>,
    deadline: Duration,
    _pool: Pool,
}

impl Ours {
    /// On the embedded data set, with so many loops.
    pub(super) fn embedded(loops: usize) -> Self {
        Self::on(Runtime::new(), loops, &Endpoints::demo())
    }

    /// On a server, to which the data set is copied.
    pub(super) fn redis(address: SocketAddr) -> Self {
        let mut runtime = Runtime::new();
        let handle = runtime.handle();
        let spawning = handle.clone();
        let link = Link::new(
            address.to_string(),
            Settings::default(),
            handle,
            move || Async::<TcpStream>::connect(address),
            move |driver| drop(spawning.spawn(driver)),
        );
        runtime.block_on(demo::load(&link)).expect("the server takes it");
        let endpoint = Endpoint::redis(ebbtide_rank::DEFAULT, link, ebbtide_rank::IN_FLIGHT);
        Self::on(runtime, 1, &Endpoints::demo().with(endpoint))
    }

    fn on(runtime: Runtime, loops: usize, endpoints: &Endpoints) -> Self {
        let pool = Pool::new().expect("threads");
        let plan = registry(runtime.handle(), endpoints).plan(PLAN).expect("it has no mistakes");
        let others: Vec<_> = (1..loops).map(|_| EventLoop::new()).collect();
        others.iter().for_each(|events| events.start().expect("a thread"));
        let handles = [runtime.handle()].into_iter().chain(others.iter().map(EventLoop::handle));
        let bind = |events: Loop| {
            let env = endpoints.bind(Env::new(events.clone()).pool(&pool));
            (events, plan.bind(env).expect("it has what its nodes need"))
        };
        let engines = handles.map(bind).collect();
        Self {
            runtime,
            _others: others,
            engines,
            deadline: plan.deadline().expect("the plan has one"),
            _pool: pool,
        }
    }
}

/// Answers one request.
async fn answer(engine: Engine, deadline: Duration, request: Arc<Request>, mut buffer: Vec<u8>) -> Vec<u8> {
    let outputs = engine.run(request.clone()).within(deadline).await.expect("ends well");
    outputs[0].write_json(&request.request_id, &mut buffer);
    buffer
}

impl Contender for Ours {
    fn round(&mut self, crowd: &Arc<Crowd>, concurrency: usize) {
        let deadline = self.deadline;
        let asker = |(events, engine): &(Loop, Engine)| {
            let engine = engine.clone();
            let asking = crowd
                .clone()
                .ask(move |request, buffer| answer(engine.clone(), deadline, request, buffer), yield_now);
            events.spawn(asking).expect("runs")
        };
        let askers: Vec<_> = self.engines.iter().cycle().take(concurrency).map(asker).collect();
        self.runtime.block_on(async {
            for asker in askers {
                asker.await.expect("ends");
            }
        });
    }

    fn answers(&mut self, crowd: &Arc<Crowd>) -> Vec<String> {
        let (engine, deadline) = (self.engines[0].1.clone(), self.deadline);
        self.runtime.block_on(
            crowd
                .clone()
                .all_answers(move |request, buffer| answer(engine.clone(), deadline, request, buffer)),
        )
    }
}
