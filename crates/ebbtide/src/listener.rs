//! Where connections come in, and how none of them is lost at a stop.
//!
//! ```text
//!  accepting ──closing──► taking in who had connected by then ──nobody is left──► closed
//! ```

use std::{
    fmt,
    future::{Future, poll_fn},
    io::{self, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use ebbtide_lifecycle::{Admission, Outcome, Token, blame::Origin, time::Tempo};
use ebbtide_reactor::{Async, sleep};

use crate::{App, admitted::Admitted};

/// How long to wait when no connection can be accepted: too many files are open, say.
const PAUSE: Duration = Duration::from_millis(50);

/// So many are taken in at most once the stop has begun: the longest queue that Linux has unless told otherwise. Who
/// comes so late that he is behind these has come during the stop.
const BACKLOG_MAX: usize = 4096;

/// Told why a connection could not be accepted, and for how many tries in a row that has been so.
type Hook = Box<dyn FnMut(&io::Error, u32)>;

/// Accepts connections for as long as the program lets work in: made by [`App::listen`].
///
/// # What it promises
/// - Each connection is work that the drain waits for, and names. It is [forked](Admission::fork) off the listener,
///   which was admitted when it was made, so that none is refused because the stop begins just then.
/// - Who has connected by the time that the stop closes the intake is accepted. Then the socket is closed.
/// - That a connection cannot be accepted ends nothing: it is told, and tried again after a pause.
///
/// # Cancel safety
/// No connection is lost when [`accept`](Listener::accept) is dropped before its end.
pub struct Listener {
    /// There until nobody is accepted any more.
    open: Option<Open>,
    address: Option<SocketAddr>,
    app: App,
    closing: Token,
    origin: Origin,
    hook: Hook,
    /// How many tries in a row have failed.
    failed: u32,
    /// How many were taken in since the stop has begun.
    at_closing: usize,
}

struct Open {
    socket: Async<TcpListener>,
    work: Admission<Tempo>,
}

/// Somebody who has connected. Dropped, the connection is closed.
pub struct Connection {
    /// What is read from and written to.
    pub stream: Async<TcpStream>,
    /// Who it is.
    pub from: SocketAddr,
    /// What the drain waits for. What the connection brings can be [forked](Admission::fork) off it.
    pub work: Admission<Tempo>,
    name: Arc<str>,
}

impl Listener {
    pub(crate) fn new(app: &App, socket: Async<TcpListener>, origin: Origin) -> Self {
        let address = socket.get_ref().local_addr().ok();
        let named = address.map_or_else(|| "listener".to_owned(), |address| format!("listener at {address}"));
        let work = app.admit_as(&origin.clone().named(named));
        Self {
            // Refused once the stop has begun: then nobody was told that it listens.
            open: work.ok().map(|work| Open { socket, work }),
            address,
            app: app.clone(),
            closing: app.closing(),
            origin,
            hook: Box::new(tell),
            failed: 0,
            at_closing: 0,
        }
    }

    /// Has `hook` told whenever a connection could not be accepted, with the number of tries in a row that have
    /// failed. Unless told otherwise, the first of a row is said on standard error.
    #[must_use]
    pub fn on_trouble(mut self, hook: impl FnMut(&io::Error, u32) + 'static) -> Self {
        self.hook = Box::new(hook);
        self
    }

    /// Where it listens: the port may have been any. None if the system does not say.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Waits for the next connection. None when the program [closes](App::closing), and all who had connected by then
    /// are accepted: nobody listens any more when this returns.
    pub async fn accept(&mut self) -> Option<Connection> {
        loop {
            let Open { socket, work } = self.open.as_ref()?;
            let accepted = match self.closing.wrap(socket.accept()).await {
                Ok(accepted) => Some(accepted),
                Err(_) if self.at_closing == BACKLOG_MAX => None,
                Err(_) => {
                    self.at_closing += 1;
                    accept_now(socket).await
                }
            };
            match accepted {
                Some(Ok((stream, from))) => {
                    self.failed = 0;
                    let name: Arc<str> = format!("connection from {from}").into();
                    // Refused only by a stop that has given up on everything.
                    if let Ok(work) = work.fork(&self.origin.clone().named(name.clone())) {
                        return Some(Connection { stream, from, work, name });
                    }
                }
                // A stop that has given up does not wait for files to be closed, either.
                Some(Err(error)) if !self.app.gate().is_abandoned() => {
                    self.failed = self.failed.saturating_add(1);
                    (self.hook)(&error, self.failed);
                    if !is_of_its_client(&error) {
                        sleep(PAUSE).await;
                    }
                    continue;
                }
                None | Some(Err(_)) => {}
            }
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some(Open { socket, work }) = self.open.take() {
            drop(socket);
            work.settle(Outcome::Completed);
        }
    }
}

/// One that is dropped has nothing left to do.
impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
    }
}

/// Accepts somebody who is there already.
async fn accept_now(socket: &Async<TcpListener>) -> Option<io::Result<(Async<TcpStream>, SocketAddr)>> {
    poll_fn(|cx| match socket.poll_accept(cx) {
        Poll::Ready(accepted) => Poll::Ready(Some(accepted)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Whether it is about one connection, which has gone from the queue with it: the next may be well.
fn is_of_its_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// If nobody reads it, there is nobody to tell.
fn tell(error: &io::Error, failed: u32) {
    if failed == 1 {
        let _ = writeln!(io::stderr(), "cannot accept connections: {error}");
    }
}

impl Connection {
    /// What it is called in reports.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Answers on the loop that runs here, in a task that the drain waits for. What comes of it is nobody's: that a
    /// client goes away is no failure of the program's.
    ///
    /// Where no loop runs, or once it drops its tasks, the connection is closed, and counted as handed back.
    pub fn spawn<F: Future + 'static>(self, answer: impl FnOnce(Async<TcpStream>) -> F) {
        let Self { stream, work, name, .. } = self;
        match ebbtide_reactor::spawn_named(name, Admitted::new(answer(stream), work)) {
            Ok(task) => task.detach(),
            Err(refused) => drop(Admitted::hand_back(refused)),
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("address", &self.address)
            .field("is_open", &self.open.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("from", &self.from).finish_non_exhaustive()
    }
}
