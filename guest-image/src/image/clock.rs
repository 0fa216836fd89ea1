//! The clock: nanoseconds since boot.

use super::{platform::Platform, vcpu::Local};
use core::{
    arch::x86_64::{__cpuid, _rdtsc},
    cell::UnsafeCell,
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering},
};
use paceline_driver::xen::{clock::PvClock, shared_info::VcpuTimeInfo};
use paceline_stack::time::Instant;
use raw_cpuid::CpuId;
use spin::Once;
use x86_64::instructions::port::Port;
use x86_64::registers::model_specific::Msr;

/// Frequency of the PIT's counters.
const PIT_HZ: u64 = 1_193_182;

/// How many PIT ticks the TSC is measured against: 20 ms.
const CALIBRATION_TICKS: u16 = 23_864;

/// Reads of a PIT that stands still before it is given up.
const PIT_ATTEMPTS: u32 = 1_000_000;

/// Nanoseconds of a TSC tick, in units of 2^-32; 0 while there is no clock.
static MULTIPLIER: AtomicU64 = AtomicU64::new(0);

/// What the clock read when it started: the TSC, or a hypervisor's nanoseconds.
static START: AtomicU64 = AtomicU64::new(0);

/// The hypervisor's clock, where there is one.
static PV_CLOCK: Once<Local<PvClock>> = Once::new();

/// KVM's feature bit for [`KVM_SYSTEM_TIME`], and the leaf it is in.
const KVM_FEATURES_LEAF: u32 = 0x4000_0001;
const KVM_CLOCKSOURCE2: u32 = 1 << 3;

/// The MSR that KVM is told by where to keep its clock's parameters.
const KVM_SYSTEM_TIME: u32 = 0x4b56_4d01;

/// The parameters of KVM's clock: they must not cross a page.
#[repr(C, align(64))]
struct KvmTime(UnsafeCell<VcpuTimeInfo>);

// SAFETY: only its address is taken.
unsafe impl Sync for KvmTime {}

static KVM_TIME: KvmTime = KvmTime(UnsafeCell::new(VcpuTimeInfo {
    version: 0,
    pad: 0,
    tsc_timestamp: 0,
    system_time_ns: 0,
    tsc_to_system_mul: 0,
    tsc_shift: 0,
    flags: 0,
    pad1: [0; 2],
}));

fn tsc() -> u64 {
    // SAFETY: every 64-bit processor has it.
    unsafe { _rdtsc() }
}

/// Starts the clock; Xen's is started by [`use_pvclock`].
pub(crate) fn init(platform: Platform) {
    match platform {
        Platform::Xen(_) => (),
        Platform::Kvm if has_kvm_clock() => start_kvm_clock(),
        Platform::Kvm | Platform::Pc => start_tsc(),
    }
}

fn has_kvm_clock() -> bool {
    __cpuid(KVM_FEATURES_LEAF).eax & KVM_CLOCKSOURCE2 != 0
}

fn start_kvm_clock() {
    let info = KVM_TIME.0.get();
    // Bit 0 enables it.
    // SAFETY: the MSR is there; KVM writes to that structure alone, which lies at its physical
    // address for good.
    unsafe { Msr::new(KVM_SYSTEM_TIME).write(info as u64 | 1) };
    if let Some(info) = NonNull::new(info) {
        // SAFETY: only KVM writes to it.
        use_pvclock(unsafe { PvClock::new(info) });
    }
}

/// Starts a hypervisor's clock.
pub(crate) fn use_pvclock(clock: PvClock) {
    START.store(clock.now_ns(tsc), Ordering::Relaxed);
    PV_CLOCK.call_once(|| Local::new(clock));
}

fn start_tsc() {
    let hz = cpuid_tsc_hz().or_else(pit_tsc_hz);
    let hz = hz.unwrap_or_else(|| {
        log::warn!("clock: no PIT and no TSC frequency in CPUID; taken for 1 GHz");
        1_000_000_000
    });
    START.store(tsc(), Ordering::Relaxed);
    MULTIPLIER.store((1_000_000_000 << 32) / hz, Ordering::Relaxed);
}

/// The frequency by CPUID's leaf 0x15 or, from a hypervisor, leaf 0x40000010.
fn cpuid_tsc_hz() -> Option<u64> {
    let cpuid = CpuId::new();
    let leaf = cpuid.get_tsc_info().and_then(|info| info.tsc_frequency());
    let khz = cpuid
        .get_hypervisor_info()
        .and_then(|info| info.tsc_frequency());
    leaf.or(khz.map(|khz| u64::from(khz) * 1000))
        .filter(|&hz| hz != 0)
}

/// Measures the TSC against the PIT's counter 0.
fn pit_tsc_hz() -> Option<u64> {
    let mut command = Port::<u8>::new(0x43);
    let mut data = Port::<u8>::new(0x40);
    let mut count = || {
        // SAFETY: the PIT is ours alone; latching and reading has no other effect.
        unsafe {
            command.write(0x00);
            u16::from_le_bytes([data.read(), data.read()])
        }
    };
    // SAFETY: as above; counter 0, both bytes, rate generator, from 65536 down.
    unsafe {
        Port::<u8>::new(0x43).write(0x34);
        Port::<u8>::new(0x40).write(0);
        Port::<u8>::new(0x40).write(0);
    }
    let first = count();
    let start = (0..PIT_ATTEMPTS)
        .map(|_| count())
        .find(|&now| now != first)?;
    let start_tsc = tsc();
    let end = (0..PIT_ATTEMPTS)
        .map(|_| count())
        .find(|&now| start.wrapping_sub(now) >= CALIBRATION_TICKS)?;
    let ticks = tsc().wrapping_sub(start_tsc);
    let passed = u64::from(start.wrapping_sub(end));
    Some(ticks.checked_mul(PIT_HZ)? / passed).filter(|&hz| hz != 0)
}

/// Nanoseconds since boot.
pub(crate) fn now_ns() -> u64 {
    let start = START.load(Ordering::Relaxed);
    if let Some(clock) = PV_CLOCK.get() {
        return clock.now_ns(tsc).saturating_sub(start);
    }
    let ticks = tsc().wrapping_sub(start);
    ((u128::from(ticks) * u128::from(MULTIPLIER.load(Ordering::Relaxed))) >> 32) as u64
}

/// The hypervisor's time at `instant`, in nanoseconds.
pub(crate) fn system_ns(instant: Instant) -> u64 {
    let ns = instant.as_micros().saturating_mul(1000);
    START.load(Ordering::Relaxed).saturating_add(ns)
}

/// The time.
pub(crate) fn now() -> Instant {
    Instant::from_micros(now_ns() / 1000)
}
