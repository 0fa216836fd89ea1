use super::*;
use alloc::string::String;

fn text(json: Vec<u8>) -> String {
    String::from_utf8(json).unwrap()
}

#[test]
fn a_receiver_knows_no_retransmits() {
    let totals = [StreamTotals {
        id: 1,
        bytes: 4_000_000_000,
        retransmits: None,
    }];
    let cpu = CpuShare {
        busy: Duration::from_millis(250),
        wall: Duration::from_secs(1),
    };
    assert_eq!(
        text(encode(
            cpu,
            None,
            Duration::from_millis(1500),
            &totals,
            None
        )),
        r#"{"cpu_util_total":25.0,"cpu_util_user":0.0,"cpu_util_system":25.0,"sender_has_retransmits":-1,"streams":[{"id":1,"bytes":4000000000,"retransmits":-1,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":1.5}]}"#
    );
}

#[test]
fn a_sender_reports_retransmits_and_its_output() {
    let totals = [1, 3].map(|id| StreamTotals {
        id,
        bytes: 10,
        retransmits: Some(2),
    });
    let json = text(encode(
        CpuShare::default(),
        Some("cubic"),
        Duration::ZERO,
        &totals,
        Some("a \"line\"\n"),
    ));
    assert!(json.contains(r#""sender_has_retransmits":1,"congestion_used":"cubic""#));
    assert!(json.contains(r#""server_output_text":"a \"line\"\n""#));
    assert!(json.contains(r#"{"id":3,"bytes":10,"retransmits":2,"#));
}

#[test]
fn stock_results_are_read() {
    let json = br#"{"cpu_util_total":1.9,"cpu_util_user":0,"cpu_util_system":1.9,"sender_has_retransmits":18446744073709551615,"congestion_used":"cubic","streams":[{"id":1,"bytes":131072,"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":1.000218}]}"#;
    let results = decode(json).unwrap();
    assert_eq!(results.streams.len(), 1);
    assert_eq!(results.streams[0].retransmits, Int(-1));
    assert_eq!(results.streams[0].bytes.unsigned(), 131_072);
}

#[test]
fn results_without_what_matters_are_refused() {
    for json in ["{}", r#"{"streams":[{"id":1}]}"#, r#"{"streams":7}"#, ""] {
        assert!(decode(json.as_bytes()).is_err(), "{json}");
    }
}
