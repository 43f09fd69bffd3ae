use std::{
    future::{Future, poll_fn},
    sync::{Arc, mpsc},
    task::Poll,
    time::Duration,
};

use ebbtide_lifecycle::{Component, Refusal};
use ebbtide_redis::{Command, Error, Script, Settings, Unclaimed, Value, Why, testing::Server};

use crate::{AGES, finish, site, until_blocked};

#[test]
fn answers_come_in_the_order_of_the_questions() {
    let server = Server::start();
    let site = site(server.address(), Settings::default());
    let asked: Vec<_> = (0..1000_u64).map(|n| site.link.ask(Command::new("ECHO").int(n))).collect();
    for (n, answer) in asked.into_iter().enumerate() {
        assert_eq!(finish(answer).unwrap().int(), Some(n as i64));
    }
    let balance = site.link.balance();
    assert_eq!((balance.accepted, balance.completed), (1000, 1000));
}

#[test]
fn large_and_binary_values_come_back_as_they_were() {
    let server = Server::start();
    let link = &site(server.address(), Settings::default()).link;
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| n as u8).collect();
    finish(link.ask(Command::new("SET").arg("k").arg(&large))).unwrap();
    assert_eq!(finish(link.ask(Command::new("GET").arg("k"))).unwrap().bytes().unwrap(), large);
    assert_eq!(finish(link.ask(Command::new("GET").arg("none"))).unwrap(), Value::Nil);
}

#[test]
fn an_error_of_the_server_says_what_was_asked_and_of_whom() {
    let server = Server::start();
    let link = &site(server.address(), Settings::default()).link;
    finish(link.ask(Command::new("SET").arg("k").arg("v"))).unwrap();
    let error = finish(link.ask(Command::new("LPUSH").arg("k").arg("v"))).unwrap_err();
    assert_eq!(error.server().unwrap().code(), "WRONGTYPE");
    let said = error.to_string();
    assert!(said.starts_with(&format!("LPUSH at {}: WRONGTYPE", server.address())), "{said}");
    assert_eq!(link.balance().failed, 1);
}

#[test]
fn a_script_is_sent_by_its_hash_and_in_full_when_the_server_does_not_know_it() {
    let server = Server::start();
    let link = &site(server.address(), Settings::default()).link;
    let script = Script::new("return {KEYS[1], ARGV[1], tonumber(ARGV[2]) + 1}");
    for _ in 0..2 {
        let values = finish(link.run(script.call(["k"]).arg("a").int(1))).unwrap().array().unwrap();
        assert_eq!(values, [Value::Bytes("k".into()), Value::Bytes("a".into()), Value::Int(2)]);
    }
    // Unknown once, then known.
    assert_eq!(link.balance().accepted, 3);
    finish(link.ask(Command::new("SCRIPT").arg("FLUSH"))).unwrap();
    assert!(finish(link.run(script.call(["k"]).arg("a").int(1))).is_ok());
}

#[test]
fn more_than_the_limit_is_refused() {
    let server = Server::start();
    let mut settings = Settings::default();
    (settings.in_flight, settings.waits) = (2, 1);
    let link = &site(server.address(), settings).link;
    let block = || Command::new("BLPOP").arg("bell").arg("10");
    let first = link.wait(block(), Duration::from_secs(10));
    let wait_too_many = finish(link.wait(block(), Duration::from_secs(10))).unwrap_err();
    assert_eq!(wait_too_many.why(), &Why::Refused(Refusal::Full));
    let hold: Unclaimed = Arc::new(|_| None);
    // Its answer stays in flight until it is taken.
    let second = link.ask_or(Command::new("PING"), &hold);
    let refused = finish(link.ask(Command::new("PING"))).unwrap_err();
    assert_eq!(refused.why(), &Why::Refused(Refusal::Full));
    drop((first, second));
}

#[test]
fn a_command_that_is_longer_than_the_server_takes_is_refused_and_harms_no_other() {
    const MOST: usize = 1 << 20;
    let server = Server::start();
    let mut settings = Settings::default();
    settings.command_max = MOST;
    let link = &site(server.address(), settings).link;
    let limit = Command::new("CONFIG").arg("SET").arg("proto-max-bulk-len").int(MOST as u64);
    finish(link.ask(limit)).unwrap();
    let client = || finish(link.ask(Command::new("CLIENT").arg("ID"))).unwrap();
    let (before, long) = (client(), || Command::new("SET").arg("k").arg(vec![0; MOST]));
    let refused = |error: &Error| matches!(error.why(), Why::TooLong { size: MOST.., limit: MOST });
    let script = Script::new("return 1");
    for error in [
        finish(link.ask(long())).unwrap_err(),
        finish(link.ask_all([Command::new("PING"), long()].into_iter().collect())).unwrap_err(),
        finish(link.run(script.call(["k"]).arg(vec![0; MOST]))).unwrap_err(),
        link.tell(long()).unwrap_err(),
    ] {
        assert!(refused(&error), "{error}");
        assert!(error.to_string().contains("`command_max` of the link's Settings allows 1048576"), "{error}");
    }
    finish(link.ask(Command::new("SET").arg("k").arg(vec![0; MOST - 100]))).unwrap();
    assert_eq!(client(), before, "it is the same connection");
}

#[test]
fn a_command_that_blocks_holds_up_no_other() {
    let server = Server::start();
    let link = &site(server.address(), Settings::default()).link;
    let bell = || Command::new("BLPOP").arg("bell").arg("20");
    let waits = [0, 1].map(|_| link.wait(bell(), Duration::from_secs(20)));
    finish(link.ask(Command::new("PING"))).unwrap();
    finish(link.ask(Command::new("RPUSH").arg("bell").arg("1").arg("2"))).unwrap();
    for wait in waits {
        assert_eq!(finish(wait).unwrap().array().unwrap().len(), 2);
    }
}

#[test]
fn a_wait_that_is_dropped_is_unblocked_and_its_connection_used_again() {
    let server = Server::start();
    let mut settings = Settings::default();
    settings.waits = 1;
    let link = &site(server.address(), settings).link;
    let bell = || Command::new("BLPOP").arg("bell").arg("20");
    for _ in 0..3 {
        let (tx, rx) = mpsc::channel();
        let seen: Unclaimed = Arc::new(move |value| {
            tx.send(value).unwrap();
            None
        });
        let wait = link.wait_or(bell(), Duration::from_secs(20), &seen);
        until_blocked(link);
        drop(wait);
        assert_eq!(rx.recv_timeout(Duration::from_secs(10)).unwrap(), Value::Nil, "long before its time");
        // Behind what the server was told on the connection for all.
        finish(link.ask(Command::new("PING"))).unwrap();
    }
    let clients = finish(link.ask(Command::new("CLIENT").arg("LIST"))).unwrap().bytes().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&clients).lines().count(),
        2,
        "one that blocks, and one that does not"
    );
}

#[test]
fn connections_that_nobody_waits_on_any_more_are_closed_but_for_a_few() {
    let server = Server::start();
    let link = &site(server.address(), Settings::default()).link;
    let wait = |list| link.wait(Command::new("BLPOP").int(list).int(20), AGES);
    let connections = || {
        let clients = finish(link.ask(Command::new("CLIENT").arg("LIST"))).unwrap().bytes().unwrap();
        String::from_utf8_lossy(&clients).lines().count()
    };
    for _ in 0..2 {
        let waits: Vec<_> = (0..30).map(wait).collect();
        assert!((0..10_000).any(|_| connections() == 31));
        for list in 0..30 {
            finish(link.ask(Command::new("RPUSH").int(list).arg("1"))).unwrap();
        }
        waits.into_iter().for_each(|wait| drop(finish(wait).unwrap()));
        assert!((0..10_000).any(|_| connections() == 9), "eight, and the one for all: {}", connections());
    }
}

#[test]
fn an_answer_that_nobody_takes_is_passed_on_and_what_that_says_is_sent() {
    let server = Server::start();
    let link = &site(server.address(), Settings::default()).link;
    let next: Unclaimed =
        Arc::new(|value| Some(Command::new("RPUSH").arg("seen").arg(value.bytes().unwrap_or_default())));
    // One that is dropped before it is sent is not sent, and there is nothing to pass on.
    for n in 0..50_u64 {
        drop(link.ask_or(Command::new("ECHO").int(n), &next));
    }
    let taken = link.ask_or(Command::new("ECHO").int(99), &next);
    assert_eq!(finish(taken).unwrap().int(), Some(99));
    for n in 50..60_u64 {
        let answer = link.ask_or(Command::new("ECHO").int(n), &next);
        finish(link.ask(Command::new("PING"))).unwrap();
        drop(answer);
    }
    let seen = finish(link.ask(Command::new("LLEN").arg("seen"))).unwrap().int().unwrap();
    assert!(seen >= 10, "{seen}");
    // What is sent on is the rest of the work that was accepted.
    let (balance, others) = (link.balance(), 1 + 10 + 1);
    assert_eq!(balance.completed, seen.cast_unsigned() + others, "{balance}");
    assert_eq!(balance.completed + balance.cancelled, 60 + others, "{balance}");
}

#[test]
fn a_greeting_that_is_refused_is_named() {
    let server = Server::start();
    let mut settings = crate::impatient(100);
    settings.greeting = vec![Command::new("AUTH").arg("wrong")];
    let link = &site(server.address(), settings).link;
    let said = finish(link.ask(Command::new("PING"))).unwrap_err().to_string();
    assert!(said.contains("PING at") && said.contains("AUTH: ERR"), "{said}");
}

#[test]
fn what_is_told_is_done_before_what_is_asked_later() {
    let server = Server::start();
    let link = &site(server.address(), Settings::default()).link;
    for _ in 0..100 {
        link.tell(Command::new("INCR").arg("n")).unwrap();
    }
    assert_eq!(finish(link.ask(Command::new("GET").arg("n"))).unwrap().int(), Some(100));
}

#[test]
fn times_without_end_are_no_trouble() {
    let server = Server::start();
    let mut settings = Settings::default();
    settings.patience = Duration::MAX;
    settings.timeout = Duration::MAX;
    let link = &site(server.address(), settings).link;
    finish(link.ask(Command::new("PING"))).unwrap();
    finish(link.ask(Command::new("RPUSH").arg("bell").arg("1"))).unwrap();
    finish(link.wait(Command::new("BLPOP").arg("bell").arg("0"), Duration::MAX)).unwrap();
}

#[test]
fn what_is_parked_can_be_waited_for_again() {
    let server = Server::start();
    let site = site(server.address(), Settings::default());
    let parked = site.link.wait(Command::new("BLPOP").arg("list").arg("30"), AGES).park().unwrap();
    until_blocked(&site.link);
    let answer = parked.resume();
    finish(site.link.ask(Command::new("RPUSH").arg("list").arg("a"))).unwrap();
    assert_eq!(finish(answer).unwrap().array().unwrap()[1], Value::Bytes("a".into()));
    assert!(site.link.ask(Command::new("PING")).park().is_none(), "it does not block");
}

#[test]
fn what_is_answered_while_it_is_parked_is_unclaimed_at_once() {
    let server = Server::start();
    let site = site(server.address(), Settings::default());
    let (told, is_told) = mpsc::channel();
    let unclaimed: Unclaimed = Arc::new(move |value| {
        told.send(value).unwrap();
        Some(Command::new("SET").arg("passed").arg("on"))
    });
    let wait = || site.link.wait_or(Command::new("BLPOP").arg("list").arg("30"), AGES, &unclaimed);
    let parked = wait().park().unwrap();
    until_blocked(&site.link);
    finish(site.link.ask(Command::new("RPUSH").arg("list").arg("a"))).unwrap();
    let value = is_told.recv_timeout(AGES).unwrap();
    assert_eq!(finish(parked.resume()).unwrap(), value, "whoever comes back is told of it too");
    assert_eq!(finish(site.link.ask(Command::new("GET").arg("passed"))).unwrap(), Value::Bytes("on".into()));
    // Ended when it is dropped: nothing came, so there is nothing to pass on.
    drop(wait().park());
    while site.link.in_flight() > 0 {}
    assert!(is_told.try_recv().is_err());
}

#[test]
fn what_is_parked_gives_up_its_place_to_others() {
    let server = Server::start();
    let mut settings = Settings::default();
    settings.waits = 1;
    let site = site(server.address(), settings);
    let wait = |list| site.link.wait(Command::new("BLPOP").arg(list).arg("30"), AGES);
    let parked = wait("one").park().unwrap();
    until_blocked(&site.link);
    let other = wait("other");
    finish(site.link.ask(Command::new("RPUSH").arg("other").arg("a"))).unwrap();
    assert!(finish(other).is_ok());
    assert_eq!(finish(parked.resume()).unwrap(), Value::Nil);
    let _held = wait("one");
    assert!(finish(wait("other")).is_err(), "one that is waited for does not");
}

#[test]
fn what_is_asked_of_a_joint_script_in_a_row_is_one_command_and_each_gets_its_own_answer() {
    let server = Server::start();
    let site = site(server.address(), Settings::default());
    let script = Script::new(
        "if ARGV[2] == 'bad' then return redis.error_reply('BAD all of them') end
         local given = {}
         for i = 2, #ARGV do given[i - 1] = ARGV[1] .. ARGV[i] end
         return given",
    );
    let joint = script.call([] as [&str; 0]).arg("no. ").joint();
    let ask = |parts: &mut dyn Iterator<Item = String>| {
        let (go, is_going) = mpsc::channel::<()>();
        // The loop does nothing else until all are asked.
        site.events
            .handle()
            .post(move || {
                let _ = is_going.recv();
            })
            .ok()
            .unwrap();
        let asked: Vec<_> = parts.map(|part| site.link.run_part(joint.part().arg(part))).collect();
        go.send(()).unwrap();
        asked.into_iter().map(finish).collect::<Vec<_>>()
    };
    let commands = || {
        let stats = finish(site.link.ask(Command::new("INFO").arg("commandstats"))).unwrap().bytes().unwrap();
        let stats = String::from_utf8_lossy(&stats).into_owned();
        let line = stats.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap();
        line.split(['=', ',']).nth(1).unwrap().parse::<usize>().unwrap()
    };
    // The first time the server does not know it.
    for expected in [3, 6] {
        let answers = ask(&mut (0..300).map(|number| number.to_string()));
        for (number, answer) in answers.into_iter().enumerate() {
            assert_eq!(answer.unwrap(), Value::Bytes(format!("no. {number}").into()));
        }
        assert_eq!(commands(), expected, "128 at a time");
    }
    for answer in ask(&mut ["bad", "1", "2"].into_iter().map(str::to_owned)) {
        assert_eq!(answer.unwrap_err().server().unwrap().text(), "BAD all of them");
    }
}

#[test]
fn whoever_was_answered_with_others_may_ask_again_before_the_next_are() {
    let server = Server::start();
    let site = site(server.address(), Settings::default());
    let script = Script::new("local given = {} for i = 1, #ARGV do given[i] = ARGV[i] end return given");
    let joint = script.call([] as [&str; 0]).joint().at_most(2.try_into().unwrap());
    let link = site.link.clone();
    let asking = site.events.handle().spawn(async move {
        let ask = |part: u64| link.run_part(joint.part().int(part));
        ask(0).await.unwrap();
        let mut asked: Vec<_> = (1..=5).map(ask).map(Box::pin).collect();
        let mut order = Vec::new();
        poll_fn(|cx| {
            let mut ended = Vec::new();
            asked.retain_mut(|asked| match asked.as_mut().poll(cx) {
                Poll::Ready(answer) => {
                    ended.push(answer.unwrap());
                    false
                }
                Poll::Pending => true,
            });
            if !ended.is_empty() {
                order.push(ended.len());
            }
            if asked.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        order
    });
    let order = finish(asking.unwrap()).unwrap();
    assert_eq!(order, [2, 2, 1], "as they were sent, each for itself");
    drop(site);
}
