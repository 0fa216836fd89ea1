//! The ends of the guest.

use super::{console, platform};
use paceline_driver::xen::{Hypervisor, hypercall::ShutdownReason};
use x86_64::{
    instructions::{interrupts, port::Port},
    structures::DescriptorTablePointer,
};

/// Where QEMU's `isa-debug-exit` is expected. It ends QEMU with status `2 * value + 1`.
const DEBUG_EXIT_PORT: u16 = 0xf4;

/// Ends QEMU with status 33.
const EXIT_OFF: u32 = 0x10;

/// Ends QEMU with status 255.
const EXIT_CRASH: u32 = 0x7f;

/// Powers off.
pub(crate) fn off() -> ! {
    log::info!("power off");
    end(EXIT_OFF, ShutdownReason::Poweroff)
}

/// Restarts the guest.
pub(crate) fn reboot() -> ! {
    log::info!("reboot");
    console::drain();
    interrupts::disable();
    shutdown(ShutdownReason::Reboot);
    let nothing = DescriptorTablePointer {
        limit: 0,
        base: x86_64::VirtAddr::zero(),
    };
    // SAFETY: without an interrupt table the next exception is a triple fault, which resets the
    // processor: the one reset that every PC has.
    unsafe {
        x86_64::instructions::tables::lidt(&nothing);
        core::arch::asm!("ud2", options(noreturn, nomem, nostack));
    }
}

/// Ends the guest as crashed, so that whoever started it can tell.
pub(crate) fn crash() -> ! {
    end(EXIT_CRASH, ShutdownReason::Crash)
}

fn end(code: u32, reason: ShutdownReason) -> ! {
    console::drain();
    interrupts::disable();
    shutdown(reason);
    // SAFETY: the port is isa-debug-exit's or nobody's.
    unsafe { Port::new(DEBUG_EXIT_PORT).write(code) };
    log::warn!("halted: there is no isa-debug-exit device at port {DEBUG_EXIT_PORT:#x}");
    loop {
        x86_64::instructions::hlt();
    }
}

/// Has Xen end the domain. Returns where there is no Xen.
fn shutdown(reason: ShutdownReason) {
    if let Some(xen) = platform::xen()
        && let Err(error) = xen.shutdown(reason)
    {
        log::error!("Xen refuses the shutdown: {error}");
    }
}
