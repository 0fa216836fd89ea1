//! The one-shot timer that ends a halt: Xen's, or the APIC's.

use super::{apic, clock, platform, vcpu::Local};
use core::cell::Cell;
use paceline_driver::xen::{Hypervisor, VcpuId, hypercall::PastDeadline};
use paceline_stack::time::Instant;

/// When the timer will next interrupt, as far as is known.
static ARMED: Local<Cell<Option<Instant>>> = Local::new(Cell::new(None));

/// Has the timer interrupt at `deadline` or, where one is armed that comes before, at that: the
/// loop that is then woken for nothing arms it again. So a deadline that moves away with every
/// packet costs nothing.
pub(crate) fn arm(deadline: Instant, now: Instant) {
    if ARMED
        .get()
        .is_some_and(|armed| now < armed && armed <= deadline)
    {
        return;
    }
    ARMED.set(Some(deadline));
    if let Some(xen) = platform::xen() {
        let at_ns = clock::system_ns(deadline);
        if let Err(error) = xen.set_singleshot_timer(VcpuId(0), at_ns, PastDeadline::Fire) {
            log::error!("timer: Xen refuses {deadline}: {error}");
        }
    } else {
        let ns = deadline.since(now).as_nanos();
        apic::arm_timer(u64::try_from(ns).unwrap_or(u64::MAX));
    }
}
