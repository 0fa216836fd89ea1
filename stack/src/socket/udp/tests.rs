use super::*;
use crate::{
    sim::{Fate, Host, Link, Network, NicConfig, SimDevice},
    time::Duration,
};
use alloc::{rc::Rc, vec};
use core::cell::RefCell;

fn addr(host: &Host, port: u16) -> SocketAddr {
    SocketAddr::new(host.net.with(|stack| stack.address()).into(), port)
}

fn any_port() -> SocketAddr {
    SocketAddr::new([0; 4].into(), 0)
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 3 + i / 255) as u8).collect()
}

/// Sends datagrams of the given lengths from one host to another and checks what arrives.
fn transfer(nic: NicConfig, link: Link, lens: Vec<usize>) -> (Host, Host) {
    let (mut network, a, b) = Network::pair(nic, link);
    let receiver = UdpSocket::bind(&b.net, addr(&b, 5201)).unwrap();
    let sender = UdpSocket::bind(&a.net, any_port()).unwrap();
    let to = addr(&b, 5201);
    let expected = lens.clone();
    network.spawn(async move {
        for len in lens {
            sender.send_to(&bytes(len), to).await.unwrap();
        }
    });
    network.spawn(async move {
        let mut buffer = vec![0; 65_536];
        for len in expected {
            let (got, _) = receiver.recv_from(&mut buffer).await.unwrap();
            assert_eq!(buffer[..got], bytes(len));
        }
    });
    assert!(network.run_tasks(Duration::from_mins(1)), "tasks hang");
    network.run_for(Duration::from_secs(1));
    for host in [&a, &b] {
        assert_eq!(host.nic.pages_in_use(), 0);
    }
    (a, b)
}

#[test]
fn datagrams_of_any_size_arrive() {
    let lens = vec![0, 1, 86, 87, 1472, 1473, 4096, 8000, 20_000, 65_507];
    let no_gather = NicConfig {
        max_tx_slices: 1,
        ..NicConfig::plain()
    };
    for nic in [NicConfig::default(), NicConfig::plain(), no_gather] {
        transfer(nic, Link::default(), lens.clone());
    }
}

/// denoland/clawpatrol#147: a full ring holds the sender back, nothing is lost on it.
#[test]
fn clawpatrol_147_a_full_ring_is_back_pressure() {
    let nic = NicConfig {
        tx_slots: 4,
        ..NicConfig::default()
    };
    let link = Link {
        rate_bps: Some(100_000_000),
        ..Link::default()
    };
    let (a, b) = transfer(nic, link, vec![1000; 3000]);
    assert!(a.nic.counters().tx_full > 0);
    let received = b.net.with(|stack| stack.counters().udp_in_datagrams);
    assert_eq!(received, 3000);
}

#[test]
fn the_first_datagram_waits_for_arp() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), Link::default());
    // The announcements are lost, and so are the first two requests.
    let mut seen = 0;
    network.hook(&a, move |_, _| {
        seen += 1;
        if seen <= 3 { Fate::Drop } else { Fate::Deliver }
    });
    network.hook(&b, |_, frame| match frame.bytes[..6] {
        [0xff, ..] => Fate::Drop,
        _ => Fate::Deliver,
    });
    let receiver = UdpSocket::bind(&b.net, addr(&b, 9)).unwrap();
    let sender = UdpSocket::bind(&a.net, any_port()).unwrap();
    let to = addr(&b, 9);
    network.spawn(async move { sender.send_to(b"hello", to).await.unwrap() });
    network.spawn(async move {
        let mut buffer = [0; 10];
        assert_eq!(receiver.recv_from(&mut buffer).await.unwrap().0, 5);
    });
    assert!(network.run_tasks(Duration::from_secs(3)));
    assert_eq!(network.now().as_micros(), 2_000_000);
}

#[test]
fn a_missing_neighbour_is_an_error_in_the_end() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), Link::default());
    b.nic.set_link(false);
    network.run_for(Duration::from_millis(1));
    let sender = UdpSocket::bind(&a.net, any_port()).unwrap();
    let to = addr(&b, 9);
    network.spawn(async move {
        let result = sender.send_to(b"hello", to).await;
        assert_eq!(result, Err(UdpError::Send(SendError::Unreachable)));
    });
    assert!(network.run_tasks(Duration::from_secs(4)));
}

#[test]
fn a_connected_socket_learns_that_it_is_refused() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), Link::default());
    let socket = UdpSocket::bind(&a.net, any_port()).unwrap();
    assert_eq!(network_send(&socket), Err(UdpError::NotConnected));
    socket.connect(addr(&b, 9));
    network.spawn(async move {
        socket.send(b"anyone?").await.unwrap();
        let mut buffer = [0; 10];
        let result = socket.recv_from(&mut buffer).await;
        assert_eq!(result, Err(UdpError::Refused));
        // It is told once; the socket works on.
        socket.send(b"still?").await.unwrap();
    });
    assert!(network.run_tasks(Duration::from_secs(1)));
}

/// What a send on a socket without peer returns, without waiting.
fn network_send(socket: &UdpSocket<SimDevice>) -> Result<(), UdpError> {
    let mut send = core::pin::pin!(socket.send(b"x"));
    let mut context = Context::from_waker(core::task::Waker::noop());
    match send.as_mut().poll(&mut context) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn received_datagrams_can_be_taken_by_reference() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), Link::default());
    let receiver = UdpSocket::bind(&b.net, addr(&b, 9)).unwrap();
    let sender = UdpSocket::bind(&a.net, addr(&a, 8)).unwrap();
    let (from, to) = (addr(&a, 8), addr(&b, 9));
    assert_eq!(sender.local_addr(), from);
    let taken = Rc::new(RefCell::new(Vec::new()));
    let slices = Rc::clone(&taken);
    network.spawn(async move { sender.send_to(&bytes(5000), to).await.unwrap() });
    network.spawn(async move {
        let mut received = Vec::new();
        assert_eq!(receiver.recv_slices(&mut received).await, Ok(from));
        slices.replace(received);
    });
    assert!(network.run_tasks(Duration::from_secs(1)));
    let joined: Vec<u8> = taken
        .take()
        .iter()
        .flat_map(|s| s.bytes().to_vec())
        .collect();
    assert_eq!(joined, bytes(5000));
}

#[test]
fn bind_refuses_what_it_cannot_have() {
    let (_network, a, b) = Network::pair(NicConfig::default(), Link::default());
    let first = UdpSocket::bind(&a.net, addr(&a, 9)).unwrap();
    let bind = |local| UdpSocket::bind(&a.net, local).err();
    assert_eq!(bind(addr(&a, 9)), Some(UdpError::AddressInUse));
    assert_eq!(bind(addr(&b, 9)), Some(UdpError::AddressNotAvailable));
    drop(first);
    assert_eq!(bind(addr(&a, 9)), None);
    let too_long = network_send_long(&UdpSocket::bind(&a.net, any_port()).unwrap(), addr(&b, 9));
    let expected = UdpError::TooLong {
        max_bytes: 65_507,
        got_bytes: 65_508,
    };
    assert_eq!(too_long, Poll::Ready(Err(expected)));
}

fn network_send_long(socket: &UdpSocket<SimDevice>, to: SocketAddr) -> Poll<Result<(), UdpError>> {
    let mut context = Context::from_waker(core::task::Waker::noop());
    socket.poll_send_to(&mut context, &vec![0; 65_508], to)
}
