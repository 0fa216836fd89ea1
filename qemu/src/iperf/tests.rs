use super::*;

/// What iperf3 3.12 prints, with the fields that are not read left out but for a few.
const ONE_WAY: &str = r#"{
    "start": {"version": "iperf 3.12"},
    "intervals": [],
    "end": {
        "streams": [],
        "sum_sent": {"start": 0, "end": 6.0, "seconds": 6.0, "bytes": 301000000,
            "bits_per_second": 401333333.3, "retransmits": 7, "sender": true},
        "sum_received": {"start": 0, "end": 6.01, "seconds": 6.01, "bytes": 300000000,
            "bits_per_second": 399334442.6, "sender": true},
        "sender_tcp_congestion": "cubic"
    }
}"#;

#[test]
fn rate_and_bytes_are_the_receivers_and_retransmits_the_senders() {
    let Measurement { forward, backward } = parse(ONE_WAY).unwrap();
    assert_eq!(forward.bytes, 300_000_000);
    assert!((forward.seconds - 6.01).abs() < 1e-9);
    assert!((forward.mbit_per_s - 399.334).abs() < 0.001);
    assert_eq!(forward.retransmits, Some(7));
    assert_eq!(backward, None);
}

#[test]
fn both_directions_of_a_bidirectional_run_are_read() {
    let json = r#"{"end": {
        "sum_sent": {"bytes": 11, "seconds": 1, "bits_per_second": 1e6, "retransmits": 0},
        "sum_received": {"bytes": 10, "seconds": 1, "bits_per_second": 2e6},
        "sum_sent_bidir_reverse": {"bytes": 21, "seconds": 1, "bits_per_second": 3e6, "retransmits": -1},
        "sum_received_bidir_reverse": {"bytes": 20, "seconds": 1, "bits_per_second": 4e6}
    }}"#;
    let Measurement { forward, backward } = parse(json).unwrap();
    let backward = backward.unwrap();
    assert_eq!((forward.bytes, backward.bytes), (10, 20));
    assert_eq!((forward.retransmits, backward.retransmits), (Some(0), None));
}

#[test]
fn iperf3_errors_are_passed_on() {
    let json = r#"{"start": {}, "intervals": [], "end": {}, "error": "the server is busy"}"#;
    let error = parse(json).unwrap_err().to_string();
    assert!(error.contains("the server is busy"), "{error}");
}

#[test]
fn anything_else_is_refused() {
    for (json, expected) in [
        ("", "expected iperf3's JSON"),
        ("iperf3: command not found", "iperf3: command not found"),
        (r#"{"end": {}}"#, "no sums"),
        (
            r#"{"end": {"sum_sent": {"bytes": 1, "seconds": 1, "bits_per_second": 1}}}"#,
            "one side only",
        ),
    ] {
        let error = format!("{:#}", parse(json).unwrap_err());
        assert!(error.contains(expected), "{json}: {error}");
    }
}
