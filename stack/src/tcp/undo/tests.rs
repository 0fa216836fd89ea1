use super::*;

fn range(start: u32, end: u32) -> Range {
    Range::new(SeqNum(start), SeqNum(end))
}

#[test]
fn duplicates_of_all_that_was_sent_again_explain_it() {
    let mut undo = Undo::begin(&Undo::default(), SeqNum(1000), 0);
    undo.on_retransmit(2000, None);
    assert!(!undo.is_explained_by_duplicates());
    undo.on_duplicate(range(0, 1000));
    undo.on_duplicate(range(1000, 2000));
    assert!(!undo.is_explained_by_duplicates(), "one is of before");
    undo.on_duplicate(range(2000, 3000));
    assert!(undo.is_explained_by_duplicates());
}

/// A loss probe that was on its way when the loss was found has to be explained too.
#[test]
fn a_probe_counts_among_what_was_sent_again() {
    let mut undo = Undo::begin(&Undo::default(), SeqNum(1000), 500);
    undo.on_retransmit(1000, Some(7));
    undo.on_duplicate(range(1000, 2000));
    assert!(!undo.is_explained_by_duplicates());
    undo.on_duplicate(range(2000, 2500));
    assert!(undo.is_explained_by_duplicates());
}

#[test]
fn rfc_3522_an_older_timestamp_answers_the_original() {
    let mut undo = Undo::begin(&Undo::default(), SeqNum(0), 0);
    assert!(undo.is_original(None), "nothing has been sent again");
    undo.on_retransmit(1000, Some(u32::MAX));
    undo.on_retransmit(1000, Some(5));
    assert!(undo.is_original(Some(u32::MAX - 1)));
    assert!(!undo.is_original(Some(u32::MAX)), "of the same tick");
    assert!(!undo.is_original(Some(3)));
    assert!(!undo.is_original(Some(0)), "no echo");
    assert!(!undo.is_original(None));
}

/// What an earlier recovery sent again arrives while the next one goes on: its timestamp is older
/// than all of the next one's, and still no original's.
#[test]
fn what_an_earlier_event_sent_again_is_no_original() {
    let mut earlier = Undo::begin(&Undo::default(), SeqNum(0), 0);
    earlier.on_retransmit(1000, Some(100));
    earlier.on_recovered(SeqNum(9000));
    let mut undo = Undo::begin(&earlier, SeqNum(5000), 1000);
    undo.on_retransmit(1000, Some(200));
    assert!(!undo.is_original(Some(100)));
    assert!(!undo.is_original(Some(150)));
    assert!(undo.is_original(Some(99)));
    // A probe's timestamp was not noted.
    let mut undo = Undo::begin(&Undo::default(), SeqNum(5000), 1000);
    undo.on_retransmit(1000, Some(200));
    assert!(!undo.is_original(Some(100)));
}

#[test]
fn evidence_counts_until_a_round_trip_after_recovery() {
    let mut undo = Undo::begin(&Undo::default(), SeqNum(0), 0);
    undo.on_retransmit(1000, None);
    undo.on_recovered(SeqNum(9000));
    assert!(!undo.on_advance(SeqNum(9000)));
    assert!(undo.on_advance(SeqNum(9001)));
    undo.on_duplicate(range(0, 1000));
    assert!(!undo.is_explained_by_duplicates());
    assert_eq!(undo.marker(), None);
    assert!(!undo.on_advance(SeqNum(9002)), "told once");
}

#[test]
fn without_an_event_there_is_nothing_to_undo() {
    let mut undo = Undo::default();
    undo.on_retransmit(1000, Some(5));
    undo.on_duplicate(range(0, 1000));
    assert!(!undo.is_explained_by_duplicates() && !undo.is_original(Some(1)));
}
