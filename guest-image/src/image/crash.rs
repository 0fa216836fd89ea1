//! Faults made on purpose, so that what is to catch them can be tested. None of these returns.

use super::paging;
use core::{arch::asm, hint};

/// Reads an address that is never mapped.
pub(crate) fn fault() {
    // SAFETY: the page fault that follows ends the guest.
    unsafe { asm!("mov {0}, [{1}]", out(reg) _, in(reg) 8_u64, options(nostack)) };
}

/// Writes to the first byte of the code.
pub(crate) fn write() {
    let text = paging::text().start;
    // SAFETY: the page fault that follows ends the guest. If there is none the byte stays as it
    // was.
    unsafe { asm!("or byte ptr [{0}], 0", in(reg) text, options(nostack)) };
}

/// Calls a function in a page of data: one that returns.
pub(crate) fn execute() {
    const RET: u8 = 0xc3;
    let code = [RET; 16];
    // SAFETY: the page fault that follows ends the guest. If there is none the call returns.
    unsafe { asm!("call {0}", in(reg) code.as_ptr(), clobber_abi("C")) };
}

/// Calls itself until the stack is used up.
#[inline(never)]
pub(crate) fn stack(depth: u64) -> u64 {
    let frame = hint::black_box([depth; 16]);
    if depth == u64::MAX {
        return 0;
    }
    stack(depth + 1).wrapping_add(hint::black_box(frame)[0])
}
