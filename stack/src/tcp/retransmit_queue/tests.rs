use super::*;

const MSS: u32 = 1000;

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1000)
}

fn range(start: u32, end: u32) -> Range {
    Range::new(SeqNum(start), SeqNum(end))
}

/// One send of ten segments, at the wrap of the sequence numbers.
fn ten_segments() -> RetransmitQueue {
    let mut queue = RetransmitQueue::default();
    queue.push(SeqNum(0), 10 * MSS, at(0));
    queue
}

#[test]
fn partial_acknowledgment_cuts_the_head_and_samples_the_rtt() {
    let mut queue = ten_segments();
    let delivered = queue.acknowledge(SeqNum(2500), at(30));
    assert_eq!(delivered.bytes, 2500);
    assert_eq!(delivered.rtt, Some(Duration::from_millis(30)));
    assert_eq!(queue.in_flight_bytes(), 7500);
    assert_eq!(
        queue.acknowledge(SeqNum(2500), at(31)),
        Delivered::default()
    );
}

#[test]
fn sack_marks_whole_segments_only() {
    let mut queue = ten_segments();
    assert_eq!(queue.mark_sacked(range(1500, 3900), MSS, at(1)).bytes, 1000);
    assert_eq!(queue.mark_sacked(range(1, 999), MSS, at(1)).bytes, 0);
    assert_eq!(
        queue.mark_sacked(range(9000, 10_000), MSS, at(1)).bytes,
        1000
    );
    assert_eq!(queue.entries.len(), 4);
    assert_eq!(queue.in_flight_bytes(), 8000);
    assert!(queue.is_consistent());
}

#[test]
fn hostile_blocks_make_no_more_entries_than_segments() {
    let mut queue = ten_segments();
    for start in 0..10_000 {
        queue.mark_sacked(range(start, start + 1 + start % 1999), MSS, at(1));
    }
    assert!(queue.entries.len() <= 10);
    assert!(queue.is_consistent());
}

/// SACKed and then acknowledged bytes must leave the sums with the entry.
#[test]
fn gvisor_14092_outstanding_leak() {
    let mut queue = ten_segments();
    queue.mark_sacked(range(2000, 5000), MSS, at(1));
    queue.mark_lost(0);
    assert_eq!(queue.in_flight_bytes(), 5000);
    let again = queue.next_pending(u32::MAX).unwrap();
    assert_eq!(again, range(0, 2000));
    queue.mark_retransmitted(again, at(2));
    assert_eq!(queue.in_flight_bytes(), 7000);
    let delivered = queue.acknowledge(SeqNum(5000), at(3));
    assert_eq!(delivered.bytes, 2000);
    assert_eq!(delivered.rtt, None, "Karn: ambiguous");
    assert!(delivered.retransmitted);
    assert_eq!(queue.in_flight_bytes(), 5000);
    assert_eq!(queue.sacked_bytes() + queue.lost_bytes(), 0);
    assert!(queue.is_consistent());
}

#[test]
fn retransmission_of_a_part_splits_the_run() {
    let mut queue = ten_segments();
    queue.mark_all_lost();
    assert_eq!(queue.next_pending(3000), Some(range(0, 3000)));
    queue.mark_retransmitted(range(0, 2000), at(5));
    assert_eq!(queue.next_pending(1000), Some(range(2000, 3000)));
    assert_eq!(queue.pending_bytes(), 8000);
    assert_eq!(queue.in_flight_bytes(), 2000);
    assert!(!queue.mark_all_lost());
    assert_eq!(queue.in_flight_bytes(), 0);
    assert_eq!(queue.next_pending(u32::MAX), Some(range(0, 10_000)));
    assert!(queue.is_consistent());
}

#[test]
fn a_peer_that_takes_back_its_sacks_gets_everything_again() {
    let mut queue = ten_segments();
    queue.mark_sacked(range(0, 4000), MSS, at(1));
    assert!(queue.mark_all_lost());
    assert_eq!(queue.sacked_bytes(), 0);
    assert_eq!(queue.next_pending(u32::MAX), Some(range(0, 10_000)));
}

#[test]
fn head_is_lost_one_segment_at_a_time() {
    let mut queue = ten_segments();
    queue.mark_head_lost(MSS);
    queue.mark_retransmitted(range(0, 1000), at(1));
    queue.mark_head_lost(MSS);
    assert_eq!(queue.next_pending(u32::MAX), Some(range(0, 1000)));
    assert!(queue.is_consistent());
}
