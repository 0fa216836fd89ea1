//! Options: agreed on in the handshake, used afterwards.

use super::harness::*;
use crate::{
    time::Duration,
    wire::tcp::{Flags, Timestamps},
};

#[test]
fn syn_offers_everything() {
    let mut h = Harness::new();
    h.tcp.config_mut().timestamps = true;
    h.connect();
    let options = h.one().header.options;
    assert_eq!(options.mss, Some(1460));
    assert_eq!(options.window_scale, Some(10), "32 MiB by 16 bits");
    assert!(options.sack_permitted);
    assert!(options.timestamps.is_some());
}

#[test]
fn answer_offers_only_what_was_offered() {
    let mut h = Harness::new();
    h.tcp.config_mut().timestamps = true;
    h.listen(4);
    h.input(Flags::SYN, 5, 0, &[]);
    let options = h.one().header.options;
    assert_eq!(options.mss, Some(1460));
    assert_eq!(options.window_scale, None);
    assert!(!options.sack_permitted);
    assert_eq!(options.timestamps, None);
}

#[test]
fn peer_without_options_gets_small_segments() {
    let mut h = Harness::new();
    let id = h.connect();
    let iss = h.one().header.seq;
    h.input(Flags::SYN | Flags::ACK, PEER_ISS, iss.wrapping_add(1), &[]);
    h.sent();
    h.write(id, &[1; 5000]);
    let sent = h.sent();
    assert_eq!(sent[0].segment_bytes, Some(536));
    assert_eq!(sent[0].payload.len(), 5000);
}

#[test]
fn tiny_segment_sizes_are_not_believed() {
    let mut h = Harness::new();
    let (id, _) = h.established_with(|header| header.options.mss = Some(1));
    h.write(id, &[1; 1000]);
    assert_eq!(h.sent()[0].segment_bytes, Some(48));
}

#[test]
fn peer_window_is_scaled_but_in_its_syn() {
    let mut h = Harness::new();
    let (id, iss) = h.established_with(|header| {
        header.options.window_scale = Some(7);
        header.window = 1000;
    });
    assert_eq!(h.info(id).snd_wnd, 1000);
    h.input_with(Flags::ACK, peer(0), iss.wrapping_add(1), &[], |header| {
        header.window = 1000;
    });
    assert_eq!(h.info(id).snd_wnd, 128_000);
}

#[test]
fn timestamps_are_echoed_and_measure_the_path() {
    let mut h = Harness::new();
    h.tcp.config_mut().timestamps = true;
    h.timestamps = true;
    let (id, iss) = h.established();
    assert!(h.info(id).options.timestamps);
    h.now = h.now + Duration::from_millis(5);
    h.input(Flags::ACK, peer(0), iss.wrapping_add(1), &[1; 3000]);
    let ack = h.one().header.options.timestamps.unwrap();
    assert_eq!(ack.echo, (h.now.as_micros() / 1000) as u32);
    // A retransmitted segment measures by the echo only.
    h.write(id, &[2; 100]);
    h.sent();
    h.pass(Duration::from_millis(900));
    let again = h.sent();
    assert!(!again.is_empty());
    let last = again.last().unwrap().header.options.timestamps.unwrap();
    h.now = h.now + Duration::from_millis(40);
    h.input_with(
        Flags::ACK,
        peer(3000),
        iss.wrapping_add(101),
        &[],
        |header| {
            header.options.timestamps = Some(Timestamps {
                value: u32::MAX / 2,
                echo: last.value,
            });
        },
    );
    let info = h.info(id);
    assert!(info.srtt_us > 0 && info.srtt_us < 200_000, "{info:?}");
}

#[test]
fn paws_drops_old_timestamps_and_what_lacks_them() {
    let mut h = Harness::new();
    h.tcp.config_mut().timestamps = true;
    h.timestamps = true;
    let (id, iss) = h.established();
    let ack = iss.wrapping_add(1);
    let old = Timestamps { value: 1, echo: 0 };
    h.input_with(Flags::ACK, peer(0), ack, b"old", |header| {
        header.options.timestamps = Some(old);
    });
    assert_eq!(h.one().header.ack, peer(0));
    h.input_with(Flags::ACK, peer(0), ack, b"bare", |header| {
        header.options.timestamps = None;
    });
    assert_eq!(h.info(id).bytes_received, 0);
    assert_eq!(h.tcp.counters().paws_estab, 2);
    // A reset needs none.
    h.input_with(Flags::RST, peer(0), ack, &[], |header| {
        header.options.timestamps = None;
    });
    assert_eq!(h.tcp.count().0, 1, "held by its owner");
    assert_eq!(h.state(id), super::super::State::Closed);
}

/// What a retransmission has overtaken is late, not old.
#[test]
fn paws_takes_what_is_a_little_late() {
    let mut h = Harness::new();
    h.tcp.config_mut().timestamps = true;
    h.timestamps = true;
    let (id, iss) = h.established();
    let ack = iss.wrapping_add(1);
    let now = (h.now.as_micros() / 1000) as u32;
    h.input(Flags::ACK, peer(0), ack, b"new");
    for (value, taken) in [(now - 41, false), (now - 40, true)] {
        h.input_with(Flags::ACK, peer(3), ack, b"late", |header| {
            header.options.timestamps = Some(Timestamps { value, echo: 0 });
        });
        let expected = if taken { 7 } else { 3 };
        assert_eq!(h.info(id).bytes_received, expected, "{}", now - value);
    }
    assert_eq!(h.tcp.counters().paws_estab, 1);
}

#[test]
fn segment_size_follows_the_path() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    h.write(id, &[1; 10_000]);
    let sent = h.sent();
    assert_eq!(sent[0].segment_bytes, Some(1460));
    let mut route = h.wire.route.unwrap();
    route.mtu_bytes = 1000;
    h.wire.route = Ok(route);
    let error = crate::ip::IcmpError {
        local: US,
        remote: PEER,
        local_port: OUR_PORT,
        remote_port: PEER_PORT,
        seq: iss.wrapping_add(1),
        kind: crate::ip::IcmpErrorKind::PacketTooBig { mtu_bytes: 1000 },
    };
    let stray = crate::ip::IcmpError { seq: iss, ..error };
    assert!(!h.tcp.icmp_error(h.now, &stray), "not in flight");
    assert!(h.tcp.icmp_error(h.now, &error));
    h.poll();
    let again = h.sent();
    assert_eq!(again[0].header.seq, iss.wrapping_add(1));
    assert_eq!(again[0].segment_bytes, Some(960));
    let info = h.info(id);
    assert_eq!(info.snd_mss, 960);
}
