use super::*;
use core::net::{Ipv4Addr, Ipv6Addr};

fn tuple(remote_port: u16) -> Tuple {
    Tuple {
        local: IpAddr::V4(Ipv4Addr::LOCALHOST),
        remote: IpAddr::V6(Ipv6Addr::LOCALHOST),
        local_port: 5201,
        remote_port,
    }
}

#[test]
fn finds_what_was_put_in_even_when_all_hashes_collide() {
    let mut demux = Demux::new();
    for port in 0..100 {
        demux.insert(tuple(port), 1, usize::from(port));
    }
    for port in 0..100 {
        assert_eq!(demux.find(&tuple(port), || 1), Some(usize::from(port)));
        assert_eq!(
            demux.find(&tuple(port), || unreachable!("kept")),
            Some(usize::from(port))
        );
    }
    assert_eq!(demux.remove(&tuple(99), 1), Some(99));
    assert_eq!(demux.find(&tuple(99), || 1), None);
    assert_eq!(demux.remove(&tuple(99), 1), None);
    assert_eq!(demux.len(), 99);
}

#[test]
fn identities_tell_place_and_generation() {
    let a = ConnectionId::new(5, 0);
    let b = ConnectionId::new(5, 1);
    assert_ne!(a, b);
    assert_eq!((a.index(), b.index()), (5, 5));
    assert_eq!(ConnectionId::from_owner(a.owner()), Some(a));
    assert_eq!(ConnectionId::from_owner(Owner::NONE), None);
    assert_ne!(ConnectionId::new(0, GENERATIONS - 2).owner(), Owner::NONE);
    assert_ne!(ConnectionId::new(0, GENERATIONS - 1).owner(), Owner::NONE);
}

#[test]
fn writing_tells_families_apart() {
    let mut bytes = [0; 40];
    assert_eq!(tuple(1).write(&mut bytes), 4 + 16 + 4);
}
