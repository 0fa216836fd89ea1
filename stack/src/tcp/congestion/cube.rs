//! The cubes and cube roots of CUBIC's curve (RFC 9438 §4.2), exact in whole numbers.
//!
//! With C = 0.4 segments a cubed second, a height of `h` bytes above or below the flat lies
//! `t` microseconds from it, where h = 2/5 · mss · t³ / 10¹⁸.

/// Cubed microseconds of a cubed second.
const CUBED: u128 = 1_000_000_000_000_000_000;
/// Further from the flat nothing is looked at: even segments of a byte reach the largest window
/// before.
const MAX_DISTANCE_US: u64 = 1 << 31;

/// The curve's height in bytes, `distance_us` away from its flat.
pub(super) fn height(distance_us: u64, mss: u32) -> u64 {
    let t = u128::from(distance_us.min(MAX_DISTANCE_US));
    // At most 2^93 · 2^33.
    let bytes = t * t * t * u128::from(mss) * 2 / (5 * CUBED);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The cube of the distance in microseconds at which the curve is `bytes` high: less than 2^94.
pub(super) fn volume(bytes: u32, mss: u32) -> u128 {
    u128::from(bytes) * 5 * CUBED / (2 * u128::from(mss.max(1)))
}

/// The largest number whose cube is at most `volume`, which is less than 2^96.
pub(super) fn root(volume: u128) -> u32 {
    let mut root = 0u32;
    for bit in (0..32).rev() {
        let trial = root | 1 << bit;
        if u128::from(trial).pow(3) <= volume {
            root = trial;
        }
    }
    root
}

#[cfg(test)]
mod tests;
