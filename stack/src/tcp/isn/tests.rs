use super::*;
use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeSet;

fn tuple(local_port: u16) -> Tuple {
    Tuple {
        local: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
        remote: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
        local_port,
        remote_port: 80,
    }
}

#[test]
fn sequence_numbers_of_one_tuple_follow_the_clock() {
    let secrets = Secrets::new([7; 16]);
    let early = secrets.initial_sequence(&tuple(1), Instant::ZERO);
    let late = secrets.initial_sequence(&tuple(1), Instant::from_micros(4_000_000));
    assert_eq!(late.distance_from(early), 1_000_000);
}

#[test]
fn tuples_and_keys_differ() {
    let now = Instant::ZERO;
    let one = Secrets::new([7; 16]);
    let other = Secrets::new([8; 16]);
    let isn = one.initial_sequence(&tuple(1), now);
    assert_ne!(isn, one.initial_sequence(&tuple(2), now));
    assert_ne!(isn, other.initial_sequence(&tuple(1), now));
    assert_ne!(isn.0, one.timestamp_offset(&tuple(1)));
}

#[test]
fn every_ephemeral_port_comes_once() {
    let mut secrets = Secrets::new([7; 16]);
    let ports: BTreeSet<u16> = secrets.ephemeral_ports(&tuple(0)).collect();
    assert_eq!(ports.len(), usize::from(EPHEMERAL_PORTS));
    assert_eq!(
        (ports.first(), ports.last()),
        (Some(&32_768), Some(&60_999))
    );
    let (a, b) = (
        secrets.ephemeral_ports(&tuple(0)).next(),
        secrets.ephemeral_ports(&tuple(0)).next(),
    );
    assert_ne!(a, b);
}
