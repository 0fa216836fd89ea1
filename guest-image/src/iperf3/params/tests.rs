use super::*;
use alloc::format;
use alloc::string::ToString;

/// What `iperf3 3.12 -c HOST -t 1 -b 4M` sends.
const STOCK: &str = r#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":131072,"bandwidth":4000000,"pacing_timer":1000,"client_version":"3.12"}"#;

fn parse(json: &str) -> Params {
    Params::parse(json.as_bytes()).unwrap()
}

fn refuse(json: &str) -> ParamsError {
    Params::parse(json.as_bytes()).unwrap_err()
}

#[test]
fn stock_parameters() {
    assert_eq!(
        parse(STOCK),
        Params {
            direction: Direction::Forward,
            streams: 1,
            omit: Duration::ZERO,
            duration: Some(Duration::from_secs(1)),
            limit_bytes: None,
            block_bytes: 131_072,
            rate_bps: Some(4_000_000),
            mss_bytes: None,
            buffer_bytes: None,
            nodelay: false,
            congestion: None,
            server_output: false,
        }
    );
}

#[test]
fn every_option_is_read() {
    let params = parse(
        r#"{"tcp":true,"omit":2,"time":0,"num":1.0e10,"parallel":4,"bidirectional":true,
            "window":262144,"len":1,"MSS":1400,"nodelay":true,"congestion":"reno",
            "get_server_output":1,"fqrate":9000,"bandwidth":8000,"title":"x","extra":{"deep":[1,{}]}}"#,
    );
    assert_eq!(params.direction, Direction::Both);
    assert_eq!(params.connections(), 8);
    assert!(!params.sends(3) && params.sends(4));
    assert_eq!(params.omit, Duration::from_secs(2));
    assert_eq!(params.duration, None);
    assert_eq!(params.limit_bytes, Some(10_000_000_000));
    assert_eq!(params.block_bytes, 1);
    assert_eq!(params.rate_bps, Some(8000));
    assert!(params.server_output);
    assert_eq!(
        params.options(),
        Options {
            mss_bytes: Some(1400),
            buffer_bytes: Some(262_144),
            nodelay: true,
            congestion: Some("reno"),
        }
    );
}

#[test]
fn defaults_of_what_is_left_out() {
    let params = parse("{}");
    assert_eq!(params.streams, 1);
    assert_eq!(params.block_bytes, 128 << 10);
    assert_eq!(params.direction, Direction::Forward);
    assert_eq!(params.rate_bps, None);
}

#[test]
fn blocks_become_bytes() {
    let params = parse(r#"{"blockcount":10,"len":1000,"reverse":true}"#);
    assert_eq!(params.limit_bytes, Some(10_000));
    assert!(params.sends(0));
    let huge = parse(r#"{"blockcount":9223372036854775807,"len":1048576}"#);
    assert_eq!(huge.limit_bytes, Some(u64::MAX));
}

#[test]
fn out_of_range_is_refused_with_the_stock_code() {
    for (json, code) in [
        (r#"{"parallel":129}"#, ErrorCode::StreamCount),
        (r#"{"parallel":-1}"#, ErrorCode::StreamCount),
        (r#"{"len":1048577}"#, ErrorCode::BlockSize),
        (r#"{"omit":61}"#, ErrorCode::Omit),
        (r#"{"time":86401}"#, ErrorCode::Duration),
        (r#"{"MSS":9217}"#, ErrorCode::Mss),
        (r#"{"window":536870913}"#, ErrorCode::BufferSize),
        (r#"{"udp":true}"#, ErrorCode::Unimplemented),
        (r#"{"sctp":1}"#, ErrorCode::NoSctp),
    ] {
        assert_eq!(refuse(json).code(), code, "{json}");
    }
    assert_eq!(
        refuse(r#"{"parallel":1e300}"#).to_string(),
        "parallel is 9223372036854775807, expected 1 to 128"
    );
}

#[test]
fn broken_json_is_refused() {
    for json in [
        "",
        "{",
        "nonsense",
        "7",
        r#"{"parallel":"four"}"#,
        r#"{"parallel":{}}"#,
        r#"{"len":1}{}"#,
        "{\"len\":1}\0",
    ] {
        assert_eq!(refuse(json).code(), ErrorCode::RecvParams, "{json}");
    }
    assert_eq!(
        Params::parse(b"{\"\xff\":1}").unwrap_err().code(),
        ErrorCode::RecvParams
    );
}

#[test]
fn deep_nesting_takes_no_stack() {
    let deep = |key| format!("{{\"{key}\":{}{}}}", "[".repeat(4000), "]".repeat(4000));
    assert_eq!(parse(&deep("unknown")), parse("{}"));
    assert_eq!(refuse(&deep("len")).code(), ErrorCode::RecvParams);
    assert_eq!(refuse(&deep("congestion")).code(), ErrorCode::RecvParams);
}

#[test]
fn hostile_numbers_and_shapes_are_refused_or_harmless() {
    let nested = format!("{{\"x\":{}{}}}", "[".repeat(4000), "]".repeat(4000));
    for json in [
        "{\"parallel\":1000000000}",
        "{\"parallel\":-1}",
        "{\"len\":-1}",
        "{\"len\":1e300}",
        "{\"len\":1e999}",
        "{\"time\":-9223372036854775808}",
        "{\"time\":NaN}",
        "{\"omit\":18446744073709551615}",
        "{\"len\":[[[]]]}",
        "{\"len\":{}}",
        "{\"congestion\":7}",
        "{\"len\":1,\"len\":2}",
        "[",
        "",
        "\u{0}",
    ] {
        assert!(Params::parse(json.as_bytes()).is_err(), "{json}");
    }
    for json in [
        nested.as_str(),
        "{}",
        "{\"num\":-5,\"bandwidth\":-1}",
        "{\"blockcount\":9223372036854775807,\"len\":1048576}",
        "{\"bandwidth\":1}",
    ] {
        assert!(Params::parse(json.as_bytes()).is_ok(), "{json}");
    }
    assert!(Params::parse(&[0xff; 100]).is_err());
}
