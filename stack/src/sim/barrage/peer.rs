//! What the peer knows of the stack's connections, and the frames it makes of that.

use super::{
    super::{frame::Frame, source::Source},
    CHARGEN_PORT, DISCARD_PORT, ECHO_PORT, OURS, PEER,
    segment::{self, Flow},
};
use crate::{
    time::Instant,
    wire::{
        arp,
        checksum::checksum,
        ethernet::{self, Mac},
        icmpv4, ipv4, tcp, udp,
    },
};
use alloc::{vec, vec::Vec};

/// The stack's Ethernet address, which the first host of a network has.
const OUR_MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);
const PEER_MAC: Mac = Mac([2, 0, 0, 0, 0, 2]);
/// Most connections kept in mind.
const MAX_FLOWS: usize = 8;
/// Largest payload of an IP packet that is sent whole.
const MAX_IP_PAYLOAD_BYTES: usize = 1480;

/// A frame, and how many bytes its segments have if it is a large one.
type Blow = (Vec<u8>, Option<u16>);

/// The other side.
#[derive(Debug, Default)]
pub(super) struct Peer {
    flows: Vec<Flow>,
    /// The start of the last IP packet that the stack sent: what an ICMP error quotes.
    last: Vec<u8>,
}

impl Peer {
    /// Looks at a frame from the stack; returns the answer, if it asks for the peer's address.
    pub(super) fn note(&mut self, frame: &[u8]) -> Option<Frame> {
        let header = ethernet::Header::parse(frame).ok()?;
        let body = &frame[ethernet::HEADER_BYTES..];
        if header.ether_type == ethernet::TYPE_ARP {
            let request = arp::Packet::parse(body).ok()?;
            let asks = request.operation == arp::Operation::Request && request.target == PEER;
            return asks.then(|| Frame {
                bytes: arp_frame(&arp::Packet {
                    operation: arp::Operation::Reply,
                    sender_mac: PEER_MAC,
                    sender: PEER,
                    target_mac: OUR_MAC,
                    target: OURS,
                }),
                segment_bytes: None,
            });
        }
        let (ip, ip_bytes) = ipv4::Header::parse(body).expect("the stack's own header");
        self.last = body[..body.len().min(ip_bytes + 28)].to_vec();
        if ip.protocol == tcp::PROTOCOL {
            let transport = &body[ip_bytes..];
            let (tcp, tcp_bytes) = tcp::Header::parse(transport).expect("the stack's own header");
            self.note_segment(&tcp, transport.len() - tcp_bytes);
        }
        None
    }

    fn note_segment(&mut self, tcp: &tcp::Header, payload_bytes: usize) {
        let known = self
            .flows
            .iter()
            .position(|flow| flow.ports() == (tcp.src_port, tcp.dst_port));
        let index = known.unwrap_or_else(|| {
            if self.flows.len() == MAX_FLOWS {
                self.flows.remove(0);
            }
            self.flows.push(Flow::new(tcp.src_port, tcp.dst_port));
            self.flows.len() - 1
        });
        self.flows[index].note(tcp, payload_bytes);
    }

    /// What comes next: mostly a frame, several if it is a packet in fragments.
    pub(super) fn frames(&mut self, source: &mut Source<'_>, now: Instant) -> Vec<Blow> {
        let mut blows = match source.upto(31) {
            0..=25 => self.segment(source, now),
            26 => vec![(self.icmp(source), None)],
            27 => vec![(arp_any(source), None)],
            28 => vec![(datagram(source), None)],
            29 => {
                let protocol = source.pick(&[tcp::PROTOCOL, icmpv4::PROTOCOL, udp::PROTOCOL, 0]);
                let payload = any(source, 200);
                vec![(ip_frame(source, protocol, &payload), None)]
            }
            30 => {
                let mut bytes = ethernet(ethernet::TYPE_IPV4);
                bytes.extend_from_slice(&any(source, 200));
                vec![(bytes, None)]
            }
            _ => vec![(any(source, 200), None)],
        };
        if source.chance(12) {
            blows = fragments(source, &blows);
        }
        if source.chance(12) {
            damage(source, &mut blows);
        }
        blows
    }

    fn segment(&mut self, source: &mut Source<'_>, now: Instant) -> Vec<Blow> {
        if self.flows.is_empty() || source.chance(30) {
            let local = source.pick(&[ECHO_PORT, CHARGEN_PORT, DISCARD_PORT, 1]);
            let remote = source.pick(&[40_000, 40_001, 40_002, DISCARD_PORT]);
            let flow = Flow::new(local, remote);
            let (bytes, _) = segment::opening(source, &flow, now);
            return vec![(tcp_frame(source, &bytes), None)];
        }
        let index = source.upto(self.flows.len() as u64 - 1) as usize;
        let (bytes, segment_bytes) = segment::next(source, &self.flows[index], now);
        vec![(tcp_frame(source, &bytes), segment_bytes)]
    }

    /// An error about the last packet, or another message.
    fn icmp(&self, source: &mut Source<'_>) -> Vec<u8> {
        let kind = source.pick(&[
            icmpv4::UNREACHABLE,
            icmpv4::TIME_EXCEEDED,
            icmpv4::ECHO,
            icmpv4::PARAMETER_PROBLEM,
        ]);
        let code = source.upto(14) as u8;
        let mtu = (source.magnitude(16) - 1).min(u64::from(u16::MAX)) as u16;
        let [high, low] = mtu.to_be_bytes();
        let mut bytes = vec![kind, code, 0, 0, 0, 0, high, low];
        bytes.extend_from_slice(&self.last);
        if source.chance(60) {
            let cut = source.upto(bytes.len() as u64) as usize;
            bytes.truncate(cut.max(icmpv4::HEADER_BYTES));
        }
        let sum = checksum(&bytes);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        ip_frame(source, icmpv4::PROTOCOL, &bytes)
    }
}

/// Bytes without a meaning.
fn any(source: &mut Source<'_>, most: u64) -> Vec<u8> {
    let len = source.upto(most) as usize;
    let mut bytes = source.bytes(len).to_vec();
    bytes.resize(len, 0);
    bytes
}

fn ethernet(ether_type: u16) -> Vec<u8> {
    let mut bytes = [0; ethernet::HEADER_BYTES];
    ethernet::Header {
        dst: OUR_MAC,
        src: PEER_MAC,
        ether_type,
    }
    .emit(&mut bytes);
    bytes.to_vec()
}

fn arp_frame(packet: &arp::Packet) -> Vec<u8> {
    let mut bytes = ethernet(ethernet::TYPE_ARP);
    let mut body = [0; arp::PACKET_BYTES];
    packet.emit(&mut body);
    bytes.extend_from_slice(&body);
    bytes
}

fn arp_any(source: &mut Source<'_>) -> Vec<u8> {
    let address = |source: &mut Source<'_>| source.pick(&[PEER, OURS, [192, 0, 2, 3].into()]);
    arp_frame(&arp::Packet {
        operation: source.pick(&[arp::Operation::Request, arp::Operation::Reply]),
        sender_mac: source.pick(&[PEER_MAC, OUR_MAC, Mac::BROADCAST, Mac([0; 6])]),
        sender: address(source),
        target_mac: OUR_MAC,
        target: address(source),
    })
}

fn datagram(source: &mut Source<'_>) -> Vec<u8> {
    let len = source.upto(1472) as usize;
    let header = udp::Header {
        src_port: 5000,
        dst_port: source.pick(&[ECHO_PORT, 1]),
        total_bytes: (udp::HEADER_BYTES + len) as u16,
        checksum: 0,
    };
    let mut bytes = [0; udp::HEADER_BYTES];
    header.emit(&mut bytes);
    let mut bytes = bytes.to_vec();
    bytes.resize(udp::HEADER_BYTES + len, b'u');
    ip_frame(source, udp::PROTOCOL, &bytes)
}

fn tcp_frame(source: &mut Source<'_>, segment: &[u8]) -> Vec<u8> {
    ip_frame(source, tcp::PROTOCOL, segment)
}

fn ip_frame(source: &mut Source<'_>, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header = ipv4::Header {
        traffic_class: source.upto(3) as u8,
        total_bytes: (ipv4::HEADER_BYTES + payload.len()) as u16,
        id: source.upto(3) as u16,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset_bytes: 0,
        ttl: 64,
        protocol,
        src: PEER,
        dst: OURS,
    };
    with_header(&header, payload)
}

fn with_header(header: &ipv4::Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = ethernet(ethernet::TYPE_IPV4);
    let mut ip = [0; ipv4::HEADER_BYTES];
    header.emit(&mut ip);
    bytes.extend_from_slice(&ip);
    bytes.extend_from_slice(payload);
    bytes
}

/// The packets cut into fragments, some of which are missing, out of place or there twice.
fn fragments(source: &mut Source<'_>, whole: &[Blow]) -> Vec<Blow> {
    let mut parts = Vec::new();
    for (bytes, _) in whole {
        let Some(Ok((ip, ip_bytes))) = bytes.get(ethernet::HEADER_BYTES..).map(ipv4::Header::parse)
        else {
            continue;
        };
        let payload = &bytes[ethernet::HEADER_BYTES + ip_bytes..];
        let step = 8 * (1 + source.magnitude(7) as usize).max(payload.len().div_ceil(400));
        for (index, part) in payload.chunks(step).enumerate() {
            let offset = index * step;
            let mut header = ipv4::Header {
                total_bytes: (ipv4::HEADER_BYTES + part.len()) as u16,
                more_fragments: offset + part.len() < payload.len(),
                fragment_offset_bytes: offset as u16,
                dont_fragment: false,
                ..ip
            };
            match source.byte() {
                0..=220 => {}
                221..=230 => continue,
                231..=240 => header.fragment_offset_bytes ^= 8,
                241..=250 => header.more_fragments = !header.more_fragments,
                _ => parts.push((with_header(&header, part), None)),
            }
            parts.push((with_header(&header, part), None));
        }
    }
    if source.chance(100) {
        parts.reverse();
    }
    parts
}

/// Changes a few bytes; sometimes the IP header's checksum is right again afterwards.
fn damage(source: &mut Source<'_>, blows: &mut [Blow]) {
    for (bytes, _) in blows {
        for _ in 0..=source.upto(2) {
            if bytes.is_empty() {
                continue;
            }
            // The headers are where it hurts.
            let at = source.upto(80.min(bytes.len() as u64 - 1)) as usize;
            bytes[at] = source.byte();
        }
        let ip = ethernet::HEADER_BYTES..ethernet::HEADER_BYTES + ipv4::HEADER_BYTES;
        if source.chance(128)
            && let Some(header) = bytes.get_mut(ip)
        {
            header[10..12].fill(0);
            let sum = checksum(header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

/// The largest segment, in bytes of payload, that fits into a packet sent whole.
pub(super) const MAX_SEGMENT_BYTES: usize = MAX_IP_PAYLOAD_BYTES - tcp::MAX_HEADER_BYTES;
