//! One connection, from its first request to its last.

use std::{convert::Infallible, net::TcpStream, pin::pin, rc::Rc, time::Duration};

use ebbtide::{
    lifecycle::{Admission, Outcome, time::Tempo},
    reactor::{Async, Local},
    sleep,
};
use futures_util::future::{Either, select};
use hyper::{
    Request,
    body::Incoming,
    header::{CONNECTION, HeaderValue},
    server::conn::http1,
    service::service_fn,
};

use super::{routes::Site, wire::Wire};

/// How long a connection may be silent once the stop has begun.
const SILENCE: Duration = Duration::from_millis(500);

/// How long a client may take to send the head of a request, from the end of the last one on.
const HEAD: Duration = Duration::from_secs(30);

/// How large the head of a request may be, at most: hyper wants no less for its buffer. It may have a hundred headers,
/// which is what hyper has room for without asking for memory.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Answers the requests of one connection.
pub(super) async fn converse(stream: Async<TcpStream>, site: Rc<Site>, work: Admission<Tempo>) {
    let work = Rc::new(work);
    answer_all(stream, site, work.clone()).await;
    if let Some(work) = Rc::into_inner(work) {
        work.settle(Outcome::Completed);
    }
}

async fn answer_all(stream: Async<TcpStream>, site: Rc<Site>, work: Rc<Admission<Tempo>>) {
    // Answers are written as a whole.
    let _ = stream.get_ref().set_nodelay(true);
    let closing = site.app.closing();
    let answer = {
        let closing = closing.clone();
        service_fn(move |request: Request<Incoming>| {
            let (site, work, closing) = (site.clone(), work.clone(), closing.clone());
            async move {
                let mut response = site.answer(request, &work).await;
                if closing.is_triggered() {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(response)
            }
        })
    };
    let connection = http1::Builder::new()
        .timer(Local)
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(Wire::new(stream), answer);
    let mut connection = pin!(connection);
    let silence = pin!(async {
        closing.triggered().await;
        sleep(SILENCE).await;
    });
    // What a client does wrong, and that it goes away, is no failure of ours.
    if let Either::Right(_) = select(connection.as_mut(), silence).await {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}
