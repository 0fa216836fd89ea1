//! The heap.

use core::ops::Range;
use talc::{TalcLock, source::Manual};

#[global_allocator]
static HEAP: TalcLock<spin::Mutex<()>, Manual> = TalcLock::new(Manual);

/// Hands `regions` to the heap.
///
/// # Safety
///
/// The regions are mapped memory that nothing else uses, ever.
pub(crate) unsafe fn init(regions: &[Range<u64>]) {
    let mut heap = HEAP.lock();
    for region in regions {
        let base = region.start as *mut u8;
        // SAFETY: the caller gives the region away.
        unsafe { heap.claim(base, (region.end - region.start) as usize) };
    }
}

/// Bytes of the heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stats {
    pub(crate) used: usize,
    pub(crate) free: usize,
}

/// How much of the heap is in use.
pub(crate) fn stats() -> Stats {
    let heap = HEAP.lock();
    let counters = heap.counters();
    Stats {
        used: counters.allocated_bytes,
        free: counters.available_bytes,
    }
}
