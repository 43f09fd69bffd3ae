//! What was sent, and what became of it: by the word of the senders and of the workers.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    time::Duration,
};

use crate::{
    Outcome,
    crowd::{Blow, Farewell},
    note::{Handover, Note, Settled},
    sender::{Sending, Sendings},
};

pub(crate) struct Books {
    messages: BTreeMap<u64, Entry>,
    killed: u64,
    stopped: u64,
    /// The longest that a worker took to stop.
    longest: Duration,
    settled: HashMap<&'static str, u64>,
    /// What is wrong with a worker that was told to stop.
    complaints: Vec<String>,
}

struct Entry {
    sending: Sending,
    /// Every delivery that a worker has received.
    received: Vec<Handover>,
    /// Those whose acknowledgement the server has confirmed.
    acked: Vec<Handover>,
    /// How often a handler has done its work.
    handled: u64,
}

/// How many complaints are printed: the first tell what is wrong.
const SHOWN_MAX: usize = 10;

impl Books {
    pub(crate) fn new(sendings: Sendings) -> Self {
        let entry = |sending| Entry { sending, received: Vec::new(), acked: Vec::new(), handled: 0 };
        let messages = sendings.into_iter().map(|(number, sending)| (number, entry(sending))).collect();
        Self {
            messages,
            killed: 0,
            stopped: 0,
            longest: Duration::ZERO,
            settled: HashMap::new(),
            complaints: Vec::new(),
        }
    }

    /// Enters what a worker has written down.
    pub(crate) fn enter(&mut self, farewell: Farewell) -> Outcome<()> {
        let mut numbers = HashMap::new();
        let mut open = HashSet::new();
        let mut sums = None;
        for note in &farewell.notes {
            match *note {
                Note::Listening => {}
                Note::Got(number, handover) => {
                    self.entry(number)?.received.push(handover);
                    numbers.insert(handover.delivery, number);
                    open.insert(handover.delivery);
                }
                Note::Done(number, _) => self.entry(number)?.handled += 1,
                Note::Settled(how, handover) => {
                    open.remove(&handover.delivery);
                    let number = numbers.get(&handover.delivery).ok_or("settled, and never received")?;
                    self.count(how);
                    if how == Settled::Acked {
                        self.entry(*number)?.acked.push(handover);
                    }
                }
                Note::Sums { accepted, accounted } => sums = Some((accepted, accounted)),
            }
        }
        match farewell.blow {
            Blow::Kill => self.killed += 1,
            Blow::Term => {
                self.stopped += 1;
                self.longest = self.longest.max(farewell.took);
                self.judge(&farewell, open.len(), sums);
            }
        }
        Ok(())
    }

    fn entry(&mut self, number: u64) -> Outcome<&mut Entry> {
        self.messages.get_mut(&number).ok_or_else(|| format!("nobody has sent the message {number}").into())
    }

    fn count(&mut self, how: Settled) {
        let word = match how {
            Settled::Acked => "acknowledged",
            Settled::Nacked => "failed",
            Settled::Released => "released",
            Settled::Expired => "settled too late",
            Settled::Unknown => "settled without an answer",
        };
        *self.settled.entry(word).or_default() += 1;
    }

    /// A worker that was told to stop has ended clean, and nothing that it had received is open.
    fn judge(&mut self, farewell: &Farewell, open: usize, sums: Option<(u64, u64)>) {
        if !farewell.status.success() {
            let Farewell { status, complaints, .. } = farewell;
            self.complaints.push(format!("a worker that was told to stop ended with {status}: {complaints}"));
        }
        if open > 0 {
            self.complaints
                .push(format!("a worker has stopped with {open} messages that it has not settled"));
        }
        // Without one it was told before it had begun.
        if let Some((accepted, accounted)) = sums
            && accepted != accounted
        {
            self.complaints
                .push(format!("a worker has received {accepted}, and says what became of {accounted}"));
        }
    }

    /// # Errors
    /// All that is wrong.
    pub(crate) fn check(&self) -> Outcome<()> {
        let mut wrong = self.complaints.clone();
        for (number, entry) in &self.messages {
            wrong.extend(entry.wrong().map(|what| format!("message {number} {what}")));
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let count = wrong.len();
        wrong.truncate(SHOWN_MAX);
        Err(format!("{count} things are wrong, the first of them:\n  {}", wrong.join("\n  ")).into())
    }

    fn sum(&self, of: impl Fn(&Entry) -> bool) -> usize {
        self.messages.values().filter(|entry| of(entry)).count()
    }
}

impl Entry {
    fn wrong(&self) -> Option<&'static str> {
        let acked = self.acked.first();
        match self.sending {
            Sending::Sent if self.handled == 0 => Some("was sent, and is lost"),
            Sending::NotSent if !self.received.is_empty() => Some("was not sent, and was received"),
            _ if self.acked.len() > 1 => Some("was acknowledged twice"),
            _ if acked.is_some_and(|acked| self.received.iter().any(|later| later > acked)) => {
                Some("was acknowledged, and delivered again")
            }
            _ => None,
        }
    }
}

impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is = |sending| move |entry: &Entry| entry.sending == sending;
        let unknown = self.sum(is(Sending::Unknown));
        let arrived = self.sum(|entry| entry.sending == Sending::Unknown && entry.handled > 0);
        let (sent, not_sent) = (self.sum(is(Sending::Sent)), self.sum(is(Sending::NotSent)));
        writeln!(f, "{sent} sent, {unknown} unknown ({arrived} of them arrived), {not_sent} not sent")?;
        let (handled, twice) = (self.sum(|entry| entry.handled > 0), self.sum(|entry| entry.handled > 1));
        let received: usize = self.messages.values().map(|entry| entry.received.len()).sum();
        writeln!(f, "{handled} handled, {twice} of them twice or more; {received} deliveries")?;
        let mut settled: Vec<_> = self.settled.iter().collect();
        settled.sort();
        let settled: Vec<_> = settled.into_iter().map(|(word, count)| format!("{count} {word}")).collect();
        writeln!(f, "{}", settled.join(", "))?;
        let Self { killed, stopped, longest, .. } = self;
        write!(f, "{killed} workers killed, {stopped} told to stop, of which the slowest took {longest:.1?}")
    }
}
