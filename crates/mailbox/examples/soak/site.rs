//! A loop, and a link on it to the server.

use std::{
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use ebbtide_lifecycle::time::{Clock as _, Timer as _};
use ebbtide_mailbox::{BackendError, Boxed, RedisMailbox};
use ebbtide_reactor::{Async, EventLoop};
use ebbtide_redis::{Link, Settings};

use crate::Outcome;

pub(crate) struct Site {
    pub(crate) link: Link,
    pub(crate) events: Arc<EventLoop>,
}

impl Site {
    /// What cannot be sent within `patience` is not.
    pub(crate) fn new(server: SocketAddr, patience: Duration) -> Outcome<Self> {
        let events = Arc::new(EventLoop::new());
        events.start()?;
        let mut settings = Settings::default();
        settings.patience = patience;
        settings.backoff = Duration::from_millis(10);
        settings.backoff_max = Duration::from_millis(200);
        let spawner = events.handle();
        let link = Link::new(
            server.to_string(),
            settings,
            events.handle(),
            move || Async::<TcpStream>::connect(server),
            move |driver| drop(spawner.spawn(driver)),
        );
        Ok(Self { link, events })
    }

    pub(crate) fn open(&self, name: &str) -> Boxed<'static, Result<RedisMailbox, BackendError>> {
        RedisMailbox::open(&self.link, name)
    }

    pub(crate) async fn pause(&self, time: Duration) {
        let timer = self.link.timer();
        timer.sleep_until(timer.now() + time).await;
    }
}
