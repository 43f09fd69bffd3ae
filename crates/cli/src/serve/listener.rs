//! Accepts connections until the stop begins, and waits for them.

use std::{
    future::poll_fn,
    io,
    net::{SocketAddr, TcpListener},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use ebbtide::{
    lifecycle::{Admission, Outcome, blame::Origin, time::Tempo},
    reactor::{Async, Task},
    sleep, spawn_named,
};
use futures_util::future::{Either, select};

use super::{connection::converse, service::Service};
use crate::terminal::Terminal;

/// How long to wait when no connection can be accepted: too many files are open, say.
const PAUSE: Duration = Duration::from_millis(50);

/// Where connections come in.
pub(super) struct Listener {
    socket: Async<TcpListener>,
    address: SocketAddr,
}

impl Listener {
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = Async::<TcpListener>::bind(address)?;
        let address = socket.get_ref().local_addr()?;
        Ok(Self { socket, address })
    }

    /// Where it listens: the port may have been any.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the app closes. Then those are still accepted who had connected by then, nobody else, and all are
    /// waited for.
    pub(super) async fn serve(
        self,
        service: Arc<Service>,
        work: Admission<Tempo>,
        most: usize,
        terminal: Terminal,
    ) {
        let closing = service.app.closing();
        // Told once, until somebody is accepted again.
        let mut is_told = false;
        loop {
            if service.connections() >= most {
                // Whoever comes waits in the system's queue.
                let ends = pin!(sleep(PAUSE));
                if let Either::Left(_) = select(pin!(closing.triggered()), ends).await {
                    break;
                }
                continue;
            }
            match select(pin!(closing.triggered()), pin!(self.socket.accept())).await {
                Either::Left(_) => break,
                Either::Right((Ok(accepted), _)) => {
                    is_told = false;
                    begin(accepted, &service, &work);
                }
                Either::Right((Err(error), _)) => {
                    service.sites[0].metrics.not_accepted();
                    if !std::mem::replace(&mut is_told, true) {
                        terminal.warn(format_args!("cannot accept connections: {error}"));
                    }
                    sleep(PAUSE).await;
                }
            }
        }
        while let Some(Ok(accepted)) = self.accept_now().await {
            begin(accepted, &service, &work);
        }
        drop(self);
        for site in &service.sites {
            site.connections.idle().await;
        }
        work.settle(Outcome::Completed);
    }

    /// Accepts somebody who is there already.
    async fn accept_now(&self) -> Option<io::Result<Accepted>> {
        poll_fn(|cx| match self.socket.poll_accept(cx) {
            Poll::Ready(accepted) => Poll::Ready(Some(accepted)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }
}

type Accepted = (Async<std::net::TcpStream>, SocketAddr);

/// Begins a conversation on one of the loops. If the app gives up on everything, and takes no more, the connection is
/// closed.
fn begin((stream, from): Accepted, service: &Arc<Service>, work: &Admission<Tempo>) {
    let name: Arc<str> = format!("connection from {from}").into();
    let Ok(work) = work.fork(&Origin::here().named(name.clone())) else { return };
    let desk = service.quietest();
    let Ok(permit) = desk.site().connections.enter_owned() else { return };
    let events = desk.site().events.clone();
    let _ = events.post(move || {
        let conversation = async move {
            converse(stream, desk, work).await;
            drop(permit);
        };
        let _ = spawn_named(name, conversation).map(Task::detach);
    });
}
