use super::*;
use crate::{tcp::delivery_rate::Snapshot, wire::tcp::SackBlock};

const MSS: u32 = 1000;
/// Near the wrap of the sequence numbers.
const BASE: SeqNum = SeqNum(0xffff_f000);

struct Fixture {
    queue: RetransmitQueue,
    una: SeqNum,
    nxt: SeqNum,
}

impl Fixture {
    fn new(segments: u32) -> Self {
        let mut f = Self {
            queue: RetransmitQueue::default(),
            una: BASE,
            nxt: BASE,
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

    fn acknowledge(&mut self, bytes: u32) {
        self.una += bytes;
        self.queue.acknowledge(self.una, Instant::ZERO);
    }

    /// Takes in blocks given as offsets from the first byte sent.
    fn sack(&mut self, blocks: &[(u32, u32)]) -> SackOutcome {
        self.sack_at(self.una, blocks)
    }

    fn sack_at(&mut self, ack: SeqNum, blocks: &[(u32, u32)]) -> SackOutcome {
        let blocks = blocks
            .iter()
            .map(|&(left, right)| SackBlock {
                left: (BASE + left).0,
                right: (BASE + right).0,
            })
            .collect();
        let bounds = Bounds {
            ack,
            una: self.una,
            nxt: self.nxt,
            max_wnd: 5000,
        };
        let outcome = receive(&mut self.queue, &blocks, bounds, Instant::ZERO);
        assert!(self.queue.is_consistent());
        outcome
    }
}

#[test]
fn reports_that_cannot_be_true_are_discarded() {
    let mut f = Fixture::new(4);
    let outcome = f.sack(&[(3000, 5000), (2000, 1000), (2000, 2000)]);
    assert_eq!(outcome.discarded, 3);
    assert_eq!(f.queue.sacked_bytes(), 0);
    // What was refused once is taken when it has become true.
    f.send(1);
    f.sack(&[(3000, 5000)]);
    assert_eq!(f.queue.sacked_bytes(), 2000);
}

#[test]
fn duplicates_are_told_apart() {
    let mut f = Fixture::new(10);
    f.acknowledge(2000);
    let below = f.sack(&[(0, 1000)]).duplicate.unwrap();
    assert!(!below.is_out_of_order && !below.is_dubious);
    let inside = f.sack(&[(5000, 6000), (4000, 7000)]).duplicate.unwrap();
    assert!(inside.is_out_of_order);
    assert_eq!(f.queue.sacked_bytes(), 3000);
    assert!(f.sack(&[(4000, 8000)]).duplicate.is_none());
    assert_eq!(f.queue.sacked_bytes(), 4000);
}

#[test]
fn duplicates_of_the_distant_past_are_dubious() {
    let mut f = Fixture::new(10);
    f.acknowledge(9000);
    assert!(f.sack(&[(3000, 4000)]).duplicate.unwrap().is_dubious);
    assert!(f.sack(&[(3500, 9000)]).duplicate.unwrap().is_dubious);
    assert!(!f.sack(&[(4000, 9000)]).duplicate.unwrap().is_dubious);
}

/// An acknowledgment that a later one overtook still tells what arrived.
#[test]
fn an_old_acknowledgment_reports_too() {
    let mut f = Fixture::new(10);
    f.acknowledge(4000);
    let outcome = f.sack_at(BASE + 1000, &[(8000, 9000), (2000, 3000)]);
    assert_eq!((outcome.discarded, outcome.duplicate), (0, None));
    assert_eq!(f.queue.sacked_bytes(), 1000);
}
