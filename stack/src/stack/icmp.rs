//! ICMP: echo, and errors both ways (RFC 792, RFC 1122 §3.2.2).

use super::{Stack, input::Packet};
use crate::{
    device::{Device, RxChecksum, RxMemory, Slice},
    ip::{IcmpError, IcmpErrorKind, output::Datagram, pmtu::MIN_MTU_BYTES, reassembly::Expired},
    wire::{
        checksum::{Checksum, checksum, update},
        icmpv4::{self, Header},
        ipv4, tcp, udp,
    },
};
use core::net::{IpAddr, Ipv4Addr};

/// Bytes of the faulty packet's payload that an error quotes (RFC 792).
const QUOTED_BYTES: usize = 8;

impl<D: Device> Stack<D> {
    pub(super) fn icmp_input(&mut self, packet: &Packet<'_>, slices: &[Slice<D::Page>]) {
        self.counters.icmp_in_msgs += 1;
        // No NIC verifies ICMP, and an echo reply builds on the sum: so it is always taken here.
        let mut sum = Checksum::new();
        for slice in slices {
            sum.add(slice.bytes());
        }
        if !sum.is_valid() {
            self.counters.icmp_in_csum_errors += 1;
            self.counters.icmp_in_errors += 1;
            return;
        }
        let first = slices.first().map_or(&[][..], Slice::bytes);
        let Ok(header) = Header::parse(first) else {
            self.counters.icmp_in_errors += 1;
            return;
        };
        let quoted = &first[icmpv4::HEADER_BYTES..];
        match header.kind {
            icmpv4::ECHO => {
                self.counters.icmp_in_echos += 1;
                // RFC 1122 §3.2.2.6 lets us be silent to requests made to all.
                if !packet.broadcast {
                    self.echo(packet.header.src, header, slices);
                }
            }
            icmpv4::ECHO_REPLY => self.counters.icmp_in_echo_reps += 1,
            icmpv4::UNREACHABLE => {
                self.counters.icmp_in_dest_unreachs += 1;
                let kind = match header.code {
                    icmpv4::CODE_PROTOCOL | icmpv4::CODE_PORT => IcmpErrorKind::Refused,
                    icmpv4::CODE_FRAGMENTATION_NEEDED => IcmpErrorKind::PacketTooBig {
                        mtu_bytes: u16::from_be_bytes([header.rest[2], header.rest[3]]),
                    },
                    code if icmpv4::CODES_PROHIBITED.contains(&code) => IcmpErrorKind::Prohibited,
                    _ => IcmpErrorKind::Unreachable,
                };
                self.icmp_error(kind, quoted);
            }
            icmpv4::TIME_EXCEEDED => {
                self.counters.icmp_in_time_excds += 1;
                self.icmp_error(IcmpErrorKind::Unreachable, quoted);
            }
            icmpv4::PARAMETER_PROBLEM => self.counters.icmp_in_parm_probs += 1,
            _ => {}
        }
    }

    /// Answers an echo request with its own bytes.
    fn echo(&mut self, to: Ipv4Addr, request: Header, slices: &[Slice<D::Page>]) {
        let word = |kind: u8| u16::from_be_bytes([kind, request.code]);
        let reply = Header {
            kind: icmpv4::ECHO_REPLY,
            checksum: update(
                request.checksum,
                word(icmpv4::ECHO),
                word(icmpv4::ECHO_REPLY),
            ),
            ..request
        };
        let mut payload = slices.to_vec();
        if let Some(first) = payload.first_mut() {
            first.advance(icmpv4::HEADER_BYTES);
        }
        let mut bytes = [0; icmpv4::HEADER_BYTES];
        reply.emit(&mut bytes);
        self.counters.icmp_out_msgs += 1;
        self.counters.icmp_out_echo_reps += 1;
        self.output().send_or_wait(Datagram {
            dst: to,
            protocol: icmpv4::PROTOCOL,
            transport: bytes.into_iter().collect(),
            payload: &payload,
            checksum: None,
        });
    }

    /// Tells the transport of a quoted packet what became of it.
    fn icmp_error(&mut self, kind: IcmpErrorKind, quoted: &[u8]) {
        let Ok((header, header_bytes)) = ipv4::Header::parse_quoted(quoted) else {
            self.counters.icmp_in_errors += 1;
            return;
        };
        let Some(&[l0, l1, r0, r1, s0, s1, s2, s3]) = quoted[header_bytes..].first_chunk() else {
            self.counters.icmp_in_errors += 1;
            return;
        };
        if header.src != self.ip.interface.address || header.fragment_offset_bytes != 0 {
            return;
        }
        let mut error = IcmpError {
            local: IpAddr::V4(header.src),
            remote: IpAddr::V4(header.dst),
            local_port: u16::from_be_bytes([l0, l1]),
            remote_port: u16::from_be_bytes([r0, r1]),
            seq: u32::from_be_bytes([s0, s1, s2, s3]),
            kind,
        };
        if let IcmpErrorKind::PacketTooBig { mtu_bytes } = &mut error.kind {
            if *mtu_bytes == 0 {
                *mtu_bytes = plateau(header.total_bytes);
            }
            // Of less than any path has, the transport would never be done with sending anew.
            *mtu_bytes = (*mtu_bytes).max(MIN_MTU_BYTES);
        }
        let believed = match header.protocol {
            tcp::PROTOCOL => self.tcp.icmp_error(self.now, &error),
            udp::PROTOCOL => self.udp.icmp_error(&error),
            _ => false,
        };
        if let IcmpErrorKind::PacketTooBig { mtu_bytes } = error.kind
            && believed
        {
            let link_bytes = self.device.capabilities().mtu_bytes;
            let (now, dst) = (self.now, header.dst);
            self.ip.path_mtus.lower(now, dst, mtu_bytes, link_bytes);
        }
    }

    /// Tells the sender of `packet` that it cannot be delivered, unless RFC 1122 §3.2.2 forbids it
    /// or too many have been told of late.
    pub(super) fn send_icmp_error(
        &mut self,
        packet: &Packet<'_>,
        slices: &[Slice<D::Page>],
        kind: u8,
        code: u8,
    ) {
        let header = &packet.header;
        let about_error = header.protocol == icmpv4::PROTOCOL
            && slices
                .first()
                .and_then(|slice| slice.bytes().first().copied())
                .is_none_or(Header::is_error);
        if packet.broadcast || header.fragment_offset_bytes != 0 || about_error {
            return;
        }
        if !self.ip.icmp_errors.allow(self.now) {
            self.counters.icmp_out_rate_limit_global += 1;
            return;
        }
        match kind {
            icmpv4::TIME_EXCEEDED => self.counters.icmp_out_time_excds += 1,
            _ => self.counters.icmp_out_dest_unreachs += 1,
        }
        self.counters.icmp_out_msgs += 1;
        let mut bytes = [0; icmpv4::HEADER_BYTES];
        let error = Header {
            kind,
            code,
            checksum: 0,
            rest: [0; 4],
        };
        error.emit(&mut bytes);
        let quoted = slices.iter().flat_map(Slice::bytes).take(QUOTED_BYTES);
        // 8 + 60 + 8 bytes at most: there is room.
        let mut transport: heapless::Vec<u8, { crate::ip::MAX_TRANSPORT_BYTES }> = bytes
            .iter()
            .chain(packet.raw)
            .chain(quoted)
            .copied()
            .collect();
        let sum = checksum(&transport);
        transport[2..4].copy_from_slice(&sum.to_be_bytes());
        self.output().send_or_wait(Datagram {
            dst: header.src,
            protocol: icmpv4::PROTOCOL,
            transport,
            payload: &[],
            checksum: None,
        });
    }

    /// Counts a datagram that was given up, and tells its sender if its start was there
    /// (RFC 1122 §3.3.2).
    pub(super) fn reassembly_expired(&mut self, expired: Expired<D::Page>) {
        self.counters.ip_reasm_timeout += 1;
        self.counters.ip_reasm_fails += 1;
        let Some((raw, slices)) = expired.first else {
            return;
        };
        let Ok((header, _)) = ipv4::Header::parse(&raw) else {
            return;
        };
        let packet = Packet {
            header,
            raw: &raw,
            broadcast: self.ip.interface.is_broadcast(header.dst),
            checksum: RxChecksum::Unverified,
            segment_bytes: None,
            memory: RxMemory::Plenty,
        };
        let (kind, code) = (icmpv4::TIME_EXCEEDED, icmpv4::CODE_REASSEMBLY);
        self.send_icmp_error(&packet, &slices, kind, code);
    }
}

/// A guess at the MTU behind a router that does not tell: the next lower of those that links have
/// (RFC 1191 §7.1).
fn plateau(packet_bytes: u16) -> u16 {
    const PLATEAUS: [u16; 9] = [32_000, 17_914, 8166, 4352, 2002, 1492, 1006, 508, 296];
    PLATEAUS
        .into_iter()
        .find(|&plateau| plateau < packet_bytes)
        .unwrap_or(68)
}
