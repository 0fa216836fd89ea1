use super::{Checksum, checksum, update};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use proptest::prelude::*;

/// The definition, word by word: RFC 1071 §1.
fn reference(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        let low = pair.get(1).copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([pair[0], low]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[test]
fn rfc_1071_example() {
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(checksum(&bytes), !0xddf2);
}

#[test]
fn pseudo_header_is_its_twelve_bytes() {
    let (src, dst) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 7));
    let sum = Checksum::pseudo_header(IpAddr::V4(src), IpAddr::V4(dst), 6, 0xfffe);
    let bytes = [192, 0, 2, 1, 198, 51, 100, 7, 0, 6, 0xff, 0xfe];
    assert_eq!(sum.finish(), reference(&bytes));
}

proptest! {
    #[test]
    fn matches_the_definition(bytes in any::<Vec<u8>>()) {
        prop_assert_eq!(checksum(&bytes), reference(&bytes));
    }

    #[test]
    fn pieces_of_any_length_sum_to_the_whole(pieces in any::<Vec<Vec<u8>>>()) {
        let mut sum = Checksum::new();
        for piece in &pieces {
            sum.add(piece);
        }
        prop_assert_eq!(sum.finish(), reference(&pieces.concat()));
    }

    #[test]
    fn update_equals_recomputation(mut words in prop::collection::vec(1_u16.., 1..20), to: u16) {
        let bytes = |words: &[u16]| words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<_>>();
        let old = checksum(&bytes(&words));
        let from = words[0];
        words[0] = to;
        let new = checksum(&bytes(&words));
        // 0 and 0xffff are the same number.
        prop_assert_eq!(update(old, from, to) % 0xffff, new % 0xffff);
    }
}
