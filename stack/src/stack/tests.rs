//! The stack as one machine: frames in, frames out.

use super::*;
use crate::{
    device::{Page, SliceRef},
    ip::{IpPacket, IpSender, SendError, arp::Request},
    sim::{Frame, NicConfig, SimDevice, SimNic, SimPage},
    wire::{arp::Operation, checksum::checksum, ethernet, icmpv4, ipv4, tcp},
};
use alloc::{vec, vec::Vec};
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};

mod fuzz;
mod path_mtu;
mod smoltcp;

const OUR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 10];
const OURS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
const PEER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PEER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// What an ARP request begins with, behind the Ethernet addresses.
const ARP_REQUEST: [u8; 10] = [0x08, 0x06, 0, 1, 0x08, 0x00, 6, 4, 0, 1];
const BROADCAST: [u8; 6] = [0xff; 6];

/// One stack, with its wire in our hands.
struct Bench {
    nic: SimNic,
    stack: Stack<SimDevice>,
    now: Instant,
    /// ARP requests for the peer are answered at once, and not shown.
    peer_answers: bool,
}

impl Bench {
    fn new(nic: NicConfig) -> Self {
        let (nic, device) = SimNic::new(NicConfig {
            mac: OUR_MAC,
            ..nic
        });
        let config = Config {
            address: OURS,
            prefix: 24,
            gateway: Some(PEER),
            secret: [7; 16],
        };
        let mut bench = Self {
            nic,
            stack: Stack::new(device, &config).unwrap(),
            now: Instant::ZERO,
            peer_answers: false,
        };
        bench.poll();
        bench
    }

    /// As [`Bench::new`], with a peer that answers ARP and is known already.
    fn acquainted(nic: NicConfig) -> Self {
        let mut bench = Self::new(nic);
        bench.peer_answers = true;
        bench.exchange(&request(PEER, OURS));
        bench.stack.output().send_arp_request(Request {
            target: PEER,
            to: Mac(PEER_MAC),
        });
        bench.poll();
        bench
    }

    fn receive(&self, bytes: &[u8]) -> bool {
        self.nic.receive(&Frame {
            bytes: bytes.to_vec(),
            segment_bytes: None,
        })
    }

    /// Polls until nothing more is waiting, and returns what was sent.
    fn poll(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        loop {
            let polled = self.stack.poll(self.now);
            let mut progress = polled.more;
            while let Some(sent) = self.nic.take() {
                for frame in sent.frames(false) {
                    if self.peer_answers && frame.bytes[12..22] == ARP_REQUEST {
                        self.receive(&reply(PEER));
                    } else {
                        frames.push(frame.bytes);
                    }
                }
                self.nic.complete(sent, self.now);
                progress = true;
            }
            if !progress {
                return frames;
            }
        }
    }

    fn exchange(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        assert!(self.receive(bytes));
        self.poll()
    }

    fn advance(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    fn counters(&self) -> Counters {
        self.stack.counters().clone()
    }
}

fn arp_frame(packet: &arp::Packet, to: [u8; 6]) -> Vec<u8> {
    let mut head = [0; ethernet::HEADER_BYTES];
    ethernet::Header {
        dst: Mac(to),
        src: packet.sender_mac,
        ether_type: ethernet::TYPE_ARP,
    }
    .emit(&mut head);
    let mut body = [0; arp::PACKET_BYTES];
    packet.emit(&mut body);
    let mut frame = [&head[..], &body].concat();
    frame.resize(60, 0);
    frame
}

/// An ARP request from the peer's station.
fn request(sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let packet = arp::Packet {
        operation: Operation::Request,
        sender_mac: Mac(PEER_MAC),
        sender,
        target_mac: Mac::default(),
        target,
    };
    arp_frame(&packet, BROADCAST)
}

fn reply(sender: Ipv4Addr) -> Vec<u8> {
    let packet = arp::Packet {
        operation: Operation::Reply,
        sender_mac: Mac(PEER_MAC),
        sender,
        target_mac: Mac(OUR_MAC),
        target: OURS,
    };
    arp_frame(&packet, OUR_MAC)
}

fn parse_arp(frame: &[u8]) -> arp::Packet {
    assert_eq!(frame[12..14], [0x08, 0x06]);
    arp::Packet::parse(&frame[14..]).unwrap()
}

fn ping(payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(PEER_MAC, OUR_MAC)
        .ipv4(PEER.octets(), OURS.octets(), 64)
        .icmpv4_echo_request(77, 5)
        .write(&mut frame, payload)
        .unwrap();
    frame
}

fn udp_frame(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(PEER_MAC, OUR_MAC)
        .ipv4(PEER.octets(), OURS.octets(), 64)
        .udp(4000, port)
        .write(&mut frame, payload)
        .unwrap();
    frame
}

/// An IPv4 frame with any header and payload.
fn ip_frame(header: &ipv4::Header, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&OUR_MAC[..], &PEER_MAC, &[0x08, 0x00]].concat();
    let mut bytes = [0; ipv4::HEADER_BYTES];
    header.emit(&mut bytes);
    frame.extend_from_slice(&bytes);
    frame.extend_from_slice(payload);
    frame
}

fn ip_header(protocol: u8, payload_bytes: usize) -> ipv4::Header {
    ipv4::Header {
        traffic_class: 0,
        total_bytes: (ipv4::HEADER_BYTES + payload_bytes) as u16,
        id: 99,
        dont_fragment: false,
        more_fragments: false,
        fragment_offset_bytes: 0,
        ttl: 64,
        protocol,
        src: PEER,
        dst: OURS,
    }
}

/// A datagram's fragments.
fn fragments(id: u16, protocol: u8, message: &[u8], part_bytes: usize) -> Vec<Vec<u8>> {
    let parts = message.chunks(part_bytes).enumerate();
    parts
        .map(|(i, part)| {
            let header = ipv4::Header {
                id,
                more_fragments: (i + 1) * part_bytes < message.len(),
                fragment_offset_bytes: (i * part_bytes) as u16,
                ..ip_header(protocol, part.len())
            };
            ip_frame(&header, part)
        })
        .collect()
}

/// An echo request as an ICMP message.
fn echo_message(payload: &[u8]) -> Vec<u8> {
    let mut message = [&[icmpv4::ECHO, 0, 0, 0, 0, 77, 0, 5][..], payload].concat();
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// Puts the payloads of IPv4 frames together by their offsets.
fn reassemble(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut message = Vec::new();
    for frame in frames {
        assert!(frame.len() <= 1514);
        let (header, header_bytes) = ipv4::Header::parse(&frame[14..]).unwrap();
        assert_eq!(header.dst, PEER);
        assert_eq!(usize::from(header.total_bytes), frame.len() - 14);
        let start = usize::from(header.fragment_offset_bytes);
        let part = &frame[14 + header_bytes..];
        message.resize(message.len().max(start + part.len()), 0);
        message[start..start + part.len()].copy_from_slice(part);
    }
    message
}

fn assert_echo_reply(message: &[u8], payload: &[u8]) {
    assert_eq!(checksum(message) % 0xffff, 0);
    assert_eq!(message[..2], [icmpv4::ECHO_REPLY, 0]);
    assert_eq!(message[4..8], [0, 77, 0, 5]);
    assert_eq!(&message[8..], payload);
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

#[test]
fn announces_itself_when_the_link_comes_up() {
    let (nic, device) = SimNic::new(NicConfig {
        mac: OUR_MAC,
        ..NicConfig::default()
    });
    nic.set_link(false);
    let config = Config {
        address: OURS,
        prefix: 24,
        gateway: None,
        secret: [0; 16],
    };
    let mut bench = Bench {
        nic,
        stack: Stack::new(device, &config).unwrap(),
        now: Instant::ZERO,
        peer_answers: false,
    };
    assert!(bench.poll().is_empty());
    bench.nic.set_link(true);
    let frames = bench.poll();
    assert_eq!(frames.len(), 1);
    let packet = parse_arp(&frames[0]);
    assert_eq!((packet.sender, packet.target), (OURS, OURS));
    assert_eq!(frames[0][..6], BROADCAST);
    assert!(bench.poll().is_empty());
}

#[test]
fn answers_arp_for_its_address_only() {
    let mut bench = Bench::new(NicConfig::default());
    let frames = bench.exchange(&request(PEER, OURS));
    assert_eq!(frames.len(), 1);
    let expected = arp::Packet {
        operation: Operation::Reply,
        sender_mac: Mac(OUR_MAC),
        sender: OURS,
        target_mac: Mac(PEER_MAC),
        target: PEER,
    };
    assert_eq!(parse_arp(&frames[0]), expected);
    assert_eq!(frames[0][..6], PEER_MAC);
    assert!(
        bench
            .exchange(&request(PEER, [192, 0, 2, 11].into()))
            .is_empty()
    );
    // A probe (RFC 5227 §1.1) is answered, and teaches nothing.
    let probe = request(Ipv4Addr::UNSPECIFIED, OURS);
    assert_eq!(bench.exchange(&probe).len(), 1);
    // Strangers from other subnets are not heard.
    assert!(
        bench
            .exchange(&request([10, 0, 0, 1].into(), OURS))
            .is_empty()
    );
}

#[test]
fn defends_its_address_at_a_bounded_rate() {
    let mut bench = Bench::new(NicConfig::default());
    let frames: Vec<_> = (0..100)
        .flat_map(|_| bench.exchange(&request(OURS, PEER)))
        .collect();
    assert_eq!(frames.len(), 1);
    assert_eq!(parse_arp(&frames[0]).sender, OURS);
    assert_eq!(bench.counters().arp_conflicts, 100);
    bench.advance(Duration::from_secs(9));
    assert!(bench.exchange(&request(OURS, PEER)).is_empty());
    bench.advance(Duration::from_secs(1));
    assert_eq!(bench.exchange(&request(OURS, PEER)).len(), 1);
}

#[test]
fn answers_pings_of_every_size_up_to_the_mtu() {
    for nic in [NicConfig::default(), NicConfig::plain()] {
        let mut bench = Bench::acquainted(nic);
        for len in (0..100).chain([1471, 1472]) {
            let payload = bytes(len);
            let frames = bench.exchange(&ping(&payload));
            assert_eq!(frames.len(), 1, "{len}");
            assert_echo_reply(&reassemble(&frames), &payload);
        }
        assert_eq!(bench.nic.pages_in_use(), 0);
        assert_eq!(bench.counters().icmp_in_echos, 102);
        assert_eq!(bench.counters().icmp_out_echo_reps, 102);
    }
}

#[test]
fn padding_of_short_frames_is_no_payload() {
    let mut bench = Bench::acquainted(NicConfig::default());
    let mut frame = ping(b"x");
    frame.resize(60, 0xee);
    assert_echo_reply(&reassemble(&bench.exchange(&frame)), b"x");
}

#[test]
fn answers_fragmented_pings_up_to_64_kib() {
    for max_tx_slices in [1, 17] {
        let mut bench = Bench::acquainted(NicConfig {
            max_tx_slices,
            ..NicConfig::default()
        });
        for len in [1473, 8000, 65_507] {
            let payload = bytes(len);
            let mut frames = Vec::new();
            for part in fragments(len as u16, icmpv4::PROTOCOL, &echo_message(&payload), 1480) {
                frames.extend(bench.exchange(&part));
            }
            assert_eq!(frames.len(), (len + 8).div_ceil(1480));
            assert_echo_reply(&reassemble(&frames), &payload);
        }
        assert_eq!(bench.nic.pages_in_use(), 0);
    }
}

#[test]
fn a_ping_in_the_smallest_fragments_is_answered() {
    let mut bench = Bench::acquainted(NicConfig::default());
    let payload = bytes(1400);
    let mut frames = Vec::new();
    for part in fragments(3, icmpv4::PROTOCOL, &echo_message(&payload), 8) {
        frames.extend(bench.exchange(&part));
    }
    assert_echo_reply(&reassemble(&frames), &payload);
}

/// denoland/clawpatrol#147: a full ring must not lose what the stack itself answers.
#[test]
fn clawpatrol_147_a_full_ring_loses_no_reply() {
    let mut bench = Bench::acquainted(NicConfig {
        tx_slots: 3,
        ..NicConfig::default()
    });
    for i in 0..50 {
        assert!(bench.receive(&ping(&[i])));
    }
    let frames = bench.poll();
    let payloads: Vec<u8> = frames.iter().map(|frame| frame[42]).collect();
    assert_eq!(payloads, (0..50).collect::<Vec<u8>>());
    assert!(bench.nic.counters().tx_full > 0);
}

#[test]
fn a_reply_waits_for_the_neighbour_and_is_dropped_when_there_is_none() {
    let mut bench = Bench::new(NicConfig::default());
    let frames = bench.exchange(&ping(b"first"));
    assert_eq!(frames.len(), 1);
    assert_eq!(parse_arp(&frames[0]).target, PEER);
    let frames = bench.exchange(&reply(PEER));
    assert_eq!(frames.len(), 1);
    assert_echo_reply(&reassemble(&frames), b"first");

    let mut bench = Bench::new(NicConfig::default());
    bench.exchange(&ping(b"lost"));
    for _ in 0..5 {
        bench.advance(Duration::from_secs(1));
        bench.poll();
    }
    assert_eq!(bench.nic.pages_in_use(), 0);
    assert_eq!(bench.counters().ip_out_discards, 1);
    // One was the announcement.
    assert_eq!(bench.counters().arp_out_requests, 1 + 3);
}

#[test]
fn overlapping_fragments_condemn_their_datagram() {
    let mut bench = Bench::acquainted(NicConfig::default());
    let message = echo_message(&bytes(3000));
    let parts = fragments(9, icmpv4::PROTOCOL, &message, 1480);
    let header = ipv4::Header {
        id: 9,
        more_fragments: true,
        fragment_offset_bytes: 1472,
        ..ip_header(icmpv4::PROTOCOL, 16)
    };
    bench.exchange(&parts[0]);
    bench.exchange(&ip_frame(&header, &[0; 16]));
    assert!(bench.exchange(&parts[1]).is_empty());
    assert!(bench.exchange(&parts[2]).is_empty());
    assert_eq!(bench.counters().ip_reasm_oks, 0);
}

#[test]
fn reassembly_times_out_and_says_so() {
    let mut bench = Bench::acquainted(NicConfig::default());
    let parts = fragments(9, icmpv4::PROTOCOL, &echo_message(&bytes(3000)), 1480);
    bench.exchange(&parts[0]);
    bench.exchange(&parts[2]);
    bench.exchange(&fragments(10, 17, &bytes(3000), 1480)[1]);
    bench.advance(Duration::from_secs(31));
    let frames = bench.poll();
    // The one whose first fragment was there; an echo request is no error message.
    assert_eq!(frames.len(), 1);
    let message = reassemble(&frames);
    assert_eq!(
        message[..2],
        [icmpv4::TIME_EXCEEDED, icmpv4::CODE_REASSEMBLY]
    );
    assert_eq!(message[8..28], parts[0][14..34]);
    assert_eq!(bench.counters().ip_reasm_timeout, 2);
    assert_eq!(bench.nic.pages_in_use(), 0);
}

#[test]
fn closed_ports_and_unknown_protocols_are_told() {
    let mut bench = Bench::acquainted(NicConfig::default());
    let frame = udp_frame(9, &bytes(1000));
    let frames = bench.exchange(&frame);
    assert_eq!(frames.len(), 1);
    let parsed = SlicedPacket::from_ethernet(&frames[0]).unwrap();
    let Some(TransportSlice::Icmpv4(icmp)) = parsed.transport else {
        panic!("ICMP")
    };
    let port = etherparse::icmpv4::DestUnreachableHeader::Port;
    let expected = etherparse::Icmpv4Type::DestinationUnreachable(port);
    assert_eq!(icmp.icmp_type(), expected);
    assert_eq!(icmp.payload(), &frame[14..14 + 28]);
    assert_eq!(bench.counters().udp_no_ports, 1);

    let frames = bench.exchange(&ip_frame(&ip_header(200, 20), &[0; 20]));
    let message = reassemble(&frames);
    assert_eq!(message[..2], [icmpv4::UNREACHABLE, icmpv4::CODE_PROTOCOL]);
    assert_eq!(bench.counters().ip_in_unknown_protos, 1);
}

#[test]
fn no_errors_about_errors_broadcasts_or_later_fragments() {
    let mut bench = Bench::acquainted(NicConfig::default());
    // To all, by IP.
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(PEER_MAC, BROADCAST)
        .ipv4(PEER.octets(), [192, 0, 2, 255], 64)
        .udp(1, 9)
        .write(&mut frame, b"anyone?")
        .unwrap();
    assert!(bench.exchange(&frame).is_empty());
    assert_eq!(bench.counters().udp_no_ports, 1);
    // To all, an echo.
    let mut to_all = ping(b"all");
    to_all[..6].copy_from_slice(&BROADCAST);
    let header = ipv4::Header {
        dst: Ipv4Addr::BROADCAST,
        ..ip_header(icmpv4::PROTOCOL, 11)
    };
    let mut echo = ip_frame(&header, &echo_message(b"all"));
    echo[..6].copy_from_slice(&BROADCAST);
    assert!(bench.exchange(&echo).is_empty());
    assert_eq!(bench.counters().icmp_in_echos, 1);
    // A packet to us alone in a frame to all is forged.
    assert!(bench.exchange(&to_all).is_empty());
    assert_eq!(bench.counters().ip_in_addr_errors, 1);
    // An error that was not reassembled in time.
    let mut error = echo_message(&bytes(100));
    error[0] = icmpv4::UNREACHABLE;
    bench.exchange(&fragments(4, icmpv4::PROTOCOL, &error, 64)[0]);
    bench.advance(Duration::from_secs(31));
    assert!(bench.poll().is_empty());
    assert_eq!(bench.counters().ip_reasm_timeout, 1);
}

#[test]
fn errors_are_rate_limited() {
    let mut bench = Bench::acquainted(NicConfig::default());
    let frame = udp_frame(9, b"scan");
    let sent = (0..1000).flat_map(|_| bench.exchange(&frame)).count();
    assert_eq!(sent, 50);
    assert_eq!(bench.counters().icmp_out_rate_limit_global, 950);
}

#[test]
fn impossible_senders_and_strange_destinations_are_dropped() {
    let mut bench = Bench::acquainted(NicConfig::default());
    let forge = |src: [u8; 4], dst: [u8; 4]| {
        let header = ipv4::Header {
            src: src.into(),
            dst: dst.into(),
            ..ip_header(icmpv4::PROTOCOL, 12)
        };
        ip_frame(&header, &echo_message(b"who?"))
    };
    let ours = OURS.octets();
    let cases = [
        forge([0; 4], ours),
        forge([127, 0, 0, 1], ours),
        forge([224, 0, 0, 1], ours),
        forge([255; 4], ours),
        forge([192, 0, 2, 255], ours),
        forge(ours, ours),
        forge(PEER.octets(), [192, 0, 2, 11]),
        forge(PEER.octets(), [224, 0, 0, 1]),
    ];
    for frame in &cases {
        assert!(bench.exchange(frame).is_empty());
    }
    assert_eq!(bench.counters().ip_in_addr_errors, cases.len() as u64);
}

#[test]
fn damaged_messages_are_dropped_and_counted() {
    let mut bench = Bench::acquainted(NicConfig::plain());
    let mut damaged = ping(b"data");
    damaged[44] ^= 1;
    assert!(bench.exchange(&damaged).is_empty());
    assert_eq!(bench.counters().icmp_in_csum_errors, 1);
    let mut damaged = udp_frame(9, b"data");
    damaged[44] ^= 1;
    assert!(bench.exchange(&damaged).is_empty());
    assert_eq!(bench.counters().udp_in_csum_errors, 1);
    let mut damaged = ping(b"data");
    damaged[24] ^= 1;
    assert!(bench.exchange(&damaged).is_empty());
    assert_eq!(bench.counters().ip_in_hdr_errors, 1);
    let short = &ping(b"data")[..43];
    assert!(bench.exchange(short).is_empty());
    assert_eq!(bench.counters().ip_ext_in_truncated_pkts, 1);
}

/// gvisor#9816: the limit of segmentation counts every header; a packet of just that size goes, one
/// byte more is refused rather than lost.
#[test]
fn gvisor_9816_the_largest_segment_counts_all_headers() {
    for max_tso_bytes in [65_535, 32_768, 65_549, 200_000] {
        let mut bench = Bench::acquainted(NicConfig {
            max_tso_bytes,
            ..NicConfig::default()
        });
        let pages: Vec<SimPage> = (0..17)
            .map(|_| {
                let mut page = bench.stack.device_mut().alloc_page().unwrap();
                page.append(&[7; 4096]);
                page
            })
            .collect();
        let mut transport = [0; tcp::MAX_HEADER_BYTES];
        let header_bytes = tcp::Header::default().emit(&mut transport);
        let route = bench.stack.output().route(PEER.into()).unwrap();
        assert_eq!(route.max_tso_bytes, (max_tso_bytes - 14).min(65_535));
        for (excess, expected) in [(0, Ok(())), (1, Err(SendError::Unsendable))] {
            let mut rest = route.max_tso_bytes as usize - 20 - header_bytes + excess;
            let mut payload = Vec::new();
            for page in &pages {
                let slice = SliceRef::new(page, 0..rest.min(4096));
                rest -= slice.len();
                payload.extend((!slice.is_empty()).then_some(slice));
            }
            let packet = IpPacket {
                src: OURS.into(),
                dst: PEER.into(),
                protocol: tcp::PROTOCOL,
                traffic_class: 0,
                transport: &transport[..header_bytes],
                payload: &payload,
                segment_bytes: Some(1448),
                owner: crate::device::Owner::NONE,
            };
            assert_eq!(bench.stack.output().send(&packet), expected);
        }
        drop(pages);
        let frames = bench.poll();
        let sent: usize = frames.iter().map(|frame| frame.len() - 54).sum();
        assert_eq!(sent, route.max_tso_bytes as usize - 40);
        assert_eq!(bench.nic.pages_in_use(), 0);
    }
}

#[test]
fn packets_that_break_a_limit_are_refused() {
    let mut bench = Bench::acquainted(NicConfig {
        max_tso_bytes: 0,
        ..NicConfig::default()
    });
    let mut page = bench.stack.device_mut().alloc_page().unwrap();
    page.append(&[7; 4096]);
    let mut send = |dst: [u8; 4], transport: &[u8], bytes, segment_bytes| {
        let payload = [SliceRef::new(&page, 0..bytes)];
        bench.stack.output().send(&IpPacket {
            src: OURS.into(),
            dst: Ipv4Addr::from(dst).into(),
            protocol: tcp::PROTOCOL,
            traffic_class: 0,
            transport,
            payload: &payload,
            segment_bytes,
            owner: crate::device::Owner::NONE,
        })
    };
    let peer = PEER.octets();
    assert_eq!(send(peer, &[0; 20], 1460, None), Ok(()));
    let unsendable = Err(SendError::Unsendable);
    assert_eq!(send(peer, &[0; 20], 1461, None), unsendable);
    assert_eq!(send(peer, &[0; 20], 4000, Some(1460)), unsendable);
    assert_eq!(send(peer, &[0; 20], 4000, Some(0)), unsendable);
    assert_eq!(send(peer, &[0; 95], 100, None), unsendable);
    // A checksum field beyond the header.
    assert_eq!(send(peer, &[0; 10], 100, None), unsendable);
    for nowhere in [[192, 0, 2, 255], [224, 0, 0, 1], [127, 0, 0, 1], [0; 4]] {
        assert_eq!(send(nowhere, &[0; 20], 100, None), Err(SendError::NoRoute));
    }
}

/// mirage-net-xen#122: when the device vouches for a checksum, the field is not even looked at.
#[test]
fn mirage_122_the_devices_word_is_honoured() {
    let mut bench = Bench::acquainted(NicConfig::default());
    let id = bench.stack.udp_mut().bind(9).unwrap();
    let mut blank = udp_frame(9, b"data");
    blank[40..42].copy_from_slice(&[0x12, 0x34]);
    bench.exchange(&blank);
    assert!(bench.stack.udp_mut().socket(id).unwrap().pop().is_some());
}

#[test]
fn udp_checksums_are_right_with_and_without_offload() {
    for nic in [NicConfig::default(), NicConfig::plain()] {
        let mut bench = Bench::acquainted(nic);
        for len in [0, 1, 86, 87, 1000, 1472] {
            let to = core::net::SocketAddr::new(PEER.into(), 53);
            bench.stack.udp_send(5000, &bytes(len), to).unwrap();
            let frames = bench.poll();
            let parsed = SlicedPacket::from_ethernet(&frames[0]).unwrap();
            let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Udp(udp))) =
                (parsed.net, parsed.transport)
            else {
                panic!("UDP")
            };
            let header = ip.header().to_header();
            let sum = udp.to_header().calc_checksum_ipv4(&header, udp.payload());
            assert_eq!(sum, Ok(udp.checksum()));
            assert_eq!(udp.payload(), bytes(len));
        }
    }
}

#[test]
fn a_dead_link_refuses_and_recovers() {
    let mut bench = Bench::new(NicConfig::default());
    let to = core::net::SocketAddr::new(PEER.into(), 53);
    bench.nic.set_link(false);
    bench.poll();
    let down = crate::udp::UdpError::Send(crate::ip::SendError::Down);
    assert_eq!(bench.stack.udp_send(5000, b"x", to), Err(down));
    bench.nic.set_link(true);
    assert_eq!(bench.poll().len(), 1);
}

#[test]
fn a_stack_says_when_its_receive_budget_is_spent() {
    let mut bench = Bench::acquainted(NicConfig::default());
    let before = bench.nic.counters().notifications;
    for _ in 0..65 {
        assert!(bench.receive(&ping(b"many")));
    }
    assert!(bench.stack.poll(bench.now).more);
    assert!(!bench.stack.poll(bench.now).more);
    assert_eq!(bench.counters().icmp_in_echos, 65);
    // However many frames, one notification a poll.
    assert_eq!(bench.nic.counters().notifications, before + 2);
}

#[test]
fn pages_are_what_the_contract_says() {
    let (_, mut device) = SimNic::new(NicConfig::default());
    let mut page: SimPage = crate::device::Device::alloc_page(&mut device).unwrap();
    assert_eq!(page.append(b"one"), 3);
    let mut reader = page.clone();
    page.append(b"two");
    assert_eq!(reader.bytes(), b"one");
    assert_eq!(page.bytes(), b"onetwo");
    assert!(reader.spare_mut().is_empty());
}
