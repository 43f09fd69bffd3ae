//! One connection, from its first request to its last.

use std::{convert::Infallible, net::TcpStream, pin::pin, rc::Rc, time::Duration};

use ebbtide::{
    lifecycle::{Admission, Outcome, Token, time::Tempo},
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

use super::{
    service::Desk,
    wire::{Flow, Wire},
};

/// How long a connection may be silent once the stop has begun.
const SILENCE: Duration = Duration::from_millis(500);

/// How long a client may take to send the head of a request, from the end of the last one on.
const HEAD: Duration = Duration::from_secs(30);

/// How long a client may take nothing of an answer that waits for it.
const STALL: Duration = Duration::from_secs(30);

/// The same once the stop has begun and the connection is not to go on; also for a head that is not complete.
const STALL_AT_END: Duration = Duration::from_secs(1);

/// How large the head of a request may be, at most: hyper wants no less for its buffer. It may have a hundred headers,
/// which is what hyper has room for without asking for memory.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Answers the requests of one connection.
pub(super) async fn converse(stream: Async<TcpStream>, desk: Desk, work: Admission<Tempo>) {
    let work = Rc::new(work);
    answer_all(stream, desk, work.clone()).await;
    if let Some(work) = Rc::into_inner(work) {
        work.settle(Outcome::Completed);
    }
}

async fn answer_all(stream: Async<TcpStream>, desk: Desk, work: Rc<Admission<Tempo>>) {
    // Answers are written as a whole.
    let _ = stream.get_ref().set_nodelay(true);
    let (closing, flow) = (desk.service.app.closing(), Rc::new(Flow::default()));
    let answer = {
        let (closing, flow) = (closing.clone(), flow.clone());
        service_fn(move |request: Request<Incoming>| {
            let (desk, work, closing, flow) = (desk.clone(), work.clone(), closing.clone(), flow.clone());
            async move {
                flow.is_answering.set(true);
                let mut response = desk.answer(request, &work).await;
                flow.is_answering.set(false);
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
        .serve_connection(Wire::new(stream, flow.clone()), answer);
    let mut connection = pin!(connection);
    // What a client does wrong, and that it goes away, is no failure of ours.
    match select(connection.as_mut(), pin!(watch(&flow, &closing))).await {
        Either::Left(_) | Either::Right((Watched::Stalled, _)) => {}
        Either::Right((Watched::Closing, _)) => {
            connection.as_mut().graceful_shutdown();
            select(connection, pin!(stalls(&flow))).await;
        }
    }
}

/// What ends a connection that does not end by itself.
#[derive(Debug, PartialEq, Eq)]
enum Watched {
    /// The client does not take its answer.
    Stalled,
    /// The stop has begun, and it had its time to say what it has to.
    Closing,
}

async fn watch(flow: &Flow, closing: &Token) -> Watched {
    loop {
        let before = flow.written.get();
        if closing.wrap(sleep(STALL)).await.is_err() {
            sleep(SILENCE).await;
            return Watched::Closing;
        }
        if flow.is_blocked.get() && flow.written.get() == before {
            return Watched::Stalled;
        }
    }
}

/// Waits until nothing is answered on a connection, and nothing of an answer was taken for a while. What is left of it
/// is a head that does not come, or a client that does not read: nobody waits for that but the stop.
async fn stalls(flow: &Flow) {
    loop {
        let before = flow.written.get();
        sleep(STALL_AT_END).await;
        if !flow.is_answering.get() && flow.written.get() == before {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_client_that_takes_nothing_of_its_answer_is_given_up_on() {
        let watched = timed(async || {
            let flow = Rc::new(Flow::default());
            flow.is_blocked.set(true);
            let taken = flow.clone();
            spawn(async move {
                sleep(STALL / 2).await;
                taken.written.set(1);
            })
            .expect("a loop runs here")
            .detach();
            watch(&flow, &Trigger::new().token()).await
        });
        assert_eq!(watched, (STALL * 2, Watched::Stalled), "not while it takes some of it");
    }

    #[test]
    fn a_connection_that_is_silent_goes_on_until_the_stop_and_a_little_longer() {
        let watched = timed(async || {
            let (flow, closing) = (Flow::default(), Trigger::new());
            let token = closing.token();
            spawn(async move {
                sleep(STALL * 3).await;
                closing.fire(Reason::requested("the test"));
            })
            .expect("a loop runs here")
            .detach();
            watch(&flow, &token).await
        });
        assert_eq!(watched, (STALL * 3 + SILENCE, Watched::Closing));
    }

    #[test]
    fn at_the_end_a_connection_has_a_while_after_its_last_answer_and_what_was_taken_of_it() {
        let (took, ()) = timed(async || {
            let flow = Rc::new(Flow::default());
            flow.is_answering.set(true);
            let answered = flow.clone();
            spawn(async move {
                sleep(STALL_AT_END * 5 / 2).await;
                answered.is_answering.set(false);
                answered.written.set(1);
            })
            .expect("a loop runs here")
            .detach();
            stalls(&flow).await;
        });
        assert_eq!(took, STALL_AT_END * 4);
    }
}
