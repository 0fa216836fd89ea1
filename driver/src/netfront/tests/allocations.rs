//! In the steady state a packet costs no allocation.

use super::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::thread_local;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting what each thread asks of it.
struct Counting;

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// How many allocations `f` makes on this thread.
fn allocations(f: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    f();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn the_count_counts() {
    assert_eq!(allocations(|| drop(Vec::from([1]))), 1);
}

#[test]
fn a_packet_costs_no_allocation() {
    for features in [BackendFeatures::linux(), BackendFeatures::qemu()] {
        let mut rig = Rig::connected(features);
        let header = tcp4_header();
        let mut total = 0;
        for round in 0..1000_u32 {
            rig.netback().send(Frame::plain(pattern(1514, 0)));
            rig.host.poll();
            rig.host.complete(usize::MAX, |_| 0);
            let now_us = rig.now_us;
            let device = rig.device.get_mut();
            total += allocations(|| {
                let frame = device.receive().expect("a frame");
                let mut page = device.alloc_page().expect("a page");
                page.spare_mut()[..1000].fill(round as u8);
                page.commit(1000);
                let payload = [
                    TxSlice {
                        page: &page,
                        offset: 0,
                        len: 600,
                    },
                    TxSlice {
                        page: &frame.slices[0].page,
                        offset: frame.slices[0].start,
                        len: 500,
                    },
                ];
                device
                    .transmit(TxFrame {
                        header: &header,
                        payload,
                        offload: TxOffload::Checksum,
                        owner: round,
                    })
                    .expect("room");
                device.flush(now_us);
                device.complete(now_us, &mut |_| {});
                device.arm();
            });
            while rig.netback().next_sent().is_some() {}
        }
        assert_eq!(total, 0);
    }
}
