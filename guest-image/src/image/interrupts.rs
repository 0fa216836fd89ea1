//! Descriptor tables, exceptions and interrupts.
//!
//! An exception is fatal: it is reported and ends the guest. An interrupt does nothing but set
//! its source's flag, for the main loop to find.

use super::{apic, paging, panic};
use core::{
    arch::global_asm,
    sync::atomic::{AtomicU32, Ordering},
};
use paceline_driver::xen::event::EventChannels;
use spin::Once;
use x86_64::{
    VirtAddr,
    instructions::{
        segmentation::{CS, DS, ES, SS, Segment},
        tables::load_tss,
    },
    structures::{
        gdt::{Descriptor, GlobalDescriptorTable},
        idt::InterruptDescriptorTable,
        tss::TaskStateSegment,
    },
};

/// What an interrupt came from: its vector less [`IRQ_BASE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Source {
    /// The local APIC's timer.
    Timer = 0,
    /// COM1.
    Serial = 1,
    /// The NIC.
    Nic = 2,
    /// Xen's event channels.
    Event = 3,
}

/// First vector of the interrupts; the exceptions have those below.
const IRQ_BASE: u8 = 32;

/// Number of interrupt vectors.
const IRQS: u8 = 8;

/// Vector of the APIC's spurious interrupt, which wants no answer.
pub(crate) const SPURIOUS_VECTOR: u8 = 0xff;

const DOUBLE_FAULT_IST: u16 = 0;

impl Source {
    /// The vector it is to arrive on.
    pub(crate) const fn vector(self) -> u8 {
        IRQ_BASE + self as u8
    }

    const fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// One bit for each source that has interrupted and was not looked after yet.
static PENDING: AtomicU32 = AtomicU32::new(0);

/// Takes the flags of all sources that have interrupted since the last call.
pub(crate) fn take() -> Pending {
    Pending(PENDING.swap(0, Ordering::AcqRel))
}

/// Sources that have interrupted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending(u32);

impl Pending {
    /// Whether `source` is among them.
    pub(crate) fn has(self, source: Source) -> bool {
        self.0 & source.bit() != 0
    }
}

/// Whether any source has interrupted since the last [`take`].
pub(crate) fn pending() -> bool {
    PENDING.load(Ordering::Acquire) != 0
}

/// What an exception found, as the stub in this file pushes it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TrapFrame {
    pub(crate) r15: u64,
    pub(crate) r14: u64,
    pub(crate) r13: u64,
    pub(crate) r12: u64,
    pub(crate) r11: u64,
    pub(crate) r10: u64,
    pub(crate) r9: u64,
    pub(crate) r8: u64,
    pub(crate) rbp: u64,
    pub(crate) rdi: u64,
    pub(crate) rsi: u64,
    pub(crate) rdx: u64,
    pub(crate) rcx: u64,
    pub(crate) rbx: u64,
    pub(crate) rax: u64,
    pub(crate) vector: u64,
    pub(crate) error_code: u64,
    pub(crate) rip: u64,
    pub(crate) cs: u64,
    pub(crate) rflags: u64,
    pub(crate) rsp: u64,
    pub(crate) ss: u64,
}

// Stubs of 16 bytes each: those of the exceptions push a zero where the processor pushes no
// error code, and all push their vector.
global_asm!(
    r#"
    .pushsection .text.interrupts, "ax"
    .balign 16
exception_stubs:
    .set vector, 0
    .rept 32
    .balign 16
    .if ((1 << vector) & 0x60227d00) == 0
    pushq $0
    .endif
    pushq $vector
    jmp exception_entry
    .set vector, vector + 1
    .endr

    .balign 16
interrupt_stubs:
    .set vector, 0
    .rept {irqs}
    .balign 16
    pushq $vector
    jmp interrupt_entry
    .set vector, vector + 1
    .endr

    .balign 16
spurious_stub:
    iretq

exception_entry:
    cld
    pushq %rax
    pushq %rbx
    pushq %rcx
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %rbp
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, %rdi
    call {exception}
    ud2

interrupt_entry:
    cld
    pushq %rax
    pushq %rcx
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    movq 72(%rsp), %rdi
    // See `idle_hlt`, which is one byte long.
    leaq idle_hlt(%rip), %rax
    cmpq %rax, 80(%rsp)
    jne 2f
    incq 80(%rsp)
2:
    subq $8, %rsp
    call {interrupt}
    addq $8, %rsp
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rdi
    popq %rsi
    popq %rdx
    popq %rcx
    popq %rax
    addq $8, %rsp
    iretq
    .popsection
    "#,
    irqs = const IRQS,
    exception = sym panic::exception,
    interrupt = sym interrupt,
    options(att_syntax)
);

unsafe extern "C" {
    safe static exception_stubs: [[u8; 16]; 32];
    safe static interrupt_stubs: [[u8; 16]; IRQS as usize];
    safe static spurious_stub: u8;
}

extern "C" fn interrupt(irq: u64) {
    let bit = 1 << (irq & 31);
    PENDING.fetch_or(bit, Ordering::AcqRel);
    match DOMAIN_UPCALL.get() {
        Some(events) if bit == Source::Event.bit() => events.acknowledge_upcall(),
        _ => apic::end_of_interrupt(),
    }
}

/// The event channels when Xen's event interrupt comes past the APIC: it is not to be ended there,
/// and comes again until it is acknowledged.
static DOMAIN_UPCALL: Once<EventChannels> = Once::new();

/// Says that Xen's event interrupt comes past the APIC, for `events`.
pub(crate) fn acknowledge_events(events: Option<EventChannels>) {
    if let Some(events) = events {
        DOMAIN_UPCALL.call_once(|| events);
    }
}

struct Gdt {
    table: GlobalDescriptorTable,
    code: x86_64::structures::gdt::SegmentSelector,
    data: x86_64::structures::gdt::SegmentSelector,
    tss: x86_64::structures::gdt::SegmentSelector,
}

static TSS: Once<TaskStateSegment> = Once::new();
static GDT: Once<Gdt> = Once::new();
static IDT: Once<InterruptDescriptorTable> = Once::new();

/// Loads the tables. Interrupts stay off.
pub(crate) fn init() {
    let tss = TSS.call_once(|| {
        let mut tss = TaskStateSegment::new();
        let [_, fault_stack] = paging::stacks();
        tss.interrupt_stack_table[usize::from(DOUBLE_FAULT_IST)] = VirtAddr::new(fault_stack.end);
        tss
    });
    let gdt = GDT.call_once(|| {
        let mut table = GlobalDescriptorTable::new();
        let code = table.append(Descriptor::kernel_code_segment());
        let data = table.append(Descriptor::kernel_data_segment());
        let tss = table.append(Descriptor::tss_segment(tss));
        Gdt {
            table,
            code,
            data,
            tss,
        }
    });
    gdt.table.load();
    // SAFETY: the selectors are those of the table just loaded.
    unsafe {
        CS::set_reg(gdt.code);
        DS::set_reg(gdt.data);
        ES::set_reg(gdt.data);
        SS::set_reg(gdt.data);
        load_tss(gdt.tss);
    }
    IDT.call_once(new_idt).load();
}

fn new_idt() -> InterruptDescriptorTable {
    let mut idt = InterruptDescriptorTable::new();
    let at = |stub: *const u8| VirtAddr::new(stub as u64);
    let exception = |vector: usize| at(exception_stubs[vector].as_ptr());
    // SAFETY: the stubs follow the calling convention of interrupt gates, with and without
    // error code as the vector wants it; they never return, or restore what they change.
    unsafe {
        idt.divide_error.set_handler_addr(exception(0));
        idt.debug.set_handler_addr(exception(1));
        idt.non_maskable_interrupt.set_handler_addr(exception(2));
        idt.breakpoint.set_handler_addr(exception(3));
        idt.overflow.set_handler_addr(exception(4));
        idt.bound_range_exceeded.set_handler_addr(exception(5));
        idt.invalid_opcode.set_handler_addr(exception(6));
        idt.device_not_available.set_handler_addr(exception(7));
        idt.double_fault
            .set_handler_addr(exception(8))
            .set_stack_index(DOUBLE_FAULT_IST);
        idt.invalid_tss.set_handler_addr(exception(10));
        idt.segment_not_present.set_handler_addr(exception(11));
        idt.stack_segment_fault.set_handler_addr(exception(12));
        idt.general_protection_fault.set_handler_addr(exception(13));
        idt.page_fault.set_handler_addr(exception(14));
        idt.x87_floating_point.set_handler_addr(exception(16));
        idt.alignment_check.set_handler_addr(exception(17));
        idt.machine_check.set_handler_addr(exception(18));
        idt.simd_floating_point.set_handler_addr(exception(19));
        idt.virtualization.set_handler_addr(exception(20));
        idt.cp_protection_exception.set_handler_addr(exception(21));
        idt.hv_injection_exception.set_handler_addr(exception(28));
        idt.vmm_communication_exception
            .set_handler_addr(exception(29));
        idt.security_exception.set_handler_addr(exception(30));
        for (irq, stub) in interrupt_stubs.iter().enumerate() {
            idt[IRQ_BASE + irq as u8].set_handler_addr(at(stub.as_ptr()));
        }
        idt[SPURIOUS_VECTOR].set_handler_addr(at(&raw const spurious_stub));
    }
    idt
}
