//! What other threads put into a loop: one word, a stack that is taken whole.
//!
//! Accepting, refusing, going to sleep, waking and stopping all happen on the same word, so they need no fence
//! between them and cannot contradict each other. The word is the address of the newest [`Link`], with four
//! marks in its low bits. Taking the stack turns it round, so that links come out in the order in which they
//! went in. Its parents are folly's `AtomicNotificationQueue` and the intrusive stack of R. K. Treiber.
//!
//! | mark | set by | while it is set |
//! |---|---|---|
//! | `ARMED` | the loop, if nothing is in it, before it sleeps | who puts something in clears it and wakes the loop |
//! | `SHUT` | a loop that does not run yet, or any more | what comes from outside is refused |
//! | `SEALED` | a stop | `SHUT` stays |
//! | `DEAD` | the loop, if nothing is in it, as the last it does | everything is refused |

use std::ptr::{self, NonNull};

use crate::{
    core::Core,
    sync::{AtomicPtr, AtomicUsize, Ordering},
};

const ARMED: usize = 1;
const SHUT: usize = 1 << 1;
const SEALED: usize = 1 << 2;
const DEAD: usize = 1 << 3;
const MARKS: usize = ARMED | SHUT | SEALED | DEAD;

/// What is put in is aligned to this, so that its address leaves room for the marks.
pub(crate) const LINK_ALIGN: usize = MARKS + 1;

/// One thing in an inbox: the head of a task or of a posted closure.
#[derive(Debug)]
#[repr(C)]
pub struct Link {
    /// The one that was put in before it, in an inbox; the one that is run after it, in a run queue. Written by
    /// whoever puts it in, read by the loop.
    pub(crate) next: AtomicPtr<Link>,
    /// Always of a `&'static Kind`, which may be the head of something larger.
    kind: NonNull<Kind>,
}

// SAFETY: the next is an atomic, and the kind is shared by all.
unsafe impl Send for Link {}
// SAFETY: as above.
unsafe impl Sync for Link {}

/// What can be done with a link. Each takes the link's part in the inbox or the run queue with it.
#[derive(Debug)]
pub struct Kind {
    /// Runs it, on the loop's thread.
    pub(crate) run: unsafe fn(NonNull<Link>, &Core),
    /// Ends it without running it, on the loop's thread: a forced stop.
    pub(crate) abandon: unsafe fn(NonNull<Link>, &Core),
    /// Frees it, on any thread: what is left in the inbox of a loop that never ran.
    pub(crate) discard: unsafe fn(NonNull<Link>),
    pub(crate) sort: Sort,
}

/// What a link stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Work that a plain stop still runs.
    Post,
    /// A task that is to be polled.
    Task,
    /// Something for work that is inside already.
    Errand,
}

impl Link {
    pub(crate) fn new(kind: &'static Kind) -> Self {
        // SAFETY: it is what it says.
        unsafe { Self::with_head(NonNull::from(kind)) }
    }

    /// # Safety
    /// `kind` is that of a `&'static Kind`, or of something `'static` that begins with one.
    pub(crate) unsafe fn with_head(kind: NonNull<Kind>) -> Self {
        Self { next: AtomicPtr::new(ptr::null_mut()), kind }
    }

    pub(crate) fn kind(&self) -> &'static Kind {
        // SAFETY: by the word of whoever made the link.
        unsafe { self.kind.as_ref() }
    }

    /// The kind, and what it is the head of.
    pub(crate) fn head(&self) -> NonNull<Kind> {
        self.kind
    }

    /// A link that leads to nothing, for models of the inbox alone.
    #[cfg(any(loom, shuttle))]
    #[must_use]
    pub fn inert() -> Self {
        unsafe fn never(_: NonNull<Link>, _: &Core) {
            unreachable!("a model has no loop")
        }
        const INERT: &Kind = &Kind { run: never, abandon: never, discard: |_| (), sort: Sort::Errand };
        Self::new(INERT)
    }

    /// The one after it in the list that [`Inbox::take`] gave.
    #[cfg(any(loom, shuttle))]
    #[must_use]
    pub fn next(&self) -> Option<NonNull<Self>> {
        NonNull::new(self.next.load(Ordering::Relaxed))
    }
}

/// Where a link comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// New work from outside: refused once the inbox is shut.
    Outer,
    /// A wake-up of work that is inside, or something that it needs in order to end: refused only by a dead inbox.
    Inner,
}

/// The inbox of a loop.
#[derive(Debug)]
pub struct Inbox {
    word: AtomicUsize,
}

/// Whether the loop has to be woken.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// It was about to sleep, or asleep. Only one who puts something in is told so.
    Needed,
    /// It is awake, or somebody else wakes it.
    Needless,
}

/// Refused: the link was not put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

impl Inbox {
    /// An empty inbox, `shut` or not.
    #[must_use]
    pub fn new(shut: bool) -> Self {
        Self { word: AtomicUsize::new(if shut { SHUT } else { 0 }) }
    }

    /// Puts `link` in. Callable from any thread.
    ///
    /// # Errors
    /// If the inbox is closed for those who come through `door`.
    ///
    /// # Safety
    /// `link` is aligned to `LINK_ALIGN`. If it is accepted, it must live until the loop has taken it out, and
    /// be in no other list meanwhile.
    #[inline]
    pub unsafe fn put(&self, link: NonNull<Link>, door: Door) -> Result<Wake, Refused> {
        let closed = if door == Door::Outer { SHUT | DEAD } else { DEAD };
        let address = link.as_ptr().expose_provenance();
        debug_assert!(address.is_multiple_of(LINK_ALIGN), "a link leaves room for the marks");
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & closed != 0 {
                return Err(Refused);
            }
            // SAFETY: nobody but us knows of the link until the exchange below succeeds; by the caller's word
            // it lives.
            let link = unsafe { link.as_ref() };
            link.next.store(ptr::with_exposed_provenance_mut(word & !MARKS), Ordering::Relaxed);
            // Release: the link and all that it leads to, to the loop that takes it out. Acquire: how a loop
            // that sleeps is to be woken, from `open` and `arm`.
            let next = address | (word & MARKS & !ARMED);
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if word & ARMED != 0 => return Ok(Wake::Needed),
                Ok(_) => return Ok(Wake::Needless),
                Err(seen) => word = seen,
            }
        }
    }

    /// Takes everything out, the oldest first: a list from the first of the two to the second. For the loop alone.
    #[inline]
    pub fn take(&self) -> Option<(NonNull<Link>, NonNull<Link>)> {
        if self.word.load(Ordering::Relaxed) & !MARKS == 0 {
            return None;
        }
        // Acquire: the links, and all that they lead to. The marks stay, but that of a sleeper: he is awake.
        let word = self.word.fetch_and(MARKS & !ARMED, Ordering::Acquire);
        let newest = NonNull::new(ptr::with_exposed_provenance_mut::<Link>(word & !MARKS))?;
        let (mut link, mut after) = (newest, ptr::null_mut());
        loop {
            // SAFETY: by the word of whoever put it in, the link lives until it is taken out, which is now.
            let next = unsafe { &link.as_ref().next };
            let before = NonNull::new(next.load(Ordering::Relaxed));
            next.store(after, Ordering::Relaxed);
            match before {
                Some(before) => (after, link) = (link.as_ptr(), before),
                None => return Some((link, newest)),
            }
        }
    }

    /// Says that the loop is about to sleep; it must then [disarm](Inbox::disarm) when it wakes. Gives false if
    /// there is something in it. For the loop alone.
    #[must_use]
    pub fn arm(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        // Release: where the loop sleeps, to whoever is told to wake it.
        word & !MARKS == 0
            && self.word.compare_exchange(word, word | ARMED, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Says that the loop is awake. For the loop alone.
    pub fn disarm(&self) {
        self.word.fetch_and(!ARMED, Ordering::Relaxed);
    }

    /// Lets those in who come from outside. Gives false if a stop came first.
    pub fn open(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & SEALED == 0 {
            // Release: the loop as it was set up, to whoever is accepted by it.
            match self.word.compare_exchange_weak(word, word & !SHUT, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(seen) => word = seen,
            }
        }
        false
    }

    /// Keeps those out who come from outside, for good.
    pub fn seal(&self) {
        // AcqRel: what was done before, to those whom it refuses; and what they had put in, to us.
        self.word.fetch_or(SHUT | SEALED, Ordering::AcqRel);
    }

    /// Whether those from outside are kept out.
    #[must_use]
    pub fn is_shut(&self) -> bool {
        self.word.load(Ordering::Acquire) & SHUT != 0
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.word.load(Ordering::Relaxed) & !MARKS == 0
    }

    /// Refuses everything from now on, unless something is in it: then gives false. For the loop alone, as the
    /// last that it does.
    #[must_use]
    pub fn die(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & !MARKS == 0 {
            // AcqRel: the last that the loop did, to those whom it refuses.
            let dead = word | SHUT | SEALED | DEAD;
            match self.word.compare_exchange_weak(word, dead, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(seen) => word = seen,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &Kind = &Kind {
        run: |_, _| unreachable!("there is no loop"),
        abandon: |_, _| unreachable!("there is no loop"),
        discard: |_| unreachable!("it is on the stack"),
        sort: Sort::Errand,
    };

    #[repr(align(16))]
    struct Post(Link);

    impl Post {
        fn new() -> Self {
            Self(Link::new(KIND))
        }

        fn go_into(&self, inbox: &Inbox, door: Door) -> Result<Wake, Refused> {
            // SAFETY: it is aligned, and each test takes out what it has put in before it ends.
            unsafe { inbox.put(NonNull::from(&self.0), door) }
        }
    }

    #[test]
    fn only_a_loop_that_sleeps_is_woken_and_once() {
        let (inbox, posts) = (Inbox::new(false), [Post::new(), Post::new()]);
        assert!(inbox.arm());
        assert_eq!(posts[0].go_into(&inbox, Door::Outer), Ok(Wake::Needed));
        assert_eq!(posts[1].go_into(&inbox, Door::Outer), Ok(Wake::Needless), "the first wakes it");
        assert!(!inbox.arm(), "there is something in it");
        assert!(inbox.take().is_some() && inbox.is_empty());
        // Woken by something else.
        assert!(inbox.arm());
        inbox.disarm();
        assert_eq!(posts[0].go_into(&inbox, Door::Inner), Ok(Wake::Needless));
        assert!(inbox.take().is_some());
    }

    #[test]
    fn each_end_shuts_what_it_says_for_good() {
        let (inbox, post) = (Inbox::new(true), Post::new());
        assert_eq!((post.go_into(&inbox, Door::Outer), inbox.is_shut()), (Err(Refused), true));
        assert!(inbox.open() && !inbox.is_shut());
        inbox.seal();
        assert_eq!((inbox.open(), inbox.is_shut()), (false, true));
        assert_eq!(post.go_into(&inbox, Door::Outer), Err(Refused));
        assert_eq!(post.go_into(&inbox, Door::Inner), Ok(Wake::Needless));
        assert!(!inbox.die(), "something is in it");
        assert!(inbox.take().is_some() && inbox.die());
        assert_eq!(post.go_into(&inbox, Door::Inner), Err(Refused));
        assert_eq!((inbox.open(), inbox.is_shut(), inbox.die()), (false, true, true));
        assert_eq!(post.go_into(&inbox, Door::Inner), Err(Refused), "it stays dead");
    }

    #[test]
    fn an_inbox_that_dies_without_a_stop_is_as_shut_as_after_one() {
        let (inbox, post) = (Inbox::new(false), Post::new());
        assert!(inbox.die() && inbox.is_shut() && !inbox.open());
        assert_eq!(post.go_into(&inbox, Door::Outer), Err(Refused));
        assert_eq!(post.go_into(&inbox, Door::Inner), Err(Refused));
    }
}
