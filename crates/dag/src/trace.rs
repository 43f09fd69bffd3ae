//! When each node of a run began and ended, and on which thread.

use std::{
    cell::Cell,
    num::{NonZeroU32, NonZeroU64},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    thread,
};

/// The times of a run's nodes, in nanoseconds since its start.
pub(crate) struct Trace {
    spans: Box<[Span]>,
}

/// One node. Written by whoever runs it; read when it has ended.
#[derive(Default)]
struct Span {
    begun: AtomicU64,
    ended: AtomicU64,
    /// Its thread's number, plus one.
    thread: AtomicU32,
}

/// What is known of one node. Reports have one for each, so it is small, also where there may be none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) begun: u64,
    ended: Option<NonZeroU64>,
    /// Its thread's number, plus one.
    thread: NonZeroU32,
}

impl Times {
    pub(crate) fn ended(self) -> Option<u64> {
        self.ended.map(NonZeroU64::get)
    }

    /// The number of its thread.
    pub(crate) fn thread(self) -> usize {
        self.thread.get() as usize - 1
    }
}

impl Trace {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { spans: (0..nodes).map(|_| Span::default()).collect() }
    }

    /// A node begins. It may do so several times: the first counts.
    #[inline]
    pub(crate) fn begins(&self, node: u32, now: u64) {
        let span = &self.spans[node as usize];
        if span.thread.load(Ordering::Relaxed) == 0 {
            span.begun.store(now, Ordering::Relaxed);
            span.thread.store(thread_number() + 1, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn ends(&self, node: u32, now: u64) {
        self.spans[node as usize].ended.store(now.max(1), Ordering::Relaxed);
    }

    /// The times of a node that has begun.
    pub(crate) fn times(&self, node: u32) -> Option<Times> {
        let span = &self.spans[node as usize];
        Some(Times {
            thread: NonZeroU32::new(span.thread.load(Ordering::Relaxed))?,
            begun: span.begun.load(Ordering::Relaxed),
            ended: NonZeroU64::new(span.ended.load(Ordering::Relaxed)),
        })
    }
}

/// So many names of threads are kept, for good: a process that starts threads again and again gives them names that
/// come again, or none.
const NAMES_MAX: usize = 1024;

/// What the threads of all further names are called.
const OTHERS: &str = "other threads";

/// The names of all threads that have run a traced node, by their number. Threads of one name have one number.
static NAMES: Mutex<Vec<Arc<str>>> = Mutex::new(Vec::new());

thread_local! {
    /// Of this thread, plus one.
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

#[inline]
fn thread_number() -> u32 {
    NUMBER.get().checked_sub(1).unwrap_or_else(number_thread)
}

/// Gives this thread its number.
#[cold]
fn number_thread() -> u32 {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let name = thread::current().name().map_or_else(|| format!("thread {}", names.len()), str::to_owned);
    let number = number_in(&mut names, &name) as u32;
    NUMBER.set(number + 1);
    number
}

/// The number of a name, which is added if there is room.
fn number_in(names: &mut Vec<Arc<str>>, name: &str) -> usize {
    let name = if names.len() < NAMES_MAX - 1 { name } else { OTHERS };
    names.iter().position(|known| **known == *name).unwrap_or_else(|| {
        names.push(name.into());
        names.len() - 1
    })
}

/// The names of all threads, by their number.
pub(crate) fn thread_names() -> Vec<Arc<str>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_name_have_one_number_and_there_are_so_many_at_most() {
        let mut names = Vec::new();
        assert_eq!(["a", "b", "a"].map(|name| number_in(&mut names, name)), [0, 1, 0]);
        let numbers: Vec<_> = (0..2 * NAMES_MAX).map(|n| number_in(&mut names, &n.to_string())).collect();
        assert_eq!((names.len(), &*names[NAMES_MAX - 1]), (NAMES_MAX, OTHERS));
        assert_eq!(numbers.last(), Some(&(NAMES_MAX - 1)));
    }
}
