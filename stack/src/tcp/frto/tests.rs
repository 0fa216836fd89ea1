use super::*;

const NOTHING: FrtoAck = FrtoAck {
    advanced: false,
    recovered: false,
    original_arrived: false,
    is_dup: false,
};

fn armed() -> Frto {
    let mut frto = Frto::default();
    frto.on_timeout(true);
    frto
}

/// RFC 5682 §2.1, the way of a spurious timeout.
#[test]
fn two_acknowledgments_that_move_on_are_a_spurious_timeout() {
    let mut frto = armed();
    let advance = FrtoAck {
        advanced: true,
        original_arrived: true,
        ..NOTHING
    };
    assert_eq!(frto.on_ack(advance), FrtoVerdict::Unknown);
    assert!(frto.wants_new());
    frto.on_new_sent();
    assert!(!frto.wants_new() && frto.holds_retransmissions());
    assert_eq!(frto.on_ack(advance), FrtoVerdict::Spurious);
    assert_eq!(frto, Frto::Off);
}

#[test]
fn a_duplicate_first_is_a_true_timeout() {
    let mut frto = armed();
    let dup = FrtoAck {
        is_dup: true,
        ..NOTHING
    };
    assert_eq!(frto.on_ack(dup), FrtoVerdict::Unknown);
    assert_eq!(frto, Frto::Off);
}

/// Step 3a: the new data arrives, the old does not.
#[test]
fn a_duplicate_after_new_data_is_a_true_timeout() {
    let mut frto = armed();
    frto.on_ack(FrtoAck {
        advanced: true,
        ..NOTHING
    });
    frto.on_new_sent();
    frto.on_ack(FrtoAck {
        is_dup: true,
        ..NOTHING
    });
    assert!(!frto.holds_retransmissions());
}

#[test]
fn everything_acknowledged_at_once_tells_nothing() {
    let mut frto = armed();
    let all = FrtoAck {
        advanced: true,
        recovered: true,
        original_arrived: true,
        ..NOTHING
    };
    assert_eq!(frto.on_ack(all), FrtoVerdict::Unknown);
    assert_eq!(frto, Frto::Off);
}

#[test]
fn off_stays_off() {
    let mut frto = Frto::default();
    frto.on_timeout(false);
    let advance = FrtoAck {
        advanced: true,
        original_arrived: true,
        ..NOTHING
    };
    for _ in 0..3 {
        assert_eq!(frto.on_ack(advance), FrtoVerdict::Unknown);
        assert!(!frto.wants_new() && !frto.holds_retransmissions());
    }
}
