use super::{super::tests::ack, *};
use crate::time::Duration;
use alloc::collections::VecDeque;

const MSS: u32 = 1448;

/// A sender in slow start over a path with a bottleneck: acknowledgments come in trains.
struct Path {
    hystart: HyStart,
    window: CongestionWindow,
    now: Instant,
    una: SeqNum,
    nxt: SeqNum,
    rtt_us: u32,
    srtt_us: u32,
    mistakes: Mistakes,
    is_paced: bool,
}

impl Path {
    fn new(rtt_us: u32) -> Self {
        Self {
            hystart: HyStart::default(),
            window: CongestionWindow::new(MSS),
            now: Instant::from_micros(1_000_000),
            una: SeqNum(0),
            nxt: SeqNum(0),
            rtt_us,
            srtt_us: rtt_us,
            mistakes: Mistakes::NONE,
            is_paced: false,
        }
    }

    fn segments(&self) -> u32 {
        self.window.cwnd / MSS
    }

    /// One segment is acknowledged, `gap_us` after the last, after `rtt_us`; the window is filled
    /// again if it is what limits the sender.
    fn ack(&mut self, gap_us: u64, rtt_us: u32, is_cwnd_limited: bool) -> Option<SlowStartExit> {
        self.now = self.now + Duration::from_micros(gap_us);
        self.una += MSS;
        let sample = AckSample {
            now: self.now,
            rtt_us: Some(rtt_us),
            srtt_us: self.srtt_us,
            min_rtt_us: self.rtt_us,
            una: self.una,
            nxt: self.nxt,
            is_paced: self.is_paced,
            is_cwnd_limited,
            may_grow: is_cwnd_limited,
            mistakes: self.mistakes,
            ..ack(MSS)
        };
        let exit = self.hystart.on_ack(&self.window, &sample);
        let exit = exit.map(|(exit, cwnd)| {
            self.window.cwnd = cwnd;
            exit
        });
        if is_cwnd_limited {
            self.window.grow(MSS);
            self.nxt = self.una + self.window.cwnd;
        }
        exit
    }

    /// A bulk flow through a bottleneck that passes a segment each `per_segment_us`, with room
    /// before it for all that comes; returns the window at which slow start ends, in segments, and
    /// why.
    fn bulk(&mut self, per_segment_us: u64) -> (u32, SlowStartExit) {
        let mut idle_at = self.now;
        let mut sent: VecDeque<(Instant, Instant)> = VecDeque::new();
        let path = Duration::from_micros(u64::from(self.rtt_us) - per_segment_us);
        let mut end = self.una;
        self.nxt = self.una + self.window.cwnd;
        loop {
            while end.before(self.nxt) {
                let starts = idle_at.max(self.now);
                idle_at = starts + Duration::from_micros(per_segment_us);
                sent.push_back((self.now, idle_at + path));
                end += MSS;
            }
            let (sent_at, acked_at) = sent.pop_front().expect("a segment in flight");
            let gap_us = acked_at.since(self.now).as_micros() as u64;
            let rtt_us = acked_at.since(sent_at).as_micros() as u32;
            if let Some(exit) = self.ack(gap_us, rtt_us, true) {
                return (self.segments() - 1, exit);
            }
        }
    }
}

/// 150 ms and 50 Mb/s: 619 segments. Linux leaves slow start at 632 (25c1a9ca53db).
#[test]
fn a_full_path_ends_slow_start() {
    let (segments, exit) = Path::new(150_000).bulk(242);
    assert_eq!(exit, SlowStartExit::AckTrain);
    assert!((620..=645).contains(&segments), "{segments}");
}

/// The same with rounds that begin only above the low window: the first begins within a burst, and
/// so do all after it, whose packets wait behind the burst's beginning. Linux had 516.
#[test]
fn rounds_begun_late_end_slow_start_too_early() {
    let mut path = Path::new(150_000);
    path.mistakes.hystart_round_behind_low_window = true;
    let (segments, exit) = path.bulk(242);
    assert_eq!(exit, SlowStartExit::Delay);
    assert!((500..=530).contains(&segments), "{segments}");
}

/// Requests of 20 segments, each acknowledged within a round trip of 100 us, on and on: the
/// window is never full, and no train ever longer than a request.
fn requests(mistakes: Mistakes) -> (u32, bool) {
    let mut path = Path::new(100);
    path.mistakes = mistakes;
    let mut exits = false;
    for _ in 0..2000 {
        // What is sent of a request, and of it acknowledged, before the window grows.
        path.nxt = path.una + 20 * MSS;
        for at in 0..20 {
            let is_cwnd_limited = path.segments() < 30 && at == 0;
            let gap_us = if at == 0 { 100 } else { 3 };
            let nxt = path.nxt;
            exits |= path.ack(gap_us, 110, is_cwnd_limited).is_some();
            path.nxt = nxt;
        }
    }
    (path.segments(), exits)
}

#[test]
fn requests_and_responses_stay_in_slow_start() {
    let (_, exits) = requests(Mistakes::NONE);
    assert!(!exits);
}

/// As Linux did until 4e1fddc98d25.
#[test]
fn rounds_begun_only_where_the_window_grows_take_requests_for_a_train() {
    let mistakes = Mistakes {
        hystart_round_where_window_grows: true,
        ..Mistakes::NONE
    };
    let (segments, exits) = requests(mistakes);
    assert!(exits);
    assert!(segments <= 30, "{segments}");
}

/// A round whose every sample is late by more than an eighth of the path's delay.
#[test]
fn a_queue_ends_slow_start() {
    for (rtt_us, late_us, expected) in [
        (10_000, 3_900, None),
        (10_000, 4_100, Some(SlowStartExit::Delay)),
        (80_000, 9_900, None),
        (80_000, 10_100, Some(SlowStartExit::Delay)),
        (400_000, 15_900, None),
        (400_000, 16_100, Some(SlowStartExit::Delay)),
    ] {
        let mut path = Path::new(rtt_us);
        path.window.cwnd = 20 * MSS;
        path.nxt = path.una + path.window.cwnd;
        let mut exit = None;
        for at in 1..=8 {
            assert_eq!(exit, None, "after {at} samples");
            exit = path.ack(1, rtt_us + late_us, true);
        }
        assert_eq!(exit, expected, "{late_us} us more than {rtt_us}");
    }
}

/// One sample without delay says that there is no queue, be it the first or the last.
#[test]
fn one_fast_sample_clears_a_round() {
    for fast in 0..8 {
        let mut path = Path::new(40_000);
        path.window.cwnd = 20 * MSS;
        path.nxt = path.una + path.window.cwnd;
        for at in 0..16 {
            let rtt_us = if at == fast { 40_000 } else { 60_000 };
            let exit = path.ack(1, rtt_us, true);
            assert_eq!(exit, None, "fast sample {fast}, at {at}");
        }
    }
}

/// A path that turns out shorter than it seemed makes no delay (b344579ca847).
#[test]
fn a_falling_least_rtt_is_no_delay() {
    let mut path = Path::new(100_000);
    path.window.cwnd = 20 * MSS;
    path.nxt = path.una + path.window.cwnd;
    for _ in 0..20 {
        let rtt_us = path.rtt_us;
        assert_eq!(path.ack(1, rtt_us, true), None);
        path.rtt_us = path.rtt_us * 9 / 10;
    }
}

#[test]
fn small_windows_are_left_alone() {
    let mut path = Path::new(100_000);
    path.window.cwnd = 15 * MSS;
    for _ in 0..100 {
        assert_eq!(path.ack(1000, 200_000, false), None);
    }
}

/// A gap ends the train: what comes later is not in it.
#[test]
fn a_gap_ends_the_train() {
    let mut path = Path::new(50_000);
    path.window.cwnd = 100 * MSS;
    path.nxt = path.una + path.window.cwnd;
    assert_eq!(path.ack(1, 50_000, false), None);
    assert_eq!(path.ack(2_001, 50_000, false), None);
    for _ in 0..50 {
        assert_eq!(path.ack(1_000, 50_000, false), None);
    }
}

/// A paced sender stretches its trains itself: they must be twice as long.
#[test]
fn pacing_is_no_full_path() {
    let train = |is_paced, gap_us| {
        let mut path = Path::new(100_000);
        path.is_paced = is_paced;
        path.window.cwnd = 100 * MSS;
        path.nxt = path.una + path.window.cwnd;
        (0..90).any(|_| path.ack(gap_us, 100_000, true).is_some())
    };
    assert!(train(false, 700));
    assert!(!train(true, 700));
    assert!(train(true, 1_200));
}

/// On a path of 100 us, bursts of 64 KiB that are acknowledged at once, some hundreds of
/// microseconds late, are the work of the devices at both ends, not of the path.
#[test]
fn bursts_of_virtual_nics_are_no_train() {
    let mut path = Path::new(100);
    path.srtt_us = 150;
    path.window.cwnd = 60 * MSS;
    for _ in 0..1000 {
        path.nxt = path.una + 60 * MSS;
        for at in 0..60 {
            let gap_us = if at % 20 == 0 { 120 } else { 0 };
            assert_eq!(path.ack(gap_us, 100 + 30 * (at / 20), false), None);
        }
    }
}

/// A paced sender learns of the path's rate when it has sent at twice that rate; it then takes the
/// window that the path's rate fills.
#[test]
fn a_paced_window_comes_back_to_what_the_path_holds() {
    let mut path = Path::new(150_000);
    path.is_paced = true;
    path.window.cwnd = 640 * MSS;
    path.nxt = path.una + path.window.cwnd;
    let mut exit = None;
    let mut rtt_us = 150_000;
    while exit.is_none() {
        rtt_us += 120;
        exit = path.ack(242, rtt_us, true);
    }
    assert_eq!(exit, Some(SlowStartExit::Delay));
    assert!(
        (610..=630).contains(&path.segments()),
        "{}",
        path.segments()
    );
}

/// However slow the acknowledgments, half the window was not too much a round trip ago.
#[test]
fn a_paced_window_loses_half_at_most() {
    let mut path = Path::new(100_000);
    path.is_paced = true;
    path.window.cwnd = 1000 * MSS;
    path.nxt = path.una + path.window.cwnd;
    while path.ack(1900, 130_000, true).is_none() {}
    assert!(
        (500..=510).contains(&path.segments()),
        "{}",
        path.segments()
    );
}

/// On a path that reorders, most acknowledgments report gaps; what the window is to be widened for
/// then adds up until one is filled, and says nothing of the rate.
#[test]
fn a_paced_window_comes_back_on_a_report_of_a_gap() {
    let mut path = Path::new(150_000);
    path.window.cwnd = 1200 * MSS;
    path.nxt = path.una + path.window.cwnd;
    let mut window = None;
    let mut gap_bytes = 0;
    for i in 1..1200 {
        path.now = path.now + Duration::from_micros(242);
        // One in eight fills its gap.
        let fills = i % 8 == 0;
        if fills {
            path.una += 8 * MSS;
        }
        gap_bytes += MSS;
        let sample = AckSample {
            now: path.now,
            arrived_bytes: MSS,
            rtt_us: Some(150_000 + 120 * i),
            srtt_us: path.srtt_us,
            min_rtt_us: path.rtt_us,
            una: path.una,
            nxt: path.nxt,
            is_paced: true,
            may_grow: fills,
            ..ack(gap_bytes)
        };
        if fills {
            gap_bytes = 0;
        }
        if let Some((exit, cwnd)) = path.hystart.on_ack(&path.window, &sample) {
            assert_eq!(exit, SlowStartExit::Delay);
            assert!(!fills, "the gap's report is what this is about");
            window = Some(cwnd / MSS);
            break;
        }
    }
    let window = window.expect("a queue ends slow start");
    assert!((600..=640).contains(&window), "{window}");
}
