use super::*;
use alloc::string::ToString;

#[test]
fn amounts_have_three_digits() {
    for (bytes, printed) in [
        (0, "0.00 Bytes"),
        (999, " 999 Bytes"),
        (1023, "1023 Bytes"),
        (1024, "1.00 KBytes"),
        (10_235, "10.0 KBytes"),
        (131_072, " 128 KBytes"),
        (1_310_720, "1.25 MBytes"),
        (5 << 30, "5.00 GBytes"),
        (u64::MAX, "16.0 EBytes"),
    ] {
        assert_eq!(Amount(bytes).to_string(), printed);
    }
}

#[test]
fn rates_are_decimal() {
    let rate = |bytes, ms| {
        let span = Duration::from_millis(ms);
        Rate { bytes, span }.to_string()
    };
    assert_eq!(rate(125_000_000, 1000), "1.00 Gbits/sec");
    assert_eq!(rate(125_000, 500), "2.00 Mbits/sec");
    assert_eq!(rate(1, 0), "0.00 bits/sec");
    assert_eq!(rate(u64::MAX, 1), "18.4 Ebits/sec");
}

#[test]
fn seconds_are_rounded() {
    assert_eq!(
        Seconds(Duration::from_micros(1_004_999)).to_string(),
        "1.00"
    );
    assert_eq!(Seconds(Duration::from_millis(9_995)).to_string(), "10.00");
}
