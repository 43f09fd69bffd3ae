//! Workers on a Redis server, while workers are killed and told to stop, and the server is killed. Run by
//! `cargo xtask soak mailbox --rounds N`.
//!
//! Messages are sent all the while, to a server of its own that writes each to its disk before it answers. Several
//! processes work on them; in each round some are killed and some are told to stop, others take their places, and now
//! and then it is the server that is killed, and started again with what is on its disk. Every process writes down what
//! it receives, handles and settles. At its end the mailbox is drained, and the books are checked:
//!
//! - what was sent, as its sender was told, was handled at least once;
//! - what was acknowledged, as its worker was told, was never delivered again;
//! - what was not sent, as its sender was told, was never received;
//! - a process that was told to stop has ended clean: what it had received was handled, or given back.
//!
//! A send that failed because the server went away is neither sent nor not sent: it is counted as unknown.

mod books;
mod crowd;
mod note;
mod random;
mod sender;
mod site;
mod witness;
mod worker;

use std::{
    env,
    error::Error,
    hash::{BuildHasher as _, RandomState},
    process::ExitCode,
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    time::{Clock as _, SystemClock},
    wait::block_on,
};
use ebbtide_mailbox::Mailbox as _;
use ebbtide_redis::testing::Server;

use crate::{books::Books, crowd::Crowd, random::Random, sender::Senders, site::Site};

/// Says that this process is one of the workers.
const WORKER: &str = "worker";

/// The mailbox that all of them share.
const MAILBOX: &str = "orders";

/// How many work at a time.
const WORKERS: usize = 4;

/// How many are killed or told to stop in a round.
const BLOWS: u64 = 10;

/// One round of so many has the server killed.
const OUTAGES: u64 = 2;

/// How long it may take to drain the mailbox: what a killed worker had in hand comes back after two seconds.
const DRAIN_MAX: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    play(&args).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn play(args: &[&str]) -> Outcome<ExitCode> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is not a number"));
    match args {
        [WORKER, server, seed] => worker::run(server.parse()?, number(seed)?),
        [rounds] => storm(number(rounds)?, RandomState::new().hash_one(rounds)),
        [rounds, seed] => storm(number(rounds)?, number(seed)?),
        _ => Err("say how many rounds, and a seed if they are to be like those of another run".into()),
    }
}

fn storm(rounds: u64, seed: u64) -> Outcome<ExitCode> {
    println!("{rounds} rounds with the seed {seed}");
    let mut random = Random::new(seed);
    let mut server = Server::start();
    let site = Site::new(server.address(), Duration::from_millis(200))?;
    let mailbox = block_on(site.open(MAILBOX))?;
    let senders = Senders::start(&mailbox, &mut random)?;
    let mut crowd = Crowd::start(server.address(), WORKERS, &mut random)?;
    let mut restarts = 0;
    for round in 0..rounds {
        let outage = (round % OUTAGES == 0).then(|| random.below(BLOWS));
        for blow in 0..BLOWS {
            thread::park_timeout(Duration::from_millis(random.below(150)));
            if outage == Some(blow) {
                server.kill();
                thread::park_timeout(Duration::from_millis(random.below(500)));
                server.restart();
                restarts += 1;
            }
            crowd.strike(&mut random)?;
        }
    }
    let mut books = Books::new(senders.stop()?);
    let drained = drain(&site, &mailbox);
    for farewell in crowd.dismiss()? {
        books.enter(farewell)?;
    }
    let verdict = books.check();
    println!("{books}\n{restarts} restarts of the server");
    drained?;
    verdict?;
    println!("lost 0");
    Ok(ExitCode::SUCCESS)
}

/// Waits until there is no message any more.
fn drain(site: &Site, mailbox: &ebbtide_mailbox::RedisMailbox) -> Outcome<()> {
    let due = SystemClock.now() + DRAIN_MAX;
    loop {
        let counts = block_on(mailbox.counts())?;
        if counts.all() == 0 {
            return Ok(());
        }
        if SystemClock.now() > due {
            return Err(format!("not drained within {DRAIN_MAX:?}: {counts:?}").into());
        }
        block_on(site.pause(Duration::from_millis(100)));
    }
}
