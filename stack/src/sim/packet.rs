//! Packets under way: headers by value, payload by reference.

use super::{frame::Frame, page::Part};
use crate::{
    device::TxOffload,
    wire::{
        checksum::{Checksum, checksum, update},
        ethernet::{HEADER_BYTES as ETHERNET_BYTES, TYPE_IPV4},
        ipv4, tcp,
    },
};
use alloc::vec::Vec;
use core::{mem, net::IpAddr};

/// Where the IP header's ECN bits are in a frame.
const TRAFFIC_CLASS: usize = ETHERNET_BYTES + 1;
/// Where the IPv4 header checksum is in a frame.
const IP_CHECKSUM: usize = ETHERNET_BYTES + 10;
/// Largest IP packet.
const MAX_IP_BYTES: usize = 65_535;
/// Congestion experienced (RFC 3168 §5).
const CE: u8 = 3;

/// A packet on a wire.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    /// The headers; or the whole frame, where it came as bytes.
    pub(super) front: Vec<u8>,
    /// What follows.
    pub(super) payload: Vec<Part>,
    /// Of a packet made of several TCP segments: the payload bytes of each.
    pub(super) mss_bytes: Option<u16>,
    /// Where the transport header starts and where in it the checksum is, while that holds the
    /// pseudo-header's sum only: nobody has looked at the payload yet.
    pub(super) partial: Option<(u16, u16)>,
}

impl Packet {
    /// The packet that a NIC was given, one for all segments of a large one.
    pub(super) fn new(front: Vec<u8>, payload: Vec<Part>, offload: TxOffload) -> Self {
        let (partial, mss_bytes) = match offload {
            TxOffload::None => (None, None),
            TxOffload::Checksum { start, offset } => (Some((start, offset)), None),
            TxOffload::Tso {
                start,
                offset,
                mss_bytes,
                ..
            } => (Some((start, offset)), Some(mss_bytes)),
        };
        Self {
            front,
            payload,
            mss_bytes,
            partial,
        }
    }

    pub(super) fn from_frame(frame: Frame) -> Self {
        let Frame {
            bytes,
            segment_bytes,
        } = frame;
        Self {
            front: bytes,
            payload: Vec::new(),
            mss_bytes: segment_bytes,
            partial: None,
        }
    }

    /// The frame as a wire would carry it, checksums and all.
    pub(super) fn to_frame(&self) -> Frame {
        let mut bytes = Vec::with_capacity(self.len());
        bytes.extend_from_slice(&self.front);
        for part in &self.payload {
            bytes.extend_from_slice(part.bytes());
        }
        if let Some((start, offset)) = self.partial {
            complete(&mut bytes, start, offset);
        }
        Frame {
            bytes,
            segment_bytes: self.mss_bytes,
        }
    }

    /// Bytes of the frame.
    pub(super) fn len(&self) -> usize {
        self.front.len() + self.payload_len()
    }

    pub(super) fn payload_len(&self) -> usize {
        self.payload.iter().map(Part::len).sum()
    }

    /// Bytes on a real wire: each segment of a large packet has headers of its own.
    pub(super) fn wire_bytes(&self) -> u64 {
        let len = self.len() as u64;
        let Some(mss) = self.mss_bytes else {
            return len;
        };
        let front = self.front.len() as u64;
        let segments = (len - front).div_ceil(u64::from(mss.max(1)));
        len + front * segments.saturating_sub(1)
    }

    pub(super) fn is_ipv4(&self) -> bool {
        self.front.get(12..14) == Some(&TYPE_IPV4.to_be_bytes()[..])
    }

    /// Whether it is TCP without data, SYN, FIN or RST.
    pub(super) fn is_pure_ack(&self) -> bool {
        let Some((headers, tcp)) = self.tcp() else {
            return false;
        };
        let special = tcp::Flags::SYN | tcp::Flags::FIN | tcp::Flags::RST;
        headers == self.len() && !tcp.flags.intersects(special)
    }

    /// The TCP header, if it has one, and the bytes of all headers.
    fn tcp(&self) -> Option<(usize, tcp::Header)> {
        if !self.is_ipv4() {
            return None;
        }
        let (ip, ip_bytes) = ipv4::Header::parse_quoted(self.front.get(ETHERNET_BYTES..)?).ok()?;
        if ip.protocol != tcp::PROTOCOL || ip.is_fragment() {
            return None;
        }
        let start = ETHERNET_BYTES + ip_bytes;
        let (tcp, tcp_bytes) = tcp::Header::parse(self.front.get(start..)?).ok()?;
        Some((start + tcp_bytes, tcp))
    }

    /// Marks congestion, if the sender's stack understands that (RFC 3168 §5); whether it did.
    pub(super) fn mark_congestion(&mut self) -> bool {
        if !self.is_ipv4() || self.front.len() <= IP_CHECKSUM + 1 {
            return false;
        }
        let before = u16::from_be_bytes([self.front[ETHERNET_BYTES], self.front[TRAFFIC_CLASS]]);
        if before & u16::from(CE) == 0 {
            return false;
        }
        self.front[TRAFFIC_CLASS] |= CE;
        let old = u16::from_be_bytes([self.front[IP_CHECKSUM], self.front[IP_CHECKSUM + 1]]);
        let new = update(old, before, before | u16::from(CE));
        self.front[IP_CHECKSUM..][..2].copy_from_slice(&new.to_be_bytes());
        true
    }

    /// The packets that cross a wire which carries no large segments.
    pub(super) fn cut(self) -> Cut {
        Cut {
            mss: self.mss_bytes.map_or(usize::MAX, usize::from).max(1),
            left: self.payload.into_iter(),
            rest: None,
            start: self.partial.map_or(0, |(start, _)| usize::from(start)),
            front: self.front,
            index: 0,
            partial: self.partial,
            whole: self.mss_bytes.is_none(),
        }
    }

    /// Joins `next` to it as generic receive offload does: the next segment of the same flow
    /// with the same acknowledgment and options, as long as all but the last have one size.
    /// Gives `next` back when it does not fit.
    pub(super) fn merge(&mut self, next: Self) -> Result<(), Self> {
        let Some(total) = self.merged_len(&next) else {
            return Err(next);
        };
        let Some((headers, _)) = self.tcp() else {
            return Err(next);
        };
        self.mss_bytes = self.mss_bytes.or(Some(self.payload_len() as u16));
        let start = self.partial.map_or(0, |(start, _)| usize::from(start));
        let ip_bytes = (total - ETHERNET_BYTES) as u16;
        self.front[ETHERNET_BYTES + 2..][..2].copy_from_slice(&ip_bytes.to_be_bytes());
        self.front[IP_CHECKSUM..][..2].fill(0);
        let sum = checksum(&self.front[ETHERNET_BYTES..start]);
        self.front[IP_CHECKSUM..][..2].copy_from_slice(&sum.to_be_bytes());
        self.front[start + 13] |= next.front[start + 13] & tcp::Flags::PSH.bits();
        let length = total - start;
        self.set_pseudo_header(start, length);
        debug_assert_eq!(headers, self.front.len());
        for part in next.payload {
            if !self.payload.last_mut().is_some_and(|last| last.join(&part)) {
                self.payload.push(part);
            }
        }
        Ok(())
    }

    /// Bytes of the frame that `next` would make with this one; none when they do not join.
    fn merged_len(&self, next: &Self) -> Option<usize> {
        let (start, _) = self.partial?;
        let start = usize::from(start);
        let (headers, tcp) = self.tcp()?;
        let (next_headers, next_tcp) = next.tcp()?;
        let (len, next_len) = (self.payload_len(), next.payload_len());
        let mss = self.mss_bytes.map_or(len, usize::from);
        let next_mss = next.mss_bytes.map_or(next_len, usize::from);
        let total = self.len() + next_len;
        let plain = |flags: tcp::Flags| flags - tcp::Flags::PSH == tcp::Flags::ACK;
        let joins = self.partial == next.partial
            && headers == self.front.len()
            && next_headers == next.front.len()
            && headers == next_headers
            && plain(tcp.flags)
            && plain(next_tcp.flags)
            && !tcp.flags.contains(tcp::Flags::PSH)
            && next_len > 0
            && next_mss <= mss
            && len % mss == 0
            && total - ETHERNET_BYTES <= MAX_IP_BYTES
            && next_tcp.seq == tcp.seq.wrapping_add(len as u32)
            && next_tcp.ack == tcp.ack
            && next_tcp.window == tcp.window
            && self.front[TRAFFIC_CLASS] == next.front[TRAFFIC_CLASS]
            // Addresses and ports, and all options.
            && self.front[ETHERNET_BYTES + 12..][..8] == next.front[ETHERNET_BYTES + 12..][..8]
            && self.front[start..][..4] == next.front[start..][..4]
            && self.front[start + 20..] == next.front[start + 20..];
        joins.then_some(total)
    }

    /// Puts the pseudo-header's sum for a transport message of `length` bytes into the checksum
    /// field at `start`.
    fn set_pseudo_header(&mut self, start: usize, length: usize) {
        put_pseudo_header(&mut self.front, start, length);
    }
}

fn put_pseudo_header(front: &mut [u8], start: usize, length: usize) {
    let address = |at: usize| {
        let bytes = front[ETHERNET_BYTES + at..].first_chunk::<4>();
        IpAddr::from(*bytes.expect("an IPv4 header"))
    };
    let sum = Checksum::pseudo_header(address(12), address(16), tcp::PROTOCOL, length as u32);
    let field = start + usize::from(tcp::CHECKSUM_OFFSET);
    front[field..field + 2].copy_from_slice(&sum.partial().to_be_bytes());
}

/// The segments of a large packet, from [`Packet::cut`].
pub(super) struct Cut {
    front: Vec<u8>,
    start: usize,
    mss: usize,
    left: alloc::vec::IntoIter<Part>,
    rest: Option<Part>,
    index: u16,
    partial: Option<(u16, u16)>,
    /// Whether it is not a large one, and passes as it is.
    whole: bool,
}

impl Cut {
    /// The next bytes, a segment at most.
    fn take(&mut self) -> Vec<Part> {
        let mut parts = Vec::with_capacity(2);
        let mut room = self.mss;
        while room > 0
            && let Some(mut part) = self.rest.take().or_else(|| self.left.next())
        {
            if part.len() > room {
                let mut rest = part.clone();
                rest.start += room;
                part.end = rest.start;
                self.rest = Some(rest);
            }
            room -= part.len();
            parts.push(part);
        }
        parts
    }
}

impl Iterator for Cut {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        if self.whole {
            if self.front.is_empty() {
                return None;
            }
            return Some(Packet {
                front: mem::take(&mut self.front),
                payload: mem::take(&mut self.left).collect(),
                mss_bytes: None,
                partial: self.partial,
            });
        }
        let payload = self.take();
        if payload.is_empty() {
            return None;
        }
        let payload_bytes: usize = payload.iter().map(Part::len).sum();
        let last = self.rest.is_none() && self.left.len() == 0;
        let (mut front, start, index) = (self.front.clone(), self.start, self.index);
        self.index += 1;
        let (ip, ip_bytes) =
            ipv4::Header::parse(&front[ETHERNET_BYTES..]).expect("an IPv4 header of this stack");
        assert_eq!(ETHERNET_BYTES + ip_bytes, start, "checksum start");
        let length = front.len() - start + payload_bytes;
        let mut ip_out = [0; ipv4::HEADER_BYTES];
        ipv4::Header {
            total_bytes: (ip_bytes + length) as u16,
            id: ip.id.wrapping_add(index),
            ..ip
        }
        .emit(&mut ip_out);
        front[ETHERNET_BYTES..start].copy_from_slice(&ip_out);
        let seq = front[start + 4..].first_chunk().expect("a TCP header");
        let seq = u32::from_be_bytes(*seq).wrapping_add(u32::from(index) * self.mss as u32);
        front[start + 4..start + 8].copy_from_slice(&seq.to_be_bytes());
        let mut flags = tcp::Flags::from_bits_retain(front[start + 13]);
        if !last {
            flags -= tcp::Flags::FIN | tcp::Flags::PSH;
        }
        if index > 0 {
            flags -= tcp::Flags::CWR;
        }
        front[start + 13] = flags.bits();
        put_pseudo_header(&mut front, start, length);
        Some(Packet {
            front,
            payload,
            mss_bytes: None,
            partial: Some((start as u16, tcp::CHECKSUM_OFFSET)),
        })
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

#[cfg(test)]
mod tests;
