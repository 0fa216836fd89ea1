//! Closing connections, and what remains of them.

use super::{
    super::{ReadError, State, WriteError},
    harness::{Harness, peer},
    *,
};
use crate::{
    socket::StreamError,
    wire::tcp::{Flags, Timestamps},
};

#[test]
fn half_close_both_ways() {
    // The client closes first and still reads: `exchange` does that. Here the server does.
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    let listener = TcpListener::bind(&b.net, server_addr(), 1).unwrap();
    let (got, set) = shared(0);
    network.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"bye").await.unwrap();
        stream.shutdown();
        let late = stream.write_all(b"more").await;
        assert_eq!(late, Err(StreamError::Write(WriteError::Closed)));
        set.set(receive_pattern(&mut stream).await);
    });
    let net = a.net.clone();
    network.spawn(async move {
        let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
        let mut text = [0; 3];
        stream.read_exact(&mut text).await.unwrap();
        assert_eq!(stream.read(&mut text).await, Ok(0));
        send_pattern(&mut stream, 1_000_000).await;
    });
    assert!(network.run_tasks(Duration::from_secs(10)));
    network.run_for(Duration::from_secs(1));
    assert_eq!(got.get(), 1_000_000);
    assert_eq!(a.net.with(|stack| stack.tcp().count()), (0, 0));
    assert_eq!(b.net.with(|stack| stack.tcp().count()), (0, 1), "TIME-WAIT");
    network.run_for(Duration::from_mins(1));
    assert_eq!(b.net.with(|stack| stack.tcp().count()), (0, 0));
    assert_eq!((a.nic.pages_in_use(), b.nic.pages_in_use()), (0, 0));
}

#[test]
fn rfc_2525_unread_data_is_told_by_a_reset() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    h.input(Flags::ACK, peer(0), iss.wrapping_add(1), b"unread");
    h.sent();
    h.tcp.release(id, false, h.now);
    h.poll();
    let reset = h.one().header;
    assert!(reset.flags.contains(Flags::RST));
    assert_eq!(reset.seq, iss.wrapping_add(1));
    assert_eq!(h.tcp.count(), (0, 0));
}

#[test]
fn data_held_by_the_socket_counts_as_unread() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    let listener = TcpListener::bind(&b.net, server_addr(), 1).unwrap();
    network.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert_eq!(stream.fill_buf().await.unwrap(), b"data");
        stream.consume(1);
    });
    let (error, set) = shared(None);
    let net = a.net.clone();
    network.spawn(async move {
        let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
        stream.write_all(b"data").await.unwrap();
        set.set(stream.read(&mut [0; 1]).await.err());
    });
    assert!(network.run_tasks(Duration::from_secs(1)));
    assert_eq!(error.get(), Some(StreamError::Read(ReadError::Reset)));
}

#[test]
fn fin_wait_2_ends_when_nobody_waits() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    h.tcp.release(id, false, h.now);
    h.poll();
    h.sent();
    h.input(Flags::ACK, peer(0), iss.wrapping_add(2), &[]);
    assert_eq!(h.tcp.count(), (1, 0));
    h.pass(Duration::from_secs(61));
    assert_eq!(h.tcp.count(), (0, 0));
    assert_eq!(h.tcp.counters().abort_on_linger, 1);
}

#[test]
fn fin_wait_2_lasts_while_somebody_reads() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    h.shutdown(id);
    h.sent();
    h.input(Flags::ACK, peer(0), iss.wrapping_add(2), &[]);
    h.pass(Duration::from_hours(1));
    h.input(Flags::ACK, peer(0), iss.wrapping_add(2), b"late");
    assert_eq!(h.read(id), b"late");
    assert_eq!(h.state(id), State::FinWait2);
}

#[test]
fn close_that_is_never_answered_is_given_up() {
    let mut h = Harness::new();
    let (id, _) = h.established();
    h.write(id, b"last words");
    h.tcp.release(id, false, h.now);
    h.poll();
    h.pass(Duration::from_secs(2000));
    let sent = h.sent();
    // The data, the FIN, a loss probe, `tcp_orphan_retries`, the reset.
    assert_eq!(sent.len(), 2 + 1 + 8 + 1);
    assert!(sent.last().unwrap().header.flags.contains(Flags::RST));
    assert_eq!(h.tcp.count(), (0, 0));
}

#[test]
fn user_timeout_ends_it_earlier() {
    let mut h = Harness::new();
    let (id, _) = h.established();
    let now = h.now;
    h.tcp.set_options(id, now, |options| {
        options.user_timeout = Some(Duration::from_secs(5));
    });
    h.write(id, b"anyone?");
    h.pass(Duration::from_secs(4));
    assert_eq!(h.state(id), State::Established);
    h.pass(Duration::from_secs(10));
    assert_eq!(h.state(id), State::Closed);
}

/// A name in TIME-WAIT is taken up by the next SYN, with a sequence number after the old ones.
#[test]
fn time_wait_gives_way_to_a_new_connection() {
    let mut h = Harness::new();
    h.tcp.config_mut().timestamps = true;
    h.timestamps = true;
    let (id, iss) = h.established();
    h.shutdown(id);
    h.input(Flags::FIN | Flags::ACK, peer(0), iss.wrapping_add(2), &[]);
    assert_eq!(h.tcp.count().1, 1);
    h.tcp.release(id, false, h.now);
    h.sent();
    h.listen(1);
    // An old duplicate SYN is answered for the old connection.
    h.input_with(Flags::SYN, peer(0), 0, &[], |header| {
        header.options.timestamps = Some(Timestamps { value: 1, echo: 0 });
    });
    let answer = h.one().header;
    assert_eq!((answer.flags, answer.ack), (Flags::ACK, peer(1)));
    h.pass(Duration::from_secs(1));
    h.sent();
    h.input(Flags::SYN, peer(0).wrapping_sub(1000), 0, &[]);
    let answer = h.one().header;
    assert_eq!(answer.flags, Flags::SYN | Flags::ACK);
    assert!((answer.seq.wrapping_sub(iss) as i32) > 0);
    assert_eq!(h.tcp.count().1, 0);
    assert_eq!(h.tcp.counters().time_wait_recycled, 1);
}

#[test]
fn connect_takes_up_a_name_in_time_wait() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    h.shutdown(id);
    h.input(Flags::FIN | Flags::ACK, peer(0), iss.wrapping_add(2), &[]);
    h.tcp.release(id, false, h.now);
    h.sent();
    h.connect();
    let syn = h.one().header;
    assert_eq!(syn.flags, Flags::SYN);
    assert!((syn.seq.wrapping_sub(iss.wrapping_add(2)) as i32) > 0);
}

/// unikraft#736: accept hangs after 100 to 2,000 connections.
#[test]
fn unikraft_736_a_hundred_thousand_short_connections() {
    const COUNT: u32 = 100_000;
    let link = Link {
        delay: Duration::from_micros(10),
        ..Link::default()
    };
    let (mut network, a, b) = Network::pair(NicConfig::default(), link);
    let listener = TcpListener::bind(&b.net, server_addr(), 128).unwrap();
    network.spawn(async move {
        for _ in 0..COUNT {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buf = [0; 4];
            stream.read_exact(&mut buf).await.unwrap();
            stream.write_all(&buf).await.unwrap();
        }
    });
    let net = a.net.clone();
    network.spawn(async move {
        for i in 0..COUNT {
            let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
            stream.set_nodelay(true);
            stream.write_all(&i.to_be_bytes()).await.unwrap();
            let mut buf = [0; 4];
            stream.read_exact(&mut buf).await.unwrap();
            assert_eq!(u32::from_be_bytes(buf), i);
            // Who closes first is left to chance: the server by its drop, or the client by this.
            if i % 2 == 0 {
                assert_eq!(stream.read(&mut buf).await, Ok(0));
            }
        }
    });
    assert!(network.run_tasks(Duration::from_hours(1)));
    network.run_for(Duration::from_secs(1));
    for host in [&a, &b] {
        let (open, waiting) = host.net.with(|stack| stack.tcp().count());
        assert_eq!(open, 0);
        assert!(waiting <= 4096);
    }
    network.run_for(Duration::from_mins(2));
    assert_eq!((a.nic.pages_in_use(), b.nic.pages_in_use()), (0, 0));
}

#[test]
fn abort_resets_at_once() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    h.write(id, &[1; 100]);
    h.sent();
    h.tcp.abort(id);
    h.poll();
    let reset = h.one().header;
    assert!(reset.flags.contains(Flags::RST));
    assert_eq!(reset.seq, iss.wrapping_add(101));
    let read = h.tcp.poll_read(id, core::task::Waker::noop(), &mut [0]);
    assert_eq!(read, core::task::Poll::Ready(Err(ReadError::Aborted)));
}

/// A peer that keeps its window closed and answers every probe must not have us keep what was
/// written for ever, once our side has closed.
#[test]
fn a_closed_window_does_not_hold_a_closed_connection_for_ever() {
    for sent_before in [0, 1000] {
        let mut h = Harness::new();
        let (id, iss) = h.established();
        let una = iss.wrapping_add(1);
        if sent_before > 0 {
            h.write(id, &vec![1; sent_before]);
        }
        h.input_with(Flags::ACK, peer(0), una, &[], |header| header.window = 0);
        h.write(id, &[1; 5000]);
        h.tcp.release(id, false, h.now);
        h.sent();
        let start = h.now;
        let mut reset = false;
        while !reset && h.now.since(start) < Duration::from_hours(24) {
            h.pass(Duration::from_millis(100));
            for out in h.sent() {
                reset |= out.header.flags.contains(Flags::RST);
                h.input_with(Flags::ACK, peer(0), una, &[], |header| header.window = 0);
            }
        }
        let took = h.now.since(start);
        assert!(reset, "{sent_before}");
        assert!(took > Duration::from_secs(30), "{took:?}: too impatient");
        assert!(took < Duration::from_mins(10), "{took:?}: too patient");
        assert_eq!(h.tcp.count().0, 0);
    }
}

#[test]
fn closing_before_a_gap_is_filled_resets() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    h.input(Flags::ACK, peer(1000), iss.wrapping_add(1), &[1; 1000]);
    h.sent();
    h.tcp.release(id, false, h.now);
    h.poll();
    assert!(h.one().header.flags.contains(Flags::RST));
    assert_eq!(h.tcp.count().0, 0);
}
