//! What the modelled parts share between threads: std's in the product, loom's under `--cfg loom`, shuttle's
//! under `--cfg shuttle`.

#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::{
    hint::spin_loop,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU8, AtomicU64, Ordering, fence},
    },
    thread::yield_now,
};

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU8, AtomicU64, Ordering, fence},
    },
    thread::yield_now,
};

#[cfg(shuttle)]
pub(crate) use shuttle::{
    hint::spin_loop,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU8, AtomicU64, Ordering, fence},
    },
    thread::yield_now,
};

/// Shows a model when memory is freed while others use it. Loom sees only its own cells, not the heap: whoever
/// uses the block reads this, and freeing it writes. Nothing in the product.
#[derive(Default)]
pub(crate) struct Canary {
    #[cfg(loom)]
    cell: loom::cell::UnsafeCell<()>,
}

impl Canary {
    /// Says that the memory is in use.
    #[inline]
    pub(crate) fn sing(&self) {
        #[cfg(loom)]
        self.cell.with(|_| ());
    }
}

// SAFETY: the cell holds nothing, and loom checks every access to it; that is what it is for.
#[cfg(loom)]
unsafe impl Sync for Canary {}

#[cfg(loom)]
impl Drop for Canary {
    fn drop(&mut self) {
        self.cell.with_mut(|_| ());
    }
}
