//! Sockets: by-reference calls, several tasks, settings, ends.

use super::{
    super::{ConnectError, State, WriteError},
    *,
};
use crate::{
    device::{Device, Page, Slice},
    socket::StreamError,
};
use core::{future::poll_fn, pin::pin, task::Poll};

/// A server that checks that it gets `len` bytes of the pattern.
fn expect_pattern(network: &mut Network, host: &Host, len: usize) -> Rc<Cell<usize>> {
    let listener = TcpListener::bind(&host.net, server_addr(), 4).unwrap();
    let (got, set) = shared(0);
    network.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        set.set(receive_pattern(&mut stream).await);
        assert_eq!(set.get(), len);
    });
    got
}

#[test]
fn pages_are_reserved_filled_and_committed() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    let got = expect_pattern(&mut network, &b, 3_000_000);
    let net = a.net.clone();
    network.spawn(async move {
        let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
        let mut position = 0;
        while position < 3_000_000 {
            let mut page = stream.reserve().await.unwrap();
            // Pages need not be filled.
            let part = page.spare_mut().len().min(3_000_000 - position) * 2 / 3 + 1;
            for (byte, at) in page.spare_mut()[..part].iter_mut().zip(position..) {
                *byte = pattern(at);
            }
            page.commit(part);
            position += part;
            stream.commit(page).await.unwrap();
        }
    });
    assert!(network.run_tasks(Duration::from_secs(10)));
    assert_eq!(got.get(), 3_000_000);
    network.run_for(Duration::from_mins(2));
    assert_eq!((a.nic.pages_in_use(), b.nic.pages_in_use()), (0, 0));
}

#[test]
fn one_page_is_sent_many_times() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    let listener = TcpListener::bind(&b.net, server_addr(), 1).unwrap();
    let (got, set) = shared(0);
    network.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        loop {
            let bytes = stream.fill_buf().await.unwrap();
            assert!(bytes.iter().all(|&byte| byte == 0x5a));
            if bytes.is_empty() {
                return;
            }
            let len = bytes.len();
            stream.consume(len);
            set.set(set.get() + len);
        }
    });
    let net = a.net.clone();
    let nic = a.nic.clone();
    network.spawn(async move {
        let mut page = net.with(|stack| stack.device_mut().alloc_page()).unwrap();
        page.append(&[0x5a; 4096]);
        let slice = Slice::whole(page);
        let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
        for _ in 0..2000 {
            stream.write_slice(slice.clone()).await.unwrap();
            assert!(nic.pages_in_use() < 40, "pages of acknowledgments only");
        }
    });
    assert!(network.run_tasks(Duration::from_secs(10)));
    assert_eq!(got.get(), 2000 * 4096);
}

#[test]
fn short_slices_fill_packets_of_few_slices() {
    let nic = NicConfig {
        max_tx_slices: 5,
        ..NicConfig::default()
    };
    let (mut network, a, b) = Network::pair(nic, lan());
    let got = expect_pattern(&mut network, &b, 400_000);
    let net = a.net.clone();
    network.spawn(async move {
        let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
        let mut position = 0;
        let mut size = 1;
        while position < 400_000 {
            let mut page = stream.reserve().await.unwrap();
            let part = size.min(400_000 - position);
            size = size * 7 % 1999 + 1;
            for (byte, at) in page.spare_mut()[..part].iter_mut().zip(position..) {
                *byte = pattern(at);
            }
            page.commit(part);
            position += part;
            stream.write_slice(Slice::whole(page)).await.unwrap();
        }
    });
    assert!(network.run_tasks(Duration::from_secs(10)));
    assert_eq!(got.get(), 400_000);
}

#[test]
fn vectored_reads_and_writes() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    let listener = TcpListener::bind(&b.net, server_addr(), 1).unwrap();
    network.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut x, mut y) = ([0; 3], [0; 8]);
        let mut got = Vec::new();
        loop {
            let len = stream
                .read_vectored(&mut [&mut x, &mut [], &mut y])
                .await
                .unwrap();
            if len == 0 {
                break;
            }
            got.extend_from_slice(&x[..len.min(3)]);
            got.extend_from_slice(&y[..len.saturating_sub(3)]);
        }
        assert_eq!(got, b"hello, world");
    });
    let net = a.net.clone();
    network.spawn(async move {
        let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
        let written = stream
            .write_vectored(&[b"hello", b"", b", ", b"world"])
            .await;
        assert_eq!(written, Ok(12));
        stream.flush().await.unwrap();
        assert_eq!(stream.info().unwrap().bytes_acked, 12);
    });
    assert!(network.run_tasks(Duration::from_secs(10)));
}

#[test]
fn two_tasks_use_the_two_sides() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    let listener = TcpListener::bind(&b.net, server_addr(), 1).unwrap();
    network.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        let mut buffer = vec![0; 10_000];
        loop {
            let len = reader.read(&mut buffer).await.unwrap();
            if len == 0 {
                return;
            }
            writer.write_all(&buffer[..len]).await.unwrap();
        }
    });
    let net = a.net.clone();
    let (echoed, set) = shared(0);
    // The two sides go to tasks of their own once there is a connection.
    let (mut reader, mut writer) = {
        let stream: Rc<RefCell<Option<TcpStream<_>>>> = Rc::default();
        let place = Rc::clone(&stream);
        network.spawn(async move {
            let connected = TcpStream::connect(&net, server_addr()).await.unwrap();
            place.replace(Some(connected));
        });
        network.run_for(Duration::from_secs(1));
        stream.take().expect("connected").into_split()
    };
    network.spawn(async move {
        send_pattern(&mut writer, 2_000_000).await;
        // Its drop closes the sending side.
    });
    network.spawn(async move { set.set(receive_pattern(&mut reader).await) });
    assert!(network.run_tasks(Duration::from_secs(10)));
    assert_eq!(echoed.get(), 2_000_000);
}

#[test]
fn dropping_an_attempt_gives_it_up() {
    let (mut network, a, _b) = Network::pair(NicConfig::default(), lan());
    let net = a.net.clone();
    let nobody = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 99), 1));
    network.spawn(async move {
        let mut attempt = pin!(TcpStream::connect(&net, nobody));
        poll_fn(|cx| {
            assert!(attempt.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        assert_eq!(net.with(|stack| stack.tcp().count()), (1, 0));
    });
    assert!(network.run_tasks(Duration::from_secs(1)));
    assert_eq!(a.net.with(|stack| stack.tcp().count()), (0, 0));
}

#[test]
fn peers_that_do_not_answer_arp_are_unreachable() {
    let (mut network, a, _b) = Network::pair(NicConfig::default(), lan());
    let net = a.net.clone();
    let nobody = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 99), 1));
    let (error, set) = shared(None);
    network.spawn(async move { set.set(TcpStream::connect(&net, nobody).await.err()) });
    assert!(network.run_tasks(Duration::from_mins(5)));
    assert_eq!(error.get(), Some(ConnectError::Unreachable));
}

#[test]
fn connection_survives_a_pulled_cable() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    let got = expect_pattern(&mut network, &b, 10_000_000);
    let net = a.net.clone();
    network.spawn(async move {
        let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
        send_pattern(&mut stream, 10_000_000).await;
    });
    network.run_for(Duration::from_millis(20));
    a.nic.set_link(false);
    network.run_for(Duration::from_secs(5));
    a.nic.set_link(true);
    assert!(network.run_tasks(Duration::from_mins(1)));
    assert_eq!(got.get(), 10_000_000);
}

#[test]
fn settings_hold_from_the_handshake_on() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    let listener = TcpListener::bind_with(&b.net, server_addr(), 1, |options| {
        options.max_segment_bytes = Some(700);
        options.rcvbuf_bytes = Some(30_000);
    })
    .unwrap();
    network.spawn(async move {
        let (mut stream, peer) = listener.accept().await.unwrap();
        assert_eq!(peer.port(), 4321);
        receive_pattern(&mut stream).await;
    });
    let net = a.net.clone();
    network.spawn(async move {
        let connect = TcpStream::connect_with(&net, Some(4321), server_addr(), |options| {
            options.nodelay = true;
        });
        let mut stream = connect.await.unwrap();
        assert_eq!(stream.local_addr().port(), 4321);
        send_pattern(&mut stream, 200_000).await;
        let info = stream.info().unwrap();
        assert_eq!(info.state, State::Established);
        assert_eq!(info.snd_mss, 688, "timestamps take twelve");
        assert!(info.snd_wnd <= 30_000 + 512, "{}", info.snd_wnd);
    });
    network.run_for(Duration::from_secs(2));
    assert_eq!(b.net.with(|stack| stack.tcp().count()).0, 0);
}

#[test]
fn writing_after_the_peer_reset_tells_why() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    let listener = TcpListener::bind(&b.net, server_addr(), 1).unwrap();
    network.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        stream.abort();
    });
    let net = a.net.clone();
    let (error, set) = shared(None);
    let clock = network.clock();
    network.spawn(async move {
        let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
        clock.sleep(Duration::from_millis(10)).await;
        set.set(stream.write(b"data").await.err());
    });
    assert!(network.run_tasks(Duration::from_secs(1)));
    assert_eq!(error.get(), Some(StreamError::Write(WriteError::Reset)));
}

/// smoltcp#949: throughput falls when the send buffer grows past the device's ring.
#[test]
fn smoltcp_949_send_buffer_past_the_ring() {
    let rate = |sndbuf: u32| {
        let link = Link {
            rate_bps: Some(10_000_000_000),
            delay: Duration::from_micros(50),
            whole_segments: true,
            ..Link::default()
        };
        let (mut network, a, b) = Network::pair(NicConfig::default(), link);
        let got = expect_pattern(&mut network, &b, 40_000_000);
        let net = a.net.clone();
        network.spawn(async move {
            let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
            stream.set_sndbuf(sndbuf);
            send_pattern(&mut stream, 40_000_000).await;
        });
        let start = network.now();
        assert!(network.run_tasks(Duration::from_secs(10)));
        assert_eq!(got.get(), 40_000_000);
        let counters = a.net.with(|stack| stack.tcp().counters().clone());
        assert_eq!(counters.retrans_segs, 0);
        40_000_000 * 8 / network.now().since(start).as_micros()
    };
    let rates: Vec<u128> = [16, 18, 20, 22, 24].map(|bits| rate(1 << bits)).to_vec();
    for pair in rates.windows(2) {
        assert!(pair[1] * 100 >= pair[0] * 97, "Mb/s: {rates:?}");
    }
    assert!(rates[4] > 8000, "Mb/s: {rates:?}");
}
