//! Opening connections.

use super::{
    super::{AcceptError, ConnectError, ListenError, State},
    harness::{self, Harness, PEER, PEER_PORT, peer},
    *,
};
use crate::{sim::Fate, wire::tcp::Flags};
use core::task::{Poll, Waker};

#[test]
fn listener_takes_bounded_numbers_and_never_resets() {
    let mut h = Harness::new();
    let listener = h.listen(3);
    for port in 0..10 {
        h.input_from(40_000 + port, syn(500), &[]);
    }
    let answers = h.sent();
    assert_eq!(answers.len(), 3, "the rest is dropped, not reset");
    assert!(
        answers
            .iter()
            .all(|out| out.header.flags == Flags::SYN | Flags::ACK)
    );
    assert_eq!(h.tcp.counters().listen_overflows, 7);
    // One is established and accepted: there is room for another.
    let out = &answers[0].header;
    let ack = crate::wire::tcp::Header {
        flags: Flags::ACK,
        seq: 501,
        ack: out.seq.wrapping_add(1),
        window: 1000,
        ..Default::default()
    };
    h.input_from(out.dst_port, ack, b"hello");
    let accepted = h.tcp.poll_accept(listener, Waker::noop());
    let Poll::Ready(Ok((id, _, remote))) = accepted else {
        panic!("{accepted:?}");
    };
    assert_eq!(remote.port(), out.dst_port);
    assert_eq!(h.read(id), b"hello");
    h.sent();
    h.input_from(40_009, syn(500), &[]);
    assert_eq!(h.one().header.flags, Flags::SYN | Flags::ACK);
}

fn syn(seq: u32) -> crate::wire::tcp::Header {
    crate::wire::tcp::Header {
        flags: Flags::SYN,
        seq,
        window: 1000,
        ..Default::default()
    }
}

#[test]
fn full_accept_queue_drops_the_last_acknowledgment() {
    let mut h = Harness::new();
    let listener = h.listen(2);
    let mut acks = Vec::new();
    for port in [40_000, 40_001] {
        h.input_from(port, syn(500), &[]);
        let out = h.one().header;
        acks.push((
            port,
            crate::wire::tcp::Header {
                flags: Flags::ACK,
                seq: 501,
                ack: out.seq.wrapping_add(1),
                window: 1000,
                ..Default::default()
            },
        ));
    }
    for (port, ack) in &acks {
        h.input_from(*port, ack.clone(), &[]);
    }
    // Both places are taken: a third peer must ask again.
    h.input_from(40_002, syn(500), &[]);
    h.silent();
    assert!(h.tcp.poll_accept(listener, Waker::noop()).is_ready());
    h.input_from(40_002, syn(500), &[]);
    assert_eq!(h.one().header.flags, Flags::SYN | Flags::ACK);
}

#[test]
fn half_open_connections_are_given_up() {
    let mut h = Harness::new();
    h.listen(1);
    h.input_from(40_000, syn(500), &[]);
    h.one();
    h.pass(Duration::from_secs(200));
    let again = h.sent();
    assert_eq!(again.len(), 5, "tcp_synack_retries");
    assert_eq!(h.tcp.count(), (0, 0));
    h.input_from(40_001, syn(500), &[]);
    assert_eq!(h.one().header.flags, Flags::SYN | Flags::ACK);
}

/// A flood of SYNs from peers that do not exist must not shut real ones out for longer than a
/// retransmission takes, and must not displace a handshake that is merely slow.
#[test]
fn a_syn_flood_ends_when_it_ends() {
    let mut h = Harness::new();
    let listener = h.listen(8);
    for port in 0..1000 {
        h.input_from(10_000 + port, syn(500), &[]);
    }
    assert_eq!(h.sent().len(), 8);
    h.input_from(40_000, syn(500), &[]);
    h.silent();
    h.pass(Duration::from_millis(1100));
    assert_eq!(h.sent().len(), 8, "each SYN and ACK again");
    h.input_from(40_000, syn(500), &[]);
    let out = h.one().header;
    assert_eq!((out.dst_port, out.flags), (40_000, Flags::SYN | Flags::ACK));
    for port in 0..1000 {
        h.input_from(20_000 + port, syn(500), &[]);
    }
    let ack = crate::wire::tcp::Header {
        flags: Flags::ACK,
        seq: 501,
        ack: out.seq.wrapping_add(1),
        window: 1000,
        ..Default::default()
    };
    h.input_from(40_000, ack, &[]);
    assert!(h.tcp.poll_accept(listener, Waker::noop()).is_ready());
    h.pass(Duration::from_mins(5));
    assert_eq!(h.tcp.count().0, 1);
}

#[test]
fn closing_the_listener_resets_what_nobody_accepted() {
    let mut h = Harness::new();
    let listener = h.listen(4);
    h.input_from(40_000, syn(500), &[]);
    let out = h.one().header;
    h.tcp.close_listener(listener);
    h.poll();
    let reset = h.one().header;
    assert!(reset.flags.contains(Flags::RST));
    assert_eq!(
        (reset.seq, reset.dst_port),
        (out.seq.wrapping_add(1), 40_000)
    );
    assert_eq!(h.tcp.count(), (0, 0));
    let accepted = h.tcp.poll_accept(listener, Waker::noop());
    assert!(matches!(accepted, Poll::Ready(Err(AcceptError::Closed))));
}

#[test]
fn syn_is_sent_again_and_then_given_up() {
    let mut h = Harness::new();
    let id = h.connect();
    let first = h.one().header;
    h.pass(Duration::from_mins(5));
    let again = h.sent();
    assert_eq!(again.len(), 6, "tcp_syn_retries");
    assert!(again.iter().all(|out| out.header.seq == first.seq));
    let connected = h.tcp.poll_connected(id, Waker::noop());
    assert_eq!(connected, Poll::Ready(Err(ConnectError::TimedOut)));
    h.tcp.release(id, false, h.now);
    assert_eq!(h.tcp.count(), (0, 0));
}

#[test]
fn no_route_is_told_at_once() {
    let mut h = Harness::new();
    h.wire.route = Err(crate::ip::SendError::NoRoute);
    let id = h.connect();
    let connected = h.tcp.poll_connected(id, Waker::noop());
    assert_eq!(connected, Poll::Ready(Err(ConnectError::Unreachable)));
}

#[test]
fn names_are_checked() {
    let mut h = Harness::new();
    h.listen(1);
    let options = h.options();
    let in_use = h.tcp.listen(Harness::us(), 1, options.clone());
    assert!(matches!(in_use, Err(ListenError::AddressInUse(_))));
    let zero = SocketAddr::new(harness::US, 0);
    assert!(matches!(
        h.tcp.listen(zero, 1, options.clone()),
        Err(ListenError::PortZero)
    ));
    for remote in [
        "0.0.0.0:80",
        "224.0.0.1:80",
        "255.255.255.255:80",
        "192.0.2.2:0",
    ] {
        let remote = remote.parse().unwrap();
        let result = h.tcp.connect(h.now, zero, remote, options.clone());
        assert_eq!(result, Err(ConnectError::InvalidAddress(remote)));
    }
    h.connect();
    let again = h.tcp.connect(
        h.now,
        Harness::us(),
        SocketAddr::new(PEER, PEER_PORT),
        options,
    );
    assert_eq!(again, Err(ConnectError::AddressInUse));
}

#[test]
fn all_ports_to_one_peer_can_be_used() {
    let mut h = Harness::new();
    h.tcp.config_mut().max_connections = usize::MAX;
    let any = SocketAddr::new(harness::US, 0);
    let remote = SocketAddr::new(PEER, PEER_PORT);
    // Ports that a listener has are left out.
    let taken = SocketAddr::new(harness::US, 33_000);
    let options = h.options();
    h.tcp.listen(taken, 1, options.clone()).unwrap();
    let mut count = 0;
    while let Ok(_id) = h.tcp.connect(h.now, any, remote, options.clone()) {
        count += 1;
        if count > 70_000 {
            break;
        }
    }
    assert_eq!(count, 60_999 - 32_768);
    let result = h.tcp.connect(h.now, any, remote, options);
    assert_eq!(result, Err(ConnectError::NoPortLeft));
}

#[test]
fn write_before_the_handshake_waits_and_close_follows_it() {
    let mut h = Harness::new();
    let id = h.connect();
    let iss = h.one().header.seq;
    h.shutdown(id);
    h.silent();
    h.input(
        Flags::SYN | Flags::ACK,
        harness::PEER_ISS,
        iss.wrapping_add(1),
        &[],
    );
    let fin = h.one().header;
    assert_eq!(fin.flags, Flags::FIN | Flags::ACK);
    assert_eq!(h.state(id), State::FinWait1);
    h.input(Flags::ACK, peer(0), iss.wrapping_add(2), &[]);
    assert_eq!(h.state(id), State::FinWait2);
}

/// smoltcp#1118, #1120: a listener that serves one at a time resets the others.
#[test]
fn smoltcp_1118_a_thousand_connects_at_once() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    let listener = TcpListener::bind(&b.net, server_addr(), 1024).unwrap();
    let (served, serve) = shared(0);
    let net = b.net.clone();
    network.spawn(async move {
        let _net = net;
        for _ in 0..1000 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buf = [0; 8];
            stream.read_exact(&mut buf).await.unwrap();
            stream.write_all(&buf).await.unwrap();
            serve.set(serve.get() + 1);
        }
    });
    let (answered, answer) = shared(0);
    for i in 0..1000u64 {
        let net = a.net.clone();
        let answer = Rc::clone(&answer);
        network.spawn(async move {
            let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
            stream.write_all(&i.to_be_bytes()).await.unwrap();
            let mut buf = [0; 8];
            stream.read_exact(&mut buf).await.unwrap();
            assert_eq!(u64::from_be_bytes(buf), i);
            answer.set(answer.get() + 1);
        });
    }
    assert!(network.run_tasks(Duration::from_mins(1)));
    assert_eq!((served.get(), answered.get()), (1000, 1000));
    let counters = b.net.with(|stack| stack.tcp().counters().clone());
    assert_eq!(counters.out_rsts, 0);
}

#[test]
fn refused_and_reset_are_told() {
    let (mut network, a, _b) = Network::pair(NicConfig::default(), lan());
    let net = a.net.clone();
    let (result, set) = shared(None);
    network.spawn(async move {
        set.set(TcpStream::connect(&net, server_addr()).await.err());
    });
    assert!(network.run_tasks(Duration::from_secs(1)));
    assert_eq!(result.get(), Some(ConnectError::Refused));
}

#[test]
fn handshake_survives_the_loss_of_each_segment() {
    for lost in 0..3 {
        for from_client in [true, false] {
            let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
            let mut count = 0;
            let host = if from_client { a.clone() } else { b.clone() };
            network.hook(&host, move |_, frame| {
                let is_tcp = frame.bytes.get(23) == Some(&6);
                count += usize::from(is_tcp);
                if is_tcp && count == lost + 1 {
                    Fate::Drop
                } else {
                    Fate::Deliver
                }
            });
            transfer::exchange(&mut network, &a, &b, 10_000);
        }
    }
}
