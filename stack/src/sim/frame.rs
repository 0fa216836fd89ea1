//! Frames on the wire, and what a NIC's hardware does to make them.

use crate::{
    device::TxOffload,
    time::Instant,
    wire::{
        checksum::Checksum,
        ethernet::{HEADER_BYTES as ETHERNET_BYTES, TYPE_IPV4},
        ipv4, tcp,
    },
};
use alloc::{vec, vec::Vec};
use core::net::IpAddr;

/// A frame on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its bytes, checksums filled in.
    pub bytes: Vec<u8>,
    /// Of a frame made of several TCP segments, which only virtual wires carry: the payload bytes
    /// of each.
    pub segment_bytes: Option<u16>,
}

impl Frame {
    /// Does what a NIC was asked to do with a frame; `whole` leaves a large segment in one piece.
    pub(super) fn make(mut bytes: Vec<u8>, offload: TxOffload, whole: bool) -> Vec<Self> {
        match offload {
            TxOffload::None => {}
            TxOffload::Checksum { start, offset } => complete(&mut bytes, start, offset),
            TxOffload::Tso {
                start,
                offset,
                mss_bytes,
                ..
            } if whole => {
                complete(&mut bytes, start, offset);
                return vec![Self {
                    bytes,
                    segment_bytes: Some(mss_bytes),
                }];
            }
            TxOffload::Tso {
                start, mss_bytes, ..
            } => return cut(&bytes, usize::from(start), usize::from(mss_bytes)),
        }
        vec![Self {
            bytes,
            segment_bytes: None,
        }]
    }
}

/// Completes a checksum whose field holds the pseudo-header's sum.
fn complete(bytes: &mut [u8], start: u16, offset: u16) {
    let start = usize::from(start);
    let field = start + usize::from(offset);
    let mut sum = Checksum::new();
    sum.add(&bytes[start..]);
    let value = match sum.finish() {
        0 => 0xffff,
        value => value,
    };
    bytes[field..field + 2].copy_from_slice(&value.to_be_bytes());
}

/// Cuts a large TCP segment over IPv4 into frames of `mss` payload bytes.
fn cut(bytes: &[u8], start: usize, mss: usize) -> Vec<Frame> {
    let (ip, ip_bytes) = ipv4::Header::parse(&bytes[ETHERNET_BYTES..]).expect("an IPv4 header");
    assert_eq!(ETHERNET_BYTES + ip_bytes, start, "checksum start");
    let (header, tcp_bytes) = tcp::Header::parse(&bytes[start..]).expect("a TCP header");
    let headers_bytes = start + tcp_bytes;
    let payload = &bytes[headers_bytes..];
    let mut frames = Vec::new();
    for (index, part) in payload.chunks(mss).enumerate() {
        let last = (index + 1) * mss >= payload.len();
        let mut frame = bytes[..headers_bytes].to_vec();
        frame.extend_from_slice(part);
        let transport_bytes = tcp_bytes + part.len();
        let mut ip_out = [0; ipv4::HEADER_BYTES];
        ipv4::Header {
            total_bytes: (ip_bytes + transport_bytes) as u16,
            id: ip.id.wrapping_add(index as u16),
            ..ip
        }
        .emit(&mut ip_out);
        frame[ETHERNET_BYTES..start].copy_from_slice(&ip_out);
        let seq = header.seq.wrapping_add((index * mss) as u32);
        frame[start + 4..start + 8].copy_from_slice(&seq.to_be_bytes());
        let mut flags = header.flags;
        if !last {
            flags -= tcp::Flags::FIN | tcp::Flags::PSH;
        }
        if index > 0 {
            flags -= tcp::Flags::CWR;
        }
        frame[start + 13] = flags.bits();
        frame[start + 16..start + 18].fill(0);
        let (src, dst) = (IpAddr::V4(ip.src), IpAddr::V4(ip.dst));
        let mut sum = Checksum::pseudo_header(src, dst, tcp::PROTOCOL, transport_bytes as u32);
        sum.add(&frame[start..]);
        let value = sum.finish();
        frame[start + 16..start + 18].copy_from_slice(&value.to_be_bytes());
        frames.push(Frame {
            bytes: frame,
            segment_bytes: None,
        });
    }
    frames
}

/// What a frame is, in a line: for messages of failed tests.
impl core::fmt::Display for Frame {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let bytes = &self.bytes;
        write!(f, "{} bytes", bytes.len())?;
        if bytes.get(12..14) != Some(&TYPE_IPV4.to_be_bytes()[..]) {
            return Ok(());
        }
        let Ok((ip, ip_bytes)) = ipv4::Header::parse(&bytes[ETHERNET_BYTES..]) else {
            return write!(f, ", bad IPv4");
        };
        write!(f, ", {} > {}", ip.src, ip.dst)?;
        let transport = &bytes[ETHERNET_BYTES + ip_bytes..];
        match tcp::Header::parse(transport) {
            Ok((tcp, tcp_bytes)) if ip.protocol == tcp::PROTOCOL => {
                let payload = usize::from(ip.total_bytes).saturating_sub(ip_bytes + tcp_bytes);
                write!(
                    f,
                    ", ports {} > {}, {:?}, seq {}, ack {}, win {}, {payload} of payload",
                    tcp.src_port, tcp.dst_port, tcp.flags, tcp.seq, tcp.ack, tcp.window
                )
            }
            _ => write!(f, ", protocol {}", ip.protocol),
        }
    }
}

/// A pcap file of frames with their times.
pub fn pcap<'a>(frames: impl IntoIterator<Item = (Instant, &'a [u8])>) -> Vec<u8> {
    // Magic of microsecond files, version 2.4, no time zone, snap length, Ethernet.
    let header: [u32; 6] = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 0x0004_0000, 1];
    let mut file: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    for (at, bytes) in frames {
        let us = at.as_micros();
        let len = bytes.len() as u32;
        for word in [(us / 1_000_000) as u32, (us % 1_000_000) as u32, len, len] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(bytes);
    }
    file
}

#[cfg(test)]
mod tests;
