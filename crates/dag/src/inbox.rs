//! What comes in for a run from elsewhere: wake-ups of its nodes, nodes that others have made ready, and how nodes on
//! other threads have ended.

use std::{
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Wake, Waker},
};

use ebbtide_lifecycle::contain;

use crate::op::Called;

/// Which of the runs that an inbox serves one after the other.
pub(crate) type RunNumber = u64;

/// The inbox of a run. Its memory serves many runs; a wake-up for one of the earlier ones polls a node for nothing
/// at most.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Zero between two runs.
    run: RunNumber,
    post: Post,
    /// Whom to wake when something comes in.
    waker: Option<Waker>,
    /// He need not be woken: he has been, or is looking.
    is_awake: bool,
}

/// What has come in.
#[derive(Default)]
pub(crate) struct Post {
    /// Berths whose nodes were woken.
    pub(crate) woken: Vec<u32>,
    /// Nodes whose inputs are all there.
    pub(crate) ready: Vec<u32>,
    /// Nodes that have got a place in their class.
    pub(crate) granted: Vec<u32>,
    /// Nodes that have ended on another thread, and have to be seen to.
    pub(crate) ended: Vec<(u32, Called)>,
    /// Nodes that their pool will never run.
    pub(crate) refused: Vec<u32>,
    /// Others have counted something that the run has to look at.
    is_nudged: bool,
}

impl Post {
    pub(crate) fn is_empty(&self) -> bool {
        self.woken.is_empty()
            && self.ready.is_empty()
            && self.granted.is_empty()
            && self.ended.is_empty()
            && self.refused.is_empty()
            && !self.is_nudged
    }

    /// Empties it, and keeps its room.
    pub(crate) fn clear(&mut self) {
        let Self { woken, ready, granted, ended, refused, is_nudged } = self;
        woken.clear();
        ready.clear();
        granted.clear();
        ended.clear();
        refused.clear();
        *is_nudged = false;
    }
}

impl Inbox {
    /// Opens it for a run.
    pub(crate) fn open(&self, run: RunNumber) {
        let mut state = self.lock();
        (state.run, state.is_awake) = (run, false);
        // Wake-ups of the run before; nothing else was put in after that was closed.
        let before = mem::take(&mut state.post);
        state.post.woken = before.woken;
        state.post.woken.clear();
    }

    /// The run is over. Takes what nobody has looked at into an empty `post`.
    pub(crate) fn close(&self, post: &mut Post) {
        let mut state = self.lock();
        state.run = 0;
        let waker = state.waker.take();
        mem::swap(&mut state.post, post);
        drop(state);
        drop(waker);
    }

    /// The run looks, and need not be woken until it [rests](Inbox::rest). From then on `waker` is.
    pub(crate) fn look(&self, waker: &Waker) {
        let mut state = self.lock();
        state.is_awake = true;
        if state.waker.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            return;
        }
        // A waker is foreign code, its clone and its drop too: no lock is held meanwhile.
        drop(state);
        let waker = waker.clone();
        let before = self.lock().waker.replace(waker);
        drop(before);
    }

    /// Takes what has come in, into an empty `post`. Gives whether there is anything.
    pub(crate) fn take(&self, post: &mut Post) -> bool {
        let mut state = self.lock();
        mem::swap(&mut state.post, post);
        drop(state);
        !post.is_empty()
    }

    /// The run has nothing more to do, and is to be woken. Gives false if something has come in: it is to look again.
    pub(crate) fn rest(&self) -> bool {
        let mut state = self.lock();
        state.is_awake = !state.post.is_empty();
        !state.is_awake
    }

    /// Puts something in, and wakes the run. Gives false if that is over: then nothing is put in.
    pub(crate) fn put(&self, put: impl FnOnce(&mut Post)) -> bool {
        let mut state = self.lock();
        if state.run == 0 {
            return false;
        }
        put(&mut state.post);
        self.wake(state);
        true
    }

    /// The same without waking the run: the caller [nudges](Inbox::nudge) it soon.
    pub(crate) fn put_quietly(&self, put: impl FnOnce(&mut Post)) {
        let mut state = self.lock();
        if state.run != 0 {
            put(&mut state.post);
        }
    }

    /// Wakes the run, unless it has been.
    fn wake(&self, mut state: MutexGuard<'_, State>) {
        if mem::replace(&mut state.is_awake, true) {
            return;
        }
        // It is called with no lock held, and put back: a clone would cost more.
        let waker = state.waker.take();
        drop(state);
        let Some(waker) = waker else { return };
        // It is foreign code. Whoever brings something here has more to do, and it may be another run.
        drop(contain(|| waker.wake_by_ref()));
        let mut state = self.lock();
        let unneeded =
            if state.waker.is_none() && state.run != 0 { state.waker.replace(waker) } else { Some(waker) };
        drop(state);
        drop(unneeded);
    }

    /// Wakes the run, so that it looks at what others have counted.
    pub(crate) fn nudge(&self) {
        self.put(|post| post.is_nudged = true);
    }

    /// Tells a node that it has a place in its class, unless its run is over.
    pub(crate) fn grant(&self, run: RunNumber, node: u32) -> bool {
        let mut state = self.lock();
        if state.run != run {
            return false;
        }
        state.post.granted.push(node);
        self.wake(state);
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The waker of whatever async node is in a berth.
pub(crate) struct NodeWaker {
    inbox: Arc<Inbox>,
    /// The number of its berth.
    berth: u32,
    /// It is in the inbox already.
    woken: AtomicBool,
}

impl NodeWaker {
    pub(crate) fn new(inbox: &Arc<Inbox>, berth: u32) -> Arc<Self> {
        Arc::new(Self { inbox: inbox.clone(), berth, woken: AtomicBool::new(false) })
    }

    /// The node is about to be polled: wake-ups from now on count.
    #[inline]
    pub(crate) fn rearm(&self) {
        // Who is woken seldom has to be rearmed. Acquire: what the waker did before, to the poll that follows.
        if self.woken.load(Ordering::Relaxed) {
            self.woken.swap(false, Ordering::Acquire);
        }
    }
}

impl Wake for NodeWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Release: what was done before, to the poll that follows.
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.inbox.put(|post| post.woken.push(self.berth));
        }
    }
}
