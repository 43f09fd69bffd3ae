//! The least that posting can cost: a list of boxed closures whose head is one word, and an eventfd to wake
//! whoever takes them. It refuses nothing, counts nothing and stops when it is told.

use std::{
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicPtr, Ordering},
    },
    thread::{self, JoinHandle},
};

use rustix::event::{EventfdFlags, eventfd};

pub(super) struct Floor {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    /// The newest; null if there is none; `asleep()` if the taker sleeps.
    head: AtomicPtr<Node>,
    bell: OwnedFd,
    stop: AtomicBool,
}

struct Node {
    next: *mut Node,
    job: Box<dyn FnOnce() + Send>,
}

fn asleep() -> *mut Node {
    std::ptr::dangling_mut()
}

impl Floor {
    pub(super) fn start(begin: impl FnOnce() + Send + 'static) -> Self {
        let bell = eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd");
        let state = Arc::new(State { head: AtomicPtr::default(), bell, stop: AtomicBool::new(false) });
        let taking = state.clone();
        let thread = thread::spawn(move || {
            begin();
            taking.take_all();
        });
        Self { state, thread: Some(thread) }
    }

    pub(super) fn post(&self, job: Box<dyn FnOnce() + Send>) {
        let node = Box::into_raw(Box::new(Node { next: std::ptr::null_mut(), job }));
        let mut head = self.state.head.load(Ordering::Relaxed);
        loop {
            let next = if head == asleep() { std::ptr::null_mut() } else { head };
            // SAFETY: nobody else has the node yet.
            unsafe { (*node).next = next };
            match self.state.head.compare_exchange_weak(head, node, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        if head == asleep() {
            self.state.ring();
        }
    }
}

impl State {
    fn ring(&self) {
        rustix::io::write(&self.bell, &1_u64.to_ne_bytes()).expect("the bell rings");
    }

    fn take_all(&self) {
        while !self.stop.load(Ordering::Acquire) {
            let mut node = self.head.swap(std::ptr::null_mut(), Ordering::Acquire);
            let mut oldest = std::ptr::null_mut::<Node>();
            while !node.is_null() && node != asleep() {
                // SAFETY: it was taken out of the list, and so is ours.
                let next = unsafe { std::mem::replace(&mut (*node).next, oldest) };
                oldest = node;
                node = next;
            }
            while !oldest.is_null() {
                // SAFETY: `post` made it of a box, and it is ours.
                let node = unsafe { Box::from_raw(oldest) };
                oldest = node.next;
                (node.job)();
            }
            let none = std::ptr::null_mut();
            if self.head.compare_exchange(none, asleep(), Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                rustix::io::read(&self.bell, &mut [0; 8]).expect("the bell is heard");
            }
        }
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Release);
        self.state.ring();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the taker ends");
        }
    }
}
