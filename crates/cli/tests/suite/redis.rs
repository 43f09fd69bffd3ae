//! A look into the queues of a server, past the program.

use std::net::TcpStream;

use ebbtide::{
    mailbox::{Mailbox as _, Message, RedisMailbox},
    reactor::{Async, Runtime},
    redis::{Link, Settings, testing::Server},
};

/// A server, and the arguments that name a queue on it.
pub(crate) struct Post {
    pub(crate) server: Server,
    pub(crate) url: String,
}

impl Post {
    pub(crate) fn start() -> Self {
        let server = Server::start();
        let url = format!("redis://{}", server.address());
        Self { server, url }
    }

    /// The program's arguments for the queue `feed` on it.
    pub(crate) fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [args, &["--mailbox", &self.url, "--queue", "feed"]].concat()
    }

    /// How many messages there are in a queue, also those in the hands of a worker.
    pub(crate) fn count(&self, queue: &str) -> u64 {
        self.look(queue, async |mailbox| mailbox.counts().await.unwrap().all())
    }

    /// Puts something in that `ebbtide send` would refuse.
    pub(crate) fn put(&self, queue: &str, body: &'static str) {
        self.look(queue, async |mailbox| mailbox.send(Message::new(body)).await.unwrap());
    }

    fn look<T>(&self, queue: &str, look: impl AsyncFnOnce(&RedisMailbox) -> T) -> T {
        let address = self.server.address();
        let mut runtime = Runtime::new();
        let handle = runtime.handle();
        runtime.block_on(async {
            let link = Link::new(
                address.to_string(),
                Settings::default(),
                handle.clone(),
                move || Async::<TcpStream>::connect(address),
                move |driver| drop(handle.spawn(driver)),
            );
            look(&RedisMailbox::open(&link, queue).await.unwrap()).await
        })
    }
}
