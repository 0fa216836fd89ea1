use super::*;
use alloc::vec;
use alloc::vec::Vec;

fn tcp4(options_bytes: usize) -> Vec<u8> {
    let mut head = vec![0; 14 + 20 + options_bytes + 20];
    head[12] = 0x08;
    head[14] = 0x45 + (options_bytes / 4) as u8;
    head[23] = 6;
    head[14 + 20 + options_bytes + 12] = 0x50;
    head
}

fn tcp6() -> Vec<u8> {
    let mut head = vec![0; 14 + 40 + 20];
    head[12..14].copy_from_slice(&ETHERTYPE_IPV6);
    head[14] = 0x60;
    head[20] = 6;
    head[14 + 40 + 12] = 0x50;
    head
}

#[test]
fn headers_must_be_those_of_the_type() {
    for options_bytes in [0, 4, 40] {
        assert!(is_tcp_segment(&tcp4(options_bytes), wire::GSO_TCPV4));
        assert!(!is_tcp_segment(&tcp4(options_bytes), wire::GSO_TCPV6));
    }
    assert!(is_tcp_segment(&tcp6(), wire::GSO_TCPV6));
    assert!(!is_tcp_segment(&tcp6(), wire::GSO_TCPV4));
}

#[test]
fn headers_must_be_whole() {
    for (head, gso_type) in [
        (tcp4(0), wire::GSO_TCPV4),
        (tcp4(40), wire::GSO_TCPV4),
        (tcp6(), wire::GSO_TCPV6),
    ] {
        for len in 0..head.len() {
            assert!(!is_tcp_segment(&head[..len], gso_type), "{len} bytes");
        }
        let mut longer = head.clone();
        let at = longer.len() - 20 + 12;
        longer[at] = 0x60;
        assert!(!is_tcp_segment(&longer, gso_type), "TCP options are cut");
        longer.extend([0; 4]);
        assert!(is_tcp_segment(&longer, gso_type));
    }
}
