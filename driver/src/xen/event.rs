//! Two-level event channels (`xen.h`, `event_channel.h`): Xen sets bits in the shared info page
//! and interrupts; the main loop scans them.
//!
//! [`EventChannels::dispatch`] clears what it handles, so the main loop masks nothing. What an
//! interrupt handler has to do depends on how it is reached: see [`Upcall`].

use super::errno::Errno;
use super::hypercall::{HvmParam, Hypervisor};
use super::shared_info::{EVENT_WORDS, SharedInfo, VCPUS, VcpuEvents};
use super::types::{EventPort, VcpuId};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

/// Ports that the two-level layout has: 64 words of 64 bits.
pub const MAX_PORTS: u32 = (EVENT_WORDS * 64) as u32;

/// Passes over the bitmap that one [`EventChannels::dispatch`] makes at most.
const MAX_PASSES: usize = 4;

/// The event channels as one vCPU sees them. All of it is shared with Xen anyway, so that values
/// for the same page may be used side by side: one in an interrupt handler, say.
#[derive(Debug)]
pub struct EventChannels {
    info: NonNull<SharedInfo>,
    vcpu: usize,
}

// SAFETY: the page stays mapped, as `new`'s caller vouches, and is accessed by atomics only.
unsafe impl Send for EventChannels {}
// SAFETY: likewise.
unsafe impl Sync for EventChannels {}

impl EventChannels {
    /// The event channels in a shared info page, for the vCPU `vcpu`; `None` for one whose
    /// `vcpu_info` is not in the page.
    ///
    /// # Safety
    ///
    /// `info` points to the domain's shared info page, mapped for as long as the value lives.
    pub unsafe fn new(info: NonNull<SharedInfo>, vcpu: VcpuId) -> Option<Self> {
        let vcpu = vcpu.0 as usize;
        (vcpu < VCPUS).then_some(Self { info, vcpu })
    }

    /// Masks every port: the state to start from.
    pub fn mask_all(&self) {
        for word in 0..EVENT_WORDS {
            self.mask_word(word).store(u64::MAX, Ordering::SeqCst);
        }
    }

    /// Keeps a port from interrupting and from being dispatched. What comes in meanwhile waits.
    pub fn mask(&self, port: EventPort) {
        let Some((word, bit)) = locate(port) else {
            return;
        };
        self.mask_word(word).fetch_or(bit, Ordering::SeqCst);
    }

    /// Undoes [`EventChannels::mask`]. An event that came in while masked is delivered now.
    pub fn unmask(&self, xen: &impl Hypervisor, port: EventPort) -> Result<(), Errno> {
        let (word, bit) = locate(port).ok_or(Errno::EINVAL)?;
        self.mask_word(word).fetch_and(!bit, Ordering::SeqCst);
        // Xen sets the pending bit of a masked port but neither the selector nor the upcall flag,
        // so that nobody would ever look. Only Xen can make up for it, and only does so for a
        // port it finds masked.
        if self.pending_word(word).load(Ordering::SeqCst) & bit != 0 {
            self.mask_word(word).fetch_or(bit, Ordering::SeqCst);
            xen.evtchn_unmask(port)?;
        }
        Ok(())
    }

    /// Whether an event came in on a port and was not dispatched.
    pub fn is_pending(&self, port: EventPort) -> bool {
        locate(port)
            .is_some_and(|(word, bit)| self.pending_word(word).load(Ordering::SeqCst) & bit != 0)
    }

    /// Forgets an event that came in on a port: before the port is first unmasked, say.
    pub fn clear(&self, port: EventPort) {
        if let Some((word, bit)) = locate(port) {
            self.pending_word(word).fetch_and(!bit, Ordering::SeqCst);
        }
    }

    /// Whether there may be something to dispatch: whether the vCPU must not go idle.
    pub fn any_pending(&self) -> bool {
        let VcpuEvents {
            upcall_pending,
            upcall_mask: _,
            pending_sel,
        } = self.vcpu_events();
        upcall_pending.load(Ordering::SeqCst) != 0 || pending_sel.load(Ordering::SeqCst) != 0
    }

    /// Clears the flag for which Xen interrupts, and only that: what is pending stays for
    /// [`EventChannels::dispatch`]. For the interrupt handler of [`Upcall::Domain`].
    pub fn acknowledge_upcall(&self) {
        self.vcpu_events().upcall_pending.store(0, Ordering::SeqCst);
    }

    /// Calls `handle` for each port with an event, after its pending bit is cleared: an event
    /// that comes in while it is handled is dispatched again.
    ///
    /// Bounded, however fast events come in: ask again when [`Dispatched::more`] is set.
    pub fn dispatch(&self, mut handle: impl FnMut(EventPort)) -> Dispatched {
        let vcpu = self.vcpu_events();
        let mut events = 0;
        for _ in 0..MAX_PASSES {
            // The flag before the selector: Xen sets them the other way round, so that an event
            // which this pass misses leaves the flag set and interrupts.
            vcpu.upcall_pending.swap(0, Ordering::SeqCst);
            let selector = vcpu.pending_sel.swap(0, Ordering::SeqCst);
            if selector == 0 {
                break;
            }
            for word in bits(selector) {
                let word = word as usize;
                let pending = self.pending_word(word);
                let mask = self.mask_word(word).load(Ordering::SeqCst);
                for bit in bits(pending.load(Ordering::SeqCst) & !mask) {
                    pending.fetch_and(!(1 << bit), Ordering::SeqCst);
                    events += 1;
                    handle(EventPort(word as u32 * 64 + bit));
                }
            }
        }
        Dispatched {
            events,
            more: self.any_pending(),
        }
    }

    fn vcpu_events(&self) -> &VcpuEvents {
        // SAFETY: `new`'s caller vouches for the page. The fields are atomic, so Xen may write to
        // them behind the reference.
        unsafe { &(*self.info.as_ptr()).vcpu_info[self.vcpu].events }
    }

    fn pending_word(&self, word: usize) -> &AtomicU64 {
        // SAFETY: as in `vcpu_events`.
        unsafe { &(*self.info.as_ptr()).evtchn_pending[word] }
    }

    fn mask_word(&self, word: usize) -> &AtomicU64 {
        // SAFETY: as in `vcpu_events`.
        unsafe { &(*self.info.as_ptr()).evtchn_mask[word] }
    }
}

/// The word and the bit of a port, or `None` for one that the layout doesn't have.
fn locate(port: EventPort) -> Option<(usize, u64)> {
    (port.0 < MAX_PORTS).then_some(((port.0 / 64) as usize, 1 << (port.0 % 64)))
}

/// The positions of the set bits, lowest first.
fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        if word == 0 {
            return None;
        }
        let bit = word.trailing_zeros();
        word &= word - 1;
        Some(bit)
    })
}

/// What [`EventChannels::dispatch`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatched {
    /// Events handled.
    pub events: usize,
    /// Whether more came in at the end.
    pub more: bool,
}

/// How event interrupts reach a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upcall {
    /// Through the vCPU's local APIC, once each time that Xen sets the upcall flag. The handler
    /// signals the end of the interrupt and leaves the flag alone: there is no further interrupt
    /// until [`EventChannels::dispatch`] clears it.
    PerVcpu,
    /// Past the APIC, and again and again for as long as the upcall flag is set. The handler
    /// signals no end of interrupt, but must call [`EventChannels::acknowledge_upcall`].
    Domain,
}

impl Upcall {
    /// Has events raise `vector` on `vcpu`: through its own APIC where the hypervisor can, else
    /// through the domain-wide callback.
    ///
    /// The APIC must be enabled before: an interrupt for one that is off is lost.
    pub fn register(xen: &impl Hypervisor, vcpu: VcpuId, vector: u8) -> Result<Self, Errno> {
        // QEMU's emulation of Xen fails the first with EFAULT, old Xen with ENOSYS.
        if xen.set_evtchn_upcall_vector(vcpu, vector).is_ok() {
            return Ok(Self::PerVcpu);
        }
        xen.set_hvm_param(HvmParam::CallbackIrq, HvmParam::callback_vector(vector))?;
        Ok(Self::Domain)
    }
}

#[cfg(test)]
mod tests;
