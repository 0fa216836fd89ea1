//! The pages that frames lie in: allocated, counted and granted one by one.
//!
//! A [`PagePool`] owns one contiguous, page-aligned stretch of guest memory. Nothing else is ever
//! granted to a backend, so that a backend sees packets and rings and nothing besides (XSA-403).
//!
//! A [`Page`] is a counted handle to one page of it. The handle from [`PagePool::alloc`] is the
//! page's only writer, and it only ever writes behind what is written already. A clone reads what
//! had been written when it was made, and no more. Written bytes thus stay as they are until the
//! last handle is gone, and neither an application nor a device that still reads them can see them
//! change.

use crate::xen::{Gfn, GrantRef, PAGE_BYTES};
use alloc::boxed::Box;
use core::cell::Cell;
use core::ptr::NonNull;
use core::{fmt, mem, ptr, slice};

/// End of the free list.
const NIL: u32 = u32::MAX;

/// A pool of pages, living as long as the program.
///
/// Allocation and release take constant time and allocate nothing. The pool belongs to the thread
/// (the vCPU) that made it, and its handles do too.
#[derive(Clone, Copy)]
pub struct PagePool(&'static Inner);

struct Inner {
    /// Start of the pages.
    base: NonNull<u8>,
    /// Guest frame number of the first page.
    base_gfn: Gfn,
    /// What is known of each page.
    pages: Box<[Meta]>,
    /// First page of the free list.
    free_head: Cell<u32>,
    /// Pages from this index on have never been used, nor zeroed, nor are they listed as free.
    fresh: Cell<u32>,
    /// How many pages [`PagePool::alloc`] can still hand out.
    available: Cell<u32>,
}

#[derive(Default)]
struct Meta {
    /// Handles to the page; 0: free.
    refs: Cell<u32>,
    /// The next page of the free list, for a page that is on it.
    next: Cell<u32>,
    /// The read-only grant under which the page is sent; 0, which Xen reserves: none.
    tx_gref: Cell<u32>,
    /// Requests that use this grant.
    tx_users: Cell<u32>,
    /// Kept out of circulation by [`PagePool::hold`].
    held: Cell<bool>,
    /// On the free list.
    listed: Cell<bool>,
}

impl PagePool {
    /// Makes a pool of `pages` pages at `base`, whose first page has the guest frame number
    /// `base_gfn` and the others the numbers that follow.
    ///
    /// Allocates what it keeps of each page, 24 bytes or so. Both are given up for good.
    ///
    /// # Safety
    /// `base` must be aligned to [`PAGE_BYTES`], and the memory from there on, `pages` pages long,
    /// must be valid for reads and writes for the rest of the program and used by nobody but this
    /// pool and the devices that it is handed to.
    ///
    /// # Panics
    /// When `base` is not aligned, or `pages` does not fit 31 bits.
    pub unsafe fn new(base: NonNull<u8>, pages: usize, base_gfn: Gfn) -> Self {
        assert!(
            base.as_ptr().addr().is_multiple_of(PAGE_BYTES),
            "page pool at {base:?}: expected a page boundary"
        );
        assert!(
            i32::try_from(pages).is_ok(),
            "page pool of {pages} pages: expected less than 2^31"
        );
        Self(Box::leak(Box::new(Inner {
            base,
            base_gfn,
            pages: (0..pages).map(|_| Meta::default()).collect(),
            free_head: Cell::new(NIL),
            fresh: Cell::new(0),
            available: Cell::new(pages as u32),
        })))
    }

    /// A page nobody else has, nothing of it written; none when all are in use.
    ///
    /// Its bytes are zero if it was never used before, else what an earlier packet left.
    pub fn alloc(self) -> Option<Page> {
        let index = self.0.take_free()?;
        let meta = &self.0.pages[index as usize];
        meta.refs.set(1);
        self.0.available.set(self.0.available.get() - 1);
        Some(Page {
            pool: self.0,
            index,
            len: 0,
            writer: true,
        })
    }

    /// How many pages there are.
    pub fn pages(self) -> usize {
        self.0.pages.len()
    }

    /// How many pages can be allocated now.
    pub fn available(self) -> usize {
        self.0.available.get() as usize
    }

    /// Whether `page` is one of this pool's.
    pub fn owns(self, page: &Page) -> bool {
        ptr::eq(self.0, page.pool)
    }

    /// The read-only grant that page number `index` has been given, to be sent under.
    pub(crate) fn tx_gref(self, index: usize) -> Option<GrantRef> {
        let gref = self.0.pages.get(index)?.tx_gref.get();
        (gref != 0).then_some(GrantRef(gref))
    }

    /// Notes the read-only grant of page number `index`, or that it has none any more.
    pub(crate) fn set_tx_gref(self, index: usize, gref: Option<GrantRef>) {
        if let Some(meta) = self.0.pages.get(index) {
            meta.tx_gref.set(gref.map_or(0, |gref| gref.0));
        }
    }

    /// How many pages have been used at least once. No other can have a grant.
    pub(crate) fn touched(self) -> usize {
        self.0.fresh.get() as usize
    }

    /// How many requests are about page number `index`.
    pub(crate) fn tx_users(self, index: usize) -> u32 {
        self.0
            .pages
            .get(index)
            .map_or(0, |meta| meta.tx_users.get())
    }

    /// Keeps page number `index` out of circulation, from now on if it is free, else from the
    /// moment when its last handle goes.
    pub(crate) fn hold(self, index: usize) {
        let Some(meta) = self.0.pages.get(index) else {
            return;
        };
        if !meta.held.replace(true) && meta.refs.get() == 0 {
            // It stays on the list, and is struck off when its turn comes.
            self.0.available.set(self.0.available.get() - 1);
        }
    }

    /// Undoes [`PagePool::hold`].
    pub(crate) fn unhold(self, index: usize) {
        let Some(meta) = self.0.pages.get(index) else {
            return;
        };
        if meta.held.replace(false) && meta.refs.get() == 0 {
            self.0.put_free(index as u32);
        }
    }

    /// Whether page number `index` is kept out of circulation.
    pub(crate) fn is_held(self, index: usize) -> bool {
        self.0.pages.get(index).is_some_and(|meta| meta.held.get())
    }
}

/// How much of a pool is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    /// More than a quarter: take what you need.
    Plenty,
    /// More than an eighth: for received data only, and with restraint.
    Scarce,
    /// So little that what is received must not be kept.
    Spent,
}

impl Supply {
    /// Judges `left` pages of `all` that can be had.
    pub const fn of(left: usize, all: usize) -> Self {
        if left <= all / 8 {
            Self::Spent
        } else if left <= all / 4 {
            Self::Scarce
        } else {
            Self::Plenty
        }
    }
}

impl fmt::Debug for PagePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PagePool")
            .field("pages", &self.pages())
            .field("available", &self.available())
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// Takes a page off the free list, or else one never used, zeroed.
    fn take_free(&self) -> Option<u32> {
        // A held page is struck off once for each time it was put on: constant on average.
        while self.free_head.get() != NIL {
            let index = self.free_head.get();
            let meta = &self.pages[index as usize];
            self.free_head.set(meta.next.get());
            meta.listed.set(false);
            if !meta.held.get() {
                return Some(index);
            }
        }
        while (self.fresh.get() as usize) < self.pages.len() {
            let index = self.fresh.get();
            self.fresh.set(index + 1);
            // SAFETY: the page lies in the pool, and nobody has a handle to it yet.
            unsafe { self.page_ptr(index).write_bytes(0, PAGE_BYTES) };
            if !self.pages[index as usize].held.get() {
                return Some(index);
            }
        }
        None
    }

    /// Counts a page as available, and lists it unless it is on the list or fresh still.
    fn put_free(&self, index: u32) {
        let meta = &self.pages[index as usize];
        self.available.set(self.available.get() + 1);
        if index < self.fresh.get() && !meta.listed.replace(true) {
            meta.next.set(self.free_head.replace(index));
        }
    }

    /// Where page `index` starts.
    fn page_ptr(&self, index: u32) -> NonNull<u8> {
        debug_assert!((index as usize) < self.pages.len());
        // SAFETY: every index is one of a page of the pool, so the result lies in the one object
        // that `PagePool::new` was given.
        unsafe { self.base.add(index as usize * PAGE_BYTES) }
    }
}

/// A counted handle to a page of a [`PagePool`].
///
/// Dropping the last one gives the page back. Handles stay on the thread they were made on:
///
/// ```compile_fail
/// fn send<T: Send>() {}
/// send::<paceline_driver::page::Page>();
/// ```
pub struct Page {
    pool: &'static Inner,
    index: u32,
    /// How much of the page this handle may read.
    len: u16,
    /// Whether this handle may write what lies behind.
    ///
    /// Exactly one handle, the one `alloc` made, is a writer: the count was zero then, a clone is
    /// none, and a handle never becomes one. Its `len` only grows. A clone's `len` is that of its
    /// origin when it was made, hence at most the writer's, now and later. So the bytes below a
    /// handle's `len` are never written while it lives, and those from the writer's `len` on are
    /// read by no handle: shared and exclusive borrows made by different handles do not overlap,
    /// and those made by one handle are kept apart by the borrow checker.
    writer: bool,
}

const _: () = assert!(mem::size_of::<Page>() <= 16);
const _: () = assert!(mem::size_of::<Option<Page>>() <= 16);

impl Page {
    /// The bytes written when this handle was made, and by it since.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY:
        // 1. The range lies in the pool's memory, and all of it has been initialised: a page is
        //    zeroed before it is first handed out.
        // 2. No handle writes below `len` while this one lives (see `writer`).
        // 3. A backend writes to a page only under a writable grant. netfront gives one only to a
        //    page whose single handle it holds, with nothing written, and lets nobody see the
        //    handle before the grant has ended.
        unsafe { slice::from_raw_parts(self.start().as_ptr(), usize::from(self.len)) }
    }

    /// The room behind the written bytes; empty for a clone.
    pub fn spare_mut(&mut self) -> &mut [u8] {
        let (offset, len) = if self.writer {
            let offset = usize::from(self.len);
            (offset, PAGE_BYTES - offset)
        } else {
            (0, 0)
        };
        // SAFETY: as in `bytes`, and: only the writer gets a range that is not empty; it lies
        // behind the bytes of every handle, and is borrowed exclusively along with this one. A
        // backend that has a read-only grant on the page may read it meanwhile, which does not
        // concern this program's memory model.
        unsafe { slice::from_raw_parts_mut(self.start().as_ptr().add(offset), len) }
    }

    /// Declares the first `len` bytes of the spare room written; more than it has is cut off.
    pub fn commit(&mut self, len: usize) {
        if self.writer {
            let written = usize::from(self.len);
            self.len += len.min(PAGE_BYTES - written) as u16;
        }
    }

    /// Guest frame number.
    pub fn gfn(&self) -> Gfn {
        Gfn(self.pool.base_gfn.0.wrapping_add(u64::from(self.index)))
    }

    /// Number in the pool.
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// Whether this is the handle that may write.
    pub fn is_writer(&self) -> bool {
        self.writer
    }

    /// The same handle without the right to write.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.writer = false;
        self
    }

    /// Where the page starts. It is valid for reads and writes while a handle lives; whoever uses
    /// it has to see to it that no reference to the same bytes is in use.
    pub fn start(&self) -> NonNull<u8> {
        self.pool.page_ptr(self.index)
    }
}

impl Clone for Page {
    /// A handle that reads what is written now.
    fn clone(&self) -> Self {
        let refs = &self.pool.pages[self.index as usize].refs;
        // A count at its limit sticks there, and the page is never given back.
        refs.set(refs.get().saturating_add(1));
        Self {
            pool: self.pool,
            index: self.index,
            len: self.len,
            writer: false,
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let meta = &self.pool.pages[self.index as usize];
        let refs = match meta.refs.get() {
            u32::MAX => return,
            refs => refs - 1,
        };
        meta.refs.set(refs);
        if refs == 0 && !meta.held.get() {
            self.pool.put_free(self.index);
        }
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("index", &self.index)
            .field("len", &self.len)
            .field("writer", &self.writer)
            .finish_non_exhaustive()
    }
}

/// A handle to a page that a request is about, whose grant has to stay meanwhile.
#[derive(Debug)]
pub(crate) struct InFlight(Page);

impl InFlight {
    pub(crate) fn new(page: Page) -> Self {
        let users = &page.pool.pages[page.index as usize].tx_users;
        users.set(users.get() + 1);
        Self(page)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let users = &self.0.pool.pages[self.0.index as usize].tx_users;
        users.set(users.get() - 1);
    }
}

/// A part of a page, holding on to it.
#[derive(Clone, Debug)]
pub struct PageSlice {
    /// The page.
    pub page: Page,
    /// Where in it the bytes start.
    pub start: u16,
    /// Where they end: not behind what is written.
    pub end: u16,
}

impl PageSlice {
    /// The bytes; none when the bounds are not within what is written.
    pub fn bytes(&self) -> &[u8] {
        self.page
            .bytes()
            .get(usize::from(self.start)..usize::from(self.end))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
