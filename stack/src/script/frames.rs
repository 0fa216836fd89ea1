//! Frames from the peer: what a script says, with its numbers turned into the wire's.

use super::{
    ast::{Ecn, IcmpSpec, OptionSpec, SegmentSpec},
    device::{LOCAL_MAC, REMOTE_MAC},
    flow::{Flow, peer_byte},
    options::Plan,
};
use crate::wire::{
    checksum::{Checksum, checksum},
    ethernet, icmpv4, ipv4,
    tcp::{self, Flags},
};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

/// Hops left of a packet from the peer.
const TTL: u8 = 64;

/// A segment from the peer.
pub(super) fn segment(plan: &Plan, flow: &Flow, spec: &SegmentSpec) -> Vec<u8> {
    let SegmentSpec {
        direction: _,
        ecn,
        ports: _,
        flags,
        seq,
        ack,
        window,
        urgent,
        options,
    } = spec;
    let syn = flags.contains(Flags::SYN);
    let has_ack = flags.contains(Flags::ACK);
    let wire_seq = flow.peer_to_wire(seq.start, syn);
    let wire_ack = match ack {
        None if !has_ack => 0,
        ack => flow.local_to_wire(ack.unwrap_or(0), syn),
    };
    let option_bytes = options_bytes(flow, options.as_deref().unwrap_or(&[]), has_ack, syn);
    let header_bytes = tcp::MIN_HEADER_BYTES + option_bytes.len();
    let mut bytes = Vec::with_capacity(header_bytes + seq.payload_bytes as usize);
    bytes.extend_from_slice(&flow.peer_port.to_be_bytes());
    bytes.extend_from_slice(&flow.local_port.to_be_bytes());
    bytes.extend_from_slice(&wire_seq.to_be_bytes());
    bytes.extend_from_slice(&wire_ack.to_be_bytes());
    bytes.push((header_bytes as u8 / 4) << 4);
    bytes.push(flags.bits());
    bytes.extend_from_slice(&window.unwrap_or(0).to_be_bytes());
    bytes.extend_from_slice(&[0, 0]);
    bytes.extend_from_slice(&urgent.to_be_bytes());
    bytes.extend_from_slice(&option_bytes);
    let start = flow.peer_offset(wire_seq).wrapping_add(u32::from(syn));
    bytes.extend((0..seq.payload_bytes).map(|i| peer_byte(start.wrapping_add(i))));
    let (src, dst) = (IpAddr::V4(plan.remote), IpAddr::V4(plan.local));
    let mut sum = Checksum::pseudo_header(src, dst, tcp::PROTOCOL, bytes.len() as u32);
    sum.add(&bytes);
    let at = usize::from(tcp::CHECKSUM_OFFSET);
    bytes[at..at + 2].copy_from_slice(&sum.finish().to_be_bytes());
    let ecn = match ecn {
        None | Some(Ecn::None | Ecn::Ect01) => 0,
        Some(Ecn::Ect1) => 1,
        Some(Ecn::Ect0) => 2,
        Some(Ecn::Ce) => 3,
    };
    frame(plan.remote, plan.local, tcp::PROTOCOL, ecn, &bytes)
}

/// The options as they stand in the script, padded to whole words.
fn options_bytes(flow: &Flow, options: &[OptionSpec], has_ack: bool, syn: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for option in options {
        match option {
            OptionSpec::EndOfList => bytes.push(0),
            OptionSpec::Mss(mss) => {
                bytes.extend_from_slice(&[2, 4]);
                bytes.extend_from_slice(&mss.to_be_bytes());
            }
            OptionSpec::Nop => bytes.push(1),
            OptionSpec::Sack(blocks) => {
                bytes.extend_from_slice(&[5, 2 + 8 * blocks.len() as u8]);
                for &(left, right) in blocks {
                    for edge in [left, right] {
                        let edge = flow.local_to_wire(edge, syn);
                        bytes.extend_from_slice(&edge.to_be_bytes());
                    }
                }
            }
            OptionSpec::SackPermitted => bytes.extend_from_slice(&[4, 2]),
            OptionSpec::Timestamps { value, echo } => {
                let echo = if has_ack {
                    flow.echo_to_wire(*echo)
                } else {
                    *echo
                };
                bytes.extend_from_slice(&[8, 10]);
                bytes.extend_from_slice(&value.to_be_bytes());
                bytes.extend_from_slice(&echo.to_be_bytes());
            }
            OptionSpec::WindowScale(shift) => bytes.extend_from_slice(&[3, 3, *shift]),
        }
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An ICMP message about a segment of the stack's.
pub(super) fn icmp(plan: &Plan, flow: &Flow, spec: &IcmpSpec) -> Vec<u8> {
    let &IcmpSpec {
        kind,
        code,
        mtu,
        quoted,
    } = spec;
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&[kind, code, 0, 0, 0, 0]);
    bytes.extend_from_slice(&mtu.unwrap_or(0).to_be_bytes());
    // The header of the segment that did not arrive, and the first eight bytes behind it.
    let mut header = [0; ipv4::HEADER_BYTES];
    let total = ipv4::HEADER_BYTES + tcp::MIN_HEADER_BYTES + quoted.payload_bytes as usize;
    ipv4::Header {
        traffic_class: 0,
        total_bytes: total.min(usize::from(u16::MAX)) as u16,
        id: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset_bytes: 0,
        ttl: TTL - 1,
        protocol: tcp::PROTOCOL,
        src: plan.local,
        dst: plan.remote,
    }
    .emit(&mut header);
    bytes.extend_from_slice(&header);
    bytes.extend_from_slice(&flow.local_port.to_be_bytes());
    bytes.extend_from_slice(&flow.peer_port.to_be_bytes());
    let seq = flow.local_to_wire(quoted.start, false);
    bytes.extend_from_slice(&seq.to_be_bytes());
    let sum = checksum(&bytes);
    let at = usize::from(icmpv4::CHECKSUM_OFFSET);
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    // From a router on the way.
    frame(plan.gateway, plan.local, icmpv4::PROTOCOL, 0, &bytes)
}

fn frame(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, ecn: u8, transport: &[u8]) -> Vec<u8> {
    let total = ipv4::HEADER_BYTES + transport.len();
    let mut ethernet_bytes = [0; ethernet::HEADER_BYTES];
    ethernet::Header {
        dst: LOCAL_MAC,
        src: REMOTE_MAC,
        ether_type: ethernet::TYPE_IPV4,
    }
    .emit(&mut ethernet_bytes);
    let mut ip_bytes = [0; ipv4::HEADER_BYTES];
    ipv4::Header {
        traffic_class: ecn,
        // The grammar bounds payload and options so that only a payload of more than 65,475 bytes
        // does not fit; the stack drops what claims less than is there.
        total_bytes: total.min(usize::from(u16::MAX)) as u16,
        id: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset_bytes: 0,
        ttl: TTL,
        protocol,
        src,
        dst,
    }
    .emit(&mut ip_bytes);
    let mut bytes = Vec::with_capacity(ethernet::HEADER_BYTES + total);
    bytes.extend_from_slice(&ethernet_bytes);
    bytes.extend_from_slice(&ip_bytes);
    bytes.extend_from_slice(transport);
    bytes
}
