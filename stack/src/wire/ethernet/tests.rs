use super::*;
use alloc::{string::ToString, vec::Vec};
use proptest::prelude::*;

#[test]
fn addresses_know_their_kind() {
    assert!(!Mac::BROADCAST.is_unicast());
    assert!(!Mac([0; 6]).is_unicast());
    assert!(Mac([0, 0x16, 0x3e, 1, 2, 3]).is_unicast());
    assert_eq!(
        Mac::multicast(Ipv4Addr::new(239, 129, 2, 3)).to_string(),
        "01:00:5e:01:02:03"
    );
}

proptest! {
    #[test]
    fn parses_what_it_emits(dst: [u8; 6], src: [u8; 6], ether_type: u16) {
        let header = Header { dst: Mac(dst), src: Mac(src), ether_type };
        let mut bytes = [0; HEADER_BYTES];
        header.emit(&mut bytes);
        prop_assert_eq!(Header::parse(&bytes), Ok(header));
        let other = etherparse::Ethernet2HeaderSlice::from_slice(&bytes).unwrap();
        prop_assert_eq!(other.destination(), dst);
        prop_assert_eq!(other.ether_type().0, ether_type);
    }

    #[test]
    fn takes_any_bytes(bytes in any::<Vec<u8>>()) {
        prop_assert_eq!(Header::parse(&bytes).is_ok(), bytes.len() >= HEADER_BYTES);
    }
}
