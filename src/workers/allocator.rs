//! The allocator of the program: mimalloc, and in a worker one that counts and ends the process past a limit.
#![allow(
    unsafe_code,
    reason = "a global allocator cannot be written without it"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use mimalloc::MiMalloc;

/// Bytes a worker may hold; 0 in every other process, where nothing is counted.
static LIMIT: AtomicI64 = AtomicI64::new(0);
/// Bytes held since the limit was set; below zero when what was there before is given back.
static HELD: AtomicI64 = AtomicI64::new(0);

/// The global allocator of the binary.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allocator;

/// Asks the kernel for memory in small pages alone. Huge ones double what a process of a few megabytes holds, and gain
/// nothing to be measured here.
pub fn use_small_pages() {
    // where it cannot be had, memory is what it was
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

#[cfg(unix)]
/// From here on this process may hold so many bytes more than it does now.
pub(super) fn limit(bytes: u64) {
    HELD.store(0, Relaxed);
    LIMIT.store(i64::try_from(bytes).unwrap_or(i64::MAX), Relaxed);
}

#[inline]
fn grow(bytes: usize) {
    let limit = LIMIT.load(Relaxed);
    if limit != 0 {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX / 2);
        let held = HELD.fetch_add(bytes, Relaxed).saturating_add(bytes);
        if held > limit {
            #[cfg(unix)]
            super::sandbox::end_over_memory(held.unsigned_abs());
        }
    }
}

#[inline]
fn shrink(bytes: usize) {
    if LIMIT.load(Relaxed) != 0 {
        HELD.fetch_sub(i64::try_from(bytes).unwrap_or(i64::MAX / 2), Relaxed);
    }
}

// SAFETY: every call is handed to mimalloc as it came, which keeps the contract; counting allocates nothing.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // both are held while the content is copied
        grow(size);
        shrink(layout.size());
        // SAFETY: the caller keeps the contract of `realloc`
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }
}
