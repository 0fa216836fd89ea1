use super::*;
use proptest::prelude::*;

const GBIT: u64 = 1_000_000_000 / 8;

#[test]
fn a_large_packet_at_a_hundred_gigabits() {
    let rate = Rate::from_bytes_per_second(100 * GBIT);
    assert_eq!(rate.ns_for(65_160), 5212);
    assert_eq!(rate.bytes_in_us(1_000_000), 100 * GBIT);
    assert_eq!(Rate::of(12_500_000_000, 1_000_000), rate);
    assert_eq!(rate.percent(120).bytes_per_second(), 120 * GBIT);
}

#[test]
fn no_time_and_no_rate() {
    assert_eq!(Rate::of(1, 0), Rate::UNLIMITED);
    assert_eq!(Rate::ZERO.ns_for(1), u64::MAX);
    assert_eq!(Rate::ZERO.bytes_in_us(u64::MAX), 0);
    assert_eq!(Rate::UNLIMITED.ns_for(u32::MAX), 0);
    assert_eq!(Rate::UNLIMITED.percent(200), Rate::UNLIMITED);
}

proptest! {
    #[test]
    fn nothing_overflows(rate: u64, bytes: u64, span_us: u64, part: u32, percent: u32) {
        let rate = Rate::from_bytes_per_second(rate);
        let _ = Rate::of(bytes, span_us);
        let _ = rate.percent(percent);
        let _ = rate.bytes_in_us(span_us);
        let _ = rate.ns_for(part);
    }

    /// What a rate moves in some time takes it no longer than that.
    #[test]
    fn bytes_and_times_agree(rate in 1..=2 * 100 * GBIT, span_us in 1..=100_000u64) {
        let rate = Rate::from_bytes_per_second(rate);
        if let Ok(bytes) = u32::try_from(rate.bytes_in_us(span_us)) {
            prop_assert!(rate.ns_for(bytes) <= span_us * 1000);
            prop_assert!(Rate::of(u64::from(bytes), span_us) <= rate);
        }
    }
}
