//! The backend's ends of the rings.

use super::super::ring::{RING_SLOTS, SharedWords, index};
use super::super::wire;
use crate::xen::fake::GrantMapping;
use core::sync::atomic::{Ordering, fence};

/// The backend's end of a ring with slots of `WORDS` words.
pub struct BackRing<const WORDS: usize> {
    words: SharedWords,
    /// Keeps the page mapped.
    _mapping: GrantMapping,
    req_cons: u32,
    rsp_prod: u32,
    published: u32,
}

/// Both rings, for a test to write on as it likes.
pub struct RawRings<'a> {
    /// The transmit ring.
    pub tx: &'a mut BackRing<{ wire::TX_WORDS }>,
    /// The receive ring.
    pub rx: &'a mut BackRing<{ wire::RX_WORDS }>,
}

impl<const WORDS: usize> BackRing<WORDS> {
    /// The ring in a page mapped for writing.
    pub(super) fn new(mapping: GrantMapping) -> Self {
        Self {
            // SAFETY: the page is mapped as long as the words are in use, and guest memory stays
            // as long as the hypervisor that the mapping holds. Both ends access a ring by atomics
            // of 32 bits only.
            words: unsafe { SharedWords::new(mapping.page()) },
            _mapping: mapping,
            req_cons: 0,
            rsp_prod: 0,
            published: 0,
        }
    }

    /// Requests published and not taken.
    pub fn work(&self) -> usize {
        let prod = self.words.at(index::REQ_PROD).load(Ordering::Acquire);
        prod.wrapping_sub(self.req_cons) as usize
    }

    /// The request `ahead` of the next one to take.
    pub fn peek(&self, ahead: usize) -> [u32; WORDS] {
        let slot = SharedWords::slot::<WORDS>(self.req_cons.wrapping_add(ahead as u32));
        core::array::from_fn(|word| self.words.at(slot + word).load(Ordering::Relaxed))
    }

    /// Takes the next request.
    pub fn request(&mut self) -> [u32; WORDS] {
        let request = self.peek(0);
        self.req_cons = self.req_cons.wrapping_add(1);
        request
    }

    /// Puts the first `words` words of a response into the next slot.
    pub fn respond(&mut self, response: [u32; WORDS], words: usize) {
        let slot = SharedWords::slot::<WORDS>(self.rsp_prod);
        for (word, value) in response.into_iter().take(words).enumerate() {
            self.words.at(slot + word).store(value, Ordering::Relaxed);
        }
        self.rsp_prod = self.rsp_prod.wrapping_add(1);
    }

    /// Answers an extra: the status only, in whatever the slot holds.
    pub fn respond_null(&mut self) {
        let slot = SharedWords::slot::<WORDS>(self.rsp_prod);
        let (id, _) = wire::halves(self.words.at(slot).load(Ordering::Relaxed));
        let word = wire::pair(id, wire::RSP_NULL as u16);
        self.words.at(slot).store(word, Ordering::Relaxed);
        self.rsp_prod = self.rsp_prod.wrapping_add(1);
    }

    /// Shows the frontend the responses; true when it wants an event.
    pub fn publish(&mut self) -> bool {
        let (new, old) = (self.rsp_prod, self.published);
        self.published = new;
        self.words.at(index::RSP_PROD).store(new, Ordering::Release);
        fence(Ordering::SeqCst);
        let event = self.words.at(index::RSP_EVENT).load(Ordering::Relaxed);
        new != old && new.wrapping_sub(event) < new.wrapping_sub(old)
    }

    /// Asks for an event with the next request; true when it is there already.
    pub fn final_check(&mut self) -> bool {
        self.want(1)
    }

    /// Asks for an event once `requests` can be taken; true when they can already.
    pub fn want(&mut self, requests: usize) -> bool {
        let event = self.req_cons.wrapping_add(requests as u32);
        self.words
            .at(index::REQ_EVENT)
            .store(event, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        (requests..=RING_SLOTS).contains(&self.work())
    }

    /// Where the next response goes, as a running index.
    pub fn rsp_prod(&self) -> u32 {
        self.rsp_prod
    }

    /// Writes any word of the page.
    pub fn poke(&self, word: usize, value: u32) {
        self.words.at(word).store(value, Ordering::Release);
    }

    /// Writes the response producer alone.
    pub fn poke_rsp_prod(&self, value: u32) {
        self.poke(index::RSP_PROD, value);
    }
}
