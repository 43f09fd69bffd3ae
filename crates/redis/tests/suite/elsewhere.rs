//! On somebody else's executor, with somebody else's streams, and a timer on a thread.

use std::{net::TcpStream, sync::Arc, thread, time::Duration};

use async_executor::Executor;
use async_io::Async;
use ebbtide_lifecycle::{
    Component, Reason, Stopped, Trigger,
    time::{Deadline, SystemClock, ThreadTimer},
};
use ebbtide_redis::{Command, Link, testing::Server};

use crate::{AGES, finish, impatient};

#[test]
fn a_link_needs_no_loop_of_ours() {
    let mut server = Server::start();
    let (executor, end) = (Arc::new(Executor::new()), Trigger::new());
    let runs = {
        let (executor, token) = (executor.clone(), end.token());
        thread::spawn(move || async_io::block_on(executor.run(token.triggered())))
    };
    let address = server.address();
    let link = Link::new(
        address.to_string(),
        impatient(20_000),
        ThreadTimer::start().unwrap(),
        move || Async::<TcpStream>::connect(address),
        move |driver| executor.spawn(driver).detach(),
    );
    finish(link.ask(Command::new("PING"))).unwrap();
    server.restart();
    while finish(link.ask(Command::new("PING"))).is_err() {}
    let wait = link.wait(Command::new("BLPOP").arg("bell").arg("20"), Duration::from_secs(20));
    finish(link.ask(Command::new("RPUSH").arg("bell").arg("1"))).unwrap();
    finish(wait).unwrap();
    let stopped = link.stop(Deadline::after(SystemClock, AGES), &Reason::requested("test")).wait();
    assert_eq!(stopped, Stopped::Clean);
    end.fire(Reason::requested("test"));
    runs.join().unwrap();
}
