//! A server on hyper, on our loop, that drains: every client that it has accepted is answered.
//!
//! ```sh
//! cargo run -p ebbtide --features hyper --example hyper_drain             # asks itself, and sends itself a SIGTERM
//! cargo run -p ebbtide --features hyper --example hyper_drain -- --serve  # until somebody else does
//! ```

use std::{
    convert::Infallible,
    env,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    pin::pin,
    time::Duration,
};

use ebbtide::{
    App, Error, Exit,
    lifecycle::Token,
    reactor::{Async, Local, interop::HyperIo},
    sleep,
};
use futures_lite::future::or;
use http_body_util::Full;
use hyper::{Request, Response, body::Bytes, server::conn::http1, service::service_fn};
use signal_hook::{consts::SIGTERM, low_level::raise};

/// How long a client may take to say what it wants: one that says nothing holds the drain up for no longer.
const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Exit {
    ebbtide::run(serve)
}

async fn serve(app: App) -> Result<(), Error> {
    let socket = Async::<TcpListener>::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let address = socket.get_ref().local_addr()?;
    let mut listener = app.listen(socket);
    println!("serving http://{address}");
    app.ready();
    if !env::args().any(|arg| arg == "--serve") {
        let asks = app.pool().blocking().offload(move || ask(address));
        app.spawn_component("client", 500, async |_| asks.await?)?;
    }
    // Ends when the drain begins; whoever has connected by then is accepted.
    while let Some(connection) = listener.accept().await {
        let closing = app.closing();
        connection.spawn(async move |stream| serve_connection(stream, closing).await);
    }
    Ok(())
}

/// A connection serves until the drain begins; the request that it is at then, or its first one, is its last. The drain
/// waits for it.
async fn serve_connection(stream: Async<TcpStream>, closing: Token) {
    let mut http = http1::Builder::new();
    http.timer(Local).header_read_timeout(PATIENCE);
    let mut connection = pin!(http.serve_connection(HyperIo::new(stream), service_fn(answer)));
    let until_closing = async {
        closing.triggered().await;
        None
    };
    if or(async { Some(connection.as_mut().await) }, until_closing).await.is_none() {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

async fn answer<B>(request: Request<B>) -> Result<Response<Full<Bytes>>, Infallible> {
    sleep(Duration::from_millis(100)).await;
    Ok(Response::new(Full::new(Bytes::from(format!("you asked for {}\n", request.uri())))))
}

/// Asks once, and has the program told to stop while the request is in flight.
fn ask(server: SocketAddr) -> Result<(), Error> {
    let mut stream = TcpStream::connect(server)?;
    write!(stream, "GET /tide HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\n\r\n")?;
    std::thread::park_timeout(Duration::from_millis(30));
    raise(SIGTERM)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    println!("{answer}");
    if answer.starts_with("HTTP/1.1 200 ") { Ok(()) } else { Err("the request was lost".into()) }
}
