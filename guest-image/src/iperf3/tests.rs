//! The server against scripted clients, in virtual time.

use super::testing::{End, MAX_BUFFER_BYTES, OwnedOptions, World};
use super::*;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use futures_util::future::{join, join_all};

const COOKIE: [u8; 37] = *b"abcdefghijklmnopqrstuvwxyz234567abcd\0";
const OTHER: [u8; 37] = *b"bbcdefghijklmnopqrstuvwxyz234567abcd\0";

const LIMITS: Limits = Limits {
    patience: Duration::from_secs(10),
    arrival: Duration::from_secs(30),
    overtime: Duration::from_secs(10),
    idle: Duration::from_mins(2),
};

/// Runs a client's script against the server, then a plain test, which must work.
fn with_server<F: Future>(script: impl FnOnce(&'static World) -> F) -> F::Output {
    // One for each test, for the length of the process.
    let world: &'static World = alloc::boxed::Box::leak(alloc::boxed::Box::default());
    let output = world.run(async {
        let serving = pin!(serve(world, &LIMITS));
        let script = pin!(async {
            let output = script(world).await;
            // As soon as the last client is told good-bye.
            world.sleep(Duration::from_secs(1)).await;
            let results = forward(world, "{}", 100_000).await;
            assert!(results.contains("\"bytes\":100000,"), "{results}");
            world.sleep(Duration::from_secs(1)).await;
            output
        });
        match select(serving, script).await {
            Either::Left((never, _)) => match never {},
            Either::Right((output, _)) => output,
        }
    });
    assert_eq!(world.told.open.get(), 0, "connections are left open");
    output
}

/// Opens a control connection up to the answer to `params`.
async fn open(world: &World, params: &str) -> (End, u8) {
    let mut control = world.connect();
    control.put(&COOKIE).await;
    assert_eq!(control.take().await, [9]);
    control.put(&(params.len() as u32).to_be_bytes()).await;
    control.put(params.as_bytes()).await;
    let [answer] = control.take().await;
    (control, answer)
}

/// Opens a control connection and its data connections up to the start of the test.
async fn start(world: &World, params: &str, connections: usize) -> (End, Vec<End>) {
    let (mut control, answer) = open(world, params).await;
    assert_eq!(answer, 10);
    let mut streams = Vec::new();
    for _ in 0..connections {
        let mut stream = world.connect();
        stream.put(&COOKIE).await;
        streams.push(stream);
    }
    assert_eq!(control.take().await, [1, 2]);
    (control, streams)
}

/// Exchanges results for `streams` streams and ends the test.
async fn finish(mut control: End, streams: usize) -> String {
    control.put(&[4]).await;
    assert_eq!(control.take().await, [13]);
    let streams = (0..streams)
        .map(|index| if index == 0 { 1 } else { index + 2 })
        .map(|id| format!(r#"{{"id":{id},"bytes":1,"retransmits":18446744073709551615}}"#))
        .collect::<Vec<_>>()
        .join(",");
    let results = format!(r#"{{"cpu_util_total":0,"streams":[{streams}]}}"#);
    control.put(&(results.len() as u32).to_be_bytes()).await;
    control.put(results.as_bytes()).await;
    let len = u32::from_be_bytes(control.take().await);
    let mut theirs = alloc::vec![0; len as usize];
    protocol::read_exact(&mut control, &mut theirs)
        .await
        .unwrap();
    assert_eq!(control.take().await, [14]);
    control.put(&[16]).await;
    String::from_utf8(theirs).unwrap()
}

/// A whole test of one stream that sends `bytes`.
async fn forward(world: &World, params: &str, bytes: usize) -> String {
    let (control, mut streams) = start(world, params, 1).await;
    streams[0].put(&alloc::vec![7; bytes]).await;
    finish(control, 1).await
}

/// The error that the server closes with.
async fn server_error(control: &mut End) -> i32 {
    let [state, code @ ..] = control.take::<5>().await;
    assert_eq!(state, 0xfe);
    assert_eq!(control.take().await, [0; 4]);
    assert_eq!(control.take_all().await, 0);
    i32::from_be_bytes(code)
}

#[test]
fn forward_test() {
    with_server(async |world| {
        let json = r#"{"tcp":true,"MSS":1000,"window":65536,"nodelay":true}"#;
        let results = forward(world, json, 5_000_000).await;
        assert!(
            results.contains("\"bytes\":5000000,\"retransmits\":-1,"),
            "{results}"
        );
        assert_eq!(
            *world.told.asked.borrow(),
            [OwnedOptions {
                mss_bytes: Some(1000),
                buffer_bytes: Some(65_536),
                nodelay: true,
            }]
        );
    });
}

#[test]
fn reverse_test_goes_on_until_the_client_ends_it() {
    with_server(async |world| {
        let (control, mut streams) = start(world, r#"{"reverse":true,"time":3}"#, 1).await;
        let begin = world.now();
        let mut got = 0;
        while world.now().since(begin) < Duration::from_secs(3) {
            streams[0].take::<5000>().await;
            got += 5000;
            world.sleep(Duration::from_millis(10)).await;
        }
        let results = finish(control, 1).await;
        assert!(results.contains("\"sender_has_retransmits\":1,\"congestion_used\":\"cubic\""));
        // All of them from before the test.
        assert!(results.contains("\"retransmits\":0,"), "{results}");
        assert!(results.contains("\"end_time\":3."), "{results}");
        got += streams[0].take_all().await;
        assert!(
            results.contains(&format!("\"bytes\":{got},")),
            "{got} {results}"
        );
    });
}

#[test]
fn reverse_test_of_a_number_of_bytes_stops_at_a_block() {
    with_server(async |world| {
        let json = r#"{"reverse":true,"parallel":2,"num":100000,"len":30000}"#;
        let (control, mut streams) = start(world, json, 2).await;
        let ending = async {
            world.sleep(Duration::from_secs(5)).await;
            finish(control, 2).await
        };
        let reading = join_all(streams.iter_mut().map(End::take_all));
        let (results, got) = join(ending, reading).await;
        let got = got.into_iter().sum::<usize>();
        // Both streams together, whole blocks; either may have begun one.
        assert!(
            (100_000..=150_000).contains(&got) && got % 30_000 == 0,
            "{got} {results}"
        );
    });
}

#[test]
fn rate_is_kept() {
    with_server(async |world| {
        // 8 Mbit/s in blocks of 10 kB: 1 MB in a second.
        let json = r#"{"reverse":true,"bandwidth":8000000,"len":10000}"#;
        let (control, mut streams) = start(world, json, 1).await;
        let ending = async {
            world.sleep(Duration::from_secs(2)).await;
            finish(control, 1).await
        };
        let (results, got) = join(ending, streams[0].take_all()).await;
        assert!((2_000_000..=2_020_000).contains(&got), "{got} {results}");
    });
}

#[test]
fn bidirectional_test_receives_on_the_first_streams() {
    with_server(async |world| {
        let json = r#"{"bidirectional":true,"parallel":2,"num":60000,"len":30000}"#;
        let (control, mut streams) = start(world, json, 4).await;
        for stream in &mut streams[..2] {
            stream.put(&[1; 5000]).await;
        }
        world.sleep(Duration::from_secs(1)).await;
        let results = finish(control, 4).await;
        for id in [1, 3] {
            let stream = format!("{{\"id\":{id},\"bytes\":5000,\"retransmits\":-1,");
            assert!(results.contains(&stream), "{results}");
        }
        assert!(
            results.contains("{\"id\":4,\"bytes\":60000,\"retransmits\":0,"),
            "{results}"
        );
        assert!(
            results.contains("{\"id\":5,\"bytes\":0,\"retransmits\":0,"),
            "{results}"
        );
    });
}

#[test]
fn the_largest_test_and_none_larger() {
    with_server(async |world| {
        let (control, streams) =
            start(world, r#"{"bidirectional":true,"parallel":128}"#, 256).await;
        world.sleep(Duration::from_secs(1)).await;
        drop(finish(control, 256).await);
        drop(streams);
        let (mut control, answer) = open(world, r#"{"parallel":129}"#).await;
        assert_eq!(answer, 0xfe);
        assert_eq!(control.take().await, [0, 0, 0, 6, 0, 0, 0, 0]);
    });
}

#[test]
fn omitted_time_does_not_count() {
    with_server(async |world| {
        let (control, mut streams) = start(world, r#"{"omit":2,"time":3}"#, 1).await;
        for second in 1_000_usize.. {
            streams[0].put(&alloc::vec![0; second]).await;
            if second == 1004 {
                break;
            }
            world.sleep(Duration::from_millis(1100)).await;
        }
        let results = finish(control, 1).await;
        // Sent at 0, 1.1, 2.2, 3.3 and 4.4 s.
        assert!(results.contains("\"bytes\":3009,"), "{results}");
        assert!(results.contains("\"end_time\":2.4"), "{results}");
    });
}

#[test]
fn server_output_is_sent_when_asked_for() {
    with_server(async |world| {
        let json = r#"{"get_server_output":1,"time":2}"#;
        let (control, mut streams) = start(world, json, 1).await;
        streams[0].put(&alloc::vec![0; 40_000]).await;
        world.sleep(Duration::from_millis(2500)).await;
        let results = finish(control, 1).await;
        for line in [
            "[  1] local 10.0.0.2 port 5201 connected to 10.0.0.1 port 40002",
            "[ ID] Interval           Transfer     Bitrate",
            "[  1]   0.00-1.00   sec  39.1 KBytes   320 Kbits/sec",
            "[  1]   1.00-2.00   sec  0.00 Bytes  0.00 bits/sec",
            "[  1]   0.00-2.50   sec  39.1 KBytes   128 Kbits/sec                 receiver",
        ] {
            assert!(results.contains(line), "{line} in {results}");
        }
    });
}

#[test]
fn a_second_client_is_told_that_the_server_is_busy() {
    with_server(async |world| {
        let (control, streams) = start(world, r#"{"time":10}"#, 1).await;
        let mut second = world.connect();
        second.put(&OTHER).await;
        assert_eq!(second.take().await, [0xff]);
        assert_eq!(second.take_all().await, 0);
        drop(second);
        finish(control, 1).await;
        drop(streams);
    });
}

#[test]
fn a_stranger_among_the_data_connections_is_turned_away() {
    with_server(async |world| {
        let (mut control, answer) = open(world, r#"{"parallel":2}"#).await;
        assert_eq!(answer, 10);
        let mut first = world.connect();
        let mut stranger = world.connect();
        let mut second = world.connect();
        // Cookies in another order than connections.
        second.put(&COOKIE).await;
        stranger.put(&OTHER).await;
        assert_eq!(stranger.take().await, [0xff]);
        drop(stranger);
        first.put(&COOKIE).await;
        assert_eq!(control.take().await, [1, 2]);
        first.put(&[0; 10]).await;
        second.put(&[0; 20]).await;
        let results = finish(control, 2).await;
        assert!(results.contains("{\"id\":1,\"bytes\":10,"), "{results}");
        assert!(results.contains("{\"id\":3,\"bytes\":20,"), "{results}");
    });
}

#[test]
fn a_short_cookie_does_not_hold_up_the_next_client() {
    with_server(async |world| {
        let mut silent = world.connect();
        silent.put(b"x").await;
        let begin = world.now();
        let results = forward(world, "{}", 10).await;
        assert!(results.contains("\"bytes\":10,"));
        assert!(world.now().since(begin) < Duration::from_secs(1));
        // The silent one is hung up on when its time is over.
        assert_eq!(silent.take_all().await, 0);
        assert_eq!(world.now().since(begin), LIMITS.patience);
    });
}

#[test]
fn a_flood_of_silent_connections_ends() {
    with_server(async |world| {
        let silent = (0..1000).map(|_| world.connect()).collect::<Vec<_>>();
        world.sleep(Duration::from_secs(45)).await;
        let results = forward(world, "{}", 10).await;
        assert!(results.contains("\"bytes\":10,"));
        drop(silent);
    });
}

#[test]
fn another_protocol_is_turned_away() {
    with_server(async |world| {
        let mut browser = world.connect();
        browser
            .put(b"GET / HTTP/1.1\r\nHost: 10.0.0.2:5201\r\n\r\n")
            .await;
        assert_eq!(browser.take().await, [0xff]);
    });
}

#[test]
fn broken_parameters_are_refused() {
    for json in ["{", "", "[[[[", r#"{"time":"long"}"#] {
        with_server(async |world| {
            let (mut control, answer) = open(world, json).await;
            assert_eq!(answer, 0xfe);
            assert_eq!(control.take().await, [0, 0, 0, 114, 0, 0, 0, 0]);
            assert_eq!(control.take_all().await, 0);
        });
    }
}

#[test]
fn oversized_parameters_are_refused_unread() {
    with_server(async |world| {
        let mut control = world.connect();
        control.put(&COOKIE).await;
        assert_eq!(control.take().await, [9]);
        control.put(&[0xff; 4]).await;
        control.put(&[b' '; 10_000]).await;
        assert_eq!(server_error(&mut control).await, 114);
    });
}

#[test]
fn udp_is_refused() {
    with_server(async |world| {
        let (mut control, answer) = open(world, r#"{"udp":true,"time":1}"#).await;
        assert_eq!(answer, 0xfe);
        assert_eq!(control.take().await, [0, 0, 0, 13, 0, 0, 0, 0]);
    });
}

#[test]
fn an_impossible_buffer_is_refused_and_an_unknown_congestion_control_ignored() {
    with_server(async |world| {
        let json = format!("{{\"window\":{}}}", MAX_BUFFER_BYTES + 1);
        let (mut control, answer) = open(world, &json).await;
        assert_eq!(answer, 10);
        let mut stream = world.connect();
        stream.put(&COOKIE).await;
        assert_eq!(server_error(&mut control).await, 141);
        drop((control, stream));
        let results = forward(world, r#"{"congestion":"bogus"}"#, 10).await;
        assert!(
            results.contains("\"congestion_used\":\"cubic\""),
            "{results}"
        );
    });
}

#[test]
fn a_client_that_vanishes_at_any_point_leaves_nothing() {
    // By closing, by resetting, and by silence, after each step.
    for how in 0..3 {
        for step in 0..7 {
            with_server(async |world| {
                let mut ends = Vec::new();
                vanish(world, step, &mut ends).await;
                match how {
                    0 => drop(ends),
                    1 => ends.into_iter().for_each(End::reset),
                    _ => {
                        let silence = LIMITS.patience + LIMITS.arrival + LIMITS.idle;
                        world.sleep(silence).await;
                        drop(ends);
                    }
                }
            });
        }
    }
}

/// Goes through the first `step` steps of a test.
async fn vanish(world: &World, step: usize, ends: &mut Vec<End>) {
    let mut control = world.connect();
    if step >= 1 {
        control.put(&COOKIE).await;
        assert_eq!(control.take().await, [9]);
    }
    if step >= 2 {
        control.put(&[0, 0]).await;
    }
    if step >= 3 {
        control.put(&[0, 2]).await;
        control.put(b"{}").await;
        assert_eq!(control.take().await, [10]);
    }
    if step >= 4 {
        let mut stream = world.connect();
        stream.put(&COOKIE).await;
        assert_eq!(control.take().await, [1, 2]);
        stream.put(&[0; 5000]).await;
        ends.push(stream);
    }
    if step >= 5 {
        control.put(&[4]).await;
        assert_eq!(control.take().await, [13]);
    }
    if step >= 6 {
        control.put(&[0, 0, 1]).await;
    }
    ends.push(control);
}

#[test]
fn a_reset_data_connection_ends_the_test() {
    with_server(async |world| {
        for (json, code) in [("{}", 206), (r#"{"reverse":true}"#, 205)] {
            let (mut control, mut streams) = start(world, json, 1).await;
            world.sleep(Duration::from_secs(1)).await;
            streams.pop().unwrap().reset();
            assert_eq!(server_error(&mut control).await, code);
        }
    });
}

#[test]
fn an_interrupted_client_ends_the_test() {
    with_server(async |world| {
        let (mut control, streams) = start(world, r#"{"reverse":true}"#, 1).await;
        control.put(&[12]).await;
        assert_eq!(control.take_all().await, 0);
        drop(streams);
    });
}

#[test]
fn nonsense_on_the_control_connection_ends_the_test() {
    for byte in [0, 2, 3, 16, 99, 0xff] {
        with_server(async |world| {
            let (mut control, _streams) = start(world, "{}", 1).await;
            control.put(&[byte]).await;
            assert_eq!(server_error(&mut control).await, 110);
        });
    }
}

#[test]
fn a_test_that_its_client_forgets_is_ended() {
    with_server(async |world| {
        let (mut control, mut streams) =
            start(world, r#"{"time":5,"omit":1,"reverse":true}"#, 1).await;
        let begin = world.now();
        assert_eq!(server_error(&mut control).await, 108);
        assert_eq!(world.now().since(begin), Duration::from_secs(5 + 1 + 10));
        // What fits the connection.
        assert!(streams[0].take_all().await > 0);
    });
}

#[test]
fn bad_results_are_refused() {
    for results in [
        "{",
        "{}",
        r#"{"streams":[]}"#,
        r#"{"streams":[{"id":2,"bytes":1,"retransmits":0}]}"#,
    ] {
        with_server(async |world| {
            let (mut control, streams) = start(world, "{}", 1).await;
            control.put(&[4]).await;
            assert_eq!(control.take().await, [13]);
            control.put(&(results.len() as u32).to_be_bytes()).await;
            control.put(results.as_bytes()).await;
            assert_eq!(server_error(&mut control).await, 117);
            drop(streams);
        });
    }
    with_server(async |world| {
        let (mut control, streams) = start(world, "{}", 1).await;
        control.put(&[4]).await;
        assert_eq!(control.take().await, [13]);
        control.put(&[0x7f, 0xff, 0xff, 0xff]).await;
        assert_eq!(server_error(&mut control).await, 117);
        drop(streams);
    });
}

#[test]
fn a_stream_yields_to_others() {
    // Both move on although neither is ever out of bytes.
    with_server(async |world| {
        let json = r#"{"reverse":true,"parallel":2}"#;
        let (control, mut streams) = start(world, json, 2).await;
        let reading = join_all(streams.iter_mut().map(async |stream| {
            let mut total = 0;
            while total < 2_000_000 {
                total += poll_fn(|cx| stream.poll_discard(cx, 10_000)).await.unwrap();
            }
            total
        }));
        assert!(reading.await.iter().all(|total| *total >= 2_000_000));
        finish(control, 2).await;
    });
}
