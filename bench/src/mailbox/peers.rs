//! Queues on Redis with acknowledgements, each as one would use it for speed: in batches of the size at which it was
//! fastest here, and with nothing that is not needed to handle a message and to acknowledge it.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use apalis::prelude::{BoxDynError, TaskBuilder, WorkerBuilder, WorkerBuilderExt, WorkerContext};
use apalis_redis::{Config, ConnectionManager, RedisStorage, queries::push_tasks};
use futures_util::stream::{FuturesUnordered, StreamExt};
use rsmq_async::{Rsmq, RsmqConnection, RsmqOptions};

use super::redis::{BODY, CONCURRENCY, elapsed};
use crate::peers::Tokio;

/// A queue that is filled, and then worked off.
pub(super) trait Queue {
    /// Puts in so many messages.
    fn fill(&mut self, messages: usize);

    /// Handles and acknowledges that many, and gives how long it took.
    fn work(&mut self, messages: usize) -> Duration;

    /// What the server calls the commands that it sends for that, and that are not within its scripts.
    fn commands(&self) -> &'static [&'static str];
}

/// How many messages are put in at a time.
const FILL: usize = 500;

fn runtime() -> Tokio {
    Tokio::of(tokio::runtime::Builder::new_current_thread().enable_all())
}

/// How many apalis receives at a time. With 64 it was slower by a tenth, and with 1,000 no faster.
const BATCH: usize = 256;

/// The worker of apalis, one task of tokio.
pub(super) struct Apalis {
    tokio: Tokio,
    connection: ConnectionManager,
    config: Config,
}

impl Apalis {
    /// Without a lease for each message: those are looked for in the whole line, and cost four times as much as the
    /// rest.
    pub(super) fn new(server: SocketAddr) -> Self {
        let tokio = runtime();
        let connection = tokio.block_on(apalis_redis::connect(format!("redis://{server}/")));
        let config = Config::default().queue("apalis").batch_size(BATCH);
        let config = config.lock_tasks(false).persist_results(true).emit_events(false);
        Self { tokio, connection: connection.expect("the server is there"), config }
    }
}

impl Queue for Apalis {
    fn fill(&mut self, messages: usize) {
        let body = serde_json::to_vec(BODY).expect("a text");
        let tasks = (0..FILL).map(|_| TaskBuilder::new(body.clone()).build()).collect::<Vec<_>>();
        for _ in 0..messages / FILL {
            let pushed = self.tokio.block_on(push_tasks(&mut self.connection, &self.config, &tasks));
            pushed.expect("the server is there");
        }
    }

    fn work(&mut self, messages: usize) -> Duration {
        let storage = RedisStorage::<String>::new(self.connection.clone()).with_config(self.config.clone());
        let handled = Arc::new(AtomicUsize::new(0));
        let handler = move |body: String, worker: WorkerContext| {
            let handled = handled.clone();
            async move {
                assert_eq!(body.len(), BODY.len());
                if handled.fetch_add(1, Ordering::Relaxed) + 1 == messages {
                    worker.stop()?;
                }
                Ok::<(), BoxDynError>(())
            }
        };
        let worker = WorkerBuilder::new("bench").backend(storage).concurrency(CONCURRENCY).build(handler);
        elapsed(|| self.tokio.block_on(worker.run()).expect("it stops by itself"))
    }

    fn commands(&self) -> &'static [&'static str] {
        &["evalsha", "eval"]
    }
}

/// `rsmq_async` has a worker that handles one message at a time; so this is one by hand.
pub(super) struct ByHand {
    tokio: Tokio,
    queue: Rsmq,
}

const NAME: &str = "rsmq";

impl ByHand {
    pub(super) fn new(server: SocketAddr) -> Self {
        let tokio = runtime();
        let options =
            RsmqOptions { host: server.ip().to_string(), port: server.port(), ..RsmqOptions::default() };
        let queue = tokio.block_on(Rsmq::new(options)).expect("the server is there");
        Self { tokio, queue }
    }
}

impl Queue for ByHand {
    fn fill(&mut self, messages: usize) {
        self.tokio.block_on(async {
            let visibility = Some(Duration::from_secs(300));
            self.queue.create_queue(NAME, visibility, None, None).await.expect("there is none yet");
            for _ in 0..messages / FILL {
                let sent = self.queue.send_message_batch(NAME, vec![BODY; FILL], None).await;
                sent.expect("the server is there");
            }
        });
    }

    fn work(&mut self, messages: usize) -> Duration {
        let queue = &self.queue;
        elapsed(|| {
            self.tokio.block_on(async {
                let mut under_way = FuturesUnordered::new();
                let (mut received, mut handled) = (0, 0);
                while handled < messages {
                    let room = CONCURRENCY - under_way.len();
                    // Half of the room there is: whole batches, while others are on their way.
                    if received < messages && room >= CONCURRENCY / 2 {
                        let batch =
                            queue.clone().receive_message_batch::<String>(NAME, None, room as u32).await;
                        for message in batch.expect("the server is there") {
                            received += 1;
                            assert_eq!(message.message.len(), BODY.len());
                            let mut queue = queue.clone();
                            under_way.push(async move { queue.delete_message(NAME, &message.id).await });
                        }
                    }
                    assert!(under_way.next().await.expect("one is under way").expect("the server is there"));
                    handled += 1;
                }
            });
        })
    }
    fn commands(&self) -> &'static [&'static str] {
        &["evalsha", "multi", "exec", "hmget", "time", "zrem", "hdel"]
    }
}
