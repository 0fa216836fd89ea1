use super::{
    super::{
        MAX_WINDOW_BYTES,
        tests::{ack, loss},
    },
    *,
};
use alloc::format;
use proptest::prelude::*;

mod model;

const MSS: u32 = 1000;

/// CUBIC, its window and a clock.
struct Fixture {
    cubic: Cubic,
    window: CongestionWindow,
    now: Instant,
    rtt: Duration,
}

impl Fixture {
    /// After a loss with a window of `segments` in use.
    fn after_loss(segments: u32, rtt: Duration) -> Self {
        let mut fixture = Self::fresh(segments, rtt);
        fixture.lose(Cause::Loss);
        fixture
    }

    fn fresh(segments: u32, rtt: Duration) -> Self {
        let mut window = CongestionWindow::new(MSS);
        window.cwnd = segments * MSS;
        window.ssthresh = window.cwnd;
        Self {
            cubic: Cubic::new(SlowStartMode::Off),
            window,
            now: Instant::from_micros(1_000_000),
            rtt,
        }
    }

    fn lose(&mut self, cause: Cause) {
        let event = CongestionEvent {
            cause,
            ..loss(self.window.cwnd)
        };
        self.window.ssthresh = self.cubic.ssthresh(&self.window, event);
        self.window.cwnd = self.window.ssthresh;
    }

    /// An acknowledgment `after` the last event.
    fn ack(&mut self, after: Duration, bytes: u32, is_cwnd_limited: bool) {
        self.now = self.now + after;
        let sample = AckSample {
            now: self.now,
            srtt_us: self.rtt.as_micros() as u32,
            is_cwnd_limited,
            may_grow: is_cwnd_limited,
            ..ack(bytes)
        };
        self.cubic.on_ack(&mut self.window, &sample);
    }

    /// A round trip in which every segment is acknowledged by itself.
    fn round(&mut self) {
        let segments = self.window.cwnd / MSS;
        for _ in 0..segments {
            self.ack(self.rtt / segments, MSS, true);
        }
    }

    fn rounds_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.round();
        }
    }

    fn segments(&self) -> u32 {
        self.window.cwnd / MSS
    }
}

#[test]
fn loss_leaves_seven_tenths() {
    let fixture = Fixture::after_loss(1000, Duration::from_millis(100));
    assert_eq!(fixture.window.ssthresh, 700 * MSS);
    assert_eq!(fixture.cubic.w_max, 1000 * MSS);
    assert_eq!(fixture.cubic.cwnd_prior, 1000 * MSS);
}

#[test]
fn little_is_never_less_than_two_segments() {
    let fixture = Fixture::after_loss(2, Duration::from_millis(100));
    assert_eq!(fixture.window.ssthresh, 2 * MSS);
}

/// RFC 9438 §4.7.
#[test]
fn fast_convergence_gives_way() {
    let mut fixture = Fixture::after_loss(1000, Duration::from_millis(100));
    fixture.lose(Cause::Loss);
    assert_eq!(fixture.cubic.w_max, 700 * MSS / 20 * 17);
    assert_eq!(fixture.cubic.cwnd_prior, 700 * MSS);
    assert_eq!(fixture.window.ssthresh, 490 * MSS);
}

/// RFC 8511 §3.1: a mark cuts by less, but not in slow start.
#[test]
fn a_mark_leaves_more_than_a_loss() {
    let mut fixture = Fixture::fresh(1000, Duration::from_millis(100));
    fixture.lose(Cause::Ecn);
    assert_eq!(fixture.window.ssthresh, 850 * MSS);
    let mut fixture = Fixture::fresh(1000, Duration::from_millis(100));
    fixture.window.ssthresh = MAX_WINDOW_BYTES;
    fixture.lose(Cause::Ecn);
    assert_eq!(fixture.window.ssthresh, 700 * MSS);
}

/// RFC 9438 §4.2: back at W_max after K = (300 / 0.4)^(1/3) = 9.086 s, concave before, convex
/// after.
#[test]
fn the_curve_is_flat_where_the_loss_was() {
    let mut fixture = Fixture::after_loss(1000, Duration::from_millis(100));
    fixture.round();
    assert_eq!(fixture.cubic.stage.unwrap().k_us, 9_085_602);
    fixture.rounds_for(Duration::from_millis(4_500));
    let half = fixture.segments();
    // 1000 - 0.4 · (9.086 - 4.6 - 0.1)³ = 966.
    assert!((960..=968).contains(&half), "{half}");
    fixture.rounds_for(Duration::from_millis(4_500));
    let flat = fixture.segments();
    assert!((998..=1000).contains(&flat), "{flat}");
    fixture.rounds_for(Duration::from_millis(9_100));
    let beyond = fixture.segments();
    assert!((1290..=1330).contains(&beyond), "{beyond}");
}

#[test]
fn a_round_adds_half_the_window_at_most() {
    let mut fixture = Fixture::after_loss(100, Duration::from_millis(100));
    fixture.round();
    // Hours on the curve are far above.
    fixture.cubic.stage.as_mut().unwrap().start = Instant::ZERO;
    fixture.now = fixture.now + Duration::from_hours(24);
    let before = fixture.window.cwnd;
    fixture.ack(Duration::ZERO, before, true);
    assert_eq!(fixture.window.cwnd, before + before / 2);
}

/// RFC 9438 §4.3 and §5.1: on short paths the window is Reno's of the same loss rate, which means
/// 9/17 of a segment a round until the window is where it was, then one.
#[test]
fn short_paths_are_reno_s() {
    let mut fixture = Fixture::after_loss(100, Duration::from_millis(1));
    for _ in 0..40 {
        fixture.round();
    }
    let segments = fixture.window.cwnd;
    assert!(
        segments.abs_diff(70_000 + 40_000 * 9 / 17) < 300,
        "{segments}"
    );
    while fixture.segments() < 100 {
        fixture.round();
    }
    let before = fixture.window.cwnd;
    for _ in 0..20 {
        fixture.round();
    }
    let grown = fixture.window.cwnd - before;
    assert!(grown.abs_diff(20_000) < 600, "{grown}");
}

/// A receiver that joins segments does not slow the window down.
#[test]
fn stretched_acknowledgments_grow_the_window_as_much() {
    let rtt = Duration::from_millis(1);
    let mut each = Fixture::after_loss(440, rtt);
    let mut joined = Fixture::after_loss(440, rtt);
    for _ in 0..50 {
        each.round();
        let runs = joined.segments().div_ceil(44);
        for _ in 0..runs {
            let bytes = joined.window.cwnd / runs;
            joined.ack(rtt / runs, bytes, true);
        }
    }
    let (each, joined) = (each.window.cwnd, joined.window.cwnd);
    assert!(each.abs_diff(joined) < MSS, "{each} {joined}");
}

/// RFC 9438 §4.2: the clock stands while the window is not used, and the curve does not run away.
#[test]
fn time_without_use_does_not_count() {
    let rtt = Duration::from_millis(100);
    let mut used = Fixture::after_loss(1000, rtt);
    let mut paused = Fixture::after_loss(1000, rtt);
    used.rounds_for(Duration::from_secs(3));
    paused.rounds_for(Duration::from_secs(3));
    // An application that sends a segment now and then,
    for _ in 0..100 {
        paused.ack(Duration::from_millis(150), MSS, false);
    }
    // and then nothing at all.
    paused.now = paused.now + Duration::from_hours(1);
    paused.cubic.on_send_after_idle(paused.now);
    assert_eq!(used.window.cwnd, paused.window.cwnd);
    used.rounds_for(Duration::from_secs(3));
    paused.rounds_for(Duration::from_secs(3));
    let (used, paused) = (used.window.cwnd, paused.window.cwnd);
    assert!(used.abs_diff(paused) < MSS, "{used} {paused}");
}

/// RFC 9438 §4.8.
#[test]
fn after_a_timeout_the_curve_begins_flat() {
    let mut fixture = Fixture::after_loss(1000, Duration::from_millis(100));
    fixture.cubic.on_timeout();
    fixture.window.cwnd = fixture.window.ssthresh;
    fixture.round();
    let stage = fixture.cubic.stage.unwrap();
    assert_eq!((stage.k_us, stage.origin), (0, 700 * MSS));
}

/// Before the first loss the window grows by a twentieth a round, however early slow start ended.
#[test]
fn an_unproven_window_grows() {
    let mut fixture = Fixture::fresh(100, Duration::from_millis(100));
    let mut expected = 100.0;
    for _ in 0..10 {
        fixture.round();
        expected *= 1.05;
    }
    let segments = f64::from(fixture.window.cwnd) / f64::from(MSS);
    assert!(
        (segments / expected - 1.0).abs() < 0.02,
        "{segments} {expected}"
    );
}

/// RFC 9438 §4.9.2: all of it comes back, and goes on as if nothing had been.
#[test]
fn an_undone_loss_leaves_no_trace() {
    use super::super::{Algorithm, Congestion};
    let rtt = Duration::from_millis(100);
    let mut fixture = Fixture::after_loss(1000, rtt);
    fixture.rounds_for(Duration::from_secs(2));
    let before = format!("{:?} {:?}", fixture.cubic, fixture.window);
    let mut congestion = Congestion {
        algorithm: Algorithm::Cubic(fixture.cubic.clone()),
        before_event: None,
    };
    let mut window = fixture.window;
    let event = loss(window.cwnd);
    congestion.on_event(&mut window, event);
    congestion.on_timeout();
    window.cwnd = MSS;
    assert!(congestion.undo(&mut window));
    let Algorithm::Cubic(cubic) = congestion.algorithm else {
        panic!("another algorithm");
    };
    assert_eq!(format!("{cubic:?} {window:?}"), before);
}

proptest! {
    /// No window, segment size or time is too much.
    #[test]
    fn nothing_overflows(
        mss in 48..=65_000u32,
        cwnd in 48..=1u32 << 30,
        events in prop::collection::vec(
            (0..400_000_000_000u64, any::<u32>(), any::<u32>(), 0..20u8),
            1..100,
        ),
    ) {
        let mut cubic = Cubic::new(SlowStartMode::Classic);
        let mut window = CongestionWindow::new(mss);
        window.cwnd = cwnd.max(mss);
        window.ssthresh = window.cwnd;
        let mut now = Instant::ZERO;
        for (us, bytes, srtt_us, what) in events {
            now = now + Duration::from_micros(us);
            let before = window.cwnd;
            match what {
                0 => {
                    window.ssthresh = cubic.ssthresh(&window, loss(window.cwnd));
                    prop_assert!(window.ssthresh <= before.max(2 * mss));
                    window.cwnd = window.ssthresh;
                }
                1 => {
                    cubic.on_timeout();
                    window.cwnd = mss;
                }
                2 => cubic.on_send_after_idle(now),
                _ => {
                    let sample = AckSample {
                        now,
                        srtt_us,
                        rtt_us: Some(srtt_us / 2),
                        min_rtt_us: srtt_us / 3,
                        is_cwnd_limited: what != 3,
                        may_grow: what > 4,
                        ..ack(bytes)
                    };
                    cubic.on_ack(&mut window, &sample);
                    prop_assert!(window.cwnd >= before);
                    prop_assert!(window.cwnd <= MAX_WINDOW_BYTES);
                    if what <= 4 {
                        prop_assert_eq!(window.cwnd, before);
                    }
                }
            }
        }
    }

    /// The window in whole numbers is the one in real numbers, event for event.
    #[test]
    fn whole_numbers_follow_real_ones(
        mss in 48..=9000u32,
        segments in 4..20_000u32,
        rtt_us in 100..500_000u32,
        per_ack in 1..64u32,
        losses in prop::collection::vec(1..400u32, 1..6),
    ) {
        let mut cubic = Cubic::new(SlowStartMode::Off);
        let mut window = CongestionWindow::new(mss);
        window.cwnd = segments * mss;
        window.ssthresh = window.cwnd;
        let mut model = model::Model::new(f64::from(segments));
        let mut now_us = 0u32;
        for acks in losses {
            window.ssthresh = cubic.ssthresh(&window, loss(window.cwnd));
            window.cwnd = window.ssthresh;
            model.lose();
            for _ in 0..acks {
                now_us += rtt_us / 10;
                let now = Instant::from_micros(u64::from(now_us));
                let sample = AckSample { now, srtt_us: rtt_us, ..ack(mss * per_ack) };
                cubic.on_ack(&mut window, &sample);
                model.ack(f64::from(now_us) / 1e6, f64::from(rtt_us) / 1e6, f64::from(per_ack));
                let whole = f64::from(window.cwnd) / f64::from(mss);
                let real = model.cwnd;
                // A byte an acknowledgment may be lost to rounding.
                prop_assert!((whole - real).abs() <= real * 1e-3 + 0.05 + f64::from(acks) / f64::from(mss),
                    "{} for {}", whole, real);
            }
        }
    }
}
