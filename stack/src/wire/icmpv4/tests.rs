use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

#[test]
fn errors_are_told_from_queries() {
    for kind in [UNREACHABLE, 4, 5, TIME_EXCEEDED, PARAMETER_PROBLEM, 200] {
        assert!(Header::is_error(kind), "{kind}");
    }
    for kind in [ECHO, ECHO_REPLY, 13, 14] {
        assert!(!Header::is_error(kind), "{kind}");
    }
}

proptest! {
    #[test]
    fn parses_what_it_emits(kind: u8, code: u8, checksum: u16, rest: [u8; 4]) {
        let header = Header { kind, code, checksum, rest };
        let mut bytes = [0; HEADER_BYTES];
        header.emit(&mut bytes);
        prop_assert_eq!(Header::parse(&bytes), Ok(header));
    }

    #[test]
    fn etherparse_agrees(id: u16, seq: u16) {
        let [i0, i1] = id.to_be_bytes();
        let [s0, s1] = seq.to_be_bytes();
        let mut bytes = [0; HEADER_BYTES];
        Header { kind: ECHO, code: 0, checksum: 7, rest: [i0, i1, s0, s1] }.emit(&mut bytes);
        let other = etherparse::Icmpv4Slice::from_slice(&bytes).unwrap();
        let expected = etherparse::IcmpEchoHeader { id, seq };
        prop_assert_eq!(other.icmp_type(), etherparse::Icmpv4Type::EchoRequest(expected));
        prop_assert_eq!(other.checksum(), 7);
    }

    #[test]
    fn takes_any_bytes(bytes in any::<Vec<u8>>()) {
        prop_assert_eq!(Header::parse(&bytes).is_ok(), bytes.len() >= HEADER_BYTES);
    }
}
