use super::*;

const HELD_US: u32 = 4096;

fn at(us: u64) -> Instant {
    Instant::from_micros(us)
}

/// Batches of `bytes`, each sent as the one before is done, packet by packet, [`HELD_US`] after it
/// was sent: as many as a round has.
fn round(drain: &mut DrainRate, start: &mut u64, bytes: u32, limited: bool) {
    let packets = bytes / 4096;
    for _ in 0..ROUND_HOLDS {
        for sent in 0..packets {
            drain.sent(at(*start), 4096, u64::from(sent * 4096));
        }
        if limited {
            drain.limited();
        }
        *start += u64::from(HELD_US);
        for left in (0..packets).rev() {
            drain.completed(at(*start), 4096, HELD_US, u64::from(left * 4096));
        }
        drain.end_pass(0);
    }
}

#[test]
fn a_batch_counts_as_a_whole() {
    let mut drain = DrainRate::default();
    assert_eq!(drain.rate(), None);
    assert!(drain.is_growing());
    round(&mut drain, &mut 1000, 409_600, true);
    assert_eq!(drain.rate(), Some(Rate::from_bytes_per_second(100_000_000)));
}

#[test]
fn what_was_sent_long_ago_is_not_fast() {
    let mut drain = DrainRate::default();
    // Bursts of 100 kB. Each round begins just before one is done; it has its own pause, too.
    let mut now = 0;
    for _ in 0..100 {
        drain.sent(at(now), 1000, 100_000);
        drain.sent(at(now + 1), 99_000, 1000);
        drain.completed(at(now + 1000), 1000, 1000, 99_000);
        drain.end_pass(99_000);
        drain.completed(at(now + 1001), 99_000, 1000, 0);
        drain.end_pass(0);
        now += 1001;
    }
    let rate = drain.rate().map_or(0, Rate::bytes_per_second);
    assert!((99_000_000..=113_000_000).contains(&rate), "{rate}");
}

#[test]
fn only_limited_rounds_lower_it() {
    let mut drain = DrainRate::default();
    let mut now = 1000;
    round(&mut drain, &mut now, 409_600, true);
    let known = drain.rate();
    for _ in 0..100 {
        round(&mut drain, &mut now, 8192, false);
    }
    assert_eq!(drain.rate(), known, "there was little to send");
    for done in 0..7 {
        assert_eq!(drain.rate(), known, "{done}");
        round(&mut drain, &mut now, 40_960, true);
    }
    assert_eq!(drain.rate(), Some(Rate::from_bytes_per_second(10_000_000)));
}

#[test]
fn short_bursts_raise_it_and_pauses_do_not_count() {
    let mut drain = DrainRate::default();
    let mut now = 1000;
    for bytes in [100_000, 200_000, 50_000] {
        drain.sent(at(now), bytes, 0);
        drain.limited();
        drain.completed(at(now + 1000), bytes, 1000, 0);
        drain.end_pass(0);
        now += 1_000_000;
    }
    drain.sent(at(now), 1, 0);
    assert_eq!(drain.rate(), Some(Rate::from_bytes_per_second(200_000_000)));
}

#[test]
fn grows_while_each_round_is_faster() {
    let mut drain = DrainRate::default();
    let mut now = 1000;
    for bytes in [40_960, 81_920, 163_840] {
        round(&mut drain, &mut now, bytes, true);
        assert!(drain.is_growing());
    }
    round(&mut drain, &mut now, 172_032, true);
    assert!(!drain.is_growing());
}
