//! Random bytes for the stack's secret.

use super::clock;
use core::arch::x86_64::{__cpuid, _rdtsc};
use raw_cpuid::CpuId;

/// Sixteen bytes that differ from boot to boot: from the processor's generator where it has one,
/// mixed with the jitter of the clock, which is all there is elsewhere.
pub(crate) fn secret() -> [u8; 16] {
    let hardware = CpuId::new()
        .get_feature_info()
        .is_some_and(|features| features.has_rdrand());
    let mut state = [clock::now_ns(), 0x9e37_79b9_7f4a_7c15];
    for round in 0..64_usize {
        // CPUID traps to a hypervisor, whose time for it is not to be foreseen.
        let _ = __cpuid(0);
        // SAFETY: every 64-bit processor has it.
        let tsc = unsafe { _rdtsc() };
        let word = if hardware { rdrand() } else { 0 };
        let half = &mut state[round % 2];
        *half = mix(*half ^ tsc ^ word.rotate_left(32));
        state.swap(0, 1);
    }
    let mut secret = [0; 16];
    secret[..8].copy_from_slice(&mix(state[0]).to_le_bytes());
    secret[8..].copy_from_slice(&mix(state[1] ^ state[0]).to_le_bytes());
    secret
}

/// The processor's random number; 0 when it has none at the moment.
fn rdrand() -> u64 {
    let value: u64;
    let valid: u8;
    // SAFETY: called only where CPUID says that the instruction is there.
    unsafe {
        core::arch::asm!(
            "rdrand {value}",
            "setc {valid}",
            value = out(reg) value,
            valid = out(reg_byte) valid,
            options(nomem, nostack)
        );
    }
    if valid == 1 { value } else { 0 }
}

/// The finalizer of SplitMix64: each bit of the result depends on each of `value`.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
