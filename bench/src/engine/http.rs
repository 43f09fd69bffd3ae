//! A bare server, that gives the same answer to everybody.

use std::{convert::Infallible, net::TcpListener};

use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::runtime::Builder;

/// What the plan `hello` gives.
pub(super) const ANSWER: &str = concat!(
    r#"{"request_id":"hello","candidates":[{"id":1,"fields":{"likes":20,"title":"hello","twice":40}},"#,
    r#"{"id":2,"fields":{"likes":null,"title":"world","twice":null}}]}"#,
    "\n"
);

/// Serves until the process is killed. Says where.
pub(crate) fn serve() -> Result<(), String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    println!("listening on http://{address}");
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    let runtime = Builder::new_current_thread().enable_io().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(|error| error.to_string())?;
        loop {
            let (stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
            let _ = stream.set_nodelay(true);
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)));
        }
    })
}

async fn answer(_request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(ANSWER.as_bytes())));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
