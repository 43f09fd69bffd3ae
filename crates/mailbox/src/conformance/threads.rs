//! Many senders and receivers at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use super::{Specimen, case::Case};
use crate::{
    error::NotSent,
    message::{Counts, Message, MessageId, Settlement},
    span::Span,
};

/// How many send, and how many receive.
const THREADS: usize = 3;

/// How often a mailbox is filled and emptied again.
const FILLS: usize = 8;

/// What all threads know of.
#[derive(Default)]
struct Books {
    /// Who has which message in his hands.
    in_hand: Mutex<BTreeSet<MessageId>>,
    /// How often each was acknowledged, by what was in it.
    done: Mutex<BTreeMap<Vec<u8>, usize>>,
    /// How many were acknowledged.
    count: AtomicUsize,
    /// Whether a thread has panicked.
    failed: AtomicBool,
}

pub(super) fn among_threads_each_message_is_in_one_pair_of_hands_and_none_is_lost<S: Specimen>(specimen: &S) {
    let (books, each) = (Books::default(), specimen.limits().capacity * FILLS / THREADS);
    thread::scope(|scope| {
        let books = &books;
        for sender in 0..THREADS {
            scope.spawn(move || specimen.block_on(send(&Case::new(specimen), books, sender, each)));
        }
        for _ in 0..THREADS {
            scope.spawn(move || specimen.block_on(work(&Case::new(specimen), books, each * THREADS)));
        }
    });
    let done = books.done.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(done.len(), each * THREADS, "every message that was sent is received");
    assert!(done.values().all(|times| *times == 1), "a message is acknowledged once");
    let counts = specimen.block_on(async { Case::new(specimen).counts().await });
    assert_eq!(counts, Counts::new(0, 0, 0), "nothing is left when all are acknowledged");
}

/// Lets the others go when one has panicked: they would wait for what he has in his hands.
struct Release<'a>(&'a Books);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.failed.store(true, Ordering::SeqCst);
        }
    }
}

async fn send<S: Specimen>(case: &Case<'_, S>, books: &Books, sender: usize, each: usize) {
    let _release = Release(books);
    for number in 0..each {
        let mut message = Message::new(format!("{sender}/{number}"));
        while let Err(refused) = case.mailbox.send(message).await {
            assert!(
                matches!(refused.why, NotSent::Full { .. }),
                "an open mailbox takes what it has room for"
            );
            if books.failed.load(Ordering::SeqCst) {
                return;
            }
            message = refused.message;
            thread::yield_now();
        }
    }
}

async fn work<S: Specimen>(case: &Case<'_, S>, books: &Books, all: usize) {
    let _release = Release(books);
    let mut turn = 0;
    while books.count.load(Ordering::SeqCst) < all && !books.failed.load(Ordering::SeqCst) {
        let pull = case.wait(case.pull().max(3).expect("within the range"), 1);
        let received = case.receive(pull).await;
        for delivery in &received {
            let mut in_hand = books.in_hand.lock().unwrap_or_else(PoisonError::into_inner);
            assert!(in_hand.insert(delivery.id()), "a message is in one pair of hands at a time");
        }
        for delivery in &received {
            books.in_hand.lock().unwrap_or_else(PoisonError::into_inner).remove(&delivery.id());
            turn += 1;
            let how = match (turn % 5, delivery.delivery_count) {
                (0, _) => Settlement::Release,
                (1, 1) => Settlement::Nack(Span::ZERO),
                _ => Settlement::Ack,
            };
            case.settle(delivery, how).await;
            if how == Settlement::Ack {
                let mut done = books.done.lock().unwrap_or_else(PoisonError::into_inner);
                *done.entry(delivery.body.to_vec()).or_default() += 1;
                drop(done);
                books.count.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}
