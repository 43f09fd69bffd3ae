//! Users who ask, so many at a time, and how long they wait.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ebbtide_lifecycle::time::{Clock, SystemClock};
use ebbtide_rank::Request;

use crate::contest::Table;

/// How many users the embedded data set has.
const USERS: i64 = 200;

/// What is asked, one request for each user, again and again.
pub(super) struct Crowd {
    requests: Vec<Arc<Request>>,
    left: AtomicUsize,
    /// When the round began.
    begun: Mutex<Instant>,
    waits: Mutex<Vec<Duration>>,
}

impl Crowd {
    pub(super) fn new() -> Arc<Self> {
        let requests = (1..=USERS).map(|user| Request::new(user).into()).collect();
        let begun = SystemClock.now().into();
        Arc::new(Self { requests, left: AtomicUsize::new(0), begun, waits: Mutex::default() })
    }

    /// Begins a round of so many requests.
    pub(super) fn begin(&self, requests: usize) {
        *self.begun.lock().expect("nobody panics") = SystemClock.now();
        self.left.store(requests, Ordering::Relaxed);
    }

    /// One of those who ask: as long as there are requests, one after the other. `answer` writes behind what is in the
    /// buffer, and gives it back; `turn` lets the others of the executor come to theirs.
    ///
    /// A request is due when the one before has its answer, and the first when the round begins. How long it waits
    /// counts from then on: whoever answers all of one before he turns to the next makes the others wait, and that is
    /// to be seen.
    pub(super) async fn ask(
        self: Arc<Self>,
        answer: impl AsyncFn(Arc<Request>, Vec<u8>) -> Vec<u8>,
        turn: impl AsyncFn(),
    ) {
        let (mut buffer, mut waits) = (Vec::new(), Vec::new());
        let mut due = *self.begun.lock().expect("nobody panics");
        while let Ok(left) =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
        {
            buffer.clear();
            buffer = answer(self.requests[left % self.requests.len()].clone(), buffer).await;
            assert!(buffer.len() > ANSWER_MIN, "an answer has candidates");
            let end = SystemClock.now();
            waits.push(end - due);
            due = end;
            turn().await;
        }
        self.waits.lock().expect("nobody panics").append(&mut waits);
    }

    /// The answer to each request, one after the other.
    pub(super) async fn all_answers(
        self: Arc<Self>,
        answer: impl AsyncFn(Arc<Request>, Vec<u8>) -> Vec<u8>,
    ) -> Vec<String> {
        let mut answers = Vec::new();
        for request in &self.requests {
            let written = answer(request.clone(), Vec::new()).await;
            answers.push(String::from_utf8(written).expect("JSON is text"));
        }
        answers
    }

    /// How long the 99th of a hundred waited in this round, in microseconds.
    fn p99(&self) -> f64 {
        let mut waits = self.waits.lock().expect("nobody panics");
        waits.sort_unstable();
        let p99 = waits[(waits.len() - 1) * 99 / 100];
        waits.clear();
        p99.as_nanos() as f64 / 1e3
    }
}

/// No answer with a candidate is as short.
const ANSWER_MIN: usize = 60;

/// Who answers.
pub(super) trait Contender {
    /// Lets so many ask until the round is over.
    fn round(&mut self, crowd: &Arc<Crowd>, concurrency: usize);

    /// The answer to each request.
    fn answers(&mut self, crowd: &Arc<Crowd>) -> Vec<String>;
}

/// What is compared.
pub(super) struct Match {
    pub(super) concurrency: usize,
    /// Of a round.
    pub(super) requests: usize,
    /// Odd, so that the median is one of them.
    pub(super) rounds: usize,
}

/// What a match has shown, contestant by contestant and round by round.
pub(super) struct Shown {
    /// Nanoseconds for a request.
    pub(super) times: Vec<Vec<f64>>,
    /// Microseconds.
    pub(super) p99: Vec<Vec<f64>>,
}

/// Lets all answer the same requests in turn. First makes sure that they give the same answers.
pub(super) fn play(terms: &Match, contenders: &mut [&mut dyn Contender]) -> Shown {
    let Match { concurrency, requests, rounds } = *terms;
    let crowd = Crowd::new();
    let mut answers = contenders.iter_mut().map(|contender| contender.answers(&crowd));
    let first = answers.next().expect("there are some");
    for other in answers {
        assert_eq!(first, other, "all give the same answers");
    }
    let (mut times, mut p99) = (vec![Vec::new(); contenders.len()], vec![Vec::new(); contenders.len()]);
    let warm_up = rounds / 5;
    for round in 0..warm_up + rounds {
        // Each comes first, and last, as often as the others: a busy system favours who has not run for a while.
        for turn in 0..contenders.len() {
            let nth = (round + turn) % contenders.len();
            let contender = &mut contenders[nth];
            crowd.begin(requests);
            let begin = SystemClock.now();
            contender.round(&crowd, concurrency);
            let took = SystemClock.now() - begin;
            let late = crowd.p99();
            if round >= warm_up {
                times[nth].push(took.as_nanos() as f64 / requests as f64);
                p99[nth].push(late);
            }
        }
    }
    Shown { times, p99 }
}

/// A table of peers and ours. The best of the peers is who the others are compared with.
pub(super) fn against<const N: usize>(
    title: &'static str,
    unit: &'static str,
    names: [&'static str; N],
    peers: [&Vec<f64>; N],
    ours: &[f64],
    target: Option<f64>,
) -> Table {
    let mut rows: Vec<_> = names.into_iter().zip(peers).collect();
    rows.sort_by(|(_, a), (_, b)| median(a).total_cmp(&median(b)));
    let mut rows = rows.into_iter();
    let (best, rounds) = rows.next().expect("there is a peer");
    let table = Table::peer(title, unit, best, rounds.clone()).row("ebbtide", ours.to_vec(), target);
    rows.fold(table, |table, (name, rounds)| table.row(name, rounds.clone(), None))
}

fn median(rounds: &[f64]) -> f64 {
    let mut rounds = rounds.to_vec();
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}
