//! What is tested, with and without offloads.

use crate::endpoint::{ADDRESS, ECHO_PORT, PAGES_PORT, address};
use paceline_guest::iperf3::PORT;
use paceline_host::{Namespace, Output};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// A test by its name.
type Case = (&'static str, fn(&Namespace));

/// All tests, in order.
pub(crate) const ALL: &[Case] = &[
    ("ping", ping),
    ("ping_fragmented", ping_fragmented),
    ("echo_is_exact", echo_is_exact),
    ("hundred_connections", hundred_connections),
    ("half_close", half_close),
    ("forward", forward),
    ("reverse", reverse),
    ("parallel", parallel),
    ("parallel_reverse", parallel_reverse),
    ("bidirectional", bidirectional),
    ("bytes", bytes),
    ("blocks", blocks),
    ("tiny_blocks", tiny_blocks),
    ("window", window),
    ("segment_size", segment_size),
    ("omit", omit),
    ("nodelay", nodelay),
    ("rate", rate),
    ("congestion", congestion),
    ("server_output", server_output),
    ("most_streams", most_streams),
    ("busy", busy),
    ("killed_client", killed_client),
    ("interrupted_client", interrupted_client),
    ("short_cookie", short_cookie),
    ("broken_parameters", broken_parameters),
    ("udp_is_refused", udp_is_refused),
    ("no_pages_are_lost", no_pages_are_lost),
];

/// Tests over an interface that loses and reorders frames.
pub(crate) const LOSSY: &[Case] = &[
    ("echo_is_exact", lossy_echo_is_exact),
    ("forward", lossy_forward),
    ("reverse", lossy_reverse),
    ("bidirectional", lossy_bidirectional),
    ("no_pages_are_lost", no_pages_are_lost),
];

/// What a command may take that does not move data for a given time.
const SHORT: Duration = Duration::from_secs(15);

/// What any data transfer must reach, in bits per second: far below what is measured, far above
/// what a stack makes that waits for its timers.
const LEAST_BPS: f64 = 20e6;

/// The same where frames get lost.
const LEAST_LOSSY_BPS: f64 = 2e6;

fn ping(namespace: &Namespace) {
    let to = address();
    for size in ["56", "1472"] {
        let args = [
            "-c", "50", "-i", "0.01", "-W", "2", "-M", "do", "-s", size, &to,
        ];
        let text = namespace
            .run("ping", &args, SHORT)
            .unwrap()
            .success()
            .unwrap();
        assert!(text.contains(" 0% packet loss"), "{text}");
    }
}

fn ping_fragmented(namespace: &Namespace) {
    let to = address();
    for size in ["1473", "8000", "65507"] {
        let args = ["-c", "20", "-i", "0.01", "-W", "2", "-s", size, &to];
        let text = namespace
            .run("ping", &args, SHORT)
            .unwrap()
            .success()
            .unwrap();
        assert!(text.contains(" 0% packet loss"), "{text}");
    }
}

/// Sends bytes to be sent back in chunks of changing sizes, and compares.
fn echo(bytes: usize) {
    let mut stream = connect(ECHO_PORT);
    let sent = pseudo_random(bytes);
    let mut writer = stream.try_clone().unwrap();
    let to_send = sent.clone();
    let writing = thread::spawn(move || {
        let mut rest = to_send.as_slice();
        for len in [1, 7, 1000, 1460, 4096, 4097, 65_536, 200_000]
            .iter()
            .cycle()
        {
            let (chunk, after) = rest.split_at(rest.len().min(*len));
            writer.write_all(chunk).unwrap();
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::with_capacity(bytes);
    stream.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert_eq!(received.len(), sent.len());
    let differs = received
        .iter()
        .zip(&sent)
        .position(|(got, sent)| got != sent);
    assert_eq!(differs, None, "offset of the first wrong byte");
}

fn echo_is_exact(namespace: &Namespace) {
    namespace.enter(|| {
        for bytes in [1, 1459, 4096, 1 << 20, 32 << 20] {
            echo(bytes);
        }
    });
}

fn lossy_echo_is_exact(namespace: &Namespace) {
    namespace.enter(|| {
        for bytes in [1, 1459, 100_000, 4 << 20] {
            echo(bytes);
        }
    });
}

fn lossy_forward(namespace: &Namespace) {
    let json = iperf3(namespace, &["-t", "2"]);
    check_rate_over(&json, "sum_received", LEAST_LOSSY_BPS);
}

fn lossy_reverse(namespace: &Namespace) {
    let json = iperf3(namespace, &["-t", "2", "-R"]);
    check_rate_over(&json, "sum_received", LEAST_LOSSY_BPS);
    assert!(number(&json, "/end/sum_sent/retransmits") > 0.0);
}

fn lossy_bidirectional(namespace: &Namespace) {
    let json = iperf3(namespace, &["-t", "2", "-P", "2", "--bidir"]);
    check_rate_over(&json, "sum_received", LEAST_LOSSY_BPS);
    check_rate_over(&json, "sum_received_bidir_reverse", LEAST_LOSSY_BPS);
}

fn hundred_connections(namespace: &Namespace) {
    namespace.enter(|| {
        for number in 0..100_u8 {
            let mut stream = connect(ECHO_PORT);
            stream.write_all(&[number]).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut back = Vec::new();
            stream.read_to_end(&mut back).unwrap();
            assert_eq!(back, [number]);
        }
    });
}

fn half_close(namespace: &Namespace) {
    namespace.enter(|| {
        let mut stream = connect(ECHO_PORT);
        stream.write_all(b"before").unwrap();
        let mut back = [0; 6];
        stream.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"before");
        stream.write_all(b"last words").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "last words");
    });
}

fn forward(namespace: &Namespace) {
    let json = iperf3(namespace, &["-t", "2"]);
    check_rate(&json, "sum_sent");
    check_rate(&json, "sum_received");
}

fn reverse(namespace: &Namespace) {
    let json = iperf3(namespace, &["-t", "2", "-R"]);
    check_rate(&json, "sum_sent");
    check_rate(&json, "sum_received");
    let retransmits = number(&json, "/end/sum_sent/retransmits");
    let segments = number(&json, "/end/sum_sent/bytes") / 1460.0;
    assert!(
        retransmits < segments / 100.0,
        "{retransmits} of {segments} segments"
    );
    assert_eq!(
        json["end"]["sender_tcp_congestion"],
        congestion_control(namespace)
    );
}

fn parallel(namespace: &Namespace) {
    let json = iperf3(namespace, &["-t", "2", "-P", "4"]);
    check_rate(&json, "sum_received");
    check_share(&json, "receiver");
}

fn parallel_reverse(namespace: &Namespace) {
    let json = iperf3(namespace, &["-t", "2", "-P", "4", "-R"]);
    check_rate(&json, "sum_received");
    check_share(&json, "receiver");
}

fn bidirectional(namespace: &Namespace) {
    let json = iperf3(namespace, &["-t", "2", "--bidir"]);
    check_rate(&json, "sum_received");
    check_rate(&json, "sum_received_bidir_reverse");
}

fn bytes(namespace: &Namespace) {
    let wanted = 20 << 20;
    // The stock client sends a block too many at times.
    let sent = integer(&iperf3(namespace, &["-n", "20M"]), "/end/sum_sent/bytes");
    assert!((wanted..wanted + (1 << 20)).contains(&sent), "{sent}");
    // The server sends whole blocks and no more than it must.
    let json = iperf3(namespace, &["-n", "20M", "-R"]);
    assert_eq!(integer(&json, "/end/sum_received/bytes"), wanted);
    assert_eq!(integer(&json, "/end/sum_sent/bytes"), wanted);
}

fn blocks(namespace: &Namespace) {
    for direction in [&[][..], &["-R"]] {
        // Stock iperf3 counts a write that the socket took half of as a block: so room for all.
        let args = [&["-k", "100", "-l", "10000", "-w", "2M"], direction].concat();
        let json = iperf3(namespace, &args);
        let sent = integer(&json, "/end/sum_sent/bytes");
        assert!((1_000_000..1_500_000).contains(&sent), "{sent}");
    }
}

fn tiny_blocks(namespace: &Namespace) {
    for direction in [&[][..], &["-R"]] {
        let args = [&["-l", "1", "-t", "1"], direction].concat();
        let json = iperf3(namespace, &args);
        let received = number(&json, "/end/sum_received/bytes");
        assert!(received > 10_000.0, "{received}");
    }
}

fn window(namespace: &Namespace) {
    for direction in [&[][..], &["-R"]] {
        let args = [&["-w", "64K", "-t", "1"], direction].concat();
        check_rate(&iperf3(namespace, &args), "sum_received");
    }
}

fn segment_size(namespace: &Namespace) {
    for direction in [&[][..], &["-R"]] {
        let args = [&["-M", "600", "-t", "1"], direction].concat();
        let json = iperf3(namespace, &args);
        check_rate(&json, "sum_received");
    }
}

fn omit(namespace: &Namespace) {
    for direction in [&[][..], &["-R"]] {
        let args = [&["-O", "1", "-t", "1"], direction].concat();
        let json = iperf3(namespace, &args);
        check_rate(&json, "sum_received");
        let seconds = number(&json, "/end/sum_received/seconds");
        assert!((0.8..1.3).contains(&seconds), "{seconds}");
    }
}

fn nodelay(namespace: &Namespace) {
    for direction in [&[][..], &["-R"]] {
        let args = [&["-N", "-l", "4000", "-t", "1"], direction].concat();
        check_rate(&iperf3(namespace, &args), "sum_received");
    }
}

fn rate(namespace: &Namespace) {
    for direction in [&[][..], &["-R"]] {
        let args = [&["-b", "80M", "-l", "16K", "-t", "2"], direction].concat();
        let json = iperf3(namespace, &args);
        let rate = number(&json, "/end/sum_received/bits_per_second");
        assert!((60e6..85e6).contains(&rate), "{rate}");
    }
}

fn congestion(namespace: &Namespace) {
    // One that Linux has but we do not, or that both have: never an error.
    for direction in [&[][..], &["-R"]] {
        let args = [&["-C", "reno", "-t", "1"], direction].concat();
        check_rate(&iperf3(namespace, &args), "sum_received");
    }
}

fn server_output(namespace: &Namespace) {
    let json = iperf3(namespace, &["--get-server-output", "-t", "2"]);
    let text = json["server_output_text"].as_str().unwrap_or_default();
    for part in ["[  1] local 10.77.0.2 port 5201", "0.00-1.0", "receiver"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

fn most_streams(namespace: &Namespace) {
    let json = iperf3(namespace, &["-P", "128", "-t", "2"]);
    assert_eq!(json["end"]["streams"].as_array().map(Vec::len), Some(128));
    check_rate(&json, "sum_received");
}

fn busy(namespace: &Namespace) {
    let first = namespace
        .command("iperf3", &["-c", &address(), "-t", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(500));
    let second = iperf3_error(namespace, &["-t", "1"]);
    assert!(
        second.contains("the server is busy running a test"),
        "{second}"
    );
    let first = Output::collect("iperf3".into(), first, SHORT).unwrap();
    first.success().unwrap();
    check_rate(&iperf3(namespace, &["-t", "1"]), "sum_received");
}

fn killed_client(namespace: &Namespace) {
    for direction in [&[][..], &["-R"], &["--bidir"]] {
        let to = address();
        let args = [&["-c", &to, "-t", "20", "-P", "3"], direction].concat();
        let mut client = namespace
            .command("iperf3", &args)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(700));
        client.kill().unwrap();
        client.wait().unwrap();
        // At once, but for the time that the reset takes.
        thread::sleep(Duration::from_millis(100));
        check_rate(&iperf3(namespace, &["-t", "1"]), "sum_received");
    }
}

fn interrupted_client(namespace: &Namespace) {
    let args = ["-s", "INT", "0.7", "iperf3", "-c", &address(), "-t", "20"];
    let text = namespace.run("timeout", &args, SHORT).unwrap();
    assert!(text.text.contains("interrupt"), "{text:?}");
    check_rate(&iperf3(namespace, &["-t", "1"]), "sum_received");
}

fn short_cookie(namespace: &Namespace) {
    let silent = namespace.enter(|| {
        let mut stream = connect(PORT);
        stream.write_all(b"x").unwrap();
        stream
    });
    // It keeps nobody waiting,
    let started = Instant::now();
    check_rate(&iperf3(namespace, &["-t", "1"]), "sum_received");
    assert!(started.elapsed() < Duration::from_secs(5));
    // and is hung up on when its time is over.
    namespace.enter(move || {
        let mut silent = silent;
        silent.set_read_timeout(Some(SHORT)).unwrap();
        let mut rest = Vec::new();
        match silent.read_to_end(&mut rest) {
            Ok(_) => assert!(rest.is_empty(), "{rest:?}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    });
    check_rate(&iperf3(namespace, &["-t", "1"]), "sum_received");
}

fn broken_parameters(namespace: &Namespace) {
    namespace.enter(|| {
        for json in ["{", "null garbage", "[[[[[[", ""] {
            let mut stream = connect(PORT);
            stream
                .write_all(b"abcdefghijklmnopqrstuvwxyz234567abcd\0")
                .unwrap();
            let mut answer = [0];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [9], "PARAM_EXCHANGE");
            stream
                .write_all(&(json.len() as u32).to_be_bytes())
                .unwrap();
            stream.write_all(json.as_bytes()).unwrap();
            let mut error = [0; 9];
            stream.read_exact(&mut error).unwrap();
            assert_eq!(error, [0xfe, 0, 0, 0, 114, 0, 0, 0, 0], "SERVER_ERROR");
            assert_eq!(stream.read(&mut answer).unwrap(), 0);
        }
    });
    check_rate(&iperf3(namespace, &["-t", "1"]), "sum_received");
}

fn udp_is_refused(namespace: &Namespace) {
    let text = iperf3_error(namespace, &["-u", "-t", "1"]);
    assert!(text.contains("not implemented"), "{text}");
    check_rate(&iperf3(namespace, &["-t", "1"]), "sum_received");
}

fn no_pages_are_lost(namespace: &Namespace) {
    // Once all is quiet, that is what is sent over and over and a few frames on their way.
    let deadline = Instant::now() + SHORT;
    loop {
        let pages = namespace.enter(|| {
            let mut text = String::new();
            connect(PAGES_PORT).read_to_string(&mut text).unwrap();
            text.parse::<usize>().unwrap()
        });
        if pages <= 8 {
            return;
        }
        assert!(Instant::now() < deadline, "{pages} pages in use");
        thread::sleep(Duration::from_millis(200));
    }
}

fn connect(port: u16) -> TcpStream {
    let to = SocketAddr::from((ADDRESS, port));
    let stream = TcpStream::connect_timeout(&to, Duration::from_secs(5)).unwrap();
    stream.set_read_timeout(Some(SHORT)).unwrap();
    stream.set_write_timeout(Some(SHORT)).unwrap();
    stream
}

/// Runs the stock client, which must succeed, and returns its results.
fn iperf3(namespace: &Namespace, args: &[&str]) -> Value {
    let json = try_iperf3(namespace, args);
    assert_eq!(json.get("error"), None, "iperf3 {args:?}");
    json
}

/// Runs the stock client, which must fail, and returns why it did.
fn iperf3_error(namespace: &Namespace, args: &[&str]) -> String {
    let json = try_iperf3(namespace, args);
    let error = json["error"].as_str();
    error
        .unwrap_or_else(|| panic!("iperf3 {args:?} must fail"))
        .into()
}

/// Runs the stock client. With JSON, it exits with success even after an error.
fn try_iperf3(namespace: &Namespace, args: &[&str]) -> Value {
    let to = address();
    let fixed = ["-c", &to, "--json", "--connect-timeout", "3000"];
    let args = [&fixed, args].concat();
    let text = namespace.run("iperf3", &args, SHORT).unwrap().text;
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("iperf3 {args:?}: {error}\n{text}"))
}

fn number(json: &Value, pointer: &str) -> f64 {
    json.pointer(pointer)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no number {pointer} in {json:#}"))
}

fn integer(json: &Value, pointer: &str) -> u64 {
    json.pointer(pointer)
        .and_then(Value::as_u64)
        .unwrap_or_else(|| panic!("no number {pointer} in {json:#}"))
}

/// Checks one of the sums at the end.
fn check_rate(json: &Value, sum: &str) {
    check_rate_over(json, sum, LEAST_BPS);
}

fn check_rate_over(json: &Value, sum: &str, least_bps: f64) {
    let rate = number(json, &format!("/end/{sum}/bits_per_second"));
    println!("{:8.1} Mbit/s {sum}", rate / 1e6);
    assert!(rate > least_bps, "{sum}: {rate} bit/s");
}

/// Checks that no stream of several has starved.
fn check_share(json: &Value, side: &str) {
    let streams = json["end"]["streams"].as_array().unwrap();
    let bytes = streams
        .iter()
        .map(|stream| integer(stream, &format!("/{side}/bytes")))
        .collect::<Vec<_>>();
    let fair = bytes.iter().sum::<u64>() / bytes.len() as u64;
    assert!(bytes.iter().all(|bytes| *bytes > fair / 20), "{bytes:?}");
}

/// The congestion control that our side reports.
fn congestion_control(namespace: &Namespace) -> String {
    let json = iperf3(namespace, &["-t", "1"]);
    json["end"]["receiver_tcp_congestion"]
        .as_str()
        .unwrap_or_default()
        .into()
}

/// Bytes without a pattern that a wrong offset could hit (xorshift).
fn pseudo_random(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}
