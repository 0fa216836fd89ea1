//! Waiting for the next event without losing one.

use super::{clock, interrupts, timer};
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
    if let Some(deadline) = deadline {
        let now = clock::now();
        if deadline <= now {
            cpu::enable();
            return;
        }
        timer::arm(deadline, now);
    }
    cpu::enable_and_hlt();
}
