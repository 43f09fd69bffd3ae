//! A server on hyper, on our loop, that drains: every request that it has accepted is answered.
//!
//! ```sh
//! cargo run -p ebbtide --features hyper --example hyper_drain             # asks itself, and sends itself a SIGTERM
//! cargo run -p ebbtide --features hyper --example hyper_drain -- --serve  # until somebody else does
//! ```

use std::{
    convert::Infallible,
    env,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    pin::pin,
    time::Duration,
};

use ebbtide::{
    App, Error, Exit,
    lifecycle::Outcome,
    reactor::{Async, Local, interop::HyperIo},
    sleep, spawn_named,
};
use futures_lite::future::or;
use http_body_util::Full;
use hyper::{Request, Response, StatusCode, body::Bytes, server::conn::http1, service::service_fn};
use signal_hook::{consts::SIGTERM, low_level::raise};

fn main() -> Exit {
    ebbtide::run(serve)
}

async fn serve(app: App) -> Result<(), Error> {
    let listener = Async::<std::net::TcpListener>::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let address = listener.get_ref().local_addr()?;
    println!("serving http://{address}");
    app.ready();
    if !env::args().any(|arg| arg == "--serve") {
        let asks = app.pool().blocking().offload(move || ask(address));
        app.spawn_component("client", 500, async |_| asks.await?)?;
    }
    // Ends when the drain begins.
    while let Ok(accepted) = app.closing().wrap(listener.accept()).await {
        let (stream, from) = accepted?;
        drop(spawn_named(format!("connection from {from}"), connection(app.clone(), stream)));
    }
    Ok(())
}

/// A connection serves until the drain begins; the request that it is at then is its last.
async fn connection(app: App, stream: Async<TcpStream>) {
    let closing = app.closing();
    let service = service_fn(move |request| answer(app.clone(), request));
    let mut connection =
        pin!(http1::Builder::new().timer(Local).serve_connection(HyperIo::new(stream), service));
    let until_closing = async {
        closing.triggered().await;
        None
    };
    if or(async { Some(connection.as_mut().await) }, until_closing).await.is_none() {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// Each request is admitted, so that the drain waits for it; or gets to know that it is not.
async fn answer<B>(app: App, request: Request<B>) -> Result<Response<Full<Bytes>>, Infallible> {
    let Ok(permit) = app.admit() else {
        let mut refused = Response::new(Full::default());
        *refused.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        return Ok(refused);
    };
    sleep(Duration::from_millis(100)).await;
    let response = Response::new(Full::new(Bytes::from(format!("you asked for {}\n", request.uri()))));
    permit.settle(Outcome::Completed);
    Ok(response)
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
