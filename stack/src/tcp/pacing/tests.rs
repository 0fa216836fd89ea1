use super::*;
use crate::time::Duration;
use proptest::prelude::*;

const LINUX: Ratios = Ratios {
    ss_percent: 200,
    ca_percent: 120,
};

fn window(cwnd: u32, ssthresh: u32) -> CongestionWindow {
    let mut window = CongestionWindow::new(1460);
    window.cwnd = cwnd;
    window.ssthresh = ssthresh;
    window
}

fn at(us: u64) -> Instant {
    Instant::from_micros(us)
}

#[test]
fn twice_the_window_per_round_trip_until_half_of_ssthresh() {
    let rate = |cwnd, ssthresh, in_flight, srtt| {
        LINUX
            .rate(&window(cwnd, ssthresh), in_flight, srtt)
            .bytes_per_second()
    };
    assert_eq!(rate(10_000, 1 << 30, 0, Some(10_000)), 2_000_000);
    assert_eq!(rate(10_000, 20_001, 0, Some(10_000)), 1_200_000);
    assert_eq!(rate(10_000, 20_004, 0, Some(10_000)), 2_000_000);
    assert_eq!(rate(10_000, 5_000, 0, Some(10_000)), 1_200_000);
    // More in flight than the window now allows.
    assert_eq!(rate(10_000, 5_000, 20_000, Some(10_000)), 2_400_000);
    // Before the first sample.
    assert_eq!(rate(10_000, 1 << 30, 0, None), 20_000_000);
    // 100 Gb/s and beyond.
    assert_eq!(rate(1 << 30, 0, 0, Some(1)), (1 << 30) * 1_200_000);
}

#[test]
fn an_initial_window_leaves_at_once() {
    let mut pacer = Pacer::default();
    let rate = Rate::from_bytes_per_second(10_000);
    for begin in [0, 50_000_000] {
        pacer.rested(at(begin), 14_600);
        for _ in 0..10 {
            assert_eq!(pacer.holds_until(at(begin)), None);
            pacer.sent(at(begin), 1460, rate);
        }
        // It is charged, and not to be had again before its time is over.
        pacer.rested(at(begin), 14_600);
        let end = begin + 1_460_000;
        let until = pacer.holds_until(at(begin)).expect("it is held");
        assert!(until <= at(end) && until >= at(end - 1000), "{until}");
        assert_eq!(pacer.holds_until(at(end - 1501)), Some(until));
        assert_eq!(pacer.holds_until(until), None);
    }
}

#[test]
fn a_short_path_is_never_held() {
    // A window of any size, a round trip of a millisecond: by the time it is sent, it is
    // acknowledged.
    for cwnd in [2_920, 14_600, 146_000, 10_000_000] {
        let mut pacer = Pacer::default();
        let window = window(cwnd, 0);
        let mut now = at(5_000);
        for _ in 0..100 {
            let rate = LINUX.rate(&window, cwnd, Some(1000));
            let mut left = cwnd;
            while left > 0 {
                assert_eq!(pacer.holds_until(now), None);
                let bytes = left.min(65_160);
                pacer.sent(now, bytes, rate);
                left -= bytes;
            }
            now = now + Duration::from_millis(1);
        }
    }
}

/// Sends packets of `bytes` for a second whenever the pacer lets them; returns how many bytes
/// went, how often a timer ran, and the most that left at one moment.
fn run(rate: Rate, bytes: u32, lateness: Duration) -> (u64, usize, u64) {
    let mut pacer = Pacer::default();
    let start = at(7_123);
    let end = start + Duration::from_secs(1);
    let (mut now, mut sent, mut timers, mut largest) = (start, 0, 0, 0);
    while now < end {
        let mut burst = 0;
        let until = loop {
            if let Some(until) = pacer.holds_until(now) {
                pacer.held(now);
                break until;
            }
            pacer.sent(now, bytes, rate);
            burst += u64::from(bytes);
        };
        assert!(until > now);
        sent += burst;
        largest = largest.max(burst);
        timers += 1;
        now = until + lateness;
    }
    (sent, timers, largest)
}

#[test]
fn the_rate_is_kept_with_few_timers() {
    for bytes_per_second in [100_000, 1_000_000, 100_000_000, 12_500_000_000] {
        let rate = Rate::from_bytes_per_second(bytes_per_second);
        for late_us in [0, 1, 300, 20_000] {
            let packet = (bytes_per_second / 1024).clamp(2_920, 65_160) as u32;
            let (sent, timers, burst) = run(rate, packet, Duration::from_micros(late_us));
            let burst_most = bytes_per_second * (3000 + late_us) / 1_000_000 + u64::from(packet);
            let slack = bytes_per_second / 100 + burst_most;
            assert!(sent.abs_diff(bytes_per_second) <= slack, "{rate:?} {sent}");
            assert!(timers <= 1000, "{rate:?}: {timers} timers");
            assert!(burst <= burst_most, "{rate:?}: a burst of {burst}");
        }
    }
}

#[test]
fn many_flows_share_the_timer() {
    let rate = Rate::from_bytes_per_second(1_000_000);
    let mut pacers = [Pacer::default(); 100];
    let mut wakes: std::collections::BTreeSet<Instant> = [at(0)].into();
    for (index, pacer) in pacers.iter_mut().enumerate() {
        let mut now = at(index as u64 * 7);
        while now < at(100_000) {
            pacer.sent(now, 2_920, rate);
            if let Some(until) = pacer.holds_until(now) {
                wakes.insert(until);
                now = until;
            }
        }
    }
    assert!(wakes.len() <= 210, "{} wake-ups in 100 ms", wakes.len());
}

proptest! {
    #[test]
    fn departures_are_monotone_and_a_held_packet_goes_in_the_end(
        steps in prop::collection::vec((0..5_000u64, 1..=65_535u32, 1..=12_500_000_000u64), 1..200),
    ) {
        let mut pacer = Pacer::default();
        let mut now = at(0);
        let mut last_ns = 0;
        for (span_us, bytes, rate) in steps {
            now = now + Duration::from_micros(span_us);
            if let Some(until) = pacer.holds_until(now) {
                prop_assert!(until > now);
                now = until;
                prop_assert_eq!(pacer.holds_until(now), None);
            }
            pacer.sent(now, bytes, Rate::from_bytes_per_second(rate));
            prop_assert!(pacer.next_ns >= last_ns);
            last_ns = pacer.next_ns;
        }
    }
}
