use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

fn header() -> impl Strategy<Value = Header> {
    let fields = any::<(u8, u16, bool, bool, u8, u8, [u8; 4], [u8; 4])>();
    (fields, 20_u16.., 0_u16..0x2000).prop_map(
        |(
            (traffic_class, id, dont_fragment, more_fragments, ttl, protocol, src, dst),
            total_bytes,
            offset,
        )| {
            Header {
                traffic_class,
                total_bytes,
                id,
                dont_fragment,
                more_fragments,
                fragment_offset_bytes: offset * 8,
                ttl,
                protocol,
                src: src.into(),
                dst: dst.into(),
            }
        },
    )
}

fn emit(header: &Header) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    header.emit(&mut bytes);
    bytes
}

proptest! {
    #[test]
    fn parses_what_it_emits(header in header()) {
        prop_assert_eq!(Header::parse(&emit(&header)), Ok((header, HEADER_BYTES)));
    }

    #[test]
    fn etherparse_agrees(header in header()) {
        let bytes = emit(&header);
        let (other, _) = etherparse::Ipv4Header::from_slice(&bytes).unwrap();
        prop_assert_eq!(other.calc_header_checksum(), other.header_checksum);
        prop_assert_eq!(other.total_len, header.total_bytes);
        prop_assert_eq!(other.fragment_offset.value() * 8, header.fragment_offset_bytes);
        prop_assert_eq!(other.more_fragments, header.more_fragments);
        prop_assert_eq!(other.dont_fragment, header.dont_fragment);
        prop_assert_eq!(other.source, header.src.octets());
        prop_assert_eq!(other.destination, header.dst.octets());
        prop_assert_eq!((other.time_to_live, other.protocol.0), (header.ttl, header.protocol));
    }

    #[test]
    fn any_flipped_bit_is_noticed(header in header(), bit in 0_usize..160) {
        let mut bytes = emit(&header);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Header::parse(&bytes).is_err());
    }

    #[test]
    fn takes_any_bytes(mut bytes in any::<Vec<u8>>(), looks_right: bool) {
        if looks_right && let Some(first) = bytes.first_mut() {
            *first = 4 << 4 | *first & 0x0f;
        }
        let _ = Header::parse(&bytes);
        let _ = Header::parse_quoted(&bytes);
    }
}

#[test]
fn options_are_skipped() {
    let header = Header {
        traffic_class: 0,
        total_bytes: 24,
        id: 1,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset_bytes: 0,
        ttl: 64,
        protocol: 6,
        src: Ipv4Addr::new(192, 0, 2, 1),
        dst: Ipv4Addr::new(192, 0, 2, 2),
    };
    let mut bytes = emit(&header).to_vec();
    bytes[0] = 4 << 4 | 6;
    bytes.extend_from_slice(&[0x94, 4, 0, 0]);
    bytes[10..12].fill(0);
    let sum = checksum(&bytes);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(Header::parse(&bytes), Ok((header, 24)));
}
