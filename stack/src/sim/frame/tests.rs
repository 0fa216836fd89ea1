use super::*;
use crate::device::IpVersion;

/// A large segment, made by etherparse.
fn large(payload: &[u8], flags: tcp::Flags) -> Vec<u8> {
    let mut builder = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .tcp(1000, 2000, 0xffff_ff00, 1024);
    if flags.contains(tcp::Flags::FIN) {
        builder = builder.fin();
    }
    if flags.contains(tcp::Flags::PSH) {
        builder = builder.psh();
    }
    let mut bytes = Vec::new();
    builder.write(&mut bytes, payload).unwrap();
    bytes
}

#[test]
fn cutting_makes_valid_segments_that_add_up() {
    let payload: Vec<u8> = (0..5000_u32).map(|i| i as u8).collect();
    let bytes = large(&payload, tcp::Flags::FIN | tcp::Flags::PSH);
    let offload = TxOffload::Tso {
        start: 34,
        offset: 16,
        mss_bytes: 1448,
        version: IpVersion::V4,
    };
    let frames = Frame::make(bytes, offload, false);
    assert_eq!(frames.len(), 4);
    let mut seq = 0xffff_ff00_u32;
    let mut joined = Vec::new();
    for (i, frame) in frames.iter().enumerate() {
        let parsed = etherparse::SlicedPacket::from_ethernet(&frame.bytes).unwrap();
        let Some(etherparse::NetSlice::Ipv4(ip)) = &parsed.net else {
            panic!("IPv4")
        };
        let header = ip.header().to_header();
        assert_eq!(header.calc_header_checksum(), header.header_checksum);
        let Some(etherparse::TransportSlice::Tcp(tcp)) = &parsed.transport else {
            panic!("TCP")
        };
        let sum = tcp.to_header().calc_checksum_ipv4(&header, tcp.payload());
        assert_eq!(sum, Ok(tcp.checksum()));
        assert_eq!(tcp.sequence_number(), seq);
        assert_eq!((tcp.fin(), tcp.psh()), (i == 3, i == 3));
        seq = seq.wrapping_add(tcp.payload().len() as u32);
        joined.extend_from_slice(tcp.payload());
    }
    assert_eq!(joined, payload);
}
