//! The I/O APICs, which turn interrupt lines into vectors.

use super::{apic, interrupts::Source, paging};
use core::ptr;

/// Where the first has its registers, on every PC.
const FIRST: u64 = 0xfec0_0000;

/// Where QEMU's microvm has a second one, for the interrupts from 24 on.
const SECOND: u64 = 0xfec1_0000;

const PINS: u32 = 24;

/// Offset of the register that selects another, in words.
const SELECT: usize = 0;

/// Offset of the selected register, in words.
const WINDOW: usize = 4;

/// The first redirection entry's lower half.
const REDIRECTION: u32 = 0x10;

/// The register that tells the version and the number of pins.
const VERSION: u32 = 0x01;

/// An I/O APIC.
struct IoApic {
    registers: *mut u32,
}

impl IoApic {
    /// The one that has the global interrupt `irq`, if there can be one.
    fn of(irq: u32) -> Option<Self> {
        let base = match irq / PINS {
            0 => FIRST,
            1 => SECOND,
            _ => return None,
        };
        // SAFETY: the range is that of an I/O APIC, or nobody's.
        unsafe { paging::map_device(&(base..base + 4096)) }.ok()?;
        Some(Self {
            registers: base as *mut u32,
        })
    }

    fn read(&self, register: u32) -> u32 {
        // SAFETY: the registers are mapped; reading one has no effect.
        unsafe {
            ptr::write_volatile(self.registers.add(SELECT), register);
            ptr::read_volatile(self.registers.add(WINDOW))
        }
    }

    fn write(&self, register: u32, value: u32) {
        // SAFETY: the registers are mapped, and change how interrupts arrive alone.
        unsafe {
            ptr::write_volatile(self.registers.add(SELECT), register);
            ptr::write_volatile(self.registers.add(WINDOW), value);
        }
    }
}

/// Whether there is an I/O APIC with the global interrupt `irq`.
pub(crate) fn is_there(irq: u32) -> bool {
    // Where there is none, all bits read as 0 or as 1.
    IoApic::of(irq).is_some_and(|apic| (apic.read(VERSION) >> 16) & 0xff == PINS - 1)
}

/// Routes the global interrupt `irq`, taken as edge-triggered and active high, to `source`'s
/// vector on this processor. False when there is no such interrupt.
pub(crate) fn route(irq: u32, source: Source) -> bool {
    let Some(apic) = IoApic::of(irq).filter(|_| is_there(irq)) else {
        return false;
    };
    let entry = REDIRECTION + 2 * (irq % PINS);
    apic.write(entry + 1, u32::from(apic::id()) << 24);
    apic.write(entry, source.vector().into());
    true
}
