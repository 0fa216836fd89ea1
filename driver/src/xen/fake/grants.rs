//! The other domain's use of granted pages, with the checks and marks of Xen's `grant_table.c`.

use super::FakeXen;
use crate::xen::grant::{
    ENTRIES_PER_FRAME, GTF_PERMIT_ACCESS, GTF_READING, GTF_READONLY, GTF_TYPE_MASK, GTF_WRITING,
    GrantEntryV1,
};
use crate::xen::types::{DomId, Gfn, GrantRef, PAGE_BYTES};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// Xen counts the mappings of a grant in eight bits, and maps no more once the highest is set.
const MAX_USES: u32 = 0x80;

/// How often a grant is mapped.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uses {
    readers: u32,
    writers: u32,
}

/// Why Xen refuses to map a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapGrantError {
    /// The table has no such entry (`GNTST_bad_gntref`).
    BadReference,
    /// The entry grants nothing (`GNTST_general_error`).
    NotGranted,
    /// It grants to another domain (`GNTST_general_error`).
    WrongDomain {
        /// The domain that the entry names.
        granted_to: DomId,
    },
    /// It grants reading only (`GNTST_general_error`).
    ReadOnly,
    /// It is mapped as often as Xen can count (`GNTST_general_error`).
    CounterOverflow,
    /// The frame it names is not the guest's memory (`GNTST_bad_page`).
    NoSuchFrame(Gfn),
}

impl FakeXen {
    /// Maps a granted page as `dom`, writable or not, until the mapping is dropped.
    pub fn map_grant(
        &self,
        dom: DomId,
        gref: GrantRef,
        write: bool,
    ) -> Result<GrantMapping, MapGrantError> {
        let GrantEntryV1 {
            flags,
            domid,
            frame,
        } = self.grant_entry(gref).ok_or(MapGrantError::BadReference)?;
        let observed = flags.load(Ordering::Acquire);
        if observed & GTF_TYPE_MASK != GTF_PERMIT_ACCESS {
            return Err(MapGrantError::NotGranted);
        }
        let granted_to = DomId(domid.load(Ordering::Relaxed));
        if granted_to != dom {
            return Err(MapGrantError::WrongDomain { granted_to });
        }
        if write && observed & GTF_READONLY != 0 {
            return Err(MapGrantError::ReadOnly);
        }
        let gfn = Gfn(frame.load(Ordering::Relaxed).into());
        let page = self.translate(gfn).ok_or(MapGrantError::NoSuchFrame(gfn))?;
        let mark = if write {
            GTF_READING | GTF_WRITING
        } else {
            GTF_READING
        };
        let mut mappings = self.0.mappings.borrow_mut();
        let uses = mappings.entry(gref.0).or_default();
        if uses.readers.max(uses.writers) >= MAX_USES {
            return Err(MapGrantError::CounterOverflow);
        }
        flags.fetch_or(mark, Ordering::SeqCst);
        if write {
            uses.writers += 1;
        } else {
            uses.readers += 1;
        }
        drop(mappings);
        Ok(GrantMapping {
            xen: self.clone(),
            gref,
            write,
            gfn,
            page,
        })
    }

    /// How many mappings of grants there are.
    pub fn mapped_grants(&self) -> usize {
        let mappings = self.0.mappings.borrow();
        mappings
            .values()
            .map(|u| (u.readers + u.writers) as usize)
            .sum()
    }

    fn grant_entry(&self, gref: GrantRef) -> Option<&GrantEntryV1> {
        if gref.0 >= super::MAX_GRANT_FRAMES * ENTRIES_PER_FRAME {
            return None;
        }
        let base = self.0.grant_frames.base().cast::<GrantEntryV1>();
        // SAFETY: in bounds of the frames, which live as long as `self`; the fields are atomics.
        Some(unsafe { base.add(gref.0 as usize).as_ref() })
    }

    fn unmap_grant(&self, gref: GrantRef, write: bool) {
        let mut mappings = self.0.mappings.borrow_mut();
        let Some(uses) = mappings.get_mut(&gref.0) else {
            return;
        };
        if write {
            uses.writers -= 1;
        } else {
            uses.readers -= 1;
        }
        let Uses { readers, writers } = *uses;
        if (readers, writers) == (0, 0) {
            mappings.remove(&gref.0);
        }
        drop(mappings);
        let Some(GrantEntryV1 { flags, .. }) = self.grant_entry(gref) else {
            return;
        };
        if writers == 0 {
            flags.fetch_and(!GTF_WRITING, Ordering::SeqCst);
            if readers == 0 {
                flags.fetch_and(!GTF_READING, Ordering::SeqCst);
            }
        }
    }
}

/// A granted page, mapped by the other domain until this is dropped.
pub struct GrantMapping {
    xen: FakeXen,
    gref: GrantRef,
    write: bool,
    gfn: Gfn,
    page: NonNull<u8>,
}

impl GrantMapping {
    /// The page. Valid as long as the mapping and the guest's memory, writable when it was mapped
    /// so; the guest may access it at the same time.
    pub fn page(&self) -> NonNull<u8> {
        self.page
    }

    /// The page's frame.
    pub fn gfn(&self) -> Gfn {
        self.gfn
    }

    /// Copies from the page.
    ///
    /// # Panics
    ///
    /// When the range leaves the page.
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        self.check(offset, to.len());
        // SAFETY: the range lies in the page, which is mapped; all is one thread.
        unsafe {
            self.page
                .add(offset)
                .copy_to_nonoverlapping(NonNull::from(&mut *to).cast(), to.len());
        }
    }

    /// Copies to the page.
    ///
    /// # Panics
    ///
    /// When the range leaves the page, or when it is mapped for reading only.
    pub fn write(&self, offset: usize, from: &[u8]) {
        self.check(offset, from.len());
        assert!(self.write, "{} is mapped read-only", self.gref);
        // SAFETY: the range lies in the page, which is mapped writable; all is one thread.
        unsafe {
            self.page
                .add(offset)
                .copy_from_nonoverlapping(NonNull::from(from).cast(), from.len());
        }
    }

    fn check(&self, offset: usize, len: usize) {
        assert!(
            offset.checked_add(len).is_some_and(|end| end <= PAGE_BYTES),
            "{offset}+{len} leaves the page of {}",
            self.gref
        );
    }
}

impl Drop for GrantMapping {
    fn drop(&mut self) {
        self.xen.unmap_grant(self.gref, self.write);
    }
}
