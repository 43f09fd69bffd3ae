//! A queue in memory: the requests are the lines of standard input, and the answers are printed, a line each, in the
//! order in which they come.

use std::{pin::pin, sync::Arc, time::Duration};

use ebbtide::{
    App,
    lifecycle::Reason,
    mailbox::{Address, Delivery, Mailbox, MemoryMailbox, Message, Office, Pull, Reply, Settlement},
    spawn,
};
use futures_util::future::{Either, select};
use serde_json::json;

use super::{
    Loop, build, finish,
    lines::{Line, Lines},
    start,
};
use crate::{
    args,
    engine::Engine,
    fault::{Fault, code},
    terminal::Terminal,
};

/// So many requests are in the queue, or worked on, before the next line is taken.
const WINDOW: u64 = 1024;

/// Where answers go.
const ANSWERS: &str = "answers";

pub(super) async fn work(
    app: &App,
    args: &args::Worker,
    engine: Engine,
    terminal: Terminal,
) -> Result<(), Fault> {
    let office = Office::new(app.handle().clone());
    let queue = Arc::new(office.mailbox(args.mailbox.queue.as_str()));
    let mut lines = Lines::read()?;
    let worker = build(app, args, engine, queue.clone(), None, terminal)?;
    start(app, &worker)?;
    let working = worker.clone();
    let mut work = spawn(async move { working.work().await })
        .map_err(|_| Fault::new(code::FAILED, "the loop does not take any more"))?;
    app.ready();

    let mut desk = Desk {
        answers: office.mailbox(ANSWERS),
        terminal,
        sent: 0,
        answered: 0,
        failed: 0,
        bad: 0,
        is_read: true,
    };
    let (mut has_ended, token) = (false, app.token());
    while desk.is_read && !(token.is_triggered() || work.is_finished() || has_ended && desk.open() == 0) {
        let may_read = !has_ended && desk.open() < WINDOW;
        let next = pin!(async { if may_read { lines.next().await } else { std::future::pending().await } });
        let answers = desk.answers.clone();
        let came = select(next, answers.receive(Pull::default()));
        match select(pin!(token.triggered()), pin!(came)).await {
            Either::Left(_) => break,
            Either::Right((Either::Left((None, _)), _)) => has_ended = true,
            Either::Right((Either::Left((Some(line), _)), _)) => desk.send(&*queue, line).await?,
            Either::Right((Either::Right((answers, _)), _)) => {
                desk.print(answers.map_err(|error| failed(&error))?).await?;
            }
        }
    }
    worker.stop(Reason::requested("the end of the input"));
    finish((&mut work).await.unwrap_or(Ok(())))?;
    desk.print_rest().await?;
    desk.verdict()
}

fn failed(error: &impl ToString) -> Fault {
    Fault::new(code::FAILED, error.to_string())
}

/// Sends requests, prints answers, and counts both.
struct Desk {
    answers: MemoryMailbox<Loop>,
    terminal: Terminal,
    sent: u64,
    answered: u64,
    failed: u64,
    /// Lines that were no requests.
    bad: u64,
    /// Somebody may still read the answers.
    is_read: bool,
}

impl Desk {
    /// How many have no answer yet.
    fn open(&self) -> u64 {
        self.sent - self.answered
    }

    async fn send(&mut self, queue: &dyn Mailbox, (number, line): Line) -> Result<(), Fault> {
        match line {
            Ok(line) => {
                let message = Message::new(line.into_bytes()).reply_to(Address::from(ANSWERS));
                queue.send(message).await.map_err(|error| failed(&error))?;
                self.sent += 1;
                Ok(())
            }
            Err(why) => {
                self.bad += 1;
                self.say(format!("{}\n", json!({"error": {"line": number, "message": why}})))
            }
        }
    }

    async fn print(&mut self, deliveries: Vec<Delivery>) -> Result<(), Fault> {
        for delivery in deliveries {
            self.answered += 1;
            let mut line = match Reply::decode(delivery.body) {
                Ok(Reply::Done(answer)) => answer.to_vec(),
                Ok(Reply::Failed(why)) => {
                    self.failed += 1;
                    json!({"error": {"message": *why}}).to_string().into_bytes()
                }
                Err(error) => return Err(failed(&error)),
            };
            line.push(b'\n');
            self.say(line)?;
            // Nobody else could have it.
            let _ = self.answers.settle(delivery.receipt, Settlement::Ack).await;
        }
        Ok(())
    }

    fn say(&mut self, line: impl AsRef<[u8]>) -> Result<(), Fault> {
        self.is_read &= self.terminal.print_while_read(line)?;
        Ok(())
    }

    /// What was answered while the worker stopped.
    async fn print_rest(&mut self) -> Result<(), Fault> {
        let at_once = Pull::default().wait(Duration::ZERO).unwrap_or_default();
        loop {
            let rest = self.answers.receive(at_once).await.map_err(|error| failed(&error))?;
            if rest.is_empty() {
                return Ok(());
            }
            self.print(rest).await?;
        }
    }

    fn verdict(&self) -> Result<(), Fault> {
        let mut said = Vec::new();
        // Where nobody reads answers, none is missing.
        let open = if self.is_read { self.open() } else { 0 };
        for (count, what) in
            [(open, "read and not answered"), (self.failed, "failed"), (self.bad, "no requests")]
        {
            if count > 0 {
                said.push(format!("{count} {what}"));
            }
        }
        if said.is_empty() {
            return Ok(());
        }
        Err(Fault::new(code::FAILED, format!("of {} lines: {}", self.sent + self.bad, said.join(", "))))
    }
}
