//! `ebbtide send`: puts requests into a queue, and waits for the answers if asked to.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    hash::{BuildHasher, Hasher, RandomState},
    pin::pin,
    time::Duration,
};

use ebbtide::{
    App,
    mailbox::{Address, Mailbox, Message, Pull, RedisMailbox, Reply, Settlement, Span},
    sleep,
    timeout::timeout,
};
use ebbtide_rank::Request;
use futures_util::future::{Either, select};
use serde_json::json;

use super::{
    lines::{Line, Lines},
    link, open,
};
use crate::{
    args,
    fault::{Fault, code},
    inside,
    terminal::Terminal,
};

/// How long to wait for a server that has gone before it is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// What became of the requests. They are sent and their answers printed side by side.
#[derive(Default)]
struct Sent {
    sent: Cell<u64>,
    /// There will be no more.
    is_all: Cell<bool>,
    /// Lines that were no requests.
    bad: Cell<u64>,
    answered: Cell<u64>,
    failed: Cell<u64>,
    /// Nobody reads the answers any more.
    is_unread: Cell<bool>,
    /// Why not all lines were read.
    cut_off: RefCell<Option<String>>,
    /// Why answers could not be received, the last time.
    trouble: RefCell<Option<String>>,
}

pub(crate) fn send(args: args::Send, terminal: Terminal) -> Result<(), Fault> {
    if args.mailbox.mailbox == "memory" {
        return Err(Fault::new(
            code::USAGE,
            "a mailbox in memory belongs to one process, and this one ends at once",
        )
        .hint("say which server with --mailbox redis://HOST:PORT"));
    }
    let delay =
        Span::new(args.delay_ms).map_err(|error| Fault::new(code::USAGE, format!("--delay-ms: {error}")))?;
    let waits = args.wait_seconds.is_some();
    let app = App::builder().name("ebbtide").coordinator(|coordinator| coordinator.observer(|_| ()));
    let sent = inside::run(app, async move |app| {
        let link = link(&app, &args.mailbox.mailbox).await?;
        let queue = open(&link, &args.mailbox.queue).await?;
        let replies = match args.wait_seconds {
            // A name that nobody else has: its replies are for this process alone.
            Some(_) => {
                let number = RandomState::new().build_hasher().finish();
                Some(open(&link, &format!("{}:replies:{number:016x}", args.mailbox.queue)).await?)
            }
            None => None,
        };
        let sent = Sent::default();
        let ended = {
            let printing = async {
                match &replies {
                    Some(replies) => sent.print_answers(replies, terminal).await,
                    None => Ok(()),
                }
            };
            let sending = sent.send_all(&app, &args, &queue, delay, replies.as_ref(), terminal);
            sent.both(&app, sending, printing, args.wait_seconds).await
        };
        if let Some(replies) = replies {
            // If it cannot be taken off now, it stays, with nothing in it.
            let _ = replies.remove().await;
        }
        ended.map(|()| sent)
    })?;
    sent.verdict(waits, terminal)
}

impl Sent {
    /// Sends, and prints what is answered meanwhile; then what is answered within the time that there is.
    async fn both(
        &self,
        app: &App,
        sending: impl Future<Output = Result<(), Fault>>,
        printing: impl Future<Output = Result<(), Fault>>,
        wait_seconds: Option<u64>,
    ) -> Result<(), Fault> {
        let mut printing = pin!(printing);
        let sent = match select(pin!(sending), printing.as_mut()).await {
            Either::Left((sent, _)) => sent,
            Either::Right((Ok(()), sending)) => return sending.await,
            Either::Right((printed, _)) => return printed,
        };
        let wait = match sent {
            Ok(()) => wait_seconds.map_or(Duration::ZERO, Duration::from_secs),
            // What is there already is still printed.
            Err(_) => AGAIN,
        };
        self.is_all.set(true);
        if self.answered < self.sent {
            let waited = app.token().wrap(timeout(app.handle(), wait, printing));
            if let Ok(Ok(printed)) = waited.await {
                printed?;
            }
        }
        sent
    }

    async fn send_all(
        &self,
        app: &App,
        args: &args::Send,
        queue: &RedisMailbox,
        delay: Span,
        replies: Option<&RedisMailbox>,
        terminal: Terminal,
    ) -> Result<(), Fault> {
        let reply_to = replies.map(|replies| replies.address().clone());
        if let Some(request) = &args.request {
            return self.send(queue, (1, Ok(request.clone())), delay, reply_to, terminal).await;
        }
        let (mut lines, token) = (Lines::read()?, app.token());
        loop {
            match token.wrap(lines.next()).await {
                Ok(Some(line)) => self.send(queue, line, delay, reply_to.clone(), terminal).await?,
                Ok(None) => return Ok(()),
                // Standard input may stay open for good.
                Err(_) => {
                    *self.cut_off.borrow_mut() = token.reason().map(|reason| reason.to_string());
                    return Ok(());
                }
            }
        }
    }

    async fn send(
        &self,
        queue: &RedisMailbox,
        (number, line): Line,
        delay: Span,
        reply_to: Option<Address>,
        terminal: Terminal,
    ) -> Result<(), Fault> {
        let line = line.and_then(|line| match Request::from_json(&line) {
            Ok(_) => Ok(line),
            Err(error) => Err(error.to_string()),
        });
        match line {
            Ok(line) => {
                let message = Message::new(line.trim().to_owned()).delayed(delay);
                let message = reply_to.into_iter().fold(message, Message::reply_to);
                let sent = queue.send(message).await;
                sent.map_err(|error| {
                    Fault::new(code::UNAVAILABLE, format!("line {number} was not sent: {error}"))
                })?;
                self.sent.update(|sent| sent + 1);
            }
            Err(why) => {
                self.bad.update(|bad| bad + 1);
                terminal.warn(format_args!("line {number} was not sent: {why}"));
            }
        }
        Ok(())
    }

    /// Prints answers as they come, until all are there, or nobody reads them.
    async fn print_answers(&self, replies: &RedisMailbox, terminal: Terminal) -> Result<(), Fault> {
        while !self.is_all.get() || self.answered < self.sent {
            let deliveries = match replies.receive(Pull::default()).await {
                Ok(deliveries) => deliveries,
                // The server may be back before the time is up.
                Err(error) => {
                    *self.trouble.borrow_mut() = Some(error.to_string());
                    sleep(AGAIN).await;
                    continue;
                }
            };
            for delivery in deliveries {
                self.answered.update(|answered| answered + 1);
                let mut line = match Reply::decode(delivery.body) {
                    Ok(Reply::Done(answer)) => answer.to_vec(),
                    Ok(Reply::Failed(why)) => {
                        self.failed.update(|failed| failed + 1);
                        json!({"error": {"message": *why}}).to_string().into_bytes()
                    }
                    Err(error) => return Err(Fault::new(code::FAILED, error.to_string())),
                };
                line.push(b'\n');
                if !terminal.print_while_read(line)? {
                    self.is_unread.set(true);
                    return Ok(());
                }
                // It goes with its mailbox in any case.
                let _ = replies.settle(delivery.receipt, Settlement::Ack).await;
            }
        }
        Ok(())
    }

    fn verdict(&self, waited: bool, terminal: Terminal) -> Result<(), Fault> {
        let [sent, bad, answered, failed] =
            [&self.sent, &self.bad, &self.answered, &self.failed].map(Cell::get);
        let (trouble, cut_off) = (self.trouble.borrow(), self.cut_off.borrow());
        if bad > 0 {
            return Err(Fault::data(format!("{sent} sent; {bad} lines were no requests, and were not")));
        }
        if waited && (answered < sent && !self.is_unread.get() || failed > 0) {
            let missing = sent - answered;
            let why = trouble.as_ref().map_or_else(String::new, |trouble| format!(": {trouble}"));
            return Err(Fault::new(
                code::FAILED,
                format!("{sent} sent; {failed} failed, {missing} have no answer yet{why}"),
            ));
        }
        if let Some(why) = &*cut_off {
            return Err(Fault::new(
                code::FAILED,
                format!("{sent} sent; {why} came before the end of the input"),
            ));
        }
        terminal.tell(format_args!("{sent} sent"));
        Ok(())
    }
}
