//! The way in: from the frame to the transport.

use super::Stack;
use crate::{
    device::{Device, Page, RxChecksum, RxFrame, RxMemory, Slice},
    ip::{RxMeta, RxSlices, arp::Evidence, reassembly::Outcome},
    wire::{
        arp,
        checksum::Checksum,
        ethernet::{self, Mac},
        icmpv4, ipv4, tcp, udp,
    },
};
use core::{mem, net::IpAddr};

/// A received IP packet, past its header.
#[derive(Debug)]
pub(super) struct Packet<'a> {
    pub(super) header: ipv4::Header,
    /// The header as it was received.
    pub(super) raw: &'a [u8],
    /// Whether it was sent to all on the link, by Ethernet or by IP.
    pub(super) broadcast: bool,
    pub(super) checksum: RxChecksum,
    pub(super) segment_bytes: Option<u16>,
    pub(super) memory: RxMemory,
}

impl Packet<'_> {
    /// Whether the transport checksum over the first `len` bytes is right: by the device's word,
    /// or by summing up.
    pub(super) fn checksum_is_good<P: Page>(&self, slices: &[Slice<P>], len: usize) -> bool {
        if self.checksum == RxChecksum::Good {
            return true;
        }
        let (src, dst) = (IpAddr::V4(self.header.src), IpAddr::V4(self.header.dst));
        let mut sum = Checksum::pseudo_header(src, dst, self.header.protocol, len as u32);
        let mut rest = len;
        for slice in slices {
            let bytes = slice.bytes();
            let part = &bytes[..bytes.len().min(rest)];
            sum.add(part);
            rest -= part.len();
        }
        sum.is_valid()
    }

    /// What the transport is told.
    pub(super) fn meta(&self) -> RxMeta {
        RxMeta {
            src: IpAddr::V4(self.header.src),
            dst: IpAddr::V4(self.header.dst),
            ecn: self.header.ecn(),
            segment_bytes: self.segment_bytes,
            memory: self.memory,
        }
    }
}

impl<D: Device> Stack<D> {
    /// Takes in a frame.
    ///
    /// The list of slices is passed on by reference: it is too large to be moved at every layer.
    pub(super) fn frame(&mut self, frame: &mut RxFrame<D::Page>) {
        let &mut RxFrame {
            ref mut slices,
            checksum,
            segment_bytes,
        } = frame;
        let Some(first) = slices.first_mut() else {
            return;
        };
        let Ok(header) = ethernet::Header::parse(first.bytes()) else {
            self.counters.ether_in_discards += 1;
            return;
        };
        let for_us = header.dst == Mac(self.device.mac());
        let known = matches!(header.ether_type, ethernet::TYPE_IPV4 | ethernet::TYPE_ARP);
        if !(for_us || header.dst == Mac::BROADCAST) || !header.src.is_unicast() || !known {
            self.counters.ether_in_discards += 1;
            return;
        }
        if header.ether_type == ethernet::TYPE_ARP {
            match arp::Packet::parse(&first.bytes()[ethernet::HEADER_BYTES..]) {
                Ok(packet) => self.arp(&packet),
                Err(_) => self.counters.arp_in_errors += 1,
            }
            return;
        }
        first.advance(ethernet::HEADER_BYTES);
        self.ipv4(slices, !for_us, checksum, segment_bytes);
    }

    fn arp(&mut self, packet: &arp::Packet) {
        let &arp::Packet {
            operation,
            sender_mac,
            sender,
            target_mac: _,
            target,
        } = packet;
        self.counters.arp_in_pkts += 1;
        let our_mac = Mac(self.device.mac());
        let our_address = self.ip.interface.address;
        if !sender_mac.is_unicast() || sender_mac == our_mac {
            self.counters.arp_in_errors += 1;
            return;
        }
        if sender == our_address {
            self.counters.arp_conflicts += 1;
            if self.ip.defences.allow(self.now) {
                log::warn!("{sender_mac} claims our address {our_address}");
                self.announce();
            }
            return;
        }
        let asks_for_us = operation == arp::Operation::Request && target == our_address;
        if self.ip.interface.is_neighbour(sender) {
            let evidence = match operation {
                arp::Operation::Request if asks_for_us => Evidence::RequestForUs,
                arp::Operation::Reply if target == our_address => Evidence::Reply,
                _ => Evidence::Unsolicited,
            };
            let now = self.now;
            self.ip.neighbours.learn(now, sender, sender_mac, evidence);
        } else if !sender.is_unspecified() {
            self.counters.arp_in_errors += 1;
            return;
        }
        if asks_for_us {
            let reply = arp::Packet {
                operation: arp::Operation::Reply,
                sender_mac: our_mac,
                sender: our_address,
                target_mac: sender_mac,
                target: sender,
            };
            self.output().send_arp(&reply, sender_mac);
        }
    }

    fn ipv4(
        &mut self,
        slices: &mut RxSlices<D::Page>,
        broadcast: bool,
        checksum: RxChecksum,
        segment_bytes: Option<u16>,
    ) {
        self.counters.ip_in_receives += 1;
        let mut raw = [0; ipv4::MAX_HEADER_BYTES];
        let Some(first) = slices.first_mut() else {
            return;
        };
        let Ok((header, header_bytes)) = ipv4::Header::parse(first.bytes()) else {
            self.counters.ip_in_hdr_errors += 1;
            return;
        };
        raw[..header_bytes].copy_from_slice(&first.bytes()[..header_bytes]);
        first.advance(header_bytes);
        let payload_bytes = usize::from(header.total_bytes) - header_bytes;
        // What is longer was padded by Ethernet.
        if !cut(slices, payload_bytes) {
            self.counters.ip_ext_in_truncated_pkts += 1;
            return;
        }
        let interface = &self.ip.interface;
        let to_all = interface.is_broadcast(header.dst);
        // A packet to one host in a frame to all is a forgery (RFC 1122 §3.3.6).
        let for_us = to_all || (header.dst == interface.address && !broadcast);
        if !for_us || !interface.is_host(header.src) || header.src == interface.address {
            self.counters.ip_in_addr_errors += 1;
            return;
        }
        if header.ecn() == 0b11 {
            self.counters.ip_ext_in_ce_pkts += 1;
        }
        let packet = Packet {
            header,
            raw: &raw[..header_bytes],
            broadcast: to_all,
            checksum,
            segment_bytes,
            memory: self.device.rx_memory(),
        };
        if header.is_fragment() {
            if packet.memory != RxMemory::Plenty {
                self.counters.ip_reasm_fails += 1;
                return;
            }
            self.fragment(&packet, mem::take(slices));
            return;
        }
        match header.protocol {
            tcp::PROTOCOL => self.tcp_input(&packet, slices),
            _ => self.deliver(&packet, slices),
        }
    }

    fn fragment(&mut self, packet: &Packet<'_>, slices: RxSlices<D::Page>) {
        self.counters.ip_reasm_reqds += 1;
        let Packet { header, raw, .. } = packet;
        let fails = &mut self.counters.ip_reasm_fails;
        let reassembly = &mut self.ip.reassembly;
        match reassembly.insert(self.now, header, raw, slices, fails) {
            Outcome::Complete(header, slices) => {
                self.counters.ip_reasm_oks += 1;
                let packet = Packet {
                    header,
                    // What the device says holds for a fragment, not for the whole.
                    checksum: RxChecksum::Unverified,
                    segment_bytes: None,
                    ..*packet
                };
                if header.protocol != tcp::PROTOCOL {
                    self.deliver(&packet, &slices);
                } else if slices.len() <= crate::device::MAX_RX_SLICES {
                    self.tcp_input(&packet, &mut slices.into_iter().collect());
                } else {
                    self.counters.ip_in_discards += 1;
                }
            }
            Outcome::Dropped => self.counters.ip_reasm_fails += 1,
            Outcome::Held => {}
        }
    }

    fn tcp_input(&mut self, packet: &Packet<'_>, slices: &mut RxSlices<D::Page>) {
        if packet.broadcast {
            // RFC 9293 §3.9.2.3: TCP is between two hosts.
            self.counters.ip_in_discards += 1;
        } else if packet.checksum_is_good(slices, slices.iter().map(Slice::len).sum()) {
            self.counters.ip_in_delivers += 1;
            self.tcp.input(self.now, &packet.meta(), mem::take(slices));
        } else {
            self.counters.tcp_in_csum_errors += 1;
        }
    }

    fn deliver(&mut self, packet: &Packet<'_>, slices: &[Slice<D::Page>]) {
        match packet.header.protocol {
            icmpv4::PROTOCOL => self.icmp_input(packet, slices),
            udp::PROTOCOL => self.udp_input(packet, slices),
            _ => {
                self.counters.ip_in_unknown_protos += 1;
                let (kind, code) = (icmpv4::UNREACHABLE, icmpv4::CODE_PROTOCOL);
                self.send_icmp_error(packet, slices, kind, code);
                return;
            }
        }
        self.counters.ip_in_delivers += 1;
    }
}

/// Cuts a message to its first `len` bytes and drops empty slices; false when it is shorter.
fn cut<P: Page>(slices: &mut RxSlices<P>, len: usize) -> bool {
    let mut missing = len;
    slices.retain_mut(|slice| {
        slice.truncate(missing);
        missing -= slice.len();
        !slice.is_empty()
    });
    missing == 0
}
