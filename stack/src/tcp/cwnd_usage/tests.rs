use super::*;

const MSS: u32 = 1000;
const RTO: Duration = Duration::from_millis(300);

fn burst(in_flight_bytes: u32, is_cwnd_limited: bool, una: u32, nxt: u32) -> BurstEnd {
    BurstEnd {
        now: Instant::ZERO,
        in_flight_bytes,
        is_cwnd_limited,
        is_app_limited: !is_cwnd_limited,
        una: SeqNum(una),
        nxt: SeqNum(nxt),
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1000)
}

/// A window of so many segments, found in slow start.
fn window(segments: u32) -> CongestionWindow {
    CongestionWindow {
        cwnd: segments * MSS,
        ..CongestionWindow::new(MSS)
    }
}

#[test]
fn only_a_window_that_is_used_grows() {
    let window = CongestionWindow::new(MSS);
    let mut usage = CwndUsage::default();
    assert!(!usage.may_grow(&window));
    usage.on_burst_end(&burst(4000, false, 0, 4000));
    assert!(!usage.may_grow(&window), "4 of 10 segments");
    usage.on_burst_end(&burst(6000, false, 0, 6000));
    assert!(usage.may_grow(&window), "more than half, in slow start");
    let avoidance = CongestionWindow {
        ssthresh: window.cwnd,
        ..window
    };
    assert!(!usage.may_grow(&avoidance));
    usage.on_burst_end(&burst(10_000, true, 0, 10_000));
    assert!(usage.may_grow(&avoidance));
    // A smaller burst in the same round changes nothing; one in the next does.
    usage.on_burst_end(&burst(1000, false, 5000, 11_000));
    assert!(usage.may_grow(&avoidance));
    usage.on_burst_end(&burst(1000, false, 10_000, 12_000));
    assert!(!usage.may_grow(&avoidance));
}

/// A flow whose limit in the device comes from its window, and that never fills its window for
/// that limit.
#[test]
fn what_waits_for_the_device_lets_the_window_run_ahead() {
    let window = CongestionWindow::new(MSS);
    let avoidance = CongestionWindow {
        ssthresh: window.cwnd,
        ..window
    };
    let mut usage = CwndUsage::default();
    usage.on_burst_end(&burst(6000, false, 0, 6000));
    usage.held_back();
    assert!(usage.may_grow(&avoidance), "6 of 10 segments");
    usage.on_burst_end(&burst(5000, false, 6000, 11_000));
    assert!(!usage.may_grow(&avoidance), "nothing waited in this round");
    usage.held_back();
    assert!(!usage.may_grow(&avoidance), "and half the window is unused");
}

#[test]
fn a_loss_tells_of_what_was_used() {
    let window = window(100);
    let mut usage = CwndUsage::default();
    usage.on_burst_end(&burst(30 * MSS, false, 0, 30_000));
    assert_eq!(usage.used_bytes(&window, 20 * MSS), 30 * MSS);
    assert_eq!(usage.used_bytes(&window, 40 * MSS), 40 * MSS);
    assert_eq!(usage.used_bytes(&window, 400 * MSS), 100 * MSS);
    usage.on_burst_end(&burst(98 * MSS, true, 0, 98_000));
    assert_eq!(usage.used_bytes(&window, 98 * MSS), 100 * MSS);
}

/// RFC 2861 §3.
#[test]
fn an_application_that_uses_less_loses_half_of_the_rest_each_rto() {
    let mut window = window(100);
    let mut usage = CwndUsage::default();
    usage.on_burst_end(&burst(40 * MSS, false, 0, 40_000));
    usage.decay(&mut window, at(299), RTO);
    assert_eq!(window.cwnd, 100 * MSS);
    usage.decay(&mut window, at(300), RTO);
    assert_eq!(window.cwnd, 70 * MSS);
    // Not below what it had: the threshold was not reached yet.
    assert_eq!(window.ssthresh, CongestionWindow::new(MSS).ssthresh);
    // The next one counts from here.
    usage.on_burst_end(&BurstEnd {
        now: at(400),
        ..burst(MSS, false, 40_000, 41_000)
    });
    usage.decay(&mut window, at(599), RTO);
    assert_eq!(window.cwnd, 70 * MSS);
    usage.decay(&mut window, at(600), RTO);
    assert_eq!(window.cwnd, 40 * MSS, "half-way to the initial window");
}

#[test]
fn the_threshold_remembers_three_quarters() {
    let mut window = window(100);
    window.ssthresh = 50 * MSS;
    let mut usage = CwndUsage::default();
    usage.decay(&mut window, at(300), RTO);
    assert_eq!(window.ssthresh, 75 * MSS);
}

#[test]
fn a_full_window_or_a_full_device_is_no_disuse() {
    let mut window = window(100);
    let mut usage = CwndUsage::default();
    usage.on_burst_end(&BurstEnd {
        now: at(299),
        ..burst(100 * MSS, true, 0, 100_000)
    });
    usage.decay(&mut window, at(500), RTO);
    assert_eq!(window.cwnd, 100 * MSS);
    usage.on_burst_end(&BurstEnd {
        now: at(590),
        is_app_limited: false,
        ..burst(10 * MSS, false, 100_000, 110_000)
    });
    usage.decay(&mut window, at(800), RTO);
    assert_eq!(window.cwnd, 100 * MSS);
}

#[test]
fn idleness_halves_the_window_each_rto() {
    for (idle_ms, expected) in [
        (0, 100),
        (300, 100),
        (301, 50),
        (600, 50),
        (601, 25),
        (900, 25),
        (901, 12),
        (1201, 10),
        (1_000_000_000, 10),
    ] {
        let mut window = window(100);
        let mut usage = CwndUsage::default();
        usage.restart(&mut window, at(idle_ms), at(0), RTO);
        // Nothing was sent after all, and it is tried again.
        usage.restart(&mut window, at(idle_ms), at(0), RTO);
        let expected = match expected {
            12 => 12 * MSS + MSS / 2,
            segments => segments * MSS,
        };
        assert_eq!(window.cwnd, expected, "after {idle_ms} ms");
    }
}

#[test]
fn idleness_does_not_widen_a_small_window() {
    let mut window = window(3);
    CwndUsage::default().restart(&mut window, at(60_000), at(0), RTO);
    assert_eq!(window.cwnd, 3 * MSS);
}
