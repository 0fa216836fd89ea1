//! Waiting for the next event without losing one.

use super::{clock, interrupts, timer};
use core::arch::global_asm;
use paceline_stack::time::Instant;
use x86_64::instructions::interrupts as cpu;

/// Halts until an interrupt or `deadline`, unless an interrupt has come since its flag was last
/// taken, the deadline has passed, or `busy` finds something to do.
///
/// From the checks until the processor halts interrupts are off: one that comes in between ends
/// the halt at once, so no wake-up is lost. Returns whether it halted.
pub(crate) fn wait(deadline: Option<Instant>, busy: impl FnOnce() -> bool) -> bool {
    cpu::disable();
    if interrupts::pending() || busy() {
        cpu::enable();
        return false;
    }
    if let Some(deadline) = deadline {
        let now = clock::now();
        if deadline <= now {
            cpu::enable();
            return false;
        }
        timer::arm(deadline, now);
    }
    idle_halt();
    true
}

// Enables interrupts and halts until one comes.
//
// `sti` holds interrupts back until the instruction behind it is done, so that none should come
// between it and `hlt`. A hypervisor inside an emulated machine can lose that when it is itself
// interrupted just there (QEMU's SVM does not restore the interrupt shadow): the interrupt is then
// served before the halt, which would sleep over what it announced, and for ever, since Xen
// interrupts only once until its events are dispatched. So the interrupt handler skips the `hlt`
// at `idle_hlt`.
global_asm!(
    ".pushsection .text.idle, \"ax\"",
    "idle_halt:",
    "sti",
    ".globl idle_hlt",
    "idle_hlt:",
    "hlt",
    "ret",
    ".popsection",
);

unsafe extern "C" {
    safe fn idle_halt();
}
