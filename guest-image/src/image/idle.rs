//! Waiting for the next event without losing one.

use super::{apic, clock, interrupts};
use paceline_stack::time::Instant;
use x86_64::instructions::interrupts as cpu;

/// Halts until an interrupt or `deadline`, unless an interrupt has come since its flag was last
/// taken, the deadline has passed, or `busy` finds something to do.
///
/// From the checks until the processor halts interrupts are off: one that comes in between ends
/// the halt at once, so no wake-up is lost.
pub(crate) fn wait(deadline: Option<Instant>, busy: impl FnOnce() -> bool) {
    cpu::disable();
    if interrupts::pending() || busy() {
        cpu::enable();
        return;
    }
    match deadline {
        Some(deadline) => {
            let now = clock::now();
            if deadline <= now {
                cpu::enable();
                return;
            }
            let ns = deadline.since(now).as_nanos();
            apic::arm_timer(u64::try_from(ns).unwrap_or(u64::MAX));
        }
        None => apic::stop_timer(),
    }
    cpu::enable_and_hlt();
}
