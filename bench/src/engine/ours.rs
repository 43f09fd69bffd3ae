//! The plan, read from its file and run by the engine.

use std::{
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use ebbtide_dag::{Env, Handle};
use ebbtide_offload::Pool;
use ebbtide_rank::{Endpoint, Endpoints, Request, Rows, demo, registry};
use ebbtide_reactor::{Async, Runtime, spawn};
use ebbtide_redis::{Link, Settings};

use super::crowd::{Contender, Crowd};

/// The plan that is answered.
const PLAN: &str = include_str!("../../../plans/feed.json");

type Loop = ebbtide_reactor::Handle;
type Engine = ebbtide_dag::Engine<Request, Vec<Handle<Rows>>, Loop>;

/// The engine, bound to a loop and a pool as the program `ebbtide` binds it.
pub(super) struct Ours {
    runtime: Runtime,
    engine: Engine,
    deadline: Duration,
    _pool: Pool,
}

impl Ours {
    /// On the embedded data set.
    pub(super) fn embedded() -> Self {
        Self::on(Runtime::new(), &Endpoints::demo())
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
        Self::on(runtime, &Endpoints::demo().with(endpoint))
    }

    fn on(runtime: Runtime, endpoints: &Endpoints) -> Self {
        let pool = Pool::new().expect("threads");
        let plan = registry(runtime.handle(), endpoints).plan(PLAN).expect("it has no mistakes");
        let env = endpoints.bind(Env::new(runtime.handle()).pool(&pool));
        let engine = plan.bind(env).expect("it has what its nodes need");
        Self { runtime, engine, deadline: plan.deadline().expect("the plan has one"), _pool: pool }
    }
}

impl Ours {
    /// How a request is answered.
    fn answer(&self) -> impl AsyncFn(Arc<Request>, Vec<u8>) -> Vec<u8> + use<> {
        let (engine, deadline) = (self.engine.clone(), self.deadline);
        move |request: Arc<Request>, mut buffer: Vec<u8>| {
            let run = engine.run(request.clone()).within(deadline);
            async move {
                let outputs = run.await.expect("ends well");
                outputs[0].write_json(&request.request_id, &mut buffer);
                buffer
            }
        }
    }
}

impl Contender for Ours {
    fn round(&mut self, crowd: &Arc<Crowd>, concurrency: usize) {
        let answers: Vec<_> = (0..concurrency).map(|_| self.answer()).collect();
        self.runtime.block_on(async {
            let asker = |answer| spawn(crowd.clone().ask(answer)).expect("runs");
            let askers: Vec<_> = answers.into_iter().map(asker).collect();
            for asker in askers {
                asker.await.expect("ends");
            }
        });
    }

    fn answers(&mut self, crowd: &Arc<Crowd>) -> Vec<String> {
        let answer = self.answer();
        self.runtime.block_on(crowd.clone().all_answers(answer))
    }
}
