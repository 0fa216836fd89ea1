//! The local APIC: end of interrupt, and the timer where there is no hypervisor's; the I/O APIC.

use super::{
    clock,
    interrupts::{SPURIOUS_VECTOR, Source},
    paging,
    platform::Platform,
};
use core::{
    ptr,
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
};
use raw_cpuid::CpuId;
use x86_64::{
    instructions::port::Port,
    registers::model_specific::{ApicBase, ApicBaseFlags, Msr},
};

const LAPIC: u64 = 0xfee0_0000;

/// Registers, by their offset in the xAPIC's page.
const ID: u32 = 0x20;
const TASK_PRIORITY: u32 = 0x80;
const END_OF_INTERRUPT: u32 = 0xb0;
const SPURIOUS: u32 = 0xf0;
const LVT_TIMER: u32 = 0x320;
const LVT_LINT0: u32 = 0x350;
const LVT_LINT1: u32 = 0x360;
const TIMER_INITIAL: u32 = 0x380;
const TIMER_CURRENT: u32 = 0x390;
const TIMER_DIVIDE: u32 = 0x3e0;

const MASKED: u32 = 1 << 16;
const APIC_ENABLE: u32 = 1 << 8;
const DIVIDE_BY_16: u32 = 0b0011;

/// What the timer is measured over.
const CALIBRATION_NS: u64 = 10_000_000;

/// How the registers are reached.
const OFF: u8 = 0;
const XAPIC: u8 = 1;
const X2APIC: u8 = 2;
static MODE: AtomicU8 = AtomicU8::new(OFF);

/// Timer ticks of a nanosecond, in units of 2^-32; 0: no timer.
static TIMER_MULTIPLIER: AtomicU64 = AtomicU64::new(0);

fn x2apic_msr(register: u32) -> Msr {
    Msr::new(0x800 + (register >> 4))
}

fn write(register: u32, value: u32) {
    match MODE.load(Ordering::Relaxed) {
        // SAFETY: the page is mapped before the mode is set; the values written here change
        // interrupt delivery alone.
        XAPIC => unsafe {
            ptr::write_volatile((LAPIC + u64::from(register)) as *mut u32, value);
        },
        // SAFETY: as above; the register exists in this mode.
        X2APIC => unsafe { x2apic_msr(register).write(value.into()) },
        _ => (),
    }
}

fn read(register: u32) -> u32 {
    match MODE.load(Ordering::Relaxed) {
        // SAFETY: the page is mapped before the mode is set; reading has no effect.
        XAPIC => unsafe { ptr::read_volatile((LAPIC + u64::from(register)) as *const u32) },
        // SAFETY: as above; the register exists in this mode.
        X2APIC => unsafe { x2apic_msr(register).read() as u32 },
        _ => 0,
    }
}

/// Enables the APIC, with everything masked, and measures its timer.
pub(crate) fn init(platform: Platform) {
    if !platform.is_xen() {
        mask_pic();
    }
    let x2apic = CpuId::new()
        .get_feature_info()
        .is_some_and(|features| features.has_x2apic());
    let (frame, mut flags) = ApicBase::read();
    flags |= ApicBaseFlags::LAPIC_ENABLE;
    if x2apic {
        flags |= ApicBaseFlags::X2APIC_ENABLE;
    }
    // SAFETY: the base stays; nothing was set up in the APIC yet.
    unsafe { ApicBase::write(frame, flags) };
    if x2apic {
        MODE.store(X2APIC, Ordering::Relaxed);
    } else {
        // SAFETY: the APIC's page, which the processor decodes.
        match unsafe { paging::map_device(&(LAPIC..LAPIC + 4096)) } {
            Ok(_) => MODE.store(XAPIC, Ordering::Relaxed),
            Err(error) => {
                super::refuse(&format_args!("mapping the local APIC: {error}"));
            }
        }
    }
    write(TASK_PRIORITY, 0);
    write(LVT_LINT0, MASKED);
    write(LVT_LINT1, MASKED);
    write(LVT_TIMER, MASKED);
    write(SPURIOUS, APIC_ENABLE | u32::from(SPURIOUS_VECTOR));
    if !platform.is_xen() {
        init_timer();
    }
}

/// The two 8259s are not used: all their lines masked, and their vectors moved off those of the
/// exceptions, in case of a spurious one.
fn mask_pic() {
    const UNUSED_VECTOR: u8 = 0xf0;
    for (base, cascade) in [(0x20, 4), (0xa0, 2)] {
        // SAFETY: the PICs are ours alone.
        unsafe {
            Port::<u8>::new(base).write(0x11);
            Port::<u8>::new(base + 1).write(UNUSED_VECTOR);
            Port::<u8>::new(base + 1).write(cascade);
            Port::<u8>::new(base + 1).write(0x01);
            Port::<u8>::new(base + 1).write(0xff);
        }
    }
}

fn init_timer() {
    write(TIMER_DIVIDE, DIVIDE_BY_16);
    write(TIMER_INITIAL, u32::MAX);
    let start = clock::now_ns();
    let passed_ns = loop {
        let passed = clock::now_ns() - start;
        if passed >= CALIBRATION_NS {
            break passed;
        }
    };
    let ticks = u64::from(u32::MAX - read(TIMER_CURRENT));
    write(TIMER_INITIAL, 0);
    if ticks == 0 {
        log::error!("apic: the timer stands still");
        return;
    }
    // At most 2^32 ticks of 10 ms: the shift cannot overflow.
    TIMER_MULTIPLIER.store((ticks << 32) / passed_ns, Ordering::Relaxed);
    // One-shot is mode 0.
    write(LVT_TIMER, Source::Timer.vector().into());
}

/// Lets the timer interrupt once, `ns` from now or, of a longer time, when it has counted as far
/// as it can.
pub(crate) fn arm_timer(ns: u64) {
    let multiplier = TIMER_MULTIPLIER.load(Ordering::Relaxed);
    let ticks = (u128::from(ns) * u128::from(multiplier)) >> 32;
    // 0 would stop it.
    write(TIMER_INITIAL, ticks.clamp(1, u128::from(u32::MAX)) as u32);
}

/// Tells the APIC that the interrupt being served is done with.
pub(crate) fn end_of_interrupt() {
    write(END_OF_INTERRUPT, 0);
}

/// This processor's APIC id.
pub(crate) fn id() -> u8 {
    let id = read(ID);
    if MODE.load(Ordering::Relaxed) == X2APIC {
        id as u8
    } else {
        (id >> 24) as u8
    }
}
