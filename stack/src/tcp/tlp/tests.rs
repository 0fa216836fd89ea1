use super::*;

const RTT: Duration = Duration::from_millis(10);

fn range(start: u32, end: u32) -> Range {
    Range::new(SeqNum(start), SeqNum(end))
}

/// A probe that repeated the last of ten segments of 1000 bytes.
fn probed() -> Tlp {
    let mut tlp = Tlp::default();
    tlp.on_timer();
    assert!(tlp.is_due() && !tlp.may_probe());
    tlp.on_sent(SeqNum(10_000), Some(range(9000, 10_000)));
    assert!(!tlp.is_due() && !tlp.may_probe(), "one at a time");
    tlp
}

#[test]
fn waits_two_round_trips_and_for_a_delayed_acknowledgment_of_a_lone_segment() {
    assert_eq!(Tlp::timeout(Some(RTT), false), 2 * RTT + SLACK);
    assert_eq!(Tlp::timeout(Some(RTT), true), 2 * RTT + MAX_ACK_DELAY);
    assert_eq!(Tlp::timeout(None, true), Duration::from_secs(1));
}

#[test]
fn the_original_and_the_probe_both_arrived() {
    let mut tlp = probed();
    assert_eq!(tlp.on_ack(SeqNum(10_000), None, false), TlpVerdict::Nothing);
    assert!(!tlp.may_probe(), "nothing is decided yet");
    let duplicate = range(9000, 10_000);
    assert!(tlp.is_probe(duplicate));
    tlp.on_ack(SeqNum(10_000), Some(duplicate), false);
    assert!(tlp.may_probe());
}

#[test]
fn without_dsack_a_bare_duplicate_acknowledgment_tells() {
    let mut tlp = probed();
    tlp.on_ack(SeqNum(10_000), None, false);
    assert_eq!(tlp.on_ack(SeqNum(10_000), None, true), TlpVerdict::Nothing);
    assert!(tlp.may_probe());
}

#[test]
fn a_repaired_loss_shows_when_more_is_acknowledged() {
    let mut tlp = probed();
    tlp.on_ack(SeqNum(10_000), None, false);
    assert_eq!(
        tlp.on_ack(SeqNum(11_000), None, false),
        TlpVerdict::Repaired
    );
    assert!(tlp.may_probe());
}

#[test]
fn new_data_as_a_probe_repairs_nothing() {
    let mut tlp = Tlp::default();
    tlp.on_timer();
    tlp.on_sent(SeqNum(11_000), None);
    assert_eq!(tlp.on_ack(SeqNum(9000), None, false), TlpVerdict::Nothing);
    assert!(!tlp.may_probe());
    assert_eq!(tlp.on_ack(SeqNum(12_000), None, false), TlpVerdict::Nothing);
    assert!(tlp.may_probe());
}
