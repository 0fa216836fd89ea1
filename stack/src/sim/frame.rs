//! Frames as bytes: for hooks, records and capture files.

use crate::{
    time::Instant,
    wire::{
        ethernet::{HEADER_BYTES as ETHERNET_BYTES, TYPE_IPV4},
        ipv4, tcp,
    },
};
use alloc::vec::Vec;

/// A frame on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its bytes, checksums filled in.
    pub bytes: Vec<u8>,
    /// Of a frame made of several TCP segments, which only virtual wires carry: the payload bytes
    /// of each.
    pub segment_bytes: Option<u16>,
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
