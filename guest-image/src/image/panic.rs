//! The report of a panic or an exception: reason, registers, return addresses. It ends the
//! guest.

use super::{
    console::{self, print},
    interrupts::TrapFrame,
    paging, power,
};
use core::{
    panic::PanicInfo,
    sync::atomic::{AtomicU8, Ordering},
};
use x86_64::registers::control::{Cr2, Cr3};

/// Return addresses printed at most.
const MAX_FRAMES: usize = 32;

const BREAKPOINT: u64 = 3;
const DOUBLE_FAULT: u64 = 8;
const PAGE_FAULT: u64 = 14;

/// How far the report of the guest's end has come: 0 none, 1 a panic has given its reason,
/// 2 registers are being printed, 3 the report itself failed.
static STAGE: AtomicU8 = AtomicU8::new(0);

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    x86_64::instructions::interrupts::disable();
    if STAGE.fetch_add(1, Ordering::Relaxed) == 0 {
        // SAFETY: what had the console panicked while it did.
        unsafe { console::unlock() };
        print(format_args!("\n{info}\n"));
    }
    // The exception's report prints the registers; it never returns.
    loop {
        x86_64::instructions::interrupts::int3();
    }
}

/// Reports an exception and ends the guest. Called by the exception stubs.
pub(crate) extern "C" fn exception(frame: &TrapFrame) -> ! {
    let stage = STAGE.swap(2, Ordering::Relaxed);
    if stage >= 2 {
        // The report failed: no second try.
        power::crash();
    }
    // SAFETY: nothing that the exception interrupted goes on.
    unsafe { console::unlock() };
    if !(stage == 1 && frame.vector == BREAKPOINT) {
        print(format_args!(
            "\nCPU exception {} ({}), error code {:#x}\n",
            frame.vector,
            name(frame.vector),
            frame.error_code
        ));
        match frame.vector {
            PAGE_FAULT => print(format_args!("{}\n", page_fault(frame.error_code))),
            DOUBLE_FAULT if paging::stack_guard().contains(&Cr2::read_raw()) => {
                print(format_args!("the stack is used up\n"));
            }
            _ => (),
        }
    }
    registers(frame);
    backtrace(frame);
    power::crash()
}

fn registers(frame: &TrapFrame) {
    let &TrapFrame {
        r15,
        r14,
        r13,
        r12,
        r11,
        r10,
        r9,
        r8,
        rbp,
        rdi,
        rsi,
        rdx,
        rcx,
        rbx,
        rax,
        vector: _,
        error_code: _,
        rip,
        cs,
        rflags,
        rsp,
        ss,
    } = frame;
    let cr2 = Cr2::read_raw();
    let cr3 = Cr3::read_raw().0.start_address().as_u64();
    print(format_args!(
        "rip {rip:016x} rsp {rsp:016x} rflags {rflags:08x} cs {cs:02x} ss {ss:02x}\n\
         rax {rax:016x} rbx {rbx:016x} rcx {rcx:016x} rdx {rdx:016x}\n\
         rsi {rsi:016x} rdi {rdi:016x} rbp {rbp:016x} r8  {r8:016x}\n\
         r9  {r9:016x} r10 {r10:016x} r11 {r11:016x} r12 {r12:016x}\n\
         r13 {r13:016x} r14 {r14:016x} r15 {r15:016x} cr2 {cr2:016x} cr3 {cr3:08x}\n"
    ));
}

/// Prints the return addresses along the chain of frame pointers: as long as it climbs one of
/// the stacks, and what it holds are addresses of code.
fn backtrace(frame: &TrapFrame) {
    print(format_args!("return addresses:"));
    let text = paging::text();
    let mut pointer = frame.rbp;
    if let Some(stack) = paging::stacks()
        .into_iter()
        .find(|stack| stack.contains(&pointer))
    {
        for _ in 0..MAX_FRAMES {
            if !pointer.is_multiple_of(8) || pointer < stack.start || pointer > stack.end - 16 {
                break;
            }
            // SAFETY: both words lie in the stack, which is mapped.
            let [next, address] = unsafe { (pointer as *const [u64; 2]).read() };
            if !text.contains(&address) {
                break;
            }
            print(format_args!(" {address:x}"));
            if next <= pointer {
                break;
            }
            pointer = next;
        }
    }
    print(format_args!("\n"));
}

fn page_fault(error_code: u64) -> &'static str {
    match error_code & 0b1_0011 {
        0b0_0000 => "read of a page that is not mapped",
        0b0_0010 => "write to a page that is not mapped",
        0b0_0001 => "read of a page that forbids it",
        0b0_0011 => "write to a read-only page",
        0b1_0000 => "jump to a page that is not mapped",
        0b1_0001 => "jump to a page without code",
        _ => "of a kind unknown",
    }
}

fn name(vector: u64) -> &'static str {
    match vector {
        0 => "divide error",
        1 => "debug",
        2 => "non-maskable interrupt",
        3 => "breakpoint",
        4 => "overflow",
        5 => "bound range exceeded",
        6 => "invalid opcode",
        7 => "device not available",
        8 => "double fault",
        10 => "invalid TSS",
        11 => "segment not present",
        12 => "stack fault",
        13 => "general protection",
        14 => "page fault",
        16 => "x87 floating point",
        17 => "alignment check",
        18 => "machine check",
        19 => "SIMD floating point",
        21 => "control protection",
        _ => "reserved",
    }
}
