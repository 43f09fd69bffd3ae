//! The one word for "stop": fired once, with a reason, seen by everybody who holds a token.

mod reason;
mod wrap;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

pub use self::{
    reason::Reason,
    wrap::{Interrupted, Wrap},
};
use crate::wait::{Bell, Wait, Watch};

/// Fires once. The first reason wins, and is what all tokens see. A clone is another handle to the same trigger.
///
/// ```
/// use ebbtide_lifecycle::{Reason, Trigger};
///
/// let trigger = Trigger::new();
/// let token = trigger.token();
/// assert!(!token.is_triggered());
///
/// assert!(trigger.fire(Reason::requested("maintenance")));
/// assert!(!trigger.fire(Reason::Signal(15)));
/// assert_eq!(token.triggered().wait(), Reason::requested("maintenance"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Trigger {
    node: Arc<Node>,
}

/// Sees whether a [`Trigger`] has fired, and waits for it. A clone is another token of the same trigger.
#[derive(Clone, Debug)]
pub struct Token {
    node: Arc<Node>,
}

/// What a trigger and its tokens share.
#[derive(Default)]
struct Node {
    /// Set once, by whoever fires first. Being set is what "triggered" means.
    reason: OnceLock<Reason>,
    /// Rung after `reason` is set.
    fired: Bell,
    /// The children that are alive, by number. A node that is set after taking this lock fires them.
    children: Mutex<Children>,
    parent: Option<Parent>,
}

#[derive(Default)]
struct Children {
    nodes: BTreeMap<u64, Weak<Node>>,
    born: u64,
}

struct Parent {
    node: Arc<Node>,
    /// This child's number there.
    number: u64,
}

impl Trigger {
    /// A trigger that nothing but itself can fire.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Fires, unless it has fired before. Gives whether `reason` is the one that counts.
    ///
    /// Callable from any thread. When it gives true, all tokens of this trigger and of its children see it, and
    /// their waiters have been woken; only below a child that another thread is firing at this moment is it
    /// that thread's to tell. Not for a signal handler: it takes locks.
    pub fn fire(&self, reason: Reason) -> bool {
        Node::fire(&self.node, reason)
    }

    /// A token of this trigger.
    #[must_use]
    pub fn token(&self) -> Token {
        Token { node: self.node.clone() }
    }

    /// Whether it has fired.
    #[must_use]
    pub fn is_triggered(&self) -> bool {
        self.node.reason.get().is_some()
    }

    /// Why it fired, if it has.
    #[must_use]
    pub fn reason(&self) -> Option<&Reason> {
        self.node.reason.get()
    }
}

impl Token {
    /// Whether it has fired: one load.
    #[inline]
    #[must_use]
    pub fn is_triggered(&self) -> bool {
        self.node.reason.get().is_some()
    }

    /// Why it fired, if it has.
    #[inline]
    #[must_use]
    pub fn reason(&self) -> Option<&Reason> {
        self.node.reason.get()
    }

    /// Waits until it fires, and gives the reason.
    pub fn triggered(&self) -> Wait<Triggered> {
        Wait::new(Triggered { token: self.clone() })
    }

    /// A trigger that also fires when this token's does, with the same reason; firing it does not reach up here.
    ///
    /// It is forgotten here once it and its tokens are dropped.
    #[must_use]
    pub fn child(&self) -> Trigger {
        let trigger = Trigger { node: Node::new_child(&self.node) };
        // Either the firing thread finds the child in the list, or we find the reason here: the list's lock,
        // which it takes after setting the reason, orders the two.
        if let Some(reason) = self.reason() {
            trigger.fire(reason.clone());
        }
        trigger
    }

    /// Runs `future` until it ends or this token's trigger fires, whichever comes first.
    ///
    /// See [`Wrap`] for who wins when both are there.
    pub fn wrap<F: IntoFuture>(&self, future: F) -> Wrap<F::IntoFuture> {
        Wrap::new(self, future.into_future())
    }
}

impl Node {
    fn new_child(parent: &Arc<Self>) -> Arc<Self> {
        let mut children = parent.lock_children();
        children.born += 1;
        let number = children.born;
        let mut node = Self::default();
        node.parent = Some(Parent { node: parent.clone(), number });
        let node = Arc::new(node);
        children.nodes.insert(number, Arc::downgrade(&node));
        node
    }

    /// Fires a node and all below it: first all reasons, then all bells, so that nobody's waker runs before
    /// everybody can know. A loop over a list, because a chain of children may be longer than the stack.
    fn fire(root: &Arc<Self>, reason: Reason) -> bool {
        if root.reason.set(reason.clone()).is_err() {
            return false;
        }
        let mut fired = root.take_children();
        let mut next = 0;
        while let Some(child) = fired.get(next) {
            // Of one that fired by itself, the children have been told by then, or are being told.
            let below = child.reason.set(reason.clone()).is_ok().then(|| child.take_children());
            fired.extend(below.unwrap_or_default());
            next += 1;
        }
        root.fired.ring();
        for node in fired {
            node.fired.ring();
        }
        true
    }

    fn take_children(&self) -> Vec<Arc<Self>> {
        let nodes = std::mem::take(&mut self.lock_children().nodes);
        nodes.into_values().filter_map(|child| child.upgrade()).collect()
    }

    fn lock_children(&self) -> MutexGuard<'_, Children> {
        // Nothing that can panic runs under the lock.
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leaves the parent's list. Going up is a loop as well: this may be the last that kept a long line of parents.
impl Drop for Node {
    fn drop(&mut self) {
        let mut parent = self.parent.take();
        while let Some(Parent { node, number }) = parent {
            node.lock_children().nodes.remove(&number);
            parent = Arc::into_inner(node).and_then(|mut node| node.parent.take());
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("reason", &self.reason.get()).finish_non_exhaustive()
    }
}

/// What [`Token::triggered`] waits for.
#[derive(Debug)]
pub struct Triggered {
    token: Token,
}

impl Watch for Triggered {
    type Seen = Reason;

    #[inline]
    fn look(&self) -> Option<Reason> {
        self.token.reason().cloned()
    }

    fn bell(&self) -> &Bell {
        &self.token.node.fired
    }
}
