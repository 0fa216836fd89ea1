use super::*;

#[test]
fn only_a_window_that_is_used_grows() {
    let window = CongestionWindow::new(1000);
    let mut usage = CwndUsage::default();
    assert!(!usage.may_grow(&window));
    usage.on_burst_end(4000, false, SeqNum(0), SeqNum(4000));
    assert!(!usage.may_grow(&window), "4 of 10 segments");
    usage.on_burst_end(6000, false, SeqNum(0), SeqNum(6000));
    assert!(usage.may_grow(&window), "more than half, in slow start");
    let avoidance = CongestionWindow {
        ssthresh: window.cwnd,
        ..window
    };
    assert!(!usage.may_grow(&avoidance));
    usage.on_burst_end(10_000, true, SeqNum(0), SeqNum(10_000));
    assert!(usage.may_grow(&avoidance));
    // A smaller burst in the same round changes nothing; one in the next does.
    usage.on_burst_end(1000, false, SeqNum(5000), SeqNum(11_000));
    assert!(usage.may_grow(&avoidance));
    usage.on_burst_end(1000, false, SeqNum(10_000), SeqNum(12_000));
    assert!(!usage.may_grow(&avoidance));
}

/// A flow whose limit in the device comes from its window, and that never fills its window for
/// that limit.
#[test]
fn what_waits_for_the_device_lets_the_window_run_ahead() {
    let window = CongestionWindow::new(1000);
    let avoidance = CongestionWindow {
        ssthresh: window.cwnd,
        ..window
    };
    let mut usage = CwndUsage::default();
    usage.on_burst_end(6000, false, SeqNum(0), SeqNum(6000));
    usage.held_back();
    assert!(usage.may_grow(&avoidance), "6 of 10 segments");
    usage.on_burst_end(5000, false, SeqNum(6000), SeqNum(11_000));
    assert!(!usage.may_grow(&avoidance), "nothing waited in this round");
    usage.held_back();
    assert!(!usage.may_grow(&avoidance), "and half the window is unused");
}
