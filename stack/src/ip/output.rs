//! The way out: route, neighbour, headers, checksum, device.

use super::{
    Ip, IpPacket, IpSender, MAX_TRANSPORT_BYTES, Route, SendError,
    arp::{Request, Resolution},
    interface::NextHop,
    outbox::OwnedPacket,
};
use crate::{
    counters::Counters,
    device::{
        Capabilities, Device, IpVersion, MAX_HEADER_BYTES, MAX_TX_SLICES, Owner, Page, Slice,
        SliceRef, TxError, TxFrame, TxOffload,
    },
    time::Instant,
    wire::{
        arp,
        checksum::Checksum,
        ethernet::{self, Mac},
        icmpv4, ipv4, tcp, udp,
    },
};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

/// Hops a packet may take (RFC 1700).
const TTL: u8 = 64;

/// Where the transport header starts in a frame.
const TRANSPORT_OFFSET: usize = ethernet::HEADER_BYTES + ipv4::HEADER_BYTES;

/// What one step of the stack sends through: the device with the network layer's state.
#[derive(Debug)]
pub(crate) struct Output<'a, D: Device> {
    pub(crate) now: Instant,
    pub(crate) device: &'a mut D,
    pub(crate) capabilities: Capabilities,
    pub(crate) ip: &'a mut Ip<D::Page>,
    pub(crate) counters: &'a mut Counters,
}

/// A datagram that may be fragmented.
#[derive(Debug)]
pub(crate) struct Datagram<'a, P> {
    pub(crate) dst: Ipv4Addr,
    pub(crate) protocol: u8,
    /// Transport header, with small payload that may follow it here; never cut. Its checksum
    /// field is zero where `checksum` names one.
    pub(crate) transport: heapless::Vec<u8, MAX_TRANSPORT_BYTES>,
    /// The payload behind.
    pub(crate) payload: &'a [Slice<P>],
    /// Where in the transport header a checksum with pseudo-header is to be filled in.
    pub(crate) checksum: Option<u16>,
}

/// One IP packet.
#[derive(Debug)]
struct Packet<'a, P> {
    header: ipv4::Header,
    transport: &'a [u8],
    payload: &'a [SliceRef<'a, P>],
    /// Where in `transport` a checksum with pseudo-header is to be filled in.
    checksum: Option<u16>,
}

impl<P: Page> Packet<'_, P> {
    fn to_owned(&self) -> OwnedPacket<P> {
        let own = |slice: &SliceRef<'_, P>| {
            let start = slice.offset();
            Slice::new(slice.page().clone(), start..start + slice.len())
        };
        OwnedPacket {
            header: self.header,
            // It came from one of the same size.
            transport: heapless::Vec::from_slice(self.transport).unwrap_or_default(),
            payload: self.payload.iter().map(own).collect(),
            checksum: self.checksum,
        }
    }
}

impl<D: Device> IpSender<D::Page> for Output<'_, D> {
    fn route(&self, dst: IpAddr) -> Result<Route, SendError> {
        let IpAddr::V4(dst) = dst else {
            return Err(SendError::NoRoute);
        };
        let Some(NextHop::Neighbour(_)) = self.ip.interface.next_hop(dst) else {
            return Err(SendError::NoRoute);
        };
        let Capabilities {
            mtu_bytes,
            max_tso4_bytes,
            max_tso6_bytes: _,
            max_tx_slices,
            tx_ring_bytes,
            tx_checksum4: _,
            tx_checksum6: _,
        } = self.capabilities;
        Ok(Route {
            src: IpAddr::V4(self.ip.interface.address),
            mtu_bytes: self.ip.path_mtus.lookup(self.now, dst, mtu_bytes),
            // Both limits count headers; an IP packet cannot exceed its length field.
            max_tso_bytes: max_tso4_bytes
                .saturating_sub(ethernet::HEADER_BYTES as u32)
                .min(u32::from(u16::MAX)),
            max_slices: max_tx_slices.min(MAX_TX_SLICES as u8),
            ring_bytes: tx_ring_bytes,
        })
    }

    fn send(&mut self, packet: &IpPacket<'_, D::Page>) -> Result<(), SendError> {
        let &IpPacket {
            src,
            dst,
            protocol,
            traffic_class,
            transport,
            payload,
            segment_bytes,
            owner,
        } = packet;
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (src, dst) else {
            return Err(SendError::NoRoute);
        };
        let route = self.route(IpAddr::V4(dst))?;
        let payload_bytes: usize = payload.iter().map(SliceRef::len).sum();
        let total_bytes = ipv4::HEADER_BYTES + transport.len() + payload_bytes;
        let segment_bytes = segment_bytes.filter(|&bytes| usize::from(bytes) < payload_bytes);
        let limit = match segment_bytes {
            Some(_) => route.max_tso_bytes,
            None => u32::from(route.mtu_bytes),
        };
        let segment_fits = segment_bytes.is_none_or(|bytes| {
            bytes > 0
                && ipv4::HEADER_BYTES + transport.len() + usize::from(bytes)
                    <= usize::from(route.mtu_bytes)
        });
        if total_bytes > limit as usize || !segment_fits {
            return Err(SendError::Unsendable);
        }
        let header = ipv4::Header {
            traffic_class,
            total_bytes: total_bytes as u16,
            // RFC 6864 §4.1: the field of a packet that is never fragmented means nothing.
            id: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset_bytes: 0,
            ttl: TTL,
            protocol,
            src,
            dst,
        };
        let packet = Packet {
            header,
            transport,
            payload,
            checksum: match protocol {
                tcp::PROTOCOL => Some(tcp::CHECKSUM_OFFSET),
                udp::PROTOCOL => Some(udp::CHECKSUM_OFFSET),
                _ => None,
            },
        };
        self.transmit(&packet, segment_bytes, owner)?;
        self.counters.ip_out_requests += 1;
        Ok(())
    }
}

impl<D: Device> Output<'_, D> {
    /// Sends a datagram, in fragments if it must be. An error other than `Busy` is counted.
    ///
    /// When the first packet finds the device or the neighbour busy, nothing is taken; once it has
    /// gone, the others go too or wait in the outbox.
    pub(crate) fn send_datagram(
        &mut self,
        datagram: &mut Datagram<'_, D::Page>,
    ) -> Result<(), SendError> {
        let result = self.try_send_datagram(datagram);
        match result {
            Ok(()) => self.counters.ip_out_requests += 1,
            Err(SendError::Busy) => {}
            Err(SendError::NoRoute) => self.counters.ip_out_no_routes += 1,
            Err(_) => self.counters.ip_out_discards += 1,
        }
        result
    }

    /// Sends a datagram of the stack itself: when it cannot go now, it waits in the outbox.
    pub(crate) fn send_or_wait(&mut self, mut datagram: Datagram<'_, D::Page>) {
        if self.send_datagram(&mut datagram) != Err(SendError::Busy) {
            return;
        }
        let queued = self.each_packet(&mut datagram, |out, packet| {
            if out.ip.outbox.push(out.now, packet.to_owned()) {
                Ok(())
            } else {
                Err(SendError::Busy)
            }
        });
        match queued {
            Ok(()) => self.counters.ip_out_requests += 1,
            Err(_) => self.counters.ip_out_discards += 1,
        }
    }

    /// Sends what waits in the outbox, as far as the device takes.
    pub(crate) fn flush_outbox(&mut self) {
        self.counters.ip_out_discards += self.ip.outbox.expire(self.now);
        let mut index = 0;
        while let Some(waiting) = self.ip.outbox.take(index) {
            let payload: Vec<_> = waiting.packet.payload.iter().map(Slice::borrow).collect();
            let sent = self.transmit_gathered(&Packet {
                header: waiting.packet.header,
                transport: &waiting.packet.transport,
                payload: &payload,
                checksum: waiting.packet.checksum,
            });
            match sent {
                Ok(()) => {}
                Err(SendError::Busy) => {
                    self.ip.outbox.put_back(index, waiting);
                    index += 1;
                }
                Err(_) => self.counters.ip_out_discards += 1,
            }
        }
    }

    /// Sends an ARP packet. One that finds no room is lost; its sender will ask again.
    pub(crate) fn send_arp(&mut self, packet: &arp::Packet, to: Mac) {
        let mut frame = [0; ethernet::HEADER_BYTES + arp::PACKET_BYTES];
        if let Some((ethernet, body)) = frame.split_first_chunk_mut()
            && let Some(body) = body.first_chunk_mut()
        {
            ethernet::Header {
                dst: to,
                src: packet.sender_mac,
                ether_type: ethernet::TYPE_ARP,
            }
            .emit(ethernet);
            packet.emit(body);
        }
        match packet.operation {
            arp::Operation::Request => self.counters.arp_out_requests += 1,
            arp::Operation::Reply => self.counters.arp_out_replies += 1,
        }
        let _lost = self.device.transmit(&TxFrame {
            header: &frame,
            payload: &[],
            offload: TxOffload::None,
            owner: Owner::NONE,
        });
    }

    /// Asks for a neighbour.
    pub(crate) fn send_arp_request(&mut self, request: Request) {
        let Request { target, to } = request;
        let packet = arp::Packet {
            operation: arp::Operation::Request,
            sender_mac: Mac(self.device.mac()),
            sender: self.ip.interface.address,
            target_mac: Mac::default(),
            target,
        };
        self.send_arp(&packet, to);
    }

    fn try_send_datagram(&mut self, datagram: &mut Datagram<'_, D::Page>) -> Result<(), SendError> {
        let mut sent = false;
        self.each_packet(datagram, |out, packet| {
            match out.transmit_gathered(packet) {
                Err(SendError::Busy) if sent => {
                    // There is room: that was made sure of before the first fragment.
                    out.ip.outbox.push(out.now, packet.to_owned());
                    Ok(())
                }
                result => {
                    sent = result.is_ok();
                    result
                }
            }
        })
    }

    /// Calls `emit` for the one packet of a datagram, or for each of its fragments. Stops at the
    /// first error.
    fn each_packet(
        &mut self,
        datagram: &mut Datagram<'_, D::Page>,
        mut emit: impl FnMut(&mut Self, &Packet<'_, D::Page>) -> Result<(), SendError>,
    ) -> Result<(), SendError> {
        let &mut Datagram {
            dst,
            protocol,
            ref mut transport,
            payload,
            ref mut checksum,
        } = datagram;
        let src = self.ip.interface.address;
        let payload_bytes: usize = payload.iter().map(Slice::len).sum();
        let message_bytes = transport.len() + payload_bytes;
        let mtu_bytes = usize::from(self.ip.path_mtus.lookup(
            self.now,
            dst,
            self.capabilities.mtu_bytes,
        ));
        // Payload of a fragment: a multiple of eight bytes (RFC 791 §3.2).
        let room_bytes = mtu_bytes.saturating_sub(ipv4::HEADER_BYTES);
        let fragments = message_bytes > room_bytes;
        let part_bytes = if fragments {
            room_bytes & !7
        } else {
            room_bytes
        };
        if ipv4::HEADER_BYTES + message_bytes > usize::from(u16::MAX)
            || (fragments && part_bytes < transport.len() + 8)
        {
            self.counters.ip_frag_fails += u64::from(fragments);
            return Err(SendError::Unsendable);
        }
        let mut header = ipv4::Header {
            traffic_class: 0,
            total_bytes: 0,
            id: 0,
            // Path MTU discovery (RFC 1191 §3), where an answer to it finds a socket.
            dont_fragment: !fragments && protocol != icmpv4::PROTOCOL,
            more_fragments: false,
            fragment_offset_bytes: 0,
            ttl: TTL,
            protocol,
            src,
            dst,
        };
        if !header.dont_fragment {
            // What may be fragmented, here or on the way, needs an identification of its own
            // (RFC 6864 §4.3).
            header.id = self.ip.next_id(dst);
        }
        if fragments {
            if self.ip.outbox.room() < message_bytes / part_bytes + 1 {
                return Err(SendError::Busy);
            }
            // No device sums over several packets.
            if let Some(offset) = checksum.take() {
                let mut sum = pseudo_header(&header, message_bytes);
                sum.add(transport);
                for slice in payload {
                    sum.add(slice.bytes());
                }
                write_checksum(transport, offset, nonzero(sum.finish()))?;
            }
        }
        if !fragments && payload.len() <= MAX_TX_SLICES {
            // The usual case does without an allocation.
            header.total_bytes = (ipv4::HEADER_BYTES + message_bytes) as u16;
            let part: heapless::Vec<_, MAX_TX_SLICES> = payload
                .iter()
                .filter(|slice| !slice.is_empty())
                .map(Slice::borrow)
                .collect();
            let packet = Packet {
                header,
                transport,
                payload: &part,
                checksum: *checksum,
            };
            return emit(self, &packet);
        }
        let mut rest = Cursor {
            slices: payload,
            skip: 0,
        };
        let mut at = 0;
        loop {
            let inline = if at == 0 { &transport[..] } else { &[] };
            let len = part_bytes.min(message_bytes - at);
            header.total_bytes = (ipv4::HEADER_BYTES + len) as u16;
            header.fragment_offset_bytes = at as u16;
            header.more_fragments = at + len < message_bytes;
            let part: Vec<_> = rest.take(len - inline.len());
            let packet = Packet {
                header,
                transport: inline,
                payload: &part,
                checksum: *checksum,
            };
            emit(self, &packet)?;
            self.counters.ip_frag_creates += u64::from(fragments);
            at += len;
            if at == message_bytes {
                self.counters.ip_frag_oks += u64::from(fragments);
                return Ok(());
            }
        }
    }

    /// As [`Output::transmit`], for a packet that may have more slices than the device takes:
    /// then it is copied.
    fn transmit_gathered(&mut self, packet: &Packet<'_, D::Page>) -> Result<(), SendError> {
        if packet.payload.len() <= usize::from(self.capabilities.max_tx_slices) {
            return self.transmit(packet, None, Owner::NONE);
        }
        let mut pages: Vec<D::Page> = Vec::new();
        for slice in packet.payload {
            let mut bytes = slice.bytes();
            while !bytes.is_empty() {
                let copied = pages.last_mut().map_or(0, |page| page.append(bytes));
                bytes = &bytes[copied..];
                if copied == 0 {
                    if pages.last().is_some_and(|page| page.bytes().is_empty()) {
                        return Err(SendError::Unsendable);
                    }
                    pages.push(self.device.alloc_page().ok_or(SendError::Busy)?);
                }
            }
        }
        let payload: Vec<_> = pages
            .iter()
            .map(|page| SliceRef::new(page, 0..page.bytes().len()))
            .collect();
        let packet = Packet {
            payload: &payload,
            ..*packet
        };
        self.transmit(&packet, None, Owner::NONE)
    }

    /// Hands one packet to the device.
    fn transmit(
        &mut self,
        packet: &Packet<'_, D::Page>,
        segment_bytes: Option<u16>,
        owner: Owner,
    ) -> Result<(), SendError> {
        let &Packet {
            ref header,
            transport,
            payload,
            checksum,
        } = packet;
        let end = TRANSPORT_OFFSET + transport.len();
        let mut frame = [0; MAX_HEADER_BYTES];
        let Some(room) = frame.get_mut(TRANSPORT_OFFSET..end) else {
            return Err(SendError::Unsendable);
        };
        room.copy_from_slice(transport);
        if payload.len() > usize::from(self.capabilities.max_tx_slices) {
            return Err(SendError::Unsendable);
        }
        if !self.device.link_up() {
            return Err(SendError::Down);
        }
        let dst = self.resolve(header.dst)?;
        let offload = match checksum {
            None => TxOffload::None,
            Some(offset) => {
                let transport = &mut frame[TRANSPORT_OFFSET..end];
                self.offload(header, transport, payload, offset, segment_bytes)?
            }
        };
        if let Some((ethernet, rest)) = frame.split_first_chunk_mut()
            && let Some(ip) = rest.first_chunk_mut()
        {
            ethernet::Header {
                dst,
                src: Mac(self.device.mac()),
                ether_type: ethernet::TYPE_IPV4,
            }
            .emit(ethernet);
            header.emit(ip);
        }
        self.device
            .transmit(&TxFrame {
                header: &frame[..end],
                payload,
                offload,
                owner,
            })
            .map_err(|error| match error {
                TxError::Full => SendError::Busy,
                TxError::Down => SendError::Down,
                TxError::Unsendable => SendError::Unsendable,
            })
    }

    /// Completes the checksum, or prepares it for the device to complete.
    fn offload(
        &self,
        header: &ipv4::Header,
        transport: &mut [u8],
        payload: &[SliceRef<'_, D::Page>],
        offset: u16,
        segment_bytes: Option<u16>,
    ) -> Result<TxOffload, SendError> {
        let message_bytes = usize::from(header.total_bytes).saturating_sub(ipv4::HEADER_BYTES);
        let mut sum = pseudo_header(header, message_bytes);
        let start = TRANSPORT_OFFSET as u16;
        let (value, offload) = if let Some(mss_bytes) = segment_bytes {
            let offload = TxOffload::Tso {
                start,
                offset,
                mss_bytes,
                version: IpVersion::V4,
            };
            (sum.partial(), offload)
        } else if self.capabilities.tx_checksum4 {
            (sum.partial(), TxOffload::Checksum { start, offset })
        } else {
            sum.add(transport);
            for slice in payload {
                sum.add(slice.bytes());
            }
            (nonzero(sum.finish()), TxOffload::None)
        };
        write_checksum(transport, offset, value)?;
        Ok(offload)
    }

    /// The Ethernet address of the first station on the way to `dst`.
    fn resolve(&mut self, dst: Ipv4Addr) -> Result<Mac, SendError> {
        match self.ip.interface.next_hop(dst) {
            None => Err(SendError::NoRoute),
            Some(NextHop::Broadcast) => Ok(Mac::BROADCAST),
            Some(NextHop::Multicast(group)) => Ok(Mac::multicast(group)),
            Some(NextHop::Neighbour(address)) => {
                let (resolution, request) = self.ip.neighbours.resolve(self.now, address);
                if let Some(request) = request {
                    self.send_arp_request(request);
                }
                match resolution {
                    Resolution::Failed => Err(SendError::Unreachable),
                    Resolution::Known(mac) => Ok(mac),
                    Resolution::Pending => Err(SendError::Busy),
                }
            }
        }
    }
}

/// A place in a list of slices.
struct Cursor<'a, P> {
    slices: &'a [Slice<P>],
    /// Bytes of the first slice that are gone.
    skip: usize,
}

impl<'a, P: Page> Cursor<'a, P> {
    /// The next `len` bytes, or all there are.
    fn take(&mut self, mut len: usize) -> Vec<SliceRef<'a, P>> {
        let mut parts = Vec::new();
        while let [first, rest @ ..] = self.slices
            && len > 0
        {
            let part = first.borrow().slice(self.skip..self.skip + len);
            len -= part.len();
            self.skip += part.len();
            if !part.is_empty() {
                parts.push(part);
            }
            if self.skip == first.len() {
                self.slices = rest;
                self.skip = 0;
            }
        }
        parts
    }
}

/// The sum over the pseudo-header of a message in an IPv4 packet.
fn pseudo_header(header: &ipv4::Header, message_bytes: usize) -> Checksum {
    let (src, dst) = (IpAddr::V4(header.src), IpAddr::V4(header.dst));
    Checksum::pseudo_header(src, dst, header.protocol, message_bytes as u32)
}

/// RFC 768: a UDP checksum of zero means none, so all ones is sent for it. Either is right for
/// TCP.
fn nonzero(checksum: u16) -> u16 {
    match checksum {
        0 => 0xffff,
        checksum => checksum,
    }
}

fn write_checksum(transport: &mut [u8], offset: u16, value: u16) -> Result<(), SendError> {
    let offset = usize::from(offset);
    let field = transport
        .get_mut(offset..offset + 2)
        .ok_or(SendError::Unsendable)?;
    field.copy_from_slice(&value.to_be_bytes());
    Ok(())
}
