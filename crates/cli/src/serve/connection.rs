//! One connection, from its first request to its last.

use std::{convert::Infallible, net::TcpStream, pin::pin, time::Duration};

use ebbtide::{
    app::Connection,
    lifecycle::{Admission, Outcome, Token, time::Tempo},
    reactor::{Async, now},
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

use super::{
    seldom::seldom,
    service::Desk,
    wire::{Flow, Wire},
};

/// How long a connection may be silent once the stop has begun.
const SILENCE: Duration = Duration::from_millis(500);

/// How long a client may take to send the head of a request, from the end of the last one on, and how long it may take
/// nothing of an answer that waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The same once the stop has begun and the connection is not to go on; also for a head that is not complete.
const PATIENCE_AT_END: Duration = Duration::from_secs(1);

/// How large the head of a request may be, at most: hyper wants no less for its buffer. It may have a hundred headers,
/// which is what hyper has room for without asking for memory.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Answers the requests of one connection.
pub(super) async fn converse(connection: Connection, desk: Desk) {
    let Connection { stream, work, .. } = connection;
    answer_all(stream, &desk, &work).await;
    work.settle(Outcome::Completed);
}

async fn answer_all(stream: Async<TcpStream>, desk: &Desk, work: &Admission<Tempo>) {
    let (closing, flow) = (&desk.service.app.closing(), &Flow::new(now()));
    let answer = service_fn(move |request: Request<Incoming>| async move {
        flow.begin();
        let (mut response, at) = desk.answer(request, work).await;
        flow.end(at);
        if closing.is_triggered() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok::<_, Infallible>(response)
    });
    // The time for a head is kept by `watch`: hyper would set a timer for each request.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(Wire::new(stream, flow), answer);
    let mut connection = pin!(connection);
    // What a client does wrong, and that it goes away, is no failure of ours.
    let watch = seldom(watch(flow, closing));
    let watched = match select(connection.as_mut(), pin!(watch)).await {
        Either::Left(_) => return,
        Either::Right((watched, _)) => watched,
    };
    if watched == Watched::Closing {
        connection.as_mut().graceful_shutdown();
        select(connection, pin!(seldom(stalls(flow)))).await;
    }
}

/// What ends a connection that does not end by itself.
#[derive(Debug, PartialEq, Eq)]
enum Watched {
    /// The client does not take its answer, or does not say what it wants.
    Late,
    /// The stop has begun, and it had its time to say what it has to.
    Closing,
}

/// Sleeps until the client would be late, and looks again: one timer, however many requests there are meanwhile.
async fn watch(flow: &Flow, closing: &Token) -> Watched {
    loop {
        let waited =
            flow.waits_since().map_or(Duration::ZERO, |since| now().saturating_duration_since(since));
        let Some(left) = PATIENCE.checked_sub(waited).filter(|left| !left.is_zero()) else {
            return Watched::Late;
        };
        if closing.wrap(sleep(left)).await.is_err() {
            sleep(SILENCE).await;
            return Watched::Closing;
        }
    }
}

/// Waits until nothing is answered on a connection, and nothing of an answer was taken for a while. What is left of it
/// is a head that does not come, or a client that does not read: nobody waits for that but the stop.
async fn stalls(flow: &Flow) {
    loop {
        let before = flow.written();
        sleep(PATIENCE_AT_END).await;
        if !flow.is_answering() && flow.written() == before {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{rc::Rc, task::Poll};

    use ebbtide::{
        lifecycle::{
            Reason, Trigger,
            time::{Clock as _, VirtualClock},
        },
        reactor::Runtime,
        spawn,
    };

    use super::*;

    /// How long `watched` takes in virtual time, and what it gives.
    fn timed<T>(watched: impl AsyncFnOnce() -> T) -> (Duration, T) {
        let clock = VirtualClock::new();
        let begin = clock.now();
        let gave = Runtime::builder().clock(&clock).runtime().block_on(watched());
        (clock.now() - begin, gave)
    }

    /// What `watch` gives for a flow with which `happens` what it does.
    fn watched(happens: impl AsyncFnOnce(&Flow) + 'static) -> (Duration, Watched) {
        timed(async || {
            let flow = Rc::new(Flow::new(now()));
            let changed = flow.clone();
            spawn(async move { happens(&changed).await }).expect("a loop runs here").detach();
            watch(&flow, &Trigger::new().token()).await
        })
    }

    #[test]
    fn a_client_that_takes_nothing_of_its_answer_is_given_up_on() {
        let watched = watched(async |flow| {
            let _ = flow.note(Poll::Pending);
            sleep(PATIENCE / 2).await;
            let _ = flow.note(Poll::Ready(Ok(1)));
            let _ = flow.note(Poll::Pending);
            sleep(PATIENCE / 2).await;
            let _ = flow.note(Poll::Pending);
        });
        assert_eq!(watched, (PATIENCE * 3 / 2, Watched::Late), "not while it takes some of it");
    }

    #[test]
    fn a_client_has_its_time_for_a_head_from_its_last_answer_on() {
        assert_eq!(watched(async |_| {}), (PATIENCE, Watched::Late));
        let watched = watched(async |flow| {
            for _ in 0..3 {
                sleep(PATIENCE / 2).await;
                flow.begin();
                flow.end(now());
            }
        });
        assert_eq!(watched, (PATIENCE * 5 / 2, Watched::Late));
    }

    #[test]
    fn a_client_that_waits_for_its_answer_is_not_late() {
        let watched = watched(async |flow| {
            flow.begin();
            sleep(PATIENCE * 7 / 3).await;
            flow.end(now());
        });
        assert_eq!(watched, (PATIENCE * 10 / 3, Watched::Late));
    }

    #[test]
    fn a_connection_that_is_silent_at_the_stop_goes_on_a_little_longer() {
        let watched = timed(async || {
            let (flow, closing) = (Flow::new(now()), Trigger::new());
            let token = closing.token();
            spawn(async move {
                sleep(PATIENCE / 3).await;
                closing.fire(Reason::requested("the test"));
            })
            .expect("a loop runs here")
            .detach();
            watch(&flow, &token).await
        });
        assert_eq!(watched, (PATIENCE / 3 + SILENCE, Watched::Closing));
    }

    #[test]
    fn at_the_end_a_connection_has_a_while_after_its_last_answer_and_what_was_taken_of_it() {
        let (took, ()) = timed(async || {
            let flow = Rc::new(Flow::new(now()));
            flow.begin();
            let answered = flow.clone();
            spawn(async move {
                sleep(PATIENCE_AT_END * 5 / 2).await;
                answered.end(now());
                let _ = answered.note(Poll::Ready(Ok(1)));
            })
            .expect("a loop runs here")
            .detach();
            stalls(&flow).await;
        });
        assert_eq!(took, PATIENCE_AT_END * 4);
    }
}
