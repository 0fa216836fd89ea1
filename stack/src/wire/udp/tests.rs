use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn parses_what_it_emits(src_port: u16, dst_port: u16, total_bytes in 8_u16.., checksum: u16) {
        let header = Header { src_port, dst_port, total_bytes, checksum };
        let mut bytes = [0; HEADER_BYTES];
        header.emit(&mut bytes);
        prop_assert_eq!(Header::parse(&bytes), Ok(header));
        let other = etherparse::UdpHeaderSlice::from_slice(&bytes).unwrap();
        prop_assert_eq!(other.source_port(), src_port);
        prop_assert_eq!(other.destination_port(), dst_port);
        prop_assert_eq!((other.length(), other.checksum()), (total_bytes, checksum));
    }

    #[test]
    fn takes_any_bytes(bytes in any::<Vec<u8>>()) {
        if let Ok(header) = Header::parse(&bytes) {
            prop_assert!(usize::from(header.total_bytes) >= HEADER_BYTES);
        }
    }
}
