//! Windows, acknowledgments and small writes.

use super::{
    super::State,
    harness::{Harness, MSS, peer},
    *,
};
use crate::{
    sim::{CompletionTime, NicCounters},
    tcp::TsqPolicy,
    wire::tcp::Flags,
};

/// Stops the quick start: what follows is acknowledged with delay.
fn past_quick_start(h: &mut Harness, id: super::super::ConnectionId, iss: u32) -> u32 {
    for i in 0..20 {
        h.input(Flags::ACK, peer(i), iss.wrapping_add(1), &[0]);
    }
    h.pass(Duration::from_millis(50));
    h.read(id);
    h.sent();
    20
}

/// asterinas#485: with 64 KiB segments and acknowledgments counted in segments, one goes out per
/// delay timer.
#[test]
fn asterinas_485_acknowledges_by_bytes() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    let mut offset = past_quick_start(&mut h, id, iss);
    for _ in 0..10 {
        h.input(
            Flags::ACK,
            peer(offset),
            iss.wrapping_add(1),
            &vec![7; 60_000],
        );
        offset += 60_000;
        assert_eq!(h.one().header.ack, peer(offset), "at once, and once");
        h.read(id);
        h.sent();
    }
}

#[test]
fn single_segments_wait_for_a_second_or_the_timer() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    let offset = past_quick_start(&mut h, id, iss);
    let ack = iss.wrapping_add(1);
    h.input(Flags::ACK, peer(offset), ack, &[7; MSS as usize]);
    h.silent();
    h.input(Flags::ACK, peer(offset + MSS), ack, &[7; MSS as usize]);
    assert_eq!(h.one().header.ack, peer(offset + 2 * MSS));
    h.input(Flags::ACK, peer(offset + 2 * MSS), ack, &[7; 10]);
    h.pass(Duration::from_millis(39));
    h.silent();
    h.pass(Duration::from_millis(1));
    assert_eq!(h.one().header.ack, peer(offset + 2 * MSS + 10));
    assert_eq!(h.tcp.counters().delayed_acks, 2);
    // Data of ours takes the acknowledgment along.
    h.input(Flags::ACK, peer(offset + 2 * MSS + 10), ack, &[7; 10]);
    h.write(id, b"answer");
    assert_eq!(h.one().header.ack, peer(offset + 2 * MSS + 20));
    h.pass(Duration::from_millis(100));
    h.silent();
}

/// KallistiOS#1450: window updates only after the window was exactly zero leave a peer waiting
/// that stopped a little earlier.
#[test]
fn kallistios_1450_window_update_before_zero() {
    let mut h = Harness::new();
    h.tcp.config_mut().rcvbuf_bytes = 20_000;
    let (id, iss) = h.established();
    let ack = iss.wrapping_add(1);
    // All but 100 bytes of the window are used.
    for part in 0..10 {
        h.input(Flags::ACK, peer(part * 1990), ack, &[1; 1990]);
    }
    let left = h.sent().last().unwrap().header.window;
    assert_eq!(left, 100);
    // Reading too little for two segments says nothing.
    let mut taken = h.chunk(id).unwrap().bytes().len();
    h.poll();
    h.silent();
    while taken < 2 * MSS as usize {
        taken += h.chunk(id).unwrap().bytes().len();
    }
    h.poll();
    let update = h.one().header;
    assert_eq!(usize::from(update.window), 100 + taken);
    // And a wide window is no reason to speak at every page.
    h.read(id);
    h.sent();
    h.input(Flags::ACK, peer(19_900), ack, &[1; 3000]);
    h.sent();
    h.chunk(id);
    h.poll();
    h.silent();
}

#[test]
fn window_is_never_taken_back() {
    let mut h = Harness::new();
    let (id, iss) = h.established_with(|header| header.options.window_scale = Some(0));
    let ack = iss.wrapping_add(1);
    h.input(Flags::ACK, peer(0), ack, &[1; 5000]);
    let edge =
        |header: &crate::wire::tcp::Header| header.ack.wrapping_add(u32::from(header.window) << 10);
    let first = edge(&h.sent().pop().unwrap().header);
    let now = h.now;
    h.tcp
        .set_options(id, now, |options| options.rcvbuf_bytes = Some(1000));
    for part in 0..50 {
        h.input(Flags::ACK, peer(5000 + part * 777), ack, &[1; 777]);
        for out in h.sent() {
            let moved = edge(&out.header).wrapping_sub(first) as i32;
            assert!(moved >= 0, "moved by {moved}");
        }
    }
}

#[test]
fn data_beyond_the_window_is_cut_off() {
    let mut h = Harness::new();
    h.tcp.config_mut().rcvbuf_bytes = 5000;
    let (id, iss) = h.established();
    let ack = iss.wrapping_add(1);
    h.input(Flags::ACK | Flags::FIN, peer(0), ack, &[1; 6000]);
    let answer = h.one().header;
    assert_eq!((answer.ack, answer.window), (peer(5000), 0));
    assert_eq!(h.state(id), State::Established, "the FIN was beyond it too");
    // A probe of the closed window is answered; its byte is not taken.
    h.input(Flags::ACK, peer(5000), ack, &[1; 1]);
    assert_eq!(h.one().header.ack, peer(5000));
    assert_eq!(h.read(id).len(), 5000);
    let update = h.one().header;
    assert_eq!(update.window, 5000);
    assert_eq!(h.tcp.counters().to_zero_window, 1);
    assert_eq!(h.tcp.counters().from_zero_window, 1);
}

#[test]
fn closed_window_is_probed_for_ever_while_answered() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    let ack = iss.wrapping_add(1);
    h.input_with(Flags::ACK, peer(0), ack, &[], |header| header.window = 0);
    h.write(id, b"waiting");
    h.silent();
    for _ in 0..100 {
        h.pass(Duration::from_secs(121));
        let probes = h.sent();
        assert!(!probes.is_empty());
        assert!(probes.iter().all(|out| out.payload.is_empty()));
        assert_eq!(probes[0].header.seq, ack.wrapping_sub(1));
        h.input_with(Flags::ACK, peer(0), ack, &[], |header| header.window = 0);
    }
    h.input(Flags::ACK, peer(0), ack, &[]);
    assert_eq!(h.one().payload, b"waiting");
}

#[test]
fn closed_window_of_a_dead_peer_is_given_up() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    let ack = iss.wrapping_add(1);
    h.input_with(Flags::ACK, peer(0), ack, &[], |header| header.window = 0);
    h.write(id, b"waiting");
    h.pass(Duration::from_hours(1));
    assert_eq!(h.state(id), State::Closed);
}

#[test]
fn tiny_window_gets_what_it_lets_through() {
    let mut h = Harness::new();
    let (id, iss) = h.established_with(|header| header.window = 10);
    let first = iss.wrapping_add(1);
    h.write(id, &[3; 100]);
    // Half the largest window ever seen is worth a segment.
    let out = h.one();
    assert_eq!(out.payload.len(), 10);
    let mut acked = 10;
    while acked < 100 {
        let ack = first.wrapping_add(acked);
        h.input_with(Flags::ACK, peer(0), ack, &[], |header| header.window = 10);
        acked += h.one().payload.len() as u32;
    }
}

#[test]
fn silly_windows_are_not_filled() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    let first = iss.wrapping_add(1);
    h.input_with(Flags::ACK, peer(0), first, &[], |header| {
        header.window = 100;
    });
    h.write(id, &[3; 5000]);
    h.silent();
    // The probe timer lets the part through (RFC 9293 §3.8.6.2.1).
    h.pass(Duration::from_secs(1));
    assert_eq!(h.sent()[0].payload.len(), 100);
}

#[test]
fn nagle_holds_small_segments_while_one_is_out() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    h.write(id, b"one");
    assert_eq!(h.one().payload, b"one");
    h.write(id, b"two");
    h.write(id, b"three");
    h.silent();
    h.input(Flags::ACK, peer(0), iss.wrapping_add(4), &[]);
    assert_eq!(h.one().payload, b"twothree");
    // Full segments go, and the tail of a large write does not wait for its middle.
    h.input(Flags::ACK, peer(0), iss.wrapping_add(12), &[]);
    h.write(id, &[1; 4000]);
    let sent = h.one();
    assert_eq!(sent.payload.len(), 4000);
    assert_eq!(sent.segment_bytes, Some(MSS as u16));
    h.write(id, b"held");
    h.silent();
    let now = h.now;
    h.tcp.set_options(id, now, |options| options.nodelay = true);
    h.poll();
    assert_eq!(h.one().payload, b"held");
}

#[test]
fn fin_takes_held_data_along() {
    let mut h = Harness::new();
    let (id, _) = h.established();
    h.write(id, b"one");
    h.sent();
    h.write(id, b"two");
    h.silent();
    h.shutdown(id);
    let last = h.one();
    assert_eq!(last.payload, b"two");
    assert!(last.header.flags.contains(Flags::FIN | Flags::PSH));
}

#[test]
fn keepalive_probes_and_gives_up() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    let now = h.now;
    h.tcp.set_options(id, now, |options| {
        options.keepalive = Some(super::super::Keepalive {
            time: Duration::from_secs(10),
            interval: Duration::from_secs(2),
            probes: 3,
        });
    });
    h.pass(Duration::from_secs(9));
    h.silent();
    h.pass(Duration::from_secs(1));
    let probe = h.one().header;
    assert_eq!(probe.seq, iss);
    // An answer counts for the whole time again.
    h.input(Flags::ACK, peer(0), iss.wrapping_add(1), &[]);
    h.pass(Duration::from_secs(9));
    h.silent();
    h.pass(Duration::from_secs(10));
    let sent = h.sent();
    assert_eq!(sent.len(), 4, "three probes and a reset");
    assert!(sent[3].header.flags.contains(Flags::RST));
    assert_eq!(h.state(id), State::Closed);
}

/// denoland/clawpatrol#147: a full transmit queue must hold data back, not lose it.
#[test]
fn clawpatrol_147_full_ring_loses_nothing() {
    let nic = NicConfig {
        tx_slots: 20,
        completion: CompletionTime::AfterSent(Duration::from_micros(200)),
        ..NicConfig::default()
    };
    let (mut network, a, b) = Network::pair(nic, lan());
    for host in [&a, &b] {
        // By measurement flows keep within the ring.
        host.net
            .with(|stack| stack.tcp_and_device().0.config_mut().tsq_policy = TsqPolicy::Paced);
    }
    transfer::exchange(&mut network, &a, &b, 5_000_000);
    network.run_for(Duration::from_millis(1));
    for host in [&a, &b] {
        let counters = host.net.with(|stack| stack.tcp().counters().clone());
        assert_eq!((counters.retrans_segs, counters.timeouts), (0, 0));
        assert!(counters.device_busy > 0);
        let NicCounters { tx_full, .. } = host.nic.counters();
        assert!(tx_full > 0);
        assert_eq!(host.nic.slots_in_use(), 0);
    }
}

#[test]
fn busy_device_changes_nothing() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    h.wire.room = 0;
    h.write(id, &[1; 3000]);
    h.input(Flags::ACK, peer(100), iss.wrapping_add(1), b"early");
    let before = h.info(id);
    for _ in 0..10 {
        h.poll();
    }
    assert_eq!(h.info(id), before);
    assert_eq!(before.unacked_bytes, 0);
    h.wire.room = usize::MAX;
    h.poll();
    let out = h.one();
    assert_eq!(out.payload.len(), 3000);
    assert_eq!(out.header.options.sack.len(), 1, "the gap is told too");
}

#[test]
fn device_share_is_counted_and_credited() {
    let mut h = Harness::new();
    h.keeps = true;
    let (id, _) = h.established();
    h.write(id, &[1; 10_000]);
    let out = h.one();
    assert_eq!(h.info(id).in_device_bytes, 10_000);
    h.complete(&out);
    assert_eq!(h.info(id).in_device_bytes, 0);
    // Another connection in the same place owes nothing for it.
    h.tcp.abort(id);
    h.tcp.release(id, false, h.now);
    h.poll();
    h.sent();
    let (next, _) = h.established();
    assert_ne!(next, id);
    h.write(next, &[1; 10_000]);
    h.complete(&out);
    assert_eq!(h.info(next).in_device_bytes, 10_000);
}

/// hermit kernel#2128: 0.04 MiB/s with small writes.
#[test]
fn hermit_2128_small_writes_are_as_fast_as_large_ones() {
    let time = |write: usize| {
        let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
        let listener = TcpListener::bind(&b.net, server_addr(), 1).unwrap();
        network.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            while !stream.fill_buf().await.unwrap().is_empty() {
                let len = stream.fill_buf().await.unwrap().len();
                stream.consume(len);
            }
        });
        let net = a.net.clone();
        network.spawn(async move {
            let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
            let data = vec![1; write];
            for _ in 0..(8 << 20) / write {
                stream.write_all(&data).await.unwrap();
            }
        });
        let start = network.now();
        assert!(network.run_tasks(Duration::from_secs(100)));
        network.now().since(start).as_micros()
    };
    let (small, large) = (time(1 << 10), time(1 << 20));
    assert!(small * 10 <= large * 12, "{small} us against {large} us");
}

#[test]
fn writer_waits_for_pages_and_wakes() {
    let nic = NicConfig {
        pages: 64,
        rx_frames: 16,
        ..NicConfig::default()
    };
    let (mut network, a, b) = Network::pair(nic, lan());
    let took = transfer::exchange(&mut network, &a, &b, 2_000_000);
    assert!(took < Duration::from_mins(1), "{took:?}");
    network.run_for(Duration::from_secs(70));
    assert_eq!((a.nic.pages_in_use(), b.nic.pages_in_use()), (0, 0));
}

/// smoltcp#518: segments of other connections must not leak in.
#[test]
fn smoltcp_518_reset_storm_while_streaming() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    let net = a.net.clone();
    let clock = network.clock();
    network.spawn(async move {
        for port in 0..500 {
            let closed = SocketAddr::new(server_addr().ip(), 10_000 + port);
            assert!(TcpStream::connect(&net, closed).await.is_err());
            clock.sleep(Duration::from_micros(100)).await;
        }
    });
    transfer::exchange(&mut network, &a, &b, 5_000_000);
    let counters = b.net.with(|stack| stack.tcp().counters().clone());
    assert_eq!(counters.out_rsts, 500);
    let counters = a.net.with(|stack| stack.tcp().counters().clone());
    assert_eq!((counters.retrans_segs, counters.estab_resets), (0, 0));
}

/// asterinas#1331: receiving must not starve sending, nor the other way round.
#[test]
fn asterinas_1331_both_directions_at_once() {
    let run = |both: bool| {
        let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
        let (done, set) = shared([Duration::ZERO; 2]);
        let listener = TcpListener::bind(&b.net, server_addr(), 2).unwrap();
        let server_clock = network.clock();
        let server_set = Rc::clone(&set);
        network.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            receive_pattern(&mut stream).await;
            let mut times = server_set.get();
            times[0] = server_clock.now().since(Instant::ZERO);
            server_set.set(times);
        });
        let net = a.net.clone();
        network.spawn(async move {
            let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
            send_pattern(&mut stream, 20_000_000).await;
        });
        if both {
            let listener = TcpListener::bind(&a.net, "192.0.2.1:99".parse().unwrap(), 1).unwrap();
            let clock = network.clock();
            network.spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                receive_pattern(&mut stream).await;
                let mut times = set.get();
                times[1] = clock.now().since(Instant::ZERO);
                set.set(times);
            });
            let net = b.net.clone();
            network.spawn(async move {
                let remote = "192.0.2.1:99".parse().unwrap();
                let mut stream = TcpStream::connect(&net, remote).await.unwrap();
                send_pattern(&mut stream, 20_000_000).await;
            });
        }
        assert!(network.run_tasks(Duration::from_secs(100)));
        done.get()
    };
    let solo = run(false)[0];
    let [forth, back] = run(true);
    for time in [forth, back] {
        assert!(time * 4 < solo * 10, "{time:?} against {solo:?} alone");
    }
}

#[test]
fn many_flows_share_the_device_fairly() {
    let nic = NicConfig {
        tx_slots: 64,
        ..NicConfig::default()
    };
    let (mut network, a, b) = Network::pair(nic, lan());
    let listener = TcpListener::bind(&b.net, server_addr(), 16).unwrap();
    let counts: Rc<RefCell<Vec<usize>>> = Rc::default();
    let server_counts = Rc::clone(&counts);
    network.spawn(async move {
        let mut streams = Vec::new();
        for _ in 0..8 {
            streams.push(listener.accept().await.unwrap().0);
        }
        server_counts.borrow_mut().resize(8, 0);
        loop {
            for (index, stream) in streams.iter_mut().enumerate() {
                let len = stream.fill_buf().await.unwrap().len();
                stream.consume(len);
                server_counts.borrow_mut()[index] += len;
            }
        }
    });
    for _ in 0..8 {
        let net = a.net.clone();
        network.spawn(async move {
            let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
            let data = vec![0; 65_536];
            loop {
                stream.write_all(&data).await.unwrap();
            }
        });
    }
    network.run_for(Duration::from_secs(1));
    let counts = counts.borrow();
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(least * 2 > *most, "{counts:?}");
}

#[test]
fn window_closed_over_sent_data_is_no_death() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    let ack = iss.wrapping_add(1);
    h.write(id, &[1; 3000]);
    h.sent();
    for _ in 0..40 {
        h.input_with(Flags::ACK, peer(0), ack, &[], |header| header.window = 0);
        h.pass(Duration::from_secs(121));
        let again = h.sent();
        assert!(!again.is_empty());
        assert!(again.iter().all(|out| out.header.seq == ack));
    }
    h.input(Flags::ACK, peer(0), ack.wrapping_add(3000), &[]);
    let info = h.info(id);
    assert_eq!((info.state, info.unacked_bytes), (State::Established, 0));
}

/// gvisor#9816: a large packet a few bytes over the NIC's limit stalls for ever.
#[test]
fn gvisor_9816_largest_packet_counts_every_header() {
    for (limit, timestamps) in [
        (65_535, true),
        (65_535, false),
        (65_521, true),
        (9000, true),
    ] {
        let mut h = Harness::new();
        h.tcp.config_mut().timestamps = timestamps;
        h.timestamps = timestamps;
        let mut route = h.wire.route.unwrap();
        route.max_tso_bytes = limit;
        h.wire.route = Ok(route);
        let (id, iss) = h.established_with(|header| header.options.window_scale = Some(7));
        let mut acked = 0;
        let mut largest = 0;
        for _ in 0..12 {
            h.write(id, &vec![1; 1 << 20]);
            // The way out asserts the limit.
            for out in h.sent() {
                acked += out.payload.len() as u32;
                largest = largest.max(out.payload.len());
            }
            h.input(Flags::ACK, peer(0), iss.wrapping_add(1 + acked), &[]);
        }
        assert!(largest as u32 + 100 + MSS > limit, "{largest} of {limit}");
    }
}
