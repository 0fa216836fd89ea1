use super::{
    super::{config::Config, congestion::CongestionAlgorithm},
    *,
};
use crate::time::Instant;

const MSS: u32 = 1000;

struct Fixture {
    recovery: Recovery,
    queue: RetransmitQueue,
    window: CongestionWindow,
    congestion: Congestion,
    nxt: SeqNum,
}

impl Fixture {
    fn new(segments: u32) -> Self {
        let mut queue = RetransmitQueue::default();
        queue.push(SeqNum(0), segments * MSS, Instant::ZERO);
        let mut window = CongestionWindow::new(MSS);
        window.cwnd = segments * MSS;
        Self {
            recovery: Recovery::default(),
            queue,
            window,
            congestion: Congestion::new(CongestionAlgorithm::Reno, &Config::default()),
            nxt: SeqNum(segments * MSS),
        }
    }

    fn dup_acks(&mut self, count: u32, una: u32) -> bool {
        (0..count).fold(false, |entered, _| {
            self.recovery.on_dup_ack(&mut self.queue, SeqNum(una), MSS);
            entered | self.detect(una)
        })
    }

    fn detect(&mut self, una: u32) -> bool {
        let Self {
            recovery,
            queue,
            window,
            congestion,
            nxt,
        } = self;
        let used = queue.outstanding_bytes();
        recovery.on_loss(queue, window, congestion, used, SeqNum(una), *nxt)
    }

    fn advance(&mut self, una: u32, sack: bool) -> bool {
        self.queue.acknowledge(SeqNum(una), Instant::ZERO);
        let Self {
            recovery,
            queue,
            window,
            ..
        } = self;
        recovery.on_advance(queue, window, SeqNum(una), sack)
    }
}

#[test]
fn third_duplicate_starts_recovery_and_halves_the_window() {
    let mut f = Fixture::new(20);
    assert!(!f.dup_acks(2, 0));
    // Limited transmit: two segments have left the network.
    assert_eq!(f.recovery.dup_acked_bytes(&f.queue, MSS), 2 * MSS);
    assert!(f.dup_acks(1, 0));
    assert_eq!((f.window.cwnd, f.window.ssthresh), (10 * MSS, 10 * MSS));
    assert_eq!(f.queue.next_pending(u32::MAX).unwrap().len(), MSS);
    assert!(!f.recovery.may_grow());
}

#[test]
fn rfc_6582_partial_ack_finds_the_next_hole() {
    let mut f = Fixture::new(20);
    f.dup_acks(3, 0);
    let first = f.queue.next_pending(MSS).unwrap();
    f.queue.mark_retransmitted(first, Instant::ZERO);
    assert!(!f.advance(5 * MSS, false));
    assert_eq!(f.queue.next_pending(MSS).unwrap().start, SeqNum(5 * MSS));
    assert!(f.advance(20 * MSS, false));
    assert_eq!(f.recovery.phase(), Phase::Open);
    assert_eq!(f.window.cwnd, 2 * MSS, "nothing is in flight: no burst");
}

#[test]
fn with_sack_the_window_is_ssthresh_at_the_end() {
    let mut f = Fixture::new(20);
    f.queue.mark_lost(0);
    assert!(f.detect(0));
    assert!(f.advance(20 * MSS, true));
    assert_eq!(f.window.cwnd, 10 * MSS);
}

#[test]
fn a_second_loss_among_the_same_data_is_no_new_event() {
    let mut f = Fixture::new(20);
    f.dup_acks(3, 0);
    assert!(!f.detect(0), "already recovering");
    assert_eq!(f.window.ssthresh, 10 * MSS);
}

#[test]
fn timeouts_cut_the_threshold_once() {
    let mut f = Fixture::new(20);
    for _ in 0..3 {
        let in_flight = f.queue.outstanding_bytes();
        f.queue.mark_all_lost();
        f.recovery
            .on_timeout(&mut f.window, &mut f.congestion, in_flight, f.nxt);
    }
    assert_eq!((f.window.cwnd, f.window.ssthresh), (MSS, 10 * MSS));
    assert!(f.recovery.may_grow());
    // Duplicates of what was sent before the timeout start nothing (RFC 6582 §4.1).
    assert!(!f.dup_acks(5, 0));
    assert!(f.advance(20 * MSS, true));
    assert_eq!(f.recovery.phase(), Phase::Open);
}
