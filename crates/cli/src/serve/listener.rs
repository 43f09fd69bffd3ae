//! Accepts connections until the stop begins, and waits for them.

use std::{
    future::poll_fn,
    io,
    net::{SocketAddr, TcpListener},
    pin::pin,
    rc::Rc,
    task::Poll,
    time::Duration,
};

use ebbtide::{
    lifecycle::{Admission, Outcome, blame::Origin, time::Tempo},
    reactor::{Async, Task},
    sleep, spawn_named,
};
use futures_util::future::{Either, select};

use super::{connection::converse, routes::Site};
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
    pub(super) async fn serve(self, site: Rc<Site>, work: Admission<Tempo>, most: usize, terminal: Terminal) {
        let closing = site.app.closing();
        // Told once, until somebody is accepted again.
        let mut is_told = false;
        let mut connections: Vec<Task<()>> = Vec::new();
        loop {
            // The ones that have ended make room; they are looked for when there is none.
            if connections.len() >= most {
                connections.retain(|connection| !connection.is_finished());
            }
            if connections.len() >= most {
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
                    connections.extend(begin(accepted, &site, &work));
                }
                Either::Right((Err(error), _)) => {
                    site.metrics.not_accepted();
                    if !std::mem::replace(&mut is_told, true) {
                        terminal.warn(format_args!("cannot accept connections: {error}"));
                    }
                    sleep(PAUSE).await;
                }
            }
        }
        while let Some(Ok(accepted)) = self.accept_now().await {
            connections.extend(begin(accepted, &site, &work));
        }
        drop(self);
        for connection in connections {
            // What it panicked with has been told.
            let _ = connection.await;
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

/// Begins a conversation. None if the app gives up on everything, and takes no more.
fn begin((stream, from): Accepted, site: &Rc<Site>, work: &Admission<Tempo>) -> Option<Task<()>> {
    let name: std::sync::Arc<str> = format!("connection from {from}").into();
    let work = work.fork(&Origin::here().named(name.clone())).ok()?;
    spawn_named(name, converse(stream, site.clone(), work)).ok()
}
