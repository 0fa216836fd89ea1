use super::*;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

fn interface() -> Interface {
    Interface::new(ADDRESS, 24, Some(GATEWAY)).unwrap()
}

#[test]
fn next_hops() {
    let next_hop = |dst: [u8; 4]| interface().next_hop(dst.into());
    let neighbour = Some(NextHop::Neighbour(Ipv4Addr::new(192, 0, 2, 77)));
    assert_eq!(next_hop([192, 0, 2, 77]), neighbour);
    assert_eq!(next_hop([8, 8, 8, 8]), Some(NextHop::Neighbour(GATEWAY)));
    assert_eq!(next_hop([192, 0, 2, 255]), Some(NextHop::Broadcast));
    assert_eq!(next_hop([255; 4]), Some(NextHop::Broadcast));
    let group = Ipv4Addr::new(224, 0, 0, 1);
    assert_eq!(next_hop([224, 0, 0, 1]), Some(NextHop::Multicast(group)));
    for nowhere in [
        ADDRESS.octets(),
        [0; 4],
        [127, 0, 0, 1],
        [192, 0, 2, 0],
        [240, 0, 0, 1],
    ] {
        assert_eq!(next_hop(nowhere), None, "{nowhere:?}");
    }
    let alone = Interface::new(ADDRESS, 24, None).unwrap();
    assert_eq!(alone.next_hop([8, 8, 8, 8].into()), None);
}

#[test]
fn point_to_point_links_have_no_broadcast_address() {
    let interface = Interface::new(ADDRESS, 31, Some([192, 0, 2, 11].into())).unwrap();
    assert!(!interface.is_broadcast([192, 0, 2, 11].into()));
    assert!(interface.is_neighbour([192, 0, 2, 11].into()));
    assert!(Interface::new(ADDRESS, 32, None).is_ok());
}

#[test]
fn bad_configurations_are_told() {
    let new = |address: [u8; 4], prefix, gateway: Option<[u8; 4]>| {
        Interface::new(address.into(), prefix, gateway.map(Into::into)).unwrap_err()
    };
    assert_eq!(new([192, 0, 2, 1], 0, None), ConfigError::Prefix(0));
    assert_eq!(new([192, 0, 2, 1], 33, None), ConfigError::Prefix(33));
    for address in [
        [0; 4],
        [127, 0, 0, 1],
        [192, 0, 2, 255],
        [192, 0, 2, 0],
        [224, 0, 0, 1],
    ] {
        assert_eq!(new(address, 24, None), ConfigError::Address(address.into()));
    }
    for gateway in [[192, 0, 2, 1], [10, 0, 0, 1], [192, 0, 2, 255]] {
        let expected = ConfigError::Gateway(gateway.into());
        assert_eq!(new([192, 0, 2, 1], 24, Some(gateway)), expected);
    }
}
