use super::*;
use crate::{
    tcp::{config::Config, congestion::CongestionAlgorithm, delivery_rate::Snapshot},
    time::{Duration, Instant},
};

const MSS: u32 = 1000;

struct Fixture {
    recovery: Recovery,
    queue: RetransmitQueue,
    window: CongestionWindow,
    congestion: Congestion,
    una: SeqNum,
    nxt: SeqNum,
}

impl Fixture {
    fn new(segments: u32) -> Self {
        let mut window = CongestionWindow::new(MSS);
        window.cwnd = segments * MSS;
        let mut f = Self {
            recovery: Recovery::default(),
            queue: RetransmitQueue::default(),
            window,
            congestion: Congestion::new(CongestionAlgorithm::Reno, &Config::default()),
            una: SeqNum(0),
            nxt: SeqNum(0),
        };
        f.send(segments);
        f
    }

    fn send(&mut self, segments: u32) {
        let range = Range::new(self.nxt, self.nxt + segments * MSS);
        self.queue
            .push(range, MSS as u16, Instant::ZERO, Snapshot::default());
        self.nxt = range.end;
    }

    fn send_again(&mut self, range: Range) {
        self.queue
            .mark_retransmitted(range, MSS as u16, Instant::ZERO, Snapshot::default());
        self.recovery.on_sent(range.len());
        self.recovery.undo.on_retransmit(range.len(), None);
    }

    fn episode(&self) -> Episode {
        Episode {
            una: self.una,
            nxt: self.nxt,
            used_bytes: self.window.cwnd,
            flight: Flight::of(&self.queue),
        }
    }

    fn dup_acks(&mut self, count: u32) -> bool {
        (0..count).fold(false, |entered, _| {
            self.recovery.on_dup_ack(&mut self.queue, self.una, MSS, 3);
            entered | self.detect()
        })
    }

    fn detect(&mut self) -> bool {
        let episode = self.episode();
        self.recovery
            .on_loss(&self.queue, &mut self.window, &mut self.congestion, episode)
    }

    fn reduce(&mut self) -> bool {
        let episode = self.episode();
        self.recovery.reduce(
            &self.queue,
            &mut self.window,
            &mut self.congestion,
            Cause::Ecn,
            episode,
        )
    }

    fn time_out(&mut self) {
        let episode = self.episode();
        self.queue
            .mark_lost_on_timeout(Duration::ZERO, Instant::ZERO);
        self.recovery.on_timeout(
            &self.queue,
            &mut self.window,
            &mut self.congestion,
            episode,
            true,
        );
    }

    fn advance(&mut self, una: u32) {
        self.una = SeqNum(una);
        self.queue.acknowledge(self.una, Instant::ZERO);
        self.recovery.on_advance(self.una);
    }

    fn finish(&mut self, sack: bool) {
        self.recovery
            .finish(&self.queue, &mut self.window, self.nxt, sack);
    }
}

#[test]
fn third_duplicate_starts_recovery_and_halves_the_threshold() {
    let mut f = Fixture::new(20);
    assert!(!f.dup_acks(2));
    // Limited transmit: two segments have left the network.
    assert_eq!(f.recovery.dup_acked_bytes(&f.queue, MSS), 2 * MSS);
    assert!(f.dup_acks(1));
    assert_eq!(f.window.ssthresh, 10 * MSS);
    assert_eq!(f.queue.next_pending(u32::MAX).unwrap().len(), MSS);
    assert!(!f.recovery.may_grow());
}

#[test]
fn the_window_comes_down_in_proportion_and_ends_at_the_threshold() {
    let mut f = Fixture::new(20);
    f.dup_acks(3);
    let range = f.queue.next_pending(MSS).unwrap();
    f.recovery.proportion(&mut f.window, MSS, 17 * MSS, false);
    assert_eq!(f.window.cwnd, 18 * MSS, "the fast retransmission goes");
    f.send_again(range);
    // Each second delivery lets one go.
    f.recovery.proportion(&mut f.window, MSS, 17 * MSS, false);
    assert_eq!(f.window.cwnd, 17 * MSS);
    f.recovery.proportion(&mut f.window, MSS, 16 * MSS, false);
    assert_eq!(f.window.cwnd, 16 * MSS + MSS / 2);
    f.recovery.proportion(&mut f.window, MSS, 15 * MSS, false);
    assert_eq!(f.window.cwnd, 16 * MSS);
    f.advance(20 * MSS);
    f.finish(true);
    assert_eq!(f.recovery.phase(), Phase::Open);
    assert_eq!(f.window.cwnd, 10 * MSS);
}

#[test]
fn without_sack_the_end_makes_no_burst() {
    let mut f = Fixture::new(20);
    f.dup_acks(3);
    f.advance(20 * MSS);
    f.finish(false);
    assert_eq!(f.window.cwnd, 2 * MSS, "nothing is in flight");
}

#[test]
fn a_second_loss_among_the_same_data_is_no_new_event() {
    let mut f = Fixture::new(20);
    f.dup_acks(3);
    assert!(!f.detect(), "already recovering");
    assert_eq!(f.window.ssthresh, 10 * MSS);
}

/// RFC 3168 §6.1.2: a loss among the data that a mark was answered for is the same congestion.
#[test]
fn a_mark_and_a_loss_in_one_window_reduce_it_once() {
    let mut f = Fixture::new(20);
    assert!(f.reduce());
    assert!(!f.reduce(), "once a window");
    assert_eq!(f.window.ssthresh, 10 * MSS);
    f.queue.mark_head_lost(MSS);
    assert!(f.detect());
    assert_eq!(f.window.ssthresh, 10 * MSS);
    assert!(matches!(f.recovery.phase(), Phase::Recovery { .. }));
    f.advance(20 * MSS);
    f.finish(true);
    assert_eq!(f.window.cwnd, 10 * MSS);
}

#[test]
fn timeouts_cut_the_threshold_once() {
    let mut f = Fixture::new(20);
    for _ in 0..3 {
        f.time_out();
    }
    assert_eq!((f.window.cwnd, f.window.ssthresh), (MSS, 10 * MSS));
    assert!(f.recovery.may_grow());
    // Duplicates of what was sent before the timeout start nothing (RFC 6582 §4.1).
    assert!(!f.dup_acks(5));
    f.advance(20 * MSS);
    f.finish(true);
    assert_eq!(f.recovery.phase(), Phase::Open);
}

#[test]
fn a_path_that_got_smaller_takes_nothing_off_the_window() {
    let mut f = Fixture::new(20);
    f.queue.mark_larger_lost(MSS / 2);
    f.recovery.on_packet_too_big(f.nxt);
    assert!(!f.detect());
    assert_eq!(f.window.cwnd, 20 * MSS);
    f.advance(20 * MSS);
    f.finish(true);
    assert_eq!((f.window.cwnd, f.recovery.phase()), (20 * MSS, Phase::Open));
}

/// What arrived behind a gap widens the window when the gap is filled, and not before.
#[test]
fn credit_waits_for_the_gap_to_fill() {
    let mut f = Fixture::new(20);
    assert_eq!(f.recovery.credit(MSS, true), MSS);
    f.recovery.credit(2 * MSS, false);
    f.recovery.credit(MSS, false);
    assert_eq!(f.recovery.credit(MSS, true), 4 * MSS);
    assert_eq!(f.recovery.credit(MSS, true), MSS);
    // A gap that was a loss is not credited.
    f.recovery.credit(3 * MSS, false);
    f.dup_acks(3);
    assert_eq!(f.recovery.credit(MSS, false), MSS);
    f.advance(20 * MSS);
    f.finish(true);
    assert_eq!(f.recovery.credit(MSS, true), MSS);
}
