//! A packet that the stack sent, taken apart.

use super::{
    device::SentFrame,
    flow::{Flow, written_byte},
    options::Plan,
};
use crate::{
    time::Instant,
    wire::{
        checksum::Checksum,
        ethernet, ipv4,
        tcp::{self, Flags, Header},
    },
};
use alloc::{format, string::String};
use core::net::IpAddr;

/// What a frame from the stack is.
#[derive(Debug)]
pub(super) enum Sent {
    /// A TCP segment to the peer.
    Segment(LiveSegment),
    /// Another packet, described.
    Other(String),
}

/// A TCP segment that the stack sent.
#[derive(Clone, Debug)]
pub(super) struct LiveSegment {
    pub(super) at: Instant,
    pub(super) header: Header,
    pub(super) ecn: u8,
    pub(super) payload_bytes: u32,
}

impl LiveSegment {
    /// Cuts off the first `bytes` of the payload as a segment of their own, as a device would.
    pub(super) fn split_off(&mut self, bytes: u32) -> Self {
        let bytes = bytes.min(self.payload_bytes);
        let mut first = self.clone();
        first.payload_bytes = bytes;
        if bytes < self.payload_bytes {
            first.header.flags -= Flags::FIN | Flags::PSH;
        }
        self.payload_bytes -= bytes;
        self.header.seq = self.header.seq.wrapping_add(bytes);
        first
    }

    /// Whether `next` carries on where this one ends.
    pub(super) fn is_followed_by(&self, next: &Self) -> bool {
        let (a, b) = (&self.header, &next.header);
        (a.src_port, a.dst_port) == (b.src_port, b.dst_port)
            && a.seq.wrapping_add(self.payload_bytes) == b.seq
            && !a.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST)
    }

    /// Joins `next`, which carries on where this one ends.
    pub(super) fn join(&mut self, next: &Self) {
        self.payload_bytes += next.payload_bytes;
        self.header.flags = next.header.flags;
        self.header.ack = next.header.ack;
        self.header.window = next.header.window;
    }
}

/// Takes a frame apart; an error is a fault of the stack, described.
pub(super) fn parse(plan: &Plan, frame: &SentFrame) -> Result<(Sent, usize), String> {
    let bytes = frame.bytes.get(ethernet::HEADER_BYTES..).unwrap_or(&[]);
    let (ip, ip_bytes) = ipv4::Header::parse(bytes).map_err(|e| format!("IPv4: {e}"))?;
    if usize::from(ip.total_bytes) != bytes.len() {
        let len = bytes.len();
        return Err(format!("{len} bytes that claim to be {}", ip.total_bytes));
    }
    let transport = &bytes[ip_bytes..];
    if ip.protocol != tcp::PROTOCOL || ip.dst != plan.remote {
        let text = format!("IP protocol {} to {}", ip.protocol, ip.dst);
        return Ok((Sent::Other(text), 0));
    }
    if ip.src != plan.local {
        return Err(format!("a segment from {}", ip.src));
    }
    if !frame.offloaded {
        let (src, dst) = (IpAddr::V4(ip.src), IpAddr::V4(ip.dst));
        let len = transport.len() as u32;
        let mut sum = Checksum::pseudo_header(src, dst, tcp::PROTOCOL, len);
        sum.add(transport);
        if !sum.is_valid() {
            return Err("a segment with a wrong checksum".into());
        }
    }
    let (header, header_bytes) = Header::parse(transport).map_err(|e| format!("TCP: {e}"))?;
    let segment = LiveSegment {
        at: frame.at,
        header,
        ecn: ip.ecn(),
        payload_bytes: (transport.len() - header_bytes) as u32,
    };
    let payload_at = ethernet::HEADER_BYTES + ip_bytes + header_bytes;
    Ok((Sent::Segment(segment), payload_at))
}

/// The place in the stack's stream of the first byte that is not what the application wrote.
pub(super) fn wrong_byte(flow: &Flow, seq: u32, payload: &[u8]) -> Option<u32> {
    let start = flow.local_offset(seq);
    payload
        .iter()
        .zip(0..)
        .map(|(byte, i)| (*byte, start.wrapping_add(i)))
        .find(|(byte, offset)| *byte != written_byte(*offset))
        .map(|(_, offset)| offset)
}
