use super::*;
use crate::sim::{Pool, SimPage};
use alloc::vec::Vec;

fn from(port: u16) -> SocketAddr {
    SocketAddr::new([192, 0, 2, 1].into(), port)
}

fn slices(pool: &Pool, parts: &[&[u8]]) -> Vec<Slice<SimPage>> {
    let slice = |part: &&[u8]| {
        let mut page = pool.alloc().unwrap();
        page.append(part);
        Slice::whole(page)
    };
    parts.iter().map(slice).collect()
}

fn take(socket: &mut Socket<SimPage>) -> Option<(SocketAddr, Vec<u8>)> {
    let (from, slices) = socket.pop()?;
    Some((from, slices.flat_map(|s| s.bytes().to_vec()).collect()))
}

#[test]
fn datagrams_keep_their_bounds() {
    let pool = Pool::new(100);
    let mut udp = Udp::new(0);
    let id = udp.bind(7).unwrap();
    for parts in [&[&b"ab"[..], b"c"][..], &[], &[b"d"]] {
        let delivery = udp.input(from(1), 7, slices(&pool, parts).into_iter());
        assert_eq!(delivery, Delivery::Queued);
    }
    let socket = udp.socket(id).unwrap();
    assert_eq!(take(socket), Some((from(1), b"abc".to_vec())));
    assert_eq!(take(socket), Some((from(1), Vec::new())));
    assert_eq!(take(socket), Some((from(1), b"d".to_vec())));
    assert_eq!(take(socket), None);
    assert_eq!(pool.live(), 0);
}

#[test]
fn queues_are_bounded_by_the_memory_they_hold() {
    let pool = Pool::new(1000);
    let mut udp = Udp::new(0);
    let id = udp.bind(7).unwrap();
    udp.socket(id).unwrap().recv_limit_bytes = 64 * 1024;
    let queued = (0..500)
        .filter(|_| udp.input(from(1), 7, slices(&pool, &[b"x"]).into_iter()) == Delivery::Queued)
        .count();
    assert!((4..=16).contains(&queued), "{queued}");
    assert_eq!(pool.live(), queued);
    let empty = (0..500)
        .filter(|_| udp.input(from(1), 7, core::iter::empty()) == Delivery::Queued)
        .count();
    assert_eq!(empty, 0);
    udp.close(id);
    assert_eq!(pool.live(), 0);
}

#[test]
fn ports_are_shared_with_connected_sockets_only() {
    let mut udp = Udp::<SimPage>::new(3);
    let first = udp.bind(7).unwrap();
    assert_eq!(udp.bind(7), Err(UdpError::AddressInUse));
    udp.socket(first).unwrap().remote = Some(from(1));
    let second = udp.bind(7).unwrap();
    assert_eq!(udp.input(from(1), 7, core::iter::empty()), Delivery::Queued);
    assert_eq!(udp.input(from(2), 7, core::iter::empty()), Delivery::Queued);
    assert_eq!(udp.input(from(2), 8, core::iter::empty()), Delivery::NoPort);
    assert_eq!(udp.socket(first).unwrap().pop().unwrap().0, from(1));
    assert_eq!(udp.socket(second).unwrap().pop().unwrap().0, from(2));
    udp.close(second);
    assert_eq!(udp.input(from(2), 7, core::iter::empty()), Delivery::NoPort);
}

#[test]
fn every_ephemeral_port_can_be_had_once() {
    let mut udp = Udp::<SimPage>::new(16_383);
    let mut ports: Vec<u16> = (0..300)
        .map(|_| {
            let id = udp.bind(0).unwrap();
            udp.socket(id).unwrap().port()
        })
        .collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 300);
    assert!(ports.iter().all(|port| EPHEMERAL_PORTS.contains(port)));
}
