//! The ring page: `struct xenstore_domain_interface` of `io/xs_wire.h`.

use super::error::ProtocolError;
use alloc::collections::VecDeque;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// Bytes of each direction (`XENSTORE_RING_SIZE`).
pub(crate) const RING_BYTES: u32 = 1024;

/// Offsets in the page, in bytes.
pub(crate) mod offset {
    pub(crate) const REQ: usize = 0;
    pub(crate) const RSP: usize = 1024;
    pub(crate) const REQ_CONS: usize = 2048;
    pub(crate) const REQ_PROD: usize = 2052;
    pub(crate) const RSP_CONS: usize = 2056;
    pub(crate) const RSP_PROD: usize = 2060;
    pub(crate) const SERVER_FEATURES: usize = 2064;
    pub(crate) const CONNECTION: usize = 2068;
    pub(crate) const ERROR: usize = 2072;
}

/// `XENSTORE_SERVER_FEATURE_RECONNECTION`.
pub(crate) const FEATURE_RECONNECTION: u32 = 1;
/// `XENSTORE_CONNECTED`.
pub(crate) const CONNECTED: u32 = 0;
/// `XENSTORE_RECONNECT`.
pub(crate) const RECONNECT: u32 = 1;

/// Our end of the ring. The indices that are ours to write are kept here, never read back.
#[derive(Debug)]
pub(super) struct Ring {
    page: NonNull<u8>,
    req_prod: u32,
    rsp_cons: u32,
}

impl Ring {
    /// # Safety
    ///
    /// `page` points to a ring page that stays mapped while the value lives and that no other code
    /// of ours uses.
    pub(super) unsafe fn new(page: NonNull<u8>) -> Self {
        let mut ring = Self {
            page,
            req_prod: 0,
            rsp_cons: 0,
        };
        ring.resume();
        ring
    }

    /// Takes up where the indices in the page stand: they need not start at 0.
    pub(super) fn resume(&mut self) {
        self.req_prod = self.word(offset::REQ_PROD).load(Ordering::Acquire);
        self.rsp_cons = self.word(offset::RSP_CONS).load(Ordering::Acquire);
    }

    /// Moves as many bytes to the ring as it has room for. Returns how many.
    pub(super) fn send(&mut self, out: &mut VecDeque<u8>) -> Result<usize, ProtocolError> {
        if out.is_empty() {
            return Ok(0);
        }
        let req_cons = self.word(offset::REQ_CONS).load(Ordering::Acquire);
        let used = self.req_prod.wrapping_sub(req_cons);
        let room = RING_BYTES
            .checked_sub(used)
            .ok_or(ProtocolError::RingIndex {
                name: "req_cons",
                theirs: req_cons,
                ours: self.req_prod,
            })?;
        let count = out.len().min(room as usize);
        for byte in out.drain(..count) {
            self.byte(offset::REQ, self.req_prod)
                .store(byte, Ordering::Relaxed);
            self.req_prod = self.req_prod.wrapping_add(1);
        }
        self.word(offset::REQ_PROD)
            .store(self.req_prod, Ordering::Release);
        Ok(count)
    }

    /// Takes what is in the ring out and passes it to `sink`. Returns how many bytes.
    pub(super) fn receive(&mut self, sink: impl FnOnce(&[u8])) -> Result<usize, ProtocolError> {
        let rsp_prod = self.word(offset::RSP_PROD).load(Ordering::Acquire);
        let available = rsp_prod.wrapping_sub(self.rsp_cons);
        if available > RING_BYTES {
            return Err(ProtocolError::RingIndex {
                name: "rsp_prod",
                theirs: rsp_prod,
                ours: self.rsp_cons,
            });
        }
        if available == 0 {
            return Ok(0);
        }
        let mut copy = [0; RING_BYTES as usize];
        let copy = &mut copy[..available as usize];
        for byte in copy.iter_mut() {
            *byte = self
                .byte(offset::RSP, self.rsp_cons)
                .load(Ordering::Relaxed);
            self.rsp_cons = self.rsp_cons.wrapping_add(1);
        }
        self.word(offset::RSP_CONS)
            .store(self.rsp_cons, Ordering::Release);
        sink(copy);
        Ok(copy.len())
    }

    /// The error that xenstored reports in the page.
    pub(super) fn check(&self) -> Result<(), ProtocolError> {
        match self.word(offset::ERROR).load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(ProtocolError::Reported(code)),
        }
    }

    /// Whether xenstored takes requests.
    pub(super) fn is_connected(&self) -> bool {
        self.word(offset::CONNECTION).load(Ordering::Acquire) == CONNECTED
    }

    /// Asks for a fresh connection. `false` when that is not offered.
    pub(super) fn request_reconnect(&self) -> bool {
        let features = self.word(offset::SERVER_FEATURES).load(Ordering::Acquire);
        if features & FEATURE_RECONNECTION == 0 {
            return false;
        }
        self.word(offset::CONNECTION)
            .store(RECONNECT, Ordering::Release);
        true
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: `new`'s caller vouches for the page; the offsets above lie in it, aligned; the
        // other side may write to an atomic.
        unsafe { AtomicU32::from_ptr(self.page.as_ptr().add(offset).cast()) }
    }

    fn byte(&self, start: usize, index: u32) -> &AtomicU8 {
        let offset = start + (index % RING_BYTES) as usize;
        // SAFETY: `new`'s caller vouches for the page, in which both rings lie wholly.
        unsafe { AtomicU8::from_ptr(self.page.as_ptr().add(offset)) }
    }
}
