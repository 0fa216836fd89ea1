use super::parse;
use crate::{
    script::{
        Problem, ProblemKind,
        ast::{Action, Direction, Ecn, Event, EventTime, Expr, OptionSpec, SegmentSpec, SeqSpec},
    },
    wire::tcp::Flags,
};
use alloc::{format, string::ToString, vec, vec::Vec};

fn events(text: &str) -> Vec<Event> {
    parse(text).unwrap().events
}

fn segment(text: &str) -> SegmentSpec {
    match events(text).remove(0).action {
        Action::Segment(spec) => spec,
        other => panic!("{other:?}"),
    }
}

#[test]
fn times_of_all_kinds() {
    let text = "0 > . 1:1(0) ack 1
        1.5 > . 1:1(0) ack 1
        +.25 > . 1:1(0) ack 1
        * > . 1:1(0) ack 1
        1~2 > . 1:1(0) ack 1
        +.1~+.3 > . 1:1(0) ack 1";
    let times: Vec<_> = events(text).iter().map(|event| event.time).collect();
    assert_eq!(
        times,
        [
            EventTime::Absolute(0),
            EventTime::Absolute(1_500_000),
            EventTime::Relative(250_000),
            EventTime::Any,
            EventTime::AbsoluteRange(1_000_000, 2_000_000),
            EventTime::RelativeRange(100_000, 300_000),
        ]
    );
}

#[test]
fn a_segment_with_everything() {
    let spec = segment(
        "0 < [ect0] 5000 > 80 FSRPUEW. 7:107(100) ack 9 win 65535 urg 3
         <mss 1460,sackOK,nop,wscale 7,TS val 1 ecr 2,eol>",
    );
    assert_eq!(spec.direction, Direction::Inbound);
    assert_eq!(spec.ecn, Some(Ecn::Ect0));
    assert_eq!(spec.ports, Some((5000, 80)));
    assert_eq!(spec.flags, Flags::all());
    let seq = SeqSpec {
        start: 7,
        payload_bytes: 100,
    };
    assert_eq!(spec.seq, seq);
    assert_eq!(
        (spec.ack, spec.window, spec.urgent),
        (Some(9), Some(65_535), 3)
    );
    let options = vec![
        OptionSpec::Mss(1460),
        OptionSpec::SackPermitted,
        OptionSpec::Nop,
        OptionSpec::WindowScale(7),
        OptionSpec::Timestamps { value: 1, echo: 2 },
        OptionSpec::EndOfList,
    ];
    assert_eq!(spec.options, Some(options));
    let sack = segment("0 > . 1:1(0) ack 1 <nop,nop,sack 1:2 4:5>");
    let blocks = OptionSpec::Sack(vec![(1, 2), (4, 5)]);
    assert_eq!(sack.options.unwrap().last(), Some(&blocks));
    assert_eq!(segment("0 > . 1:1(0) ack 1 <...>").options, None);
    assert_eq!(segment("0 < - 1:1(0)").flags, Flags::empty());
}

#[test]
fn calls_with_all_kinds_of_arguments() {
    let text = "0...0.5 poll([{fd=4, events=POLLIN|POLLOUT, revents=0}], 1, -1) = -1 EINTR (note)
        +0 bind(3, {sa_family = AF_INET, sin_port = htons(80),
                    sin_addr = inet_addr(\"192.0.2.1\")}, ...) = 0
        +0 sendmsg(4, {msg_name(...)=..., msg_iov(1)=[{..., 5}], msg_flags=0}, 0) = 5";
    let calls: Vec<_> = events(text)
        .into_iter()
        .map(|event| match event.action {
            Action::Call(call) => call,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(calls[0].end_us, Some(500_000));
    assert_eq!(calls[0].errno.as_deref(), Some("EINTR"));
    assert_eq!(calls[0].result, Expr::Integer(-1));
    let Expr::Record(address) = &calls[1].arguments[1] else {
        panic!("{:?}", calls[1]);
    };
    let port = Expr::Apply("htons".to_string(), vec![Expr::Integer(80)]);
    assert_eq!(address[1], ("sin_port".to_string(), port));
    let Expr::Record(message) = &calls[2].arguments[1] else {
        panic!("{:?}", calls[2]);
    };
    assert_eq!(message[1].0, "msg_iov");
}

#[test]
fn options_commands_and_symbols() {
    let script = parse(
        "--tolerance_usecs=50 --define=PORT=80 --define=NAME=\"x\"
         `first` 0 `second` +0 bind(3, PORT, NAME) = 0 `last`",
    )
    .unwrap();
    assert_eq!(script.options.len(), 3);
    assert_eq!(script.init.unwrap().text, "first");
    assert_eq!(script.cleanup.unwrap().text, "last");
    let Action::Call(call) = &script.events[1].action else {
        panic!();
    };
    assert_eq!(call.arguments[1], Expr::Integer(80));
    assert_eq!(call.arguments[2], Expr::Text("x".to_string()));
}

#[test]
fn errors_tell_line_expected_and_got() {
    for (text, line, expected, got) in [
        (
            "0 > S 0:5(0)",
            1,
            "start:end(length) that agree, at most 65535 long",
            "0:5(0)",
        ),
        (
            "0 socket() = 3\n+0 < . 1:1(0) ack x",
            2,
            "an acknowledgment number of 32 bits",
            "'x'",
        ),
        (
            "0 < . 1:1(0) <mss 70000>",
            1,
            "a segment size of 16 bits",
            "'70000'",
        ),
        (
            "* < . 1:1(0)",
            1,
            "an outbound packet behind '*' or a range of times",
            "another event",
        ),
        (
            "0 < . 1:1(0) <...>",
            1,
            "the options of an inbound packet",
            "'<...>'",
        ),
        ("", 1, "an event", "the end of the script"),
        (
            "0 > Q 1:1(0)",
            1,
            "TCP flags out of F, S, R, P, U, E, W and '.'",
            "'Q'",
        ),
        ("0 < icmp nonsense", 1, "an ICMP type", "'nonsense'"),
        ("0 foo(1", 1, "','", "the end of the script"),
        (
            "0 < S 0:0(0) <bogus>",
            1,
            "mss, sackOK, sack, TS, nop, wscale or eol",
            "'bogus'",
        ),
    ] {
        let problem = Problem::unexpected(line, expected, got);
        assert_eq!(parse(text), Err(problem), "{text}");
    }
}

#[test]
fn what_is_not_supported_is_named() {
    for (text, what) in [
        ("0 > udp (1000)", "UDP packets"),
        ("0 < S 0:0(0) <FO abcd>", "TCP Fast Open"),
        (
            "0 > ipv4 1.1.1.1 > 2.2.2.2: . 1:1(0)",
            "encapsulation 'ipv4'",
        ),
        ("0 < SA. 0:0(0)", "AccECN"),
        ("0 > icmp unreachable", "outbound ICMP"),
        ("0 < [tos 0x1] . 1:1(0)", "IP field 'tos'"),
    ] {
        let kind = parse(text).unwrap_err().kind;
        assert_eq!(kind, ProblemKind::Unsupported(what.to_string()), "{text}");
    }
}

#[test]
fn nesting_is_bounded() {
    let text = format!("0 foo({}", "[".repeat(10_000));
    assert!(parse(&text).is_err());
}
