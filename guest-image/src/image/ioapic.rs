//! The I/O APICs, which turn interrupt lines into vectors.

use super::{apic, interrupts::Source, paging};
use core::ptr;

/// Where the first has its registers, on every PC.
const FIRST: u64 = 0xfec0_0000;

/// Where QEMU's microvm has a second one, for the interrupts from 24 on.
const SECOND: u64 = 0xfec1_0000;

const PINS: u32 = 24;

/// Offset of the register that selects another.
const SELECT: u64 = 0x00;

/// Offset of the selected register.
const WINDOW: u64 = 0x10;

/// The first redirection entry's lower half.
const REDIRECTION: u32 = 0x10;

/// Routes the global interrupt `irq`, taken as edge-triggered and active high, to `source`'s
/// vector on this processor. False when there is no such interrupt.
pub(crate) fn route(irq: u32, source: Source) -> bool {
    let base = match irq / PINS {
        0 => FIRST,
        1 => SECOND,
        _ => return false,
    };
    // SAFETY: the range is that of an I/O APIC, if there is one there, and nobody else's.
    let Ok(registers) = (unsafe { paging::map_device(&(base..base + 4096)) }) else {
        return false;
    };
    let entry = REDIRECTION + 2 * (irq % PINS);
    let high = u32::from(apic::id()) << 24;
    let low = u32::from(source.vector());
    for (register, value) in [(entry + 1, high), (entry, low)] {
        // SAFETY: the registers were just mapped; the entry belongs to this interrupt alone.
        unsafe {
            ptr::write_volatile(registers.add(SELECT as usize).cast::<u32>(), register);
            ptr::write_volatile(registers.add(WINDOW as usize).cast::<u32>(), value);
        }
    }
    true
}
