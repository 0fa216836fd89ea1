use super::*;

const MSS: u32 = 1000;

struct Fixture {
    queue: RetransmitQueue,
    board: Scoreboard,
    una: SeqNum,
    nxt: SeqNum,
}

impl Fixture {
    fn new(segments: u32) -> Self {
        let una = SeqNum(0xffff_f000);
        let mut queue = RetransmitQueue::default();
        queue.push(una, segments * MSS, Instant::ZERO);
        Self {
            queue,
            board: Scoreboard::default(),
            una,
            nxt: una + segments * MSS,
        }
    }

    /// Takes in blocks given as offsets from the first byte sent.
    fn sack(&mut self, blocks: &[(u32, u32)]) -> SackOutcome {
        let base = SeqNum(0xffff_f000);
        let blocks = blocks
            .iter()
            .map(|&(left, right)| Range::new(base + left, base + right).into())
            .collect();
        let (una, nxt) = (self.una, self.nxt);
        let outcome = self
            .board
            .receive(&mut self.queue, &blocks, una, nxt, MSS, Instant::ZERO);
        self.board.mark_lost(&mut self.queue, MSS);
        assert!(self.queue.is_consistent());
        outcome
    }
}

#[test]
fn two_segments_above_are_not_enough_three_are() {
    let mut f = Fixture::new(10);
    f.sack(&[(1000, 3000)]);
    assert_eq!(f.queue.lost_bytes(), 0);
    assert_eq!(f.queue.in_flight_bytes(), 8000);
    f.sack(&[(1000, 4000)]);
    assert_eq!(f.queue.lost_bytes(), 1000);
    assert_eq!(f.queue.in_flight_bytes(), 6000);
}

#[test]
fn three_runs_are_enough_however_short() {
    let mut f = Fixture::new(10);
    f.sack(&[(9000, 9999), (5000, 6000), (3000, 4000)]);
    assert_eq!(f.queue.lost_bytes(), 0, "the last is no whole segment");
    f.sack(&[(9000, 10_000), (5000, 6000), (3000, 4000)]);
    assert_eq!(f.queue.lost_bytes(), 3000);
}

#[test]
fn reports_that_cannot_be_true_are_discarded() {
    let mut f = Fixture::new(4);
    let outcome = f.sack(&[(3000, 5000), (2000, 1000), (2000, 2000)]);
    assert_eq!(outcome.discarded, 3);
    assert_eq!(f.queue.sacked_bytes(), 0);
    // What was refused once is taken when it has become true.
    f.queue.push(f.nxt, MSS, Instant::ZERO);
    f.nxt += MSS;
    f.sack(&[(3000, 5000)]);
    assert_eq!(f.queue.sacked_bytes(), 2000);
}

#[test]
fn duplicates_are_told_apart() {
    let mut f = Fixture::new(10);
    f.queue.acknowledge(f.una + 2000, Instant::ZERO);
    f.una += 2000;
    assert!(f.sack(&[(0, 1000)]).duplicate.is_some());
    assert!(f.sack(&[(5000, 6000), (4000, 7000)]).duplicate.is_some());
    assert_eq!(f.queue.sacked_bytes(), 3000);
    assert!(f.sack(&[(4000, 8000)]).duplicate.is_none());
    assert_eq!(f.queue.sacked_bytes(), 4000);
}

#[test]
fn a_segment_reported_by_halves_counts_when_whole() {
    let mut f = Fixture::new(10);
    f.sack(&[(3000, 4500)]);
    assert_eq!(f.queue.sacked_bytes(), 1000);
    f.sack(&[(3000, 5000)]);
    assert_eq!(f.queue.sacked_bytes(), 2000);
}

#[test]
fn retransmitted_bytes_are_not_judged_again() {
    let mut f = Fixture::new(10);
    f.sack(&[(1000, 4000)]);
    let lost = f.queue.next_pending(u32::MAX).unwrap();
    f.queue.mark_retransmitted(lost, Instant::ZERO);
    f.sack(&[(1000, 9000)]);
    assert_eq!(f.queue.next_pending(u32::MAX), None);
    assert_eq!(f.queue.in_flight_bytes(), 2000);
}
