//! UDP headers (RFC 768).

use super::{ParseError, head};

/// IP protocol number.
pub const PROTOCOL: u8 = 17;

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 8;

/// Where the checksum field lies in the header.
pub const CHECKSUM_OFFSET: u16 = 6;

/// A UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Header and payload, in bytes.
    pub total_bytes: u16,
    /// Over pseudo-header, header and payload; zero: none.
    pub checksum: u16,
}

impl Header {
    /// Parses the header at the start of `bytes`. Whether `total_bytes` are there, the caller
    /// checks; the checksum is not looked at.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let &[s0, s1, d0, d1, l0, l1, c0, c1] = head::<HEADER_BYTES>(bytes)?;
        let header = Self {
            src_port: u16::from_be_bytes([s0, s1]),
            dst_port: u16::from_be_bytes([d0, d1]),
            total_bytes: u16::from_be_bytes([l0, l1]),
            checksum: u16::from_be_bytes([c0, c1]),
        };
        if usize::from(header.total_bytes) < HEADER_BYTES {
            return Err(ParseError::Length {
                expected_bytes: HEADER_BYTES,
                got_bytes: usize::from(header.total_bytes),
            });
        }
        Ok(header)
    }

    /// Writes the header.
    pub fn emit(&self, out: &mut [u8; HEADER_BYTES]) {
        let Self {
            src_port,
            dst_port,
            total_bytes,
            checksum,
        } = *self;
        out[..2].copy_from_slice(&src_port.to_be_bytes());
        out[2..4].copy_from_slice(&dst_port.to_be_bytes());
        out[4..6].copy_from_slice(&total_bytes.to_be_bytes());
        out[6..].copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
