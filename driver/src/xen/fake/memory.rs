//! The guest's memory: which frame is where in this process.

use crate::xen::types::{Gfn, PAGE_BYTES};
use alloc::alloc::{alloc_zeroed, dealloc, handle_alloc_error};
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ptr::NonNull;

/// Zeroed pages, aligned, accessed by raw pointer only.
#[derive(Debug)]
pub struct Pages {
    base: NonNull<u8>,
    layout: Layout,
}

impl Pages {
    /// Allocates `pages` pages in a row, at least one.
    pub fn new(pages: usize) -> Self {
        let layout = Layout::from_size_align(pages.max(1) * PAGE_BYTES, PAGE_BYTES)
            .expect("a test's pages fit the address space");
        // SAFETY: the layout's size is not zero.
        let base = unsafe { alloc_zeroed(layout) };
        let base = NonNull::new(base).unwrap_or_else(|| handle_alloc_error(layout));
        Self { base, layout }
    }

    /// The first byte.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout and is freed once.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

/// Frames in a row, and where they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) base: NonNull<u8>,
    pub(super) first: Gfn,
    pub(super) pages: usize,
}

/// All frames that the guest has.
#[derive(Debug, Default)]
pub(super) struct Memory {
    regions: Vec<Region>,
    owned: Vec<Pages>,
}

impl Memory {
    pub(super) fn add(&mut self, region: Region) {
        let end = region.first.0 + region.pages as u64;
        let clash = self
            .regions
            .iter()
            .any(|r| r.first.0 < end && region.first.0 < r.first.0 + r.pages as u64);
        assert!(!clash, "the guest has memory at {} already", region.first);
        self.regions.push(region);
    }

    /// Adds a region of one page, in place of one that is at the same frame.
    pub(super) fn replace(&mut self, region: Region) {
        self.regions
            .retain(|r| r.first != region.first || r.pages != 1);
        self.add(region);
    }

    pub(super) fn add_owned(&mut self, first: Gfn, pages: usize) -> NonNull<u8> {
        let owned = Pages::new(pages);
        let base = owned.base();
        self.owned.push(owned);
        self.add(Region { base, first, pages });
        base
    }

    pub(super) fn translate(&self, gfn: Gfn) -> Option<NonNull<u8>> {
        self.regions.iter().find_map(|r| {
            let index = gfn.0.checked_sub(r.first.0)? as usize;
            // SAFETY: the page is one of the region's.
            (index < r.pages).then(|| unsafe { r.base.add(index * PAGE_BYTES) })
        })
    }

    pub(super) fn gfn_of(&self, address: NonNull<u8>) -> Option<Gfn> {
        self.regions.iter().find_map(|r| {
            let offset = address.addr().get().checked_sub(r.base.addr().get())?;
            let index = offset / PAGE_BYTES;
            (index < r.pages).then(|| Gfn(r.first.0 + index as u64))
        })
    }
}
