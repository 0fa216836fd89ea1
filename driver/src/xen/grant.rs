//! The grant table, version 1: which of our pages other domains may use (`grant_table.h`).
//!
//! Granting and ending access are plain memory operations on entries that Xen reads and marks;
//! neither is a hypercall and neither allocates.
//!
//! A page that a backend was granted must not be reused until [`GrantTable::end_access`] has
//! succeeded (XSA-396). When it fails, [`DeferredGrants`] keeps page and grant together until it
//! does, or for good.

mod deferred;

pub use deferred::{DeferredGrants, RetryOutcome};

use super::types::{DomId, Gfn, GrantRef, PAGE_BYTES};
use alloc::boxed::Box;
use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU16, AtomicU32, Ordering, fence};

/// The entries that the toolstack uses before the guest runs (`GNTTAB_NR_RESERVED_ENTRIES`; 0 is
/// the console's, 1 xenstore's).
pub const RESERVED_ENTRIES: u32 = 8;

/// Entries in one frame of the table.
pub const ENTRIES_PER_FRAME: u32 = (PAGE_BYTES / size_of::<GrantEntryV1>()) as u32;

/// `GTF_permit_access`: the entry's type.
pub(crate) const GTF_PERMIT_ACCESS: u16 = 1;
/// `GTF_type_mask`.
#[cfg(any(test, feature = "fake"))]
pub(crate) const GTF_TYPE_MASK: u16 = 3;
/// `GTF_readonly`: set by us.
pub(crate) const GTF_READONLY: u16 = 1 << 2;
/// `GTF_reading`: set by Xen while the page is mapped or copied from.
pub(crate) const GTF_READING: u16 = 1 << 3;
/// `GTF_writing`: set by Xen while the page is mapped or copied to writable.
pub(crate) const GTF_WRITING: u16 = 1 << 4;

/// The end of the free list.
const END: u32 = u32::MAX;
/// Marks an entry that is not in the free list.
const IN_USE: u32 = u32::MAX - 1;

/// `struct grant_entry_v1`. Xen and we access the entry at the same time, hence atomics.
#[repr(C)]
#[derive(Debug)]
pub struct GrantEntryV1 {
    pub(crate) flags: AtomicU16,
    pub(crate) domid: AtomicU16,
    pub(crate) frame: AtomicU32,
}

/// What the other domain may do with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read.
    ReadOnly,
    /// Read and write.
    ReadWrite,
}

/// This domain's grant table.
#[derive(Debug)]
pub struct GrantTable {
    base: NonNull<GrantEntryV1>,
    /// For each entry the next one in the free list, or [`IN_USE`].
    next: Box<[Cell<u32>]>,
    free_head: Cell<u32>,
    available: Cell<u32>,
}

impl GrantTable {
    /// The table of `entries` entries that starts at `base`. Entries below [`RESERVED_ENTRIES`]
    /// stay as they are.
    ///
    /// # Safety
    ///
    /// - `base` points to `entries` entries, all frames mapped in a row, writable, for as long as
    ///   the table lives.
    /// - No other code grants with these entries.
    pub unsafe fn new(base: NonNull<GrantEntryV1>, entries: u32) -> Self {
        let first = RESERVED_ENTRIES.min(entries);
        let next: Box<[Cell<u32>]> = (0..entries)
            .map(|i| match i + 1 {
                _ if i < first => Cell::new(IN_USE),
                after if after < entries => Cell::new(after),
                _ => Cell::new(END),
            })
            .collect();
        let table = Self {
            base,
            next,
            free_head: Cell::new(if first < entries { first } else { END }),
            available: Cell::new(entries - first),
        };
        for i in first..entries {
            table.entry(i).flags.store(0, Ordering::Relaxed);
        }
        table
    }

    /// Lets `dom` use the page at `gfn`.
    ///
    /// Grant only pages that hold nothing but what `dom` may see: the whole page is granted.
    pub fn grant(&self, dom: DomId, gfn: Gfn, access: Access) -> Result<GrantRef, GrantError> {
        let frame = u32::try_from(gfn.0).map_err(|_| GrantError::FrameTooLarge(gfn))?;
        let index = self.free_head.get();
        if index == END {
            return Err(GrantError::Exhausted);
        }
        self.free_head
            .set(self.next[index as usize].replace(IN_USE));
        self.available.set(self.available.get() - 1);

        let GrantEntryV1 {
            flags,
            domid,
            frame: entry_frame,
        } = self.entry(index);
        domid.store(dom.0, Ordering::Relaxed);
        entry_frame.store(frame, Ordering::Relaxed);
        // The entry is live once its type is set: Xen must see the other fields by then.
        let readonly = match access {
            Access::ReadOnly => GTF_READONLY,
            Access::ReadWrite => 0,
        };
        flags.store(GTF_PERMIT_ACCESS | readonly, Ordering::Release);
        Ok(GrantRef(index))
    }

    /// Takes a page back.
    ///
    /// `Ok` means that the other domain cannot reach the page any more and the reference is free.
    /// On an error it still has the page mapped: neither page nor reference may be reused.
    pub fn end_access(&self, gref: GrantRef) -> Result<(), StillMapped> {
        let index = gref.0;
        if self.next.get(index as usize).map(Cell::get) != Some(IN_USE) || index < RESERVED_ENTRIES
        {
            // A double end would put the entry in the free list twice and grant two pages with it.
            debug_assert!(false, "grant {gref} ended but not in use");
            log::error!("grant {gref} ended but not in use");
            return Ok(());
        }
        let flags = &self.entry(index).flags;
        // Xen changes the entry under us while it maps or unmaps. Each failure means that it did,
        // and a backend that does so without end counts as one that keeps the page.
        let mut observed = flags.load(Ordering::Relaxed);
        let mut cleared = false;
        for _ in 0..END_ACCESS_ATTEMPTS {
            if observed & (GTF_READING | GTF_WRITING) != 0 {
                break;
            }
            match flags.compare_exchange(observed, 0, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => {
                    cleared = true;
                    break;
                }
                Err(now) => observed = now,
            }
        }
        if !cleared {
            return Err(StillMapped { gref });
        }
        // What the backend wrote is visible before the page is looked at.
        fence(Ordering::Acquire);
        self.next[index as usize].set(self.free_head.replace(index));
        self.available.set(self.available.get() + 1);
        Ok(())
    }

    /// How many more pages can be granted now.
    pub fn available(&self) -> u32 {
        self.available.get()
    }

    fn entry(&self, index: u32) -> &GrantEntryV1 {
        assert!((index as usize) < self.next.len());
        // SAFETY: in bounds, and `new`'s caller vouches for the memory. Every field is atomic, so
        // Xen may write to it behind the reference.
        unsafe { self.base.add(index as usize).as_ref() }
    }
}

/// How often [`GrantTable::end_access`] tries when Xen changes the entry at the same time.
const END_ACCESS_ATTEMPTS: usize = 64;

/// Why a page could not be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantError {
    /// All entries are in use.
    Exhausted,
    /// Version 1 entries hold 32-bit frame numbers: the page lies above 16 TiB.
    FrameTooLarge(Gfn),
}

impl fmt::Display for GrantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exhausted => write!(f, "no free grant table entry"),
            Self::FrameTooLarge(gfn) => write!(f, "frame {gfn} does not fit a version 1 grant"),
        }
    }
}

impl core::error::Error for GrantError {}

/// A grant could not be ended because the other domain has the page mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StillMapped {
    /// The grant.
    pub gref: GrantRef,
}

impl fmt::Display for StillMapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grant {} is still mapped by the other domain", self.gref)
    }
}

impl core::error::Error for StillMapped {}

#[cfg(test)]
mod tests;
