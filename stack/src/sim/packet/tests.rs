use super::*;
use crate::{
    device::{IpVersion, Page},
    sim::page::{PAGE_BYTES, Pool},
};

/// A large segment made by etherparse, its payload in pages.
fn large(payload: &[u8], flags: tcp::Flags, mss_bytes: u16) -> Packet {
    let mut builder = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .tcp(1000, 2000, 0xffff_ff00, 1024)
        .ack(5);
    if flags.contains(tcp::Flags::FIN) {
        builder = builder.fin();
    }
    if flags.contains(tcp::Flags::PSH) {
        builder = builder.psh();
    }
    let mut bytes = Vec::new();
    builder.write(&mut bytes, payload).unwrap();
    bytes.truncate(54);
    let pool = Pool::new(100);
    let parts = payload.chunks(PAGE_BYTES).map(|chunk| {
        let mut page = pool.alloc().unwrap();
        page.append(chunk);
        Part::new(&page, 0..chunk.len())
    });
    let offload = TxOffload::Tso {
        start: 34,
        offset: 16,
        mss_bytes,
        version: IpVersion::V4,
    };
    let parts = parts.collect();
    Packet::new(bytes, parts, offload)
}

/// A frame's payload, once all its headers are checked.
fn check(frame: &Frame) -> (u32, bool, bool, Vec<u8>) {
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
    (
        tcp.sequence_number(),
        tcp.fin(),
        tcp.psh(),
        tcp.payload().to_vec(),
    )
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 / 3) as u8).collect()
}

#[test]
fn cutting_makes_valid_segments_that_add_up() {
    let payload = pattern(15_000);
    let packet = large(&payload, tcp::Flags::FIN | tcp::Flags::PSH, 1448);
    assert_eq!(packet.wire_bytes(), 15_000 + 11 * 54);
    let packets: Vec<Packet> = packet.cut().collect();
    assert_eq!(packets.len(), 11);
    let mut seq = 0xffff_ff00_u32;
    let mut joined = Vec::new();
    for (i, packet) in packets.iter().enumerate() {
        let (at, fin, psh, bytes) = check(&packet.to_frame());
        assert_eq!(at, seq);
        assert_eq!((fin, psh), (i == 10, i == 10));
        seq = seq.wrapping_add(bytes.len() as u32);
        joined.extend_from_slice(&bytes);
    }
    assert_eq!(joined, payload);
}

#[test]
fn merging_undoes_cutting() {
    let payload = pattern(15_000);
    let packet = large(&payload, tcp::Flags::PSH, 1448);
    let mut segments = packet.cut();
    let mut merged = segments.next().unwrap();
    for next in segments {
        merged.merge(next).expect("the next segment");
    }
    assert_eq!(merged.mss_bytes, Some(1448));
    assert_eq!(merged.payload.len(), 15_000_usize.div_ceil(PAGE_BYTES));
    let (seq, fin, psh, bytes) = check(&merged.to_frame());
    assert_eq!((seq, fin, psh), (0xffff_ff00, false, true));
    assert_eq!(bytes, payload);
}

#[test]
fn merging_keeps_apart_what_is_not_alike() {
    let segments: Vec<Packet> = large(&pattern(10_000), tcp::Flags::FIN, 1448)
        .cut()
        .collect();
    let refuse = |first: usize, next: usize, change: fn(&mut Packet)| {
        let mut first = segments[first].clone();
        let mut next = segments[next].clone();
        change(&mut next);
        assert!(first.merge(next).is_err());
    };
    refuse(0, 2, |_| {});
    refuse(1, 0, |_| {});
    // The last one has a FIN.
    refuse(5, 6, |_| {});
    // Another port, acknowledgment, or mark of congestion.
    refuse(0, 1, |next| next.front[35] ^= 1);
    refuse(0, 1, |next| next.front[45] ^= 1);
    refuse(0, 1, |next| next.front[TRAFFIC_CLASS] |= 3);
    // A larger one after a smaller one.
    let mut small = segments[0].clone();
    small.payload[0].end -= 1;
    let mut next = segments[1].clone();
    next.front[38..42].copy_from_slice(&0xffff_ff00_u32.wrapping_add(1447).to_be_bytes());
    assert!(small.merge(next).is_err());
    let mut first = segments[0].clone();
    assert!(first.merge(segments[1].clone()).is_ok());
}

#[test]
fn congestion_is_marked_where_it_is_understood() {
    let mut packet = large(&pattern(100), tcp::Flags::ACK, 1448);
    assert!(!packet.mark_congestion());
    // ECT(0), with its checksum.
    packet.front[TRAFFIC_CLASS] = 2;
    packet.front[IP_CHECKSUM..][..2].fill(0);
    let sum = checksum(&packet.front[ETHERNET_BYTES..34]);
    packet.front[IP_CHECKSUM..][..2].copy_from_slice(&sum.to_be_bytes());
    assert!(packet.mark_congestion());
    let (ip, _) = ipv4::Header::parse(&packet.front[ETHERNET_BYTES..]).unwrap();
    assert_eq!(ip.ecn(), 3);
}

#[test]
fn pure_acknowledgments() {
    let mut packet = large(&[], tcp::Flags::ACK, 1448);
    assert!(packet.is_pure_ack());
    packet.front[47] |= tcp::Flags::FIN.bits();
    assert!(!packet.is_pure_ack());
    assert!(!large(&[1], tcp::Flags::ACK, 1448).is_pure_ack());
}
