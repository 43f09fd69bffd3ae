use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
};

use ebbtide_lifecycle::Component;
use ebbtide_redis::{Batch, Command, Settings, Value, Why, testing::Server};

use crate::{finish, greeted, impatient, site};

fn echo(number: u64) -> Command {
    Command::new("ECHO").int(number)
}

#[test]
fn batches_and_commands_get_each_their_own_answers() {
    let server = Server::start();
    let link = &site(server.address(), Settings::default()).link;
    let asked: Vec<_> = (0..200)
        .map(|n| (link.ask(echo(n)), n, link.ask_all((0..n % 4).map(|part| echo(n * 10 + part)).collect())))
        .collect();
    for (one, n, several) in asked {
        assert_eq!(finish(one).unwrap().int(), Some(n as i64));
        let answers: Vec<_> = finish(several).unwrap().array().unwrap().iter().map(Value::int).collect();
        let expected: Vec<_> = (0..n % 4).map(|part| Some((n * 10 + part) as i64)).collect();
        assert_eq!(answers, expected);
    }
    // An empty one is not sent.
    let balance = link.balance();
    assert_eq!((balance.accepted, balance.completed), (350, 350));
}

#[test]
fn what_is_refused_in_a_batch_does_not_concern_the_others() {
    let server = Server::start();
    let link = &site(server.address(), Settings::default()).link;
    let commands = [
        Command::new("SET").arg("k").arg("v"),
        Command::new("LPUSH").arg("k").arg("v"),
        Command::new("GET").arg("k"),
    ];
    let answers = finish(link.ask_all(commands.into_iter().collect())).unwrap().array().unwrap();
    let [Value::Bytes(ok), Value::Refusal(refusal), Value::Bytes(value)] = &*answers else {
        panic!("{answers:?}")
    };
    assert_eq!((&**ok, refusal.code(), &**value), (&b"OK"[..], "WRONGTYPE", &b"v"[..]));
    assert_eq!(link.balance().completed, 1);
}

#[test]
fn a_batch_may_be_larger_than_what_is_read_or_written_at_a_time() {
    let server = Server::start();
    let link = &site(server.address(), Settings::default()).link;
    let large = "x".repeat(10_000);
    let batch: Batch = (0..100).map(|_| Command::new("ECHO").arg(&large)).collect();
    let answers = finish(link.ask_all(batch)).unwrap().array().unwrap();
    assert_eq!(answers, vec![Value::Bytes(large.into()); 100]);
}

#[test]
fn a_batch_that_is_answered_in_part_when_the_server_goes_fails_as_a_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let site = site(listener.local_addr().unwrap(), impatient(20_000));
    let server = thread::spawn(move || greeted(&listener).write_all(b"+OK\r\n+OK\r\n"));
    let error = finish(site.link.ask_all((0..3).map(echo).collect())).unwrap_err();
    server.join().unwrap().unwrap();
    assert!(matches!(error.why(), Why::Lost(_)), "{error}");
    assert_eq!((error.command(), site.link.balance().failed), ("ECHO", 1));
}

#[test]
fn a_batch_that_nobody_waits_for_any_more_is_not_sent() {
    let mut server = Server::start();
    server.kill();
    let site = site(server.address(), impatient(20_000));
    drop(site.link.ask_all([Command::new("INCR").arg("n")].into_iter().collect()));
    let counted = site.link.ask(Command::new("GET").arg("n"));
    server.restart();
    assert_eq!(finish(counted).unwrap(), Value::Nil);
}

#[test]
fn more_answers_than_a_batch_has_commands_break_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let site = site(listener.local_addr().unwrap(), impatient(50));
    let server = thread::spawn(move || {
        let mut stream = greeted(&listener);
        stream.write_all(b"+1\r\n+2\r\n+3\r\n").unwrap();
        // Until the link hangs up.
        stream.read_to_end(&mut Vec::new())
    });
    let answers = finish(site.link.ask_all((0..2).map(echo).collect())).unwrap();
    assert_eq!(answers.array().unwrap().len(), 2);
    server.join().unwrap().unwrap();
}
