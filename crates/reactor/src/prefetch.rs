//! Asking for memory before it is needed.
//!
//! Of a hundred thousand sleepers none is in the cache when its time comes, nor does the processor know where its
//! page is. Who goes from one to the next waits for each. A processor that is told of many in a row fetches them at
//! the same time, so they are told in a loop that does nothing else, and looked at after it.

/// Lines of memory are as long on every processor that can be told.
const LINE: usize = 64;

/// Has the processor fetch the `bytes` from `start` on, if it can be told so. It is a hint: nothing is read, and any
/// address will do.
#[inline]
pub(crate) fn prefetch<T>(start: *const T, bytes: usize) {
    let mut offset = 0;
    while offset < bytes {
        fetch(start.wrapping_byte_add(offset).cast());
        offset += LINE;
    }
    // They need not begin where a line does, and may end one further.
    fetch(start.wrapping_byte_add(bytes).wrapping_byte_sub(1).cast());
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn fetch(line: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every processor of this kind has the instruction, which does nothing that a program could see, whatever
    // the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line) };
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
fn fetch(_: *const i8) {}
