//! UDP datagrams through the stack, both ways.

use super::{Stack, input::Packet};
use crate::{
    device::{Device, MAX_TX_SLICES, Page, RxMemory, Slice},
    ip::{MAX_TRANSPORT_BYTES, SendError, output::Datagram},
    udp::{Delivery, MAX_PAYLOAD_BYTES, UdpError},
    wire::{
        icmpv4,
        udp::{CHECKSUM_OFFSET, HEADER_BYTES, Header, PROTOCOL},
    },
};
use core::net::{IpAddr, SocketAddr};

impl<D: Device> Stack<D> {
    /// Takes in a UDP datagram.
    pub(super) fn udp_input(&mut self, packet: &Packet<'_>, slices: &[Slice<D::Page>]) {
        let there: usize = slices.iter().map(Slice::len).sum();
        let first = slices.first().map_or(&[][..], Slice::bytes);
        let header = match Header::parse(first) {
            Ok(header) if usize::from(header.total_bytes) <= there => header,
            Ok(_) | Err(_) => {
                self.counters.udp_in_errors += 1;
                return;
            }
        };
        let total_bytes = usize::from(header.total_bytes);
        // RFC 768: no checksum was made when the field is zero.
        if header.checksum != 0 && !packet.checksum_is_good(slices, total_bytes) {
            self.counters.udp_in_csum_errors += 1;
            self.counters.udp_in_errors += 1;
            return;
        }
        if packet.memory == RxMemory::Spent {
            self.counters.udp_mem_errors += 1;
            self.counters.udp_in_errors += 1;
            return;
        }
        let from = SocketAddr::new(IpAddr::V4(packet.header.src), header.src_port);
        let payload = payload(slices, total_bytes);
        match self.udp.input(from, header.dst_port, payload) {
            Delivery::Queued => self.counters.udp_in_datagrams += 1,
            Delivery::Full => {
                self.counters.udp_rcvbuf_errors += 1;
                self.counters.udp_in_errors += 1;
            }
            Delivery::NoPort => {
                self.counters.udp_no_ports += 1;
                let (kind, code) = (icmpv4::UNREACHABLE, icmpv4::CODE_PORT);
                self.send_icmp_error(packet, slices, kind, code);
            }
        }
    }

    /// Sends a UDP datagram. Nothing is taken when the result is an error.
    pub(crate) fn udp_send(
        &mut self,
        src_port: u16,
        data: &[u8],
        to: SocketAddr,
    ) -> Result<(), UdpError> {
        let IpAddr::V4(dst) = to.ip() else {
            return Err(UdpError::Send(SendError::NoRoute));
        };
        if data.len() > MAX_PAYLOAD_BYTES {
            return Err(UdpError::TooLong {
                max_bytes: MAX_PAYLOAD_BYTES,
                got_bytes: data.len(),
            });
        }
        let header = Header {
            src_port,
            dst_port: to.port(),
            total_bytes: (HEADER_BYTES + data.len()) as u16,
            checksum: 0,
        };
        let mut bytes = [0; HEADER_BYTES];
        header.emit(&mut bytes);
        let mut transport: heapless::Vec<u8, MAX_TRANSPORT_BYTES> = bytes.into_iter().collect();
        let mut payload: heapless::Vec<Slice<D::Page>, MAX_TX_SLICES> = heapless::Vec::new();
        if transport.extend_from_slice(data).is_err() {
            let mut rest = data;
            while !rest.is_empty() {
                let mut page = self
                    .device
                    .alloc_page()
                    .ok_or(UdpError::Send(SendError::Busy))?;
                let copied = page.append(rest);
                rest = &rest[copied..];
                // 17 pages hold more than a datagram; a device with small ones has smaller ones.
                if copied == 0 || payload.push(Slice::whole(page)).is_err() {
                    return Err(UdpError::Send(SendError::Unsendable));
                }
            }
        }
        self.output()
            .send_datagram(&mut Datagram {
                dst,
                protocol: PROTOCOL,
                transport,
                payload: &payload,
                checksum: Some(CHECKSUM_OFFSET),
            })
            .map_err(UdpError::Send)?;
        self.counters.udp_out_datagrams += 1;
        self.want_poll();
        Ok(())
    }
}

/// The payload of a datagram of `total_bytes`.
fn payload<P: Page>(slices: &[Slice<P>], total_bytes: usize) -> impl Iterator<Item = Slice<P>> {
    let mut at = 0;
    slices.iter().filter_map(move |slice| {
        let mut part = slice.clone();
        part.truncate(total_bytes - at);
        at += part.len();
        if at == part.len() {
            part.advance(HEADER_BYTES);
        }
        (!part.is_empty()).then_some(part)
    })
}
