//! IPv4 headers (RFC 791 §3.1).

use super::{ParseError, checksum::checksum, head};
use core::net::Ipv4Addr;

/// Length of a header without options, in bytes: all that this stack sends.
pub const HEADER_BYTES: usize = 20;

/// Longest header that may be received, in bytes.
pub const MAX_HEADER_BYTES: usize = 60;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;

/// An IPv4 header. Options are skipped when parsed and never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// DSCP and ECN: `dscp << 2 | ecn`.
    pub traffic_class: u8,
    /// Header and payload, in bytes.
    pub total_bytes: u16,
    /// Identification, for fragments.
    pub id: u16,
    /// The packet must not be fragmented.
    pub dont_fragment: bool,
    /// Fragments of the same datagram follow behind this one.
    pub more_fragments: bool,
    /// Where the payload belongs in the datagram's payload, in bytes: a multiple of 8.
    pub fragment_offset_bytes: u16,
    /// Time to live, in hops.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// From.
    pub src: Ipv4Addr,
    /// To.
    pub dst: Ipv4Addr,
}

impl Header {
    /// Parses the header at the start of `bytes`, checksum included, and returns it with its
    /// length in bytes, options included. Whether `total_bytes` are there, the caller checks.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), ParseError> {
        let (header, header_bytes) = Self::parse_quoted(bytes)?;
        if checksum(&bytes[..header_bytes]) != 0 {
            return Err(ParseError::Checksum);
        }
        if usize::from(header.total_bytes) < header_bytes {
            return Err(ParseError::Length {
                expected_bytes: header_bytes,
                got_bytes: usize::from(header.total_bytes),
            });
        }
        Ok((header, header_bytes))
    }

    /// As [`Header::parse`], for a header quoted in an ICMP error: routers on the way may have
    /// left its checksum and lengths as they like.
    pub fn parse_quoted(bytes: &[u8]) -> Result<(Self, usize), ParseError> {
        let fixed = head::<HEADER_BYTES>(bytes)?;
        let version = fixed[0] >> 4;
        if version != 4 {
            return Err(ParseError::Version {
                expected: 4,
                got: u16::from(version),
            });
        }
        let header_bytes = usize::from(fixed[0] & 0x0f) * 4;
        if header_bytes < HEADER_BYTES {
            return Err(ParseError::Length {
                expected_bytes: HEADER_BYTES,
                got_bytes: header_bytes,
            });
        }
        if header_bytes > bytes.len() {
            return Err(ParseError::Truncated {
                expected_bytes: header_bytes,
                got_bytes: bytes.len(),
            });
        }
        let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
        let header = Self {
            traffic_class: fixed[1],
            total_bytes: u16::from_be_bytes([fixed[2], fixed[3]]),
            id: u16::from_be_bytes([fixed[4], fixed[5]]),
            dont_fragment: fragment & DONT_FRAGMENT != 0,
            more_fragments: fragment & MORE_FRAGMENTS != 0,
            fragment_offset_bytes: (fragment & OFFSET_MASK) * 8,
            ttl: fixed[8],
            protocol: fixed[9],
            src: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]),
            dst: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]),
        };
        Ok((header, header_bytes))
    }

    /// Whether the packet is a fragment rather than a whole datagram.
    pub fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset_bytes != 0
    }

    /// The ECN field (RFC 3168 §5).
    pub fn ecn(&self) -> u8 {
        self.traffic_class & 0b11
    }

    /// Writes the header, checksum included.
    pub fn emit(&self, out: &mut [u8; HEADER_BYTES]) {
        let Self {
            traffic_class,
            total_bytes,
            id,
            dont_fragment,
            more_fragments,
            fragment_offset_bytes,
            ttl,
            protocol,
            src,
            dst,
        } = *self;
        let mut fragment = fragment_offset_bytes / 8;
        if dont_fragment {
            fragment |= DONT_FRAGMENT;
        }
        if more_fragments {
            fragment |= MORE_FRAGMENTS;
        }
        out[0] = 4 << 4 | 5;
        out[1] = traffic_class;
        out[2..4].copy_from_slice(&total_bytes.to_be_bytes());
        out[4..6].copy_from_slice(&id.to_be_bytes());
        out[6..8].copy_from_slice(&fragment.to_be_bytes());
        out[8] = ttl;
        out[9] = protocol;
        out[10..12].fill(0);
        out[12..16].copy_from_slice(&src.octets());
        out[16..20].copy_from_slice(&dst.octets());
        let checksum = checksum(out);
        out[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
