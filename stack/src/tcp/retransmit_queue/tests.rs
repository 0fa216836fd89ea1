use super::*;
use proptest::prelude::*;

const MSS: u32 = 1000;

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1000)
}

fn range(start: u32, end: u32) -> Range {
    Range::new(SeqNum(start), SeqNum(end))
}

fn push(queue: &mut RetransmitQueue, start: u32, end: u32, ms: u64) {
    queue.push(range(start, end), MSS as u16, at(ms), Snapshot::default());
}

fn again(queue: &mut RetransmitQueue, range: Range, ms: u64) {
    queue.mark_retransmitted(range, MSS as u16, at(ms), Snapshot::default());
}

/// One send of ten segments.
fn ten_segments() -> RetransmitQueue {
    let mut queue = RetransmitQueue::default();
    push(&mut queue, 0, 10 * MSS, 0);
    queue
}

/// Judges by what was sent at `ms` and ends at `end`.
fn judge(
    queue: &mut RetransmitQueue,
    ms: u64,
    end: u32,
    patience_ms: u64,
    now_ms: u64,
) -> Judgment {
    let reference = Reference {
        time: at(ms),
        end: SeqNum(end),
    };
    queue.judge(reference, Duration::from_millis(patience_ms), at(now_ms))
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
    // What is left is still counted in the segments that were sent.
    assert_eq!(queue.mark_sacked(range(3000, 4000), at(31)).bytes, 1000);
    assert!(queue.is_consistent());
}

#[test]
fn sack_marks_whole_segments_only() {
    let mut queue = ten_segments();
    assert_eq!(queue.mark_sacked(range(1500, 3900), at(1)).bytes, 1000);
    assert_eq!(queue.mark_sacked(range(1, 999), at(1)).bytes, 0);
    assert_eq!(queue.mark_sacked(range(9000, 10_000), at(1)).bytes, 1000);
    assert_eq!(queue.entries(), 4);
    assert_eq!(queue.in_flight_bytes(), 8000);
    assert_eq!(queue.sacked_segments(), 2);
    // A segment reported by halves counts when it is whole.
    assert_eq!(queue.mark_sacked(range(2000, 4000), at(1)).bytes, 1000);
    assert_eq!(queue.entries(), 4, "joined to the one before");
    assert!(queue.is_consistent());
}

#[test]
fn hostile_blocks_make_no_more_entries_than_segments() {
    let mut queue = ten_segments();
    for start in 0..10_000 {
        queue.mark_sacked(range(start, start + 1 + start % 1999), at(1));
        assert!(queue.entries() <= 10);
    }
    assert!(queue.is_consistent());
}

/// Every second segment of a large window reported, then all again and again in ever other blocks:
/// what is looked at stays in proportion to what is reported.
#[test]
fn hostile_blocks_cost_no_more_than_they_tell() {
    let mut queue = RetransmitQueue::default();
    let segments = 30_000;
    for run in 0..segments / 40 {
        push(&mut queue, run * 40 * MSS, (run + 1) * 40 * MSS, 0);
    }
    for segment in (1..segments).step_by(2) {
        queue.mark_sacked(range(segment * MSS, (segment + 1) * MSS), at(1));
        judge(&mut queue, 0, (segment + 1) * MSS, 0, 1);
    }
    assert!(queue.entries() <= MAX_ENTRIES + 2, "{}", queue.entries());
    let reported = segments as usize / 2;
    assert!(queue.visits < 8 * reported, "{} visits", queue.visits);
    queue.visits = 0;
    for segment in (1..segments).step_by(2) {
        queue.mark_sacked(range(segment * MSS + 1, (segment + 1) * MSS - 1), at(1));
        queue.mark_sacked(range(segment * MSS - 1, (segment + 1) * MSS + 1), at(1));
        judge(&mut queue, 0, (segment + 1) * MSS, 0, 1);
    }
    assert!(queue.visits < 8 * reported, "{} visits", queue.visits);
    // Everything at once is everything: one entry is left.
    queue.visits = 0;
    queue.mark_sacked(range(0, segments * MSS), at(2));
    assert!(queue.visits <= MAX_ENTRIES + 2);
    assert_eq!((queue.entries(), queue.in_flight_bytes()), (1, 0));
    assert!(queue.is_consistent());
}

/// SACKed and then acknowledged bytes must leave the sums with the entry.
#[test]
fn gvisor_14092_outstanding_leak() {
    let mut queue = ten_segments();
    queue.mark_sacked(range(2000, 5000), at(1));
    let judgment = judge(&mut queue, 0, 5000, 1, 1);
    assert_eq!(judgment.lost_bytes, 2000);
    assert_eq!(queue.in_flight_bytes(), 5000);
    let lost = queue.next_pending(u32::MAX).unwrap();
    assert_eq!(lost, range(0, 2000));
    again(&mut queue, lost, 2);
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
fn of_one_run_only_what_lies_before_an_arrival_is_judged() {
    let mut queue = ten_segments();
    queue.mark_sacked(range(4000, 5000), at(10));
    let judgment = judge(&mut queue, 0, 5000, 10, 9);
    assert_eq!(judgment.lost_bytes, 0);
    assert_eq!(judgment.suspect_since, Some(at(0)));
    let judgment = judge(&mut queue, 0, 5000, 10, 10);
    assert_eq!((judgment.lost_bytes, judgment.suspect_since), (4000, None));
    assert_eq!(queue.in_flight_bytes(), 5000);
    // Nothing is judged twice.
    assert_eq!(judge(&mut queue, 0, 5000, 10, 99), Judgment::default());
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    let mut queue = ten_segments();
    queue.mark_sacked(range(1000, 4000), at(10));
    judge(&mut queue, 0, 4000, 10, 10);
    again(&mut queue, range(0, 1000), 10);
    push(&mut queue, 10 * MSS, 12 * MSS, 11);
    queue.mark_sacked(range(4000, 10_000), at(12));
    assert_eq!(judge(&mut queue, 0, 10_000, 10, 12), Judgment::default());
    // What was sent a millisecond after the retransmission arrives.
    queue.mark_sacked(range(10_000, 11_000), at(21));
    let judgment = judge(&mut queue, 11, 11_000, 11, 20);
    assert_eq!(judgment.suspect_since, Some(at(10)));
    let judgment = judge(&mut queue, 11, 11_000, 10, 21);
    assert_eq!(
        (judgment.lost_bytes, judgment.lost_again_bytes),
        (1000, 1000)
    );
    assert_eq!(queue.next_pending(u32::MAX), Some(range(0, 1000)));
    assert!(queue.is_consistent());
}

#[test]
fn of_a_retransmitted_run_the_part_behind_an_arrival_waits() {
    let mut queue = ten_segments();
    queue.mark_sacked(range(9000, 10_000), at(10));
    judge(&mut queue, 0, 10_000, 10, 10);
    again(&mut queue, range(0, 9000), 10);
    queue.mark_sacked(range(4000, 5000), at(20));
    let judgment = judge(&mut queue, 10, 5000, 10, 20);
    assert_eq!(judgment.lost_again_bytes, 4000);
    queue.mark_sacked(range(8000, 9000), at(20));
    let judgment = judge(&mut queue, 10, 9000, 10, 20);
    assert_eq!(judgment.lost_again_bytes, 3000);
    assert!(queue.is_consistent());
}

#[test]
fn retransmission_of_a_part_splits_the_run() {
    let mut queue = ten_segments();
    queue.mark_lost_on_timeout(Duration::ZERO, at(4));
    assert_eq!(queue.next_pending(3000), Some(range(0, 3000)));
    again(&mut queue, range(0, 2000), 5);
    assert_eq!(queue.next_pending(1000), Some(range(2000, 3000)));
    assert_eq!(queue.pending_bytes(), 8000);
    assert_eq!(queue.in_flight_bytes(), 2000);
    assert!(!queue.mark_lost_on_timeout(Duration::ZERO, at(6)));
    assert_eq!(queue.in_flight_bytes(), 0);
    assert_eq!(queue.next_pending(u32::MAX), Some(range(0, 10_000)));
    // Retransmission joins them again.
    again(&mut queue, range(0, 10_000), 7);
    assert_eq!(queue.entries(), 1);
    assert!(queue.is_consistent());
}

/// RFC 8985 §6.3: what was sent within the last round trip may be on its way.
#[test]
fn a_timeout_spares_what_was_sent_lately() {
    let mut queue = ten_segments();
    push(&mut queue, 10 * MSS, 20 * MSS, 250);
    queue.mark_lost_on_timeout(Duration::from_millis(30), at(260));
    assert_eq!(queue.lost_bytes(), 10 * MSS);
    let mut queue = RetransmitQueue::default();
    push(&mut queue, 0, 10 * MSS, 250);
    queue.mark_lost_on_timeout(Duration::from_millis(30), at(260));
    assert_eq!(queue.lost_bytes(), MSS, "the first segment in any case");
    assert!(queue.is_consistent());
}

#[test]
fn a_peer_that_takes_back_its_sacks_gets_everything_again() {
    let mut queue = ten_segments();
    queue.mark_sacked(range(0, 4000), at(1));
    assert!(queue.is_head_sacked());
    assert!(queue.mark_lost_on_timeout(Duration::ZERO, at(2)));
    assert_eq!((queue.sacked_bytes(), queue.sacked_segments()), (0, 0));
    assert_eq!(queue.next_pending(u32::MAX), Some(range(0, 10_000)));
    assert!(queue.is_consistent());
}

#[test]
fn head_is_lost_one_segment_at_a_time() {
    let mut queue = ten_segments();
    queue.mark_head_lost(MSS);
    again(&mut queue, range(0, 1000), 1);
    queue.mark_head_lost(MSS);
    assert_eq!(queue.next_pending(u32::MAX), Some(range(0, 1000)));
    assert!(queue.is_consistent());
}

/// After a false alarm, originals and retransmissions are in the network, and both are judged.
#[test]
fn what_was_not_lost_is_judged_anew() {
    let mut queue = ten_segments();
    push(&mut queue, 10 * MSS, 20 * MSS, 1);
    queue.mark_lost_on_timeout(Duration::ZERO, at(300));
    again(&mut queue, range(0, 1000), 300);
    queue.unmark_lost();
    assert_eq!(queue.in_flight_bytes(), 21 * MSS);
    assert!(queue.is_consistent());
    queue.mark_sacked(range(5000, 6000), at(301));
    assert_eq!(judge(&mut queue, 0, 6000, 301, 301).lost_bytes, 4000);
    push(&mut queue, 20 * MSS, 21 * MSS, 302);
    queue.mark_sacked(range(20_000, 21_000), at(602));
    let judgment = judge(&mut queue, 302, 21_000, 300, 602);
    assert_eq!(judgment.lost_again_bytes, 1000);
    assert!(queue.is_consistent());
}

#[test]
fn a_probe_repeats_the_last_segment_of_the_last_run() {
    let mut queue = RetransmitQueue::default();
    push(&mut queue, 0, 2500, 0);
    assert_eq!(queue.last_segment(), Some(range(2000, 2500)));
    again(&mut queue, range(2000, 2500), 9);
    assert_eq!(queue.in_flight_bytes(), 3000, "both may be on their way");
    queue.mark_sacked(range(2000, 2500), at(10));
    assert_eq!(queue.last_segment(), Some(range(1000, 2000)));
    assert_eq!(queue.in_flight_bytes(), 2000);
    assert_eq!(judge(&mut queue, 9, 2500, 1, 10).lost_bytes, 2000);
    assert!(queue.is_consistent());
}

#[test]
fn a_smaller_path_loses_the_larger_segments() {
    let mut queue = ten_segments();
    queue.push(range(10_000, 13_000), 500, at(1), Snapshot::default());
    queue.mark_sacked(range(4000, 5000), at(2));
    queue.mark_larger_lost(600);
    assert_eq!(queue.lost_bytes(), 9000);
    assert_eq!(queue.in_flight_bytes(), 3000);
    assert!(queue.is_consistent());
}

/// What a random run does to the queue.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send(u32),
    Ack(u32),
    Sack(u32, u32),
    Judge(u64, u32),
    Again(u32),
    Probe,
    Timeout(u64),
    Undo,
    HeadLost,
    Shrink,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1u32..60_000).prop_map(Step::Send),
        (0u32..30_000).prop_map(Step::Ack),
        (0u32..200_000, 1u32..9000).prop_map(|(from, len)| Step::Sack(from, len)),
        (0u64..20, 0u32..200_000).prop_map(|(patience, end)| Step::Judge(patience, end)),
        (1u32..70_000).prop_map(Step::Again),
        Just(Step::Probe),
        (0u64..20).prop_map(Step::Timeout),
        Just(Step::Undo),
        Just(Step::HeadLost),
        Just(Step::Shrink),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever happens, in whatever order: the sums are those of the entries, nothing is lost
    /// from them, and what is in flight again is on the list of those to be judged.
    #[test]
    fn sums_hold_whatever_happens(steps in prop::collection::vec(step(), 1..120), mss in 100u16..3000) {
        // Near the wrap of the sequence numbers.
        let (mut una, mut nxt) = (SeqNum(0xffff_8000), SeqNum(0xffff_8000));
        let mut queue = RetransmitQueue::default();
        for (ms, step) in steps.into_iter().enumerate() {
            let now = at(ms as u64);
            match step {
                Step::Send(len) => {
                    queue.push(Range::new(nxt, nxt + len), mss, now, Snapshot::default());
                    nxt += len;
                }
                Step::Ack(len) => {
                    una += len.min(nxt.distance_from(una));
                    queue.acknowledge(una, now);
                }
                Step::Sack(from, len) => {
                    let start = una + from.min(nxt.distance_from(una));
                    let end = (start + len).earliest(nxt);
                    if start.before(end) {
                        let before = queue.sacked_bytes();
                        let delivered = queue.mark_sacked(Range::new(start, end), now);
                        prop_assert_eq!(queue.sacked_bytes(), before + delivered.bytes);
                    }
                }
                Step::Judge(patience, end) => {
                    let end = una + end.min(nxt.distance_from(una));
                    let reference = Reference { time: now, end };
                    let before = queue.pending_bytes();
                    let judgment =
                        queue.judge(reference, Duration::from_millis(patience), now);
                    prop_assert_eq!(queue.pending_bytes(), before + judgment.lost_bytes);
                }
                Step::Again(most) => {
                    if let Some(range) = queue.next_pending(most) {
                        prop_assert!(range.len() <= most && range.len() > 0);
                        queue.mark_retransmitted(range, mss, now, Snapshot::default());
                    } else {
                        prop_assert_eq!(queue.pending_bytes(), 0);
                    }
                }
                Step::Probe => {
                    if let Some(range) = queue.last_segment() {
                        queue.mark_retransmitted(range, mss, now, Snapshot::default());
                    }
                }
                Step::Timeout(patience) => {
                    queue.mark_lost_on_timeout(Duration::from_millis(patience), now);
                }
                Step::Undo => queue.unmark_lost(),
                Step::HeadLost => queue.mark_head_lost(u32::from(mss)),
                Step::Shrink => queue.mark_larger_lost(u32::from(mss) / 2),
            }
            prop_assert!(queue.is_consistent(), "{:?} after {:?}", queue, step);
            prop_assert_eq!(queue.outstanding_bytes(), nxt.distance_from(una));
        }
        // With everything judged, nothing is left in flight: no transmission was forgotten.
        let reference = Reference { time: at(1_000_000), end: nxt };
        queue.judge(reference, Duration::ZERO, at(1_000_000));
        prop_assert_eq!(queue.in_flight_bytes(), 0);
        prop_assert_eq!(queue.pending_bytes() + queue.sacked_bytes(), queue.outstanding_bytes());
    }
}
