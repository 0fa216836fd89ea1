//! The shared ring, seen from the frontend (`io/ring.h` of Xen's public headers).
//!
//! One page that the backend can write at any time: 64 bytes of indices, then the slots, in which
//! a response overlays the request that it answers. Indices run freely. Everything is accessed as
//! 32-bit atomics; each index is read once per pass and checked against a private copy, each
//! response is copied once and never looked at again, and nothing that we wrote is ever read back.

use super::OpenError;
use super::grants::{BackendGrants, GrantedPage};
use super::statistics::Statistics;
use super::violation::{RingKind, Violation};
use crate::xen::grant::Access;
use crate::xen::{GrantRef, PAGE_BYTES};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering, fence};

/// Slots of either of netif's rings.
pub(super) const RING_SLOTS: usize = 256;

/// Where the indices are, in words.
pub(super) mod index {
    pub(in crate::netfront) const REQ_PROD: usize = 0;
    pub(in crate::netfront) const REQ_EVENT: usize = 1;
    pub(in crate::netfront) const RSP_PROD: usize = 2;
    pub(in crate::netfront) const RSP_EVENT: usize = 3;
    /// The first slot.
    pub(in crate::netfront) const SLOTS: usize = 16;
}

/// The words of a page that another domain reads and writes too.
#[derive(Clone, Copy)]
pub(super) struct SharedWords(NonNull<AtomicU32>);

impl SharedWords {
    /// # Safety
    /// `page` must be aligned to a page, and one page from there valid for atomic reads and writes
    /// while the value or a reference that it gave is in use; this program must access it by no
    /// other means meanwhile than by atomics of 32 bits.
    pub(super) unsafe fn new(page: NonNull<u8>) -> Self {
        Self(page.cast())
    }

    /// The word number `word`, counted round the page.
    pub(super) fn at(&self, word: usize) -> &AtomicU32 {
        // SAFETY: the offset lies in the page, which `new` was promised to be valid, and an atomic
        // may be shared with whoever else accesses it atomically. What the other domain does is
        // for the hardware to order, as with another thread.
        unsafe {
            self.0
                .add(word % (PAGE_BYTES / size_of::<AtomicU32>()))
                .as_ref()
        }
    }

    /// Where slot `at` of `WORDS` words starts.
    pub(super) fn slot<const WORDS: usize>(at: u32) -> usize {
        index::SLOTS + at as usize % RING_SLOTS * WORDS
    }
}

/// The frontend's end of a ring with slots of `WORDS` words.
pub(super) struct FrontRing<const WORDS: usize> {
    kind: RingKind,
    words: SharedWords,
    /// The page that `words` points to.
    page: GrantedPage,
    /// Requests written; the backend sees those before `req_published`.
    req_prod: u32,
    req_published: u32,
    /// Responses taken; those before `rsp_prod` may be taken.
    rsp_cons: u32,
    rsp_prod: u32,
}

impl<const WORDS: usize> FrontRing<WORDS> {
    const FITS: () = assert!((index::SLOTS + RING_SLOTS * WORDS) * 4 <= PAGE_BYTES);

    /// An empty ring, granted to the backend.
    pub(super) fn open(kind: RingKind, grants: &BackendGrants) -> Result<Self, OpenError> {
        const { Self::FITS };
        let page = grants.grant(Access::ReadWrite, true)?;
        // SAFETY: a granted page is valid until its grant is ended, for which `close` takes it
        // from this struct and the words with it. It has only one handle, through which nobody
        // makes references to a page that the backend can write to.
        let words = unsafe { SharedWords::new(page.as_ptr()) };
        // The backend knows nothing of the page yet.
        words.at(index::REQ_EVENT).store(1, Ordering::Relaxed);
        words.at(index::RSP_EVENT).store(1, Ordering::Relaxed);
        Ok(Self {
            kind,
            words,
            page,
            req_prod: 0,
            req_published: 0,
            rsp_cons: 0,
            rsp_prod: 0,
        })
    }

    /// Ends the use of the ring, and its grant.
    pub(super) fn close(self, grants: &mut BackendGrants, statistics: &mut Statistics) {
        grants.end(self.page, statistics);
    }

    /// The grant to tell the backend.
    pub(super) fn gref(&self) -> GrantRef {
        self.page.gref()
    }

    /// Requests that no response has been taken for, published or not.
    pub(super) fn outstanding(&self) -> usize {
        self.req_prod.wrapping_sub(self.rsp_cons) as usize
    }

    /// How many more requests fit.
    pub(super) fn room(&self) -> usize {
        RING_SLOTS.saturating_sub(self.outstanding())
    }

    /// Where the next request goes, as a running index.
    pub(super) fn next_request(&self) -> u32 {
        self.req_prod
    }

    /// Writes the next request; the caller has made sure of the room.
    pub(super) fn push(&mut self, request: [u32; WORDS]) {
        debug_assert!(self.room() > 0);
        let slot = SharedWords::slot::<WORDS>(self.req_prod);
        for (word, value) in request.into_iter().enumerate() {
            self.words.at(slot + word).store(value, Ordering::Relaxed);
        }
        self.req_prod = self.req_prod.wrapping_add(1);
    }

    /// Shows the backend what has been pushed; true when it wants to be notified of it.
    pub(super) fn publish(&mut self) -> bool {
        let (new, old) = (self.req_prod, self.req_published);
        if new == old {
            return false;
        }
        self.req_published = new;
        // Release: the backend that sees the index sees the requests.
        self.words.at(index::REQ_PROD).store(new, Ordering::Release);
        // The backend sets its event index, then looks for requests once more; we do the same the
        // other way round, so that one of us notices.
        fence(Ordering::SeqCst);
        let event = self.words.at(index::REQ_EVENT).load(Ordering::Relaxed);
        new.wrapping_sub(event) < new.wrapping_sub(old)
    }

    /// Looks how far the backend has got, and returns how many responses can be taken.
    pub(super) fn poll(&mut self) -> Result<usize, Violation> {
        // Acquire: whoever sees the index sees the responses.
        let got = self.words.at(index::RSP_PROD).load(Ordering::Acquire);
        let seen = self.rsp_prod.wrapping_sub(self.rsp_cons);
        let ready = got.wrapping_sub(self.rsp_cons);
        let limit = self.req_published.wrapping_sub(self.rsp_cons);
        if ready < seen || ready > limit {
            return Err(Violation::ResponseProducer {
                ring: self.kind,
                got,
                seen: self.rsp_prod,
                limit: self.req_published,
            });
        }
        self.rsp_prod = got;
        Ok(ready as usize)
    }

    /// Takes the next response that the last [`Self::poll`] found, with its running index: its
    /// first `N` words, copied once.
    pub(super) fn take<const N: usize>(&mut self) -> Option<(u32, [u32; N])> {
        const { assert!(N <= WORDS) };
        if self.rsp_cons == self.rsp_prod {
            return None;
        }
        let at = self.rsp_cons;
        let slot = SharedWords::slot::<WORDS>(at);
        let response =
            core::array::from_fn(|word| self.words.at(slot + word).load(Ordering::Relaxed));
        self.rsp_cons = at.wrapping_add(1);
        Some((at, response))
    }

    /// Asks for an event once `responses` more than were taken are there, and returns whether
    /// they are already.
    pub(super) fn arm(&mut self, responses: u32) -> Result<bool, Violation> {
        let event = self.rsp_cons.wrapping_add(responses);
        self.words
            .at(index::RSP_EVENT)
            .store(event, Ordering::Relaxed);
        // See `publish`.
        fence(Ordering::SeqCst);
        let ready = self.poll()?;
        Ok(ready >= responses as usize)
    }
}

#[cfg(test)]
mod tests;
