//! Memory as virtio devices see it: all of it, at the addresses the program sees.

use super::paging;
use alloc::alloc::{alloc_zeroed, dealloc, handle_alloc_error};
use core::{alloc::Layout, ptr::NonNull};
use paceline_driver::virtio::{BufferDirection, Hal, PhysAddr};
use paceline_driver::xen::PAGE_BYTES;

/// Identity-mapped memory.
pub(crate) struct IdentityHal;

fn layout(pages: usize) -> Layout {
    pages
        .checked_mul(PAGE_BYTES)
        .and_then(|bytes| Layout::from_size_align(bytes, PAGE_BYTES).ok())
        .unwrap_or_else(|| {
            super::refuse(&format_args!(
                "expected a queue that fits memory, got {pages} pages"
            ))
        })
}

// SAFETY: memory comes from the heap, page-aligned and zeroed, and lies at its physical address;
// registers are mapped at theirs.
unsafe impl Hal for IdentityHal {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        let layout = layout(pages);
        // SAFETY: virtio-drivers never asks for 0 pages.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) });
        let memory = memory.unwrap_or_else(|| handle_alloc_error(layout));
        (memory.as_ptr() as u64, memory)
    }

    unsafe fn dma_dealloc(_: PhysAddr, memory: NonNull<u8>, pages: usize) -> i32 {
        // SAFETY: the caller gives back what `dma_alloc` gave for as many pages.
        unsafe { dealloc(memory.as_ptr(), layout(pages)) };
        0
    }

    unsafe fn mmio_phys_to_virt(address: PhysAddr, len: usize) -> NonNull<u8> {
        let range = address..address.saturating_add(len as u64);
        // SAFETY: the caller vouches that the range is a device's.
        let registers = unsafe { paging::map_device(&range) }
            .ok()
            .and_then(NonNull::new);
        registers
            .unwrap_or_else(|| super::refuse(&format_args!("cannot map registers at {range:x?}")))
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        buffer.cast::<u8>().as_ptr() as u64
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}
