use super::*;
use proptest::prelude::*;

const MSS: u32 = 1448;
const MAX: u32 = 45 * MSS;

fn mbit(rate: u64) -> Rate {
    Rate::from_bytes_per_second(rate * 1_000_000 / 8)
}

#[test]
fn a_packet_is_a_millisecond_long() {
    let size = |rate, min_rtt_us| autosize(rate, Some(min_rtt_us), MSS, MAX) / MSS;
    // Far away: by rate alone.
    assert_eq!(size(mbit(1), 100_000), 2);
    assert_eq!(size(mbit(100), 100_000), 8);
    assert_eq!(size(mbit(400), 100_000), 33);
    assert_eq!(size(mbit(1000), 100_000), 45);
    // Near: a full packet, then a half, a quarter.
    assert_eq!(size(mbit(1), 100), 45);
    assert_eq!(size(mbit(1), 600), 22);
    assert_eq!(size(mbit(1), 1100), 11);
    assert_eq!(size(mbit(100), 600), 8 + 22);
    // Nothing known of the path.
    assert_eq!(autosize(mbit(1), None, MSS, MAX), 2 * MSS);
    // A device that does not segment.
    assert_eq!(autosize(mbit(1000), Some(100), MSS, MSS), MSS);
}

#[test]
fn waits_only_when_it_pays() {
    let waiting = Deferral {
        bytes: 2 * MSS,
        full_bytes: MAX,
        window_bytes: 40 * MSS,
        in_flight_bytes: 38 * MSS,
        mss: MSS,
        since_last_sent_us: 50,
        oldest_age_us: 90,
        srtt_us: Some(100),
    };
    assert!(waiting.pays());
    let change = |change: fn(&mut Deferral)| {
        let mut changed = waiting;
        change(&mut changed);
        changed.pays()
    };
    assert!(!change(|it| it.bytes = it.full_bytes), "it is full");
    assert!(!change(|it| it.bytes = 14 * MSS), "a third of the window");
    assert!(!change(|it| it.in_flight_bytes = 3 * MSS), "a delayed ACK");
    assert!(
        !change(|it| it.since_last_sent_us = 1001),
        "no longer sending"
    );
    assert!(!change(|it| it.oldest_age_us = 10), "the ACK is far");
    assert!(!change(|it| {
        it.srtt_us = Some(10_000);
        it.oldest_age_us = 6_000;
    }));
    assert!(change(|it| {
        it.srtt_us = Some(10_000);
        it.oldest_age_us = 9_500;
    }));
    assert!(change(|it| it.oldest_age_us = u32::MAX), "it is due");
}

proptest! {
    #[test]
    fn a_size_is_whole_segments_and_fits(
        rate: u64,
        min_rtt_us: Option<u32>,
        mss in 32..=65_000u32,
        max_bytes in 32..=65_535u32,
    ) {
        let rate = Rate::from_bytes_per_second(rate);
        let size = autosize(rate, min_rtt_us, mss, max_bytes);
        prop_assert_eq!(size % mss, 0);
        prop_assert!(size >= mss);
        prop_assert!(size <= max_bytes.max(mss));
    }
}
