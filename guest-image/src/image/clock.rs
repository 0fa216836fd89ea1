//! The clock: nanoseconds since boot.

use super::platform::Platform;
use core::{
    arch::x86_64::_rdtsc,
    sync::atomic::{AtomicU64, Ordering},
};
use paceline_stack::time::Instant;
use raw_cpuid::CpuId;
use x86_64::instructions::port::Port;

/// Frequency of the PIT's counters.
const PIT_HZ: u64 = 1_193_182;

/// How many PIT ticks the TSC is measured against: 20 ms.
const CALIBRATION_TICKS: u16 = 23_864;

/// Reads of a PIT that stands still before it is given up.
const PIT_ATTEMPTS: u32 = 1_000_000;

/// Nanoseconds of a TSC tick, in units of 2^-32; 0 while there is no clock.
static MULTIPLIER: AtomicU64 = AtomicU64::new(0);

/// The TSC when the clock started.
static START: AtomicU64 = AtomicU64::new(0);

fn tsc() -> u64 {
    // SAFETY: every 64-bit processor has it.
    unsafe { _rdtsc() }
}

/// Starts the clock.
pub(crate) fn init(_platform: Platform) {
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
    let ticks = tsc().wrapping_sub(START.load(Ordering::Relaxed));
    ((u128::from(ticks) * u128::from(MULTIPLIER.load(Ordering::Relaxed))) >> 32) as u64
}

/// The time.
pub(crate) fn now() -> Instant {
    Instant::from_micros(now_ns() / 1000)
}
