//! ICMP messages (RFC 792): the eight bytes that all of them start with.

use super::{ParseError, head};

/// IP protocol number.
pub const PROTOCOL: u8 = 1;

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 8;

/// Where the checksum field lies in the header.
pub const CHECKSUM_OFFSET: u16 = 2;

/// Message type echo reply.
pub const ECHO_REPLY: u8 = 0;
/// Message type destination unreachable.
pub const UNREACHABLE: u8 = 3;
/// Message type echo.
pub const ECHO: u8 = 8;
/// Message type time exceeded.
pub const TIME_EXCEEDED: u8 = 11;
/// Message type parameter problem.
pub const PARAMETER_PROBLEM: u8 = 12;

/// Code of [`UNREACHABLE`]: protocol unreachable.
pub const CODE_PROTOCOL: u8 = 2;
/// Code of [`UNREACHABLE`]: port unreachable.
pub const CODE_PORT: u8 = 3;
/// Code of [`UNREACHABLE`]: fragmentation needed and DF set (RFC 1191 §4).
pub const CODE_FRAGMENTATION_NEEDED: u8 = 4;
/// Codes of [`UNREACHABLE`]: network, host and communication administratively prohibited
/// (RFC 1812 §5.2.7.1).
pub const CODES_PROHIBITED: [u8; 3] = [9, 10, 13];

/// Code of [`TIME_EXCEEDED`]: fragment reassembly.
pub const CODE_REASSEMBLY: u8 = 1;

/// An ICMP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Message type.
    pub kind: u8,
    /// What it means depends on the type.
    pub code: u8,
    /// Over the whole message.
    pub checksum: u16,
    /// What it means depends on the type.
    pub rest: [u8; 4],
}

impl Header {
    /// Parses the header at the start of `bytes`. The checksum is not looked at.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let &[kind, code, c0, c1, ref rest @ ..] = head::<HEADER_BYTES>(bytes)?;
        Ok(Self {
            kind,
            code,
            checksum: u16::from_be_bytes([c0, c1]),
            rest: *rest,
        })
    }

    /// Writes the header.
    pub fn emit(&self, out: &mut [u8; HEADER_BYTES]) {
        let Self {
            kind,
            code,
            checksum,
            rest,
        } = *self;
        out[..2].copy_from_slice(&[kind, code]);
        out[2..4].copy_from_slice(&checksum.to_be_bytes());
        out[4..].copy_from_slice(&rest);
    }

    /// Whether the message reports a fault of another packet, so that no error may be sent about
    /// it (RFC 1122 §3.2.2). Types unknown here count as errors, to be safe.
    pub fn is_error(kind: u8) -> bool {
        !matches!(kind, ECHO_REPLY | ECHO | 9 | 10 | 13..=18 | 42 | 43)
    }
}

#[cfg(test)]
mod tests;
