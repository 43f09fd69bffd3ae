//! Where the outputs of a run's nodes lie.
//!
//! Each node has one slot, whose type is that of its output. A slot is written by whoever ran its node, and read by the
//! nodes that have it as an input; the run's counters keep them apart:
//!
//! - a node is run once in a run, by one thread, which alone fills its slot;
//! - the count of a node's missing inputs goes down (release) after an input's slot was filled, and the node is run
//!   (acquire) only when it has come to zero: so no slot is read before it was filled;
//! - a node on the pool that its run has given up on may still look at its inputs: it is their consumer until it has
//!   ended, and keeps the slots alive;
//! - a slot with one consumer is emptied by it; one with several is read by each of them before he counts himself out
//!   (release), and emptied by the last, who sees that all others have (acquire).

use std::{
    any::TypeId,
    cell::UnsafeCell,
    fmt,
    marker::PhantomData,
    mem::{self, MaybeUninit},
    ptr::{self, NonNull},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use ebbtide_lifecycle::contain;

use crate::input::Input;

/// What a slot holds.
pub(crate) enum Value<T> {
    Empty,
    /// For one consumer, or for several of which all but the last only borrow it.
    Own(T),
    /// For several that keep it, and not as copies.
    Shared(Arc<T>),
}

/// Room for a value in the slot itself, so that what is small lies beside what is to be known of it. What is larger has
/// a box, and its pointer is here.
type Room = UnsafeCell<MaybeUninit<[u64; 4]>>;

/// Whether a value of this type fits into a slot.
const fn fits<T>() -> bool {
    size_of::<UnsafeCell<Value<T>>>() <= size_of::<Room>()
        && align_of::<UnsafeCell<Value<T>>>() <= align_of::<Room>()
}

/// What is in a room.
///
/// # Safety
/// A [`SlotKind`] of this type has furnished it.
#[inline]
unsafe fn value_in<T>(room: &Room) -> &UnsafeCell<Value<T>> {
    if fits::<T>() {
        // SAFETY: by the caller's word the value is in the room, which is aligned for it.
        unsafe { &*room.get().cast() }
    } else {
        // SAFETY: by the caller's word the room holds the pointer to a box.
        let boxed = unsafe { *room.get().cast::<NonNull<UnsafeCell<Value<T>>>>() };
        // SAFETY: the box lives as long as the room is furnished.
        unsafe { boxed.as_ref() }
    }
}

/// Whether those who keep a value of this type get copies of it, because it is no larger than a pointer to a shared
/// one, and nothing but its bits. All such types are `Copy`. That others are cannot be known here.
#[inline]
fn is_copied<T: 'static>() -> bool {
    fn is<T: 'static, C: Copy + 'static>() -> bool {
        TypeId::of::<T>() == TypeId::of::<C>()
    }
    macro_rules! is_one_of {
        ($($copy:ty)*) => { $(is::<T, $copy>())||* };
    }
    is_one_of!(() bool char u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64)
}

/// Furnishes, clears and empties rooms for values of one type.
pub(crate) struct SlotKind {
    /// Puts an empty value into a room that has nothing in it.
    furnish: fn(&Room),
    /// Drops what the value holds. The caller has the room to himself.
    clear: unsafe fn(&Room),
    /// Takes away what `furnish` has put there.
    free: unsafe fn(&Room),
    /// Whether those who keep a value get copies of it.
    pub(crate) is_copied: fn() -> bool,
}

impl SlotKind {
    pub(crate) const fn of<T: 'static>() -> &'static Self {
        const {
            &Self {
                furnish: |room| {
                    let value = UnsafeCell::new(Value::<T>::Empty);
                    if fits::<T>() {
                        // SAFETY: it fits, and nothing is there yet that would have to be dropped.
                        unsafe { room.get().cast::<UnsafeCell<Value<T>>>().write(value) };
                    } else {
                        let boxed = NonNull::from(Box::leak(Box::new(value)));
                        // SAFETY: a pointer fits.
                        unsafe { room.get().cast::<NonNull<UnsafeCell<Value<T>>>>().write(boxed) };
                    }
                },
                clear: |room| {
                    // SAFETY: by the caller's word the room is of this kind.
                    let value = unsafe { value_in::<T>(room) };
                    // SAFETY: by the caller's word it is his alone.
                    if let Some(input) = unsafe { empty(value) } {
                        drop(contain(|| drop(input)));
                    }
                },
                free: |room| {
                    // What fits is empty, and an empty value needs no drop.
                    if !fits::<T>() {
                        // SAFETY: by the caller's word the room is of this kind, so the pointer is there.
                        let boxed = unsafe { room.get().cast::<NonNull<UnsafeCell<Value<T>>>>().read() };
                        // SAFETY: it came from a box, and by the caller's word nobody uses it any more.
                        drop(unsafe { Box::from_raw(boxed.as_ptr()) });
                    }
                },
                is_copied: is_copied::<T>,
            }
        }
    }
}

/// A place of a node's output in every run, with the type that its slot has.
pub(crate) struct Place<T> {
    pub(crate) node: u32,
    output: PhantomData<fn(T) -> T>,
}

impl<T> Place<T> {
    /// # Safety
    /// The slot of `node`, in the runs of the plan that this place is used with, is of type `T`.
    pub(crate) const unsafe fn new(node: u32) -> Self {
        Self { node, output: PhantomData }
    }
}

impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Place<T> {}

/// The slots of one run.
pub(crate) struct Slots {
    slots: Box<[Slot]>,
    /// What has furnished each.
    kinds: Box<[&'static SlotKind]>,
    /// One thread does everything: counting takes no locked instruction.
    one_thread: bool,
}

/// The slot of one node, and all that is to be known of it, side by side.
struct Slot {
    room: Room,
    /// How many consumers it still has. The last one puts back how many they were, for the next run.
    left: AtomicU32,
    consumers: Consumers,
}

/// Who wants the output of a node: how many, and whether it lies in a block of its own, because several keep it, and
/// not as copies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Consumers(u32);

impl Consumers {
    const SHARED: u32 = 1 << 31;

    /// Edges are numbered in 31 bits.
    pub(crate) const fn new(count: u32, shared: bool) -> Self {
        Self(if shared { count | Self::SHARED } else { count })
    }

    #[inline]
    const fn count(self) -> u32 {
        self.0 & !Self::SHARED
    }

    #[inline]
    const fn shared(self) -> bool {
        self.0 & Self::SHARED != 0
    }
}

// SAFETY: a slot is reached through `&Slots` by one thread at a time, or read by several: see above. That the values
// may go to other threads is seen to by the graph: a graph whose runs leave their thread takes only such nodes.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

impl Slots {
    pub(crate) fn new(
        kinds: impl Iterator<Item = &'static SlotKind>,
        consumers: &[Consumers],
        one_thread: bool,
    ) -> Self {
        let slot = |(kind, consumers): (&&'static SlotKind, &Consumers)| {
            let room = UnsafeCell::new(MaybeUninit::uninit());
            (kind.furnish)(&room);
            Slot { room, consumers: *consumers, left: AtomicU32::new(0) }
        };
        let kinds: Box<[_]> = kinds.collect();
        Self { slots: kinds.iter().zip(consumers).map(slot).collect(), kinds, one_thread }
    }

    /// Makes them ready for the next run. They are empty.
    pub(crate) fn reset(&mut self) {
        for slot in &mut self.slots {
            *slot.left.get_mut() = slot.consumers.count();
        }
    }

    /// Whether each slot has all its consumers before it.
    pub(crate) fn are_ready(&self) -> bool {
        self.slots.iter().all(|slot| slot.left.load(Ordering::Relaxed) == slot.consumers.count())
    }

    /// Empties all slots.
    pub(crate) fn clear(&mut self) {
        for (slot, kind) in self.slots.iter().zip(&self.kinds) {
            // SAFETY: it is the kind that made it, and `&mut` says that nobody else touches it.
            unsafe { (kind.clear)(&slot.room) };
        }
    }

    /// The turn of a node, for whoever runs it.
    ///
    /// # Safety
    /// The caller alone runs the node in this run, all its inputs have ended, none of its consumers has been run, and
    /// he gives this to nothing but the node's own op, which takes or releases each of its inputs once, and fills its
    /// slot once.
    pub(crate) unsafe fn turn(&self) -> Turn<'_> {
        Turn(self)
    }
}

/// Evidence that it is a node's turn: made by whoever runs it, see [`Slots::turn`].
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a>(&'a Slots);

impl<'a> Turn<'a> {
    /// The slot of a place, and what it holds.
    #[inline]
    fn slot<T>(&self, place: Place<T>) -> (&'a Slot, &'a UnsafeCell<Value<T>>) {
        let slot = &self.0.slots[place.node as usize];
        // SAFETY: whoever made the place has promised that the slot is of this type.
        (slot, unsafe { value_in(&slot.room) })
    }

    /// Fills the slot of the node with its output. If nobody wants it, it is dropped.
    #[inline]
    pub(crate) fn fill<T>(&self, place: Place<T>, output: T) {
        let (slot, value) = self.slot(place);
        let filled = if slot.consumers.shared() {
            Value::Shared(Arc::new(output))
        } else if slot.consumers.count() == 0 {
            return drop(contain(|| drop(output)));
        } else {
            Value::Own(output)
        };
        // SAFETY: it is the node's turn: nobody else touches the slot. It is empty: nothing is to be dropped.
        unsafe { value.get().write(filled) };
    }

    /// What a node gets of an input that it keeps for as long as it likes; it is its consumer no more. Nothing if the
    /// input has given no output.
    #[inline]
    pub(crate) fn take<T: 'static>(&self, place: Place<T>) -> Option<Input<'static, T>> {
        if is_copied::<T>() {
            return self.copy(place, false);
        }
        let (slot, value) = self.slot(place);
        if slot.has_one_consumer_left() {
            slot.refill();
            // SAFETY: all other consumers have counted themselves out.
            return unsafe { empty(value) };
        }
        let input = self.share(place);
        self.release(place);
        input
    }

    /// What a node gets of an input whose output others keep as well, and whose consumer it stays.
    #[inline]
    pub(crate) fn share<T: 'static>(&self, place: Place<T>) -> Option<Input<'static, T>> {
        if is_copied::<T>() {
            return self.copy(place, true);
        }
        // SAFETY: it is filled no more, and emptied only by the last consumer to leave: not while this node is one.
        match unsafe { &*self.slot(place).1.get() } {
            Value::Shared(output) => Some(Input::shared(output.clone())),
            Value::Own(_) | Value::Empty => None,
        }
    }

    /// What a node gets of an input of a type that is [copied](is_copied), whose consumer it stays if it may want it
    /// `again`.
    #[inline(always)]
    fn copy<T: 'static>(&self, place: Place<T>, again: bool) -> Option<Input<'static, T>> {
        let (slot, value) = self.slot(place);
        // SAFETY: as in `share`.
        let input = match unsafe { &*value.get() } {
            // SAFETY: all types that are copied are `Copy`.
            Value::Own(output) => Some(Input::own(unsafe { ptr::read(output) })),
            Value::Shared(_) | Value::Empty => None,
        };
        if !again && slot.count_out(self.0.one_thread) {
            // SAFETY: all other consumers have counted themselves out. What is `Copy` needs no drop.
            unsafe { value.get().write(Value::Empty) };
        }
        input
    }

    /// What a node gets of an input that it does not keep beyond its turn. It is its consumer until it
    /// [gives it back](Turn::give_back), also if it is the last, and then gets the output itself, unless it may want it
    /// `again`.
    #[inline]
    pub(crate) fn lend<T: 'static>(&self, place: Place<T>, again: bool) -> Option<Input<'a, T>> {
        if is_copied::<T>() {
            return self.copy(place, again);
        }
        let (slot, value) = self.slot(place);
        if !again && slot.has_one_consumer_left() {
            // SAFETY: all other consumers have counted themselves out.
            return unsafe { empty(value) };
        }
        // SAFETY: as in `share`; and what is lent is given back before the node counts itself out.
        match unsafe { &*value.get() } {
            Value::Own(output) => Some(Input::lent(output)),
            Value::Shared(output) => Some(Input::lent(output)),
            Value::Empty => None,
        }
    }

    /// The node wants an input no more that was [lent](Turn::lend) to it, not to be wanted again.
    #[inline]
    pub(crate) fn give_back<T: 'static>(&self, place: Place<T>) {
        // A copy was taken, not lent, and an only consumer has had the output itself.
        if !is_copied::<T>() && self.0.slots[place.node as usize].consumers.count() > 1 {
            self.release(place);
        }
    }

    /// The node wants an input no more. The last to say so empties the slot.
    #[inline]
    pub(crate) fn release<T: 'static>(&self, place: Place<T>) {
        let (slot, value) = self.slot(place);
        if !slot.count_out(self.0.one_thread) {
            return;
        }
        // SAFETY: all other consumers have counted themselves out.
        if let Some(input) = unsafe { empty(value) } {
            drop(contain(|| drop(input)));
        }
    }
}

impl Slot {
    /// Whether the node whose turn it is is the only consumer that is left.
    #[inline]
    fn has_one_consumer_left(&self) -> bool {
        // Acquire: the others' use of the slot. Nobody comes back, so the last one stays alone with it.
        self.left.load(Ordering::Acquire) == 1
    }

    /// Counts a consumer out. Gives whether it was the last.
    #[inline]
    fn count_out(&self, one_thread: bool) -> bool {
        if one_thread {
            let before = self.left.load(Ordering::Relaxed);
            let is_last = before == 1;
            self.left.store(if is_last { self.consumers.count() } else { before - 1 }, Ordering::Relaxed);
            return is_last;
        }
        // Acquire, in both: the others' use of the slot, before it is emptied. Release: one's own.
        if self.left.load(Ordering::Acquire) > 1 && self.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return false;
        }
        self.refill();
        true
    }

    /// The last consumer leaves: the next run has them all before it. Nobody looks until then.
    #[inline]
    fn refill(&self) {
        self.left.store(self.consumers.count(), Ordering::Relaxed);
    }
}

/// Empties a slot.
///
/// # Safety
/// Nobody else touches it.
#[inline]
unsafe fn empty<'a, T>(value: &UnsafeCell<Value<T>>) -> Option<Input<'a, T>> {
    // SAFETY: by the caller's word.
    match mem::replace(unsafe { &mut *value.get() }, Value::Empty) {
        Value::Own(output) => Some(Input::own(output)),
        Value::Shared(output) => Some(Input::shared(output)),
        Value::Empty => None,
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        self.clear();
        for (slot, kind) in self.slots.iter().zip(&self.kinds) {
            // SAFETY: it is the kind that made it, and nobody has it any more.
            unsafe { (kind.free)(&slot.room) };
        }
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").field("len", &self.slots.len()).finish_non_exhaustive()
    }
}
