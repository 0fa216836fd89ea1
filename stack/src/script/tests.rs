use super::{Flavor, Settings, Verdict, run, run_traced};
use alloc::{format, string::String, vec::Vec};
use proptest::prelude::*;

/// A server with a connection accepted as descriptor 4.
const SERVER: &str = "
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
   +0 < S 0:0(0) win 65535 <mss 1000>
   +0 > S. 0:0(0) ack 1 <...>
   +.1 < . 1:1(0) ack 1 win 65535
   +0 accept(3, ..., ...) = 4
";

fn own(text: &str) -> Verdict {
    run(&format!("{SERVER}{text}"), &Settings::default())
}

fn assert_fails(text: &str, expected_part: &str, got_part: &str) {
    match own(text) {
        Verdict::Fail { expected, got, .. } => {
            assert!(
                expected.contains(expected_part),
                "{text}: expected {expected}"
            );
            assert!(got.contains(got_part), "{text}: got {got}");
        }
        other => panic!("{text}: {other}"),
    }
}

#[test]
fn a_right_script_is_ok() {
    let text = "+0 write(4, ..., 1000) = 1000
        +0 > P. 1:1001(1000) ack 1 win 65535
        +.1 < . 1:11(10) ack 1001 win 65535
        +0 read(4, ..., 100) = 10
        +0 > . 1001:1001(0) ack 11 <...>";
    assert_eq!(own(text), Verdict::Ok);
}

#[test]
fn each_field_is_compared() {
    let write = "+0 write(4, ..., 1000) = 1000\n";
    for (spec, field, got) in [
        (". 1:1001(1000) ack 1", "[flags]", "P. 1:1001"),
        ("P. 2:1002(1000) ack 1", "[sequence number]", "P. 1:1001"),
        ("P. 1:1002(1001) ack 1", "[length]", "P. 1:1001"),
        ("P. 1:1001(1000) ack 2", "[acknowledgment]", "ack 1"),
        ("P. 1:1001(1000) ack 1 win 7", "[window]", "win 65535"),
        ("P. 1:1001(1000) ack 1 urg 1", "[urgent pointer]", ""),
        ("P. 1:1001(1000) ack 1 <sack 1:2>", "[option sack]", ""),
        ("P. 1:1001(1000) ack 1 <TS val 1 ecr 2>", "[option TS]", ""),
        ("[ect0] P. 1:1001(1000) ack 1", "[ECN codepoint]", ""),
        ("1 > 2 P. 1:1001(1000) ack 1", "[ports]", ""),
    ] {
        assert_fails(&format!("{write}+0 > {spec}"), field, got);
    }
    for (options, field) in [
        ("<mss 1459,nop,nop,sackOK>", "[option mss]"),
        ("<mss 1460,sackOK>", "[option sackOK]"),
        ("<mss 1460,wscale 3>", "[option wscale]"),
    ] {
        let text = SERVER.replace("<...>", options);
        match run(&text, &Settings::default()) {
            Verdict::Fail { expected, .. } => assert!(expected.contains(field), "{expected}"),
            other => panic!("{options}: {other}"),
        }
    }
}

#[test]
fn times_are_compared() {
    let text = "+0 write(4, ..., 1000) = 1000\n+.1 > P. 1:1001(1000) ack 1";
    assert_fails(text, "at 0.200000", "at 0.100000");
    assert_fails(
        "+0 > P. 1:1001(1000) ack 1",
        "at 0.100000",
        "none by 0.104000",
    );
    assert_fails(
        "+0.5 < . 1:1(0) ack 1 win 9\n0.2 write(4, ..., 1) = 1",
        "in order",
        "past",
    );
    let text = "--tolerance_usecs=0\n".replace('\n', " ") + SERVER;
    let text = text + "+.000001 write(4, ..., 1000) = 1000 +0 > P. 1:1001(1000) ack 1";
    assert_eq!(run(&text, &Settings::default()), Verdict::Ok);
}

#[test]
fn a_packet_of_the_script_may_be_several_on_the_wire() {
    for text in [
        "+0 write(4, ..., 3000) = 3000\n+0 > P. 1:3001(3000) ack 1",
        "+0 write(4, ..., 3000) = 3000\n+0 > . 1:2001(2000) ack 1\n+0 > P. 2001:3001(1000) ack 1",
    ] {
        assert_eq!(own(text), Verdict::Ok, "{text}");
    }
    let text = format!(
        "--tso=65535 {SERVER} +0 write(4, ..., 3000) = 3000
         +0 > . 1:1001(1000) ack 1 +0 > P. 1001:3001(2000) ack 1"
    );
    assert_eq!(run(&text, &Settings::default()), Verdict::Ok);
}

#[test]
fn packets_left_over_fail() {
    assert_fails("+0 write(4, ..., 10) = 10", "no packet", "P. 1:11(10)");
    let settings = Settings {
        flavor: Flavor::Linux,
        ..Settings::default()
    };
    let text = format!("{SERVER}+0 write(4, ..., 10) = 10");
    assert_eq!(run(&text, &settings), Verdict::Ok);
}

#[test]
fn results_of_calls_are_compared() {
    assert_fails("+0 write(4, ..., 10) = 11", "= 11", "10");
    assert_fails("+0 read(4, ..., 10) = 0", "return at once", "waits");
    assert_fails("+0 close(9) = 0", "= 0", "-1 EBADF");
    assert_fails(
        "+0 getsockopt(4, SOL_TCP, TCP_NODELAY, [1], [4]) = 0",
        "1 from",
        "0",
    );
    assert_eq!(
        own("+0 close(9) = -1 EBADF (Bad file descriptor)"),
        Verdict::Ok
    );
}

#[test]
fn calls_that_block_return_when_the_script_says() {
    let text = "+0...0.2 read(4, ..., 10) = 10
        +.2 < P. 1:11(10) ack 1 win 65535
        +0 > . 1:1(0) ack 11 <...>";
    assert_eq!(own(text), Verdict::Ok);
    assert_fails(
        &text.replace("0.2 read", "0.1 read"),
        "to return at 0.2",
        "at 0.3",
    );
    assert_fails(
        "+0...0.2 read(4, ..., 10) = 10",
        "to return at 0.3",
        "none by 0.304",
    );
    assert_fails(
        "+0...0.2 read(4, ..., 10) = 10\n+.1 write(4, ..., 1) = 1",
        "to return at 0.3",
        "none by 0.2",
    );
}

#[test]
fn what_is_not_supported_is_skipped_by_name() {
    for (text, expected) in [
        ("+0 ioctl(4, SIOCINQ, [1]) = 0", "system call ioctl"),
        ("+0 send(4, ..., 1, MSG_MORE) = 1", "flags MSG_MORE of send"),
        (
            "+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0",
            "constant TCP_CORK",
        ),
        (
            "+0 `sysctl -q net.ipv4.tcp_nonsense=1`",
            "sysctl net.ipv4.tcp_nonsense",
        ),
        ("+0 %{ import os }%", "Python: import os"),
    ] {
        match own(text) {
            Verdict::Skip { what, .. } => assert_eq!(what, expected, "{text}"),
            other => panic!("{text}: {other}"),
        }
    }
    let text = format!("--ip_version=ipv6 {SERVER}");
    let verdict = run(&text, &Settings::default());
    assert!(matches!(verdict, Verdict::Skip { what, .. } if what == "IP version ipv6"));
}

#[test]
fn a_script_that_would_never_end_fails() {
    let text = format!(
        "{SERVER}
        +0 setsockopt(4, SOL_SOCKET, SO_KEEPALIVE, [1], 4) = 0
        +0 setsockopt(4, SOL_TCP, TCP_USER_TIMEOUT, [0], 4) = 0
        +999999999 < . 1:1(0) ack 1 win 1"
    );
    // The peer is silent for thirty years, but the connection is given up long before.
    let verdict = run(
        &text,
        &Settings {
            flavor: Flavor::Linux,
            ..Settings::default()
        },
    );
    assert!(!matches!(verdict, Verdict::Skip { .. }), "{verdict}");
    assert!(matches!(
        own("+99999999999 close(4) = 0"),
        Verdict::Fail { .. }
    ));
}

#[test]
fn the_trace_tells_of_calls_and_packets() {
    let mut lines = Vec::new();
    let mut trace = |line: &str| lines.push(String::from(line));
    run_traced(SERVER, &Settings::default(), &mut trace);
    let has = |part: &str| lines.iter().any(|line| line.contains(part));
    assert!(has("listen(3, 1)") && has("< S 0:0(0) win 65535") && has("> S. 0:0(0) ack 1"));
}

/// Pieces that scripts are made of, so that random ones get past the parser often.
const PIECES: &[&str] = &[
    "0 ",
    "+0 ",
    "+.1 ",
    "* ",
    "+.1~+.2 ",
    "+0...0.3 ",
    "1e9 ",
    "999999999 ",
    "< ",
    "> ",
    "S ",
    "S. ",
    ". ",
    "F. ",
    "R ",
    "P. ",
    "FSRPUEW. ",
    "- ",
    "0:0(0) ",
    "1:1(0) ",
    "1:1001(1000) ",
    "4294967295:0(1) ",
    "1:65536(65535) ",
    "ack 1 ",
    "ack 4294967295 ",
    "win 0 ",
    "win 65535 ",
    "urg 1 ",
    "<mss 0>",
    "<mss 1000,sackOK,TS val 1 ecr 0,wscale 14> ",
    "<wscale 255> ",
    "<sack 1:2 3:4> ",
    "<TS val 4294967295 ecr 7> ",
    "<...> ",
    "<nop,nop,eol> ",
    "[ce] ",
    "[ect01] ",
    "icmp unreachable frag_needed mtu 68 ",
    "[1:1001(1000)] ",
    "5 > 8080 ",
    "socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n",
    "bind(3, ..., ...) = 0\n",
    "listen(3, 1) = 0\n",
    "accept(3, ..., ...) = 4\n",
    "connect(3, ..., ...) = 0\n",
    "write(4, ..., 100000) = 100000\n",
    "read(4, ..., 1000) = 1000\n",
    "close(4) = 0\n",
    "shutdown(4, SHUT_WR) = 0\n",
    "poll([{fd=4, events=POLLIN}], 1, -1) = 1\n",
    "epoll_create(1) = 5\n",
    "epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLIN|EPOLLET, fd=4}) = 0\n",
    "epoll_wait(5, {events=EPOLLIN, fd=4}, 1, 0) = 1\n",
    "%{ assert tcpi_snd_cwnd == 10 }%\n",
    "`sysctl -q net.ipv4.tcp_sack=0`\n",
    "setsockopt(4, SOL_SOCKET, SO_SNDBUF, [-1], 4) = 0\n",
    "fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n",
    "--mtu=68 ",
    "--tso=1 ",
    "--mtu=65535 ",
    "\n",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "`",
    "\"",
    "%{",
    "}%",
    "...",
    "é",
    "\u{0}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_panics(text in "\\PC*") {
        run(&text, &Settings::default());
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        run(&String::from_utf8_lossy(&bytes), &Settings::default());
    }

    #[test]
    fn no_pieces_panic(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..40),
        served in any::<bool>(),
        own in any::<bool>(),
    ) {
        let mut text = String::from(if served { SERVER } else { "" });
        text.extend(pieces);
        let flavor = if own { Flavor::Own } else { Flavor::Linux };
        run(&text, &Settings { flavor, ..Settings::default() });
    }
}
