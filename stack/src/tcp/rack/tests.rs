use super::*;
use crate::tcp::{delivery_rate::Snapshot, out_of_order::Range, retransmit_queue::RetransmitQueue};

const MIN_RTT: Duration = Duration::from_millis(8);
const PATIENCE: Patience = Patience {
    min_rtt: MIN_RTT,
    srtt: Duration::from_millis(10),
    sacked_segments: 1,
    dup_thresh: 3,
    is_recovering: false,
};

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1000)
}

struct Fixture {
    queue: RetransmitQueue,
    rack: Rack,
}

impl Fixture {
    /// Ten segments of 1000 bytes, a millisecond apart.
    fn new() -> Self {
        let mut queue = RetransmitQueue::default();
        for segment in 0..10 {
            let range = Range::new(SeqNum(segment * 1000), SeqNum((segment + 1) * 1000));
            queue.push(range, 1000, at(u64::from(segment)), Snapshot::default());
        }
        Self {
            queue,
            rack: Rack::default(),
        }
    }

    fn again(&mut self, segment: u32, ms: u64) {
        let range = Range::new(SeqNum(segment * 1000), SeqNum((segment + 1) * 1000));
        self.queue
            .mark_retransmitted(range, 1000, at(ms), Snapshot::default());
    }

    /// The peer reports a segment.
    fn sack(&mut self, segment: u32, ms: u64, is_spurious: bool) -> bool {
        let range = Range::new(SeqNum(segment * 1000), SeqNum((segment + 1) * 1000));
        let delivered = self.queue.mark_sacked(range, at(ms));
        self.rack
            .on_delivered(&delivered, SeqNum(0), MIN_RTT, at(ms), |_| is_spurious)
    }
}

#[test]
fn the_latest_sent_counts_not_the_latest_arrived() {
    let mut f = Fixture::new();
    f.sack(5, 15, false);
    f.sack(3, 16, false);
    assert_eq!(f.rack.latest().unwrap().end, SeqNum(6000));
    assert_eq!(f.rack.rtt(), Duration::from_millis(10));
}

#[test]
fn an_arrival_below_the_highest_is_reordering_unless_sent_again() {
    let mut f = Fixture::new();
    assert!(!f.sack(5, 15, false));
    assert!(f.sack(3, 16, false));
    f.again(1, 17);
    assert!(!f.sack(1, 30, false), "that was the retransmission");
    assert_eq!(f.rack.reordering_events(), 1);
}

/// RFC 8985 §6.2, step 2: the answer to the original says nothing about the retransmission.
#[test]
fn an_answer_to_the_original_does_not_count_for_the_retransmission() {
    for (ms, is_spurious) in [(20, false), (40, true)] {
        let mut f = Fixture::new();
        f.sack(5, 15, false);
        f.again(1, 17);
        f.sack(1, ms, is_spurious);
        assert_eq!(f.rack.latest().unwrap().end, SeqNum(6000));
    }
    let mut f = Fixture::new();
    f.sack(5, 15, false);
    f.again(1, 17);
    f.sack(1, 40, false);
    assert_eq!(f.rack.latest().unwrap().time, at(17));
}

#[test]
fn what_answered_a_needless_retransmission_is_no_measure() {
    let mut f = Fixture::new();
    f.sack(5, 15, false);
    f.again(1, 17);
    f.sack(1, 40, false);
    f.rack.on_undone();
    assert_eq!(f.rack.latest(), None);
    f.sack(2, 41, false);
    assert_eq!(f.rack.latest().unwrap().time, at(2));
}

#[test]
fn three_segments_end_the_patience_while_nothing_is_known_of_reordering() {
    let mut f = Fixture::new();
    f.sack(5, 15, false);
    let rtt = Duration::from_millis(10);
    assert_eq!(f.rack.patience(PATIENCE), rtt + MIN_RTT / 4);
    let three = Patience {
        sacked_segments: 3,
        ..PATIENCE
    };
    let recovering = Patience {
        is_recovering: true,
        ..PATIENCE
    };
    assert_eq!(f.rack.patience(three), rtt);
    assert_eq!(f.rack.patience(recovering), rtt);
    f.sack(3, 16, false);
    assert_eq!(f.rack.patience(three), rtt + MIN_RTT / 4);
    assert_eq!(f.rack.patience(recovering), rtt + MIN_RTT / 4);
}

#[test]
fn duplicates_widen_the_window_once_a_round_and_for_sixteen_recoveries() {
    let mut f = Fixture::new();
    f.rack.on_spurious();
    let window = |f: &Fixture| f.rack.patience(PATIENCE);
    assert_eq!(window(&f), MIN_RTT / 4);
    f.rack.on_duplicate(SeqNum(10_000));
    f.rack.on_duplicate(SeqNum(11_000));
    assert_eq!(window(&f), MIN_RTT / 2);
    f.rack.on_advance(SeqNum(9999));
    f.rack.on_duplicate(SeqNum(11_000));
    assert_eq!(window(&f), MIN_RTT / 2);
    f.rack.on_advance(SeqNum(10_000));
    for _ in 0..300 {
        f.rack.on_duplicate(SeqNum(12_000));
        f.rack.on_advance(SeqNum(12_000));
    }
    assert_eq!(window(&f), PATIENCE.srtt, "never more than a round trip");
    for _ in 0..15 {
        f.rack.on_recovered();
    }
    assert_eq!(window(&f), PATIENCE.srtt);
    f.rack.on_recovered();
    assert_eq!(window(&f), MIN_RTT / 4);
}
