//! The paravirtual console: a ring page shared with the console daemon in dom0
//! (`struct xencons_interface` in `io/console.h`).

use super::errno::Errno;
use super::hypercall::Hypervisor;
use super::types::EventPort;
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// Bytes of the ring that dom0 writes.
const IN_BYTES: u32 = 1024;
/// Bytes of the ring that we write.
const OUT_BYTES: u32 = 2048;

/// Offsets in the page.
mod offset {
    pub(super) const IN: usize = 0;
    pub(super) const OUT: usize = 1024;
    pub(super) const IN_CONS: usize = 3072;
    pub(super) const IN_PROD: usize = 3076;
    pub(super) const OUT_CONS: usize = 3080;
    pub(super) const OUT_PROD: usize = 3084;
}

/// The guest's end of the console.
///
/// The daemon may be slow, gone or hostile: nothing waits for it without bound, and output that
/// does not fit is dropped and counted.
#[derive(Debug)]
pub struct PvConsole {
    page: NonNull<u8>,
    port: EventPort,
    in_cons: Cell<u32>,
    out_prod: Cell<u32>,
    dropped: Cell<u64>,
}

impl PvConsole {
    /// The console on the ring at `page`, which Xen names in `HVM_PARAM_CONSOLE_PFN`, and its
    /// `port` (`HVM_PARAM_CONSOLE_EVTCHN`).
    ///
    /// # Safety
    ///
    /// `page` points to that page, mapped writable for as long as the value lives, and no other
    /// code of ours uses it.
    pub unsafe fn new(page: NonNull<u8>, port: EventPort) -> Self {
        let console = Self {
            page,
            port,
            in_cons: Cell::new(0),
            out_prod: Cell::new(0),
            dropped: Cell::new(0),
        };
        // The indices need not start at 0.
        let in_cons = console.word(offset::IN_CONS).load(Ordering::Acquire);
        let out_prod = console.word(offset::OUT_PROD).load(Ordering::Acquire);
        console.in_cons.set(in_cons);
        console.out_prod.set(out_prod);
        console
    }

    /// The ring's event channel: raised when there is input, or room again.
    pub fn port(&self) -> EventPort {
        self.port
    }

    /// Writes as much as the ring has room for and notifies the daemon. Returns how many bytes.
    pub fn write(&self, xen: &impl Hypervisor, bytes: &[u8]) -> Result<usize, ConsoleError> {
        let prod = self.out_prod.get();
        let cons = self.word(offset::OUT_CONS).load(Ordering::Acquire);
        let room =
            OUT_BYTES
                .checked_sub(prod.wrapping_sub(cons))
                .ok_or(ConsoleError::RingIndex {
                    name: "out_cons",
                    theirs: cons,
                    ours: prod,
                })?;
        let bytes = &bytes[..bytes.len().min(room as usize)];
        if bytes.is_empty() {
            return Ok(0);
        }
        for (i, byte) in bytes.iter().enumerate() {
            let index = prod.wrapping_add(i as u32) % OUT_BYTES;
            self.byte(offset::OUT + index as usize)
                .store(*byte, Ordering::Relaxed);
        }
        let prod = prod.wrapping_add(bytes.len() as u32);
        self.out_prod.set(prod);
        self.word(offset::OUT_PROD).store(prod, Ordering::Release);
        xen.evtchn_send(self.port)?;
        Ok(bytes.len())
    }

    /// Writes all of `bytes`, trying at most `max_tries` times more while the ring is full, with
    /// `pause` in between. What does not go is dropped and counted.
    pub fn write_all(
        &self,
        xen: &impl Hypervisor,
        mut bytes: &[u8],
        max_tries: u32,
        mut pause: impl FnMut(),
    ) {
        let mut tries = 0;
        while !bytes.is_empty() {
            match self.write(xen, bytes) {
                Ok(0) if tries == max_tries => break,
                Ok(0) => {
                    tries += 1;
                    pause();
                }
                Ok(count) => bytes = &bytes[count..],
                Err(_) => break,
            }
        }
        self.dropped
            .set(self.dropped.get().saturating_add(bytes.len() as u64));
    }

    /// Reads what input there is, as far as it fits, and notifies the daemon that there is room
    /// again. Returns how many bytes.
    pub fn read(&self, xen: &impl Hypervisor, to: &mut [u8]) -> Result<usize, ConsoleError> {
        let cons = self.in_cons.get();
        let prod = self.word(offset::IN_PROD).load(Ordering::Acquire);
        let available = prod.wrapping_sub(cons);
        if available > IN_BYTES {
            return Err(ConsoleError::RingIndex {
                name: "in_prod",
                theirs: prod,
                ours: cons,
            });
        }
        let count = to.len().min(available as usize);
        if count == 0 {
            return Ok(0);
        }
        for (i, byte) in to[..count].iter_mut().enumerate() {
            let index = cons.wrapping_add(i as u32) % IN_BYTES;
            *byte = self
                .byte(offset::IN + index as usize)
                .load(Ordering::Relaxed);
        }
        let cons = cons.wrapping_add(count as u32);
        self.in_cons.set(cons);
        self.word(offset::IN_CONS).store(cons, Ordering::Release);
        xen.evtchn_send(self.port)?;
        Ok(count)
    }

    /// Bytes of output that the daemon has not taken: 0 when all is written, before a shutdown
    /// say.
    pub fn pending_bytes(&self) -> u32 {
        let cons = self.word(offset::OUT_CONS).load(Ordering::Acquire);
        let used = self.out_prod.get().wrapping_sub(cons);
        if used > OUT_BYTES { 0 } else { used }
    }

    /// Bytes of output that were dropped.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped.get()
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: `new`'s caller vouches for the page; the offsets above lie in it, aligned; the
        // other side may write to an atomic.
        unsafe { AtomicU32::from_ptr(self.page.as_ptr().add(offset).cast()) }
    }

    fn byte(&self, offset: usize) -> &AtomicU8 {
        // SAFETY: `new`'s caller vouches for the page; callers stay in a ring, and both rings lie
        // in the page.
        unsafe { AtomicU8::from_ptr(self.page.as_ptr().add(offset)) }
    }
}

/// Why the console cannot be used now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleError {
    /// The daemon moved an index farther than the ring is long.
    RingIndex {
        /// The index's name.
        name: &'static str,
        /// Its value.
        theirs: u32,
        /// Our index.
        ours: u32,
    },
    /// The daemon could not be notified; the bytes are in the ring.
    Notify(Errno),
}

impl From<Errno> for ConsoleError {
    fn from(errno: Errno) -> Self {
        Self::Notify(errno)
    }
}

impl core::fmt::Display for ConsoleError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::RingIndex { name, theirs, ours } => write!(
                f,
                "console: {name} is {theirs}, more than a ring away from our {ours}"
            ),
            Self::Notify(errno) => write!(f, "console: cannot notify: {errno}"),
        }
    }
}

impl core::error::Error for ConsoleError {}

#[cfg(test)]
mod tests;
