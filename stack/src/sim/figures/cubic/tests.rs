use super::*;

#[test]
fn jain_s_index() {
    assert_eq!(jain([5, 5]), 1000);
    assert_eq!(jain([5, 0]), 500);
    assert_eq!(jain([0, 0]), 0);
    assert_eq!(jain([3, 1]), 800);
}

/// RFC 9438 §5.1: the response functions give the tables.
#[test]
fn response_functions() {
    for Entry(rtt_ms, per_loss, reno, cubic) in TABLES {
        let close = |got: u64, expected: u64| got.abs_diff(expected * 1000) <= expected * 35;
        let got = reno_window(per_loss);
        assert!(close(got, reno), "Reno, {per_loss}: {got} {reno}");
        let got = cubic_window(rtt_ms * 1000, per_loss);
        assert!(
            close(got, cubic),
            "CUBIC, {rtt_ms} ms, {per_loss}: {got} {cubic}"
        );
    }
}
