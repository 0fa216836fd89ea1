//! Packet formats: each protocol's header as a struct, parsed from bytes and emitted into bytes.
//!
//! Parsers take any bytes and never panic; what they return is checked in itself (lengths agree,
//! versions fit), not against the state of the stack.

use core::fmt;

pub mod arp;
pub mod checksum;
pub mod ethernet;
pub mod icmpv4;
pub mod ipv4;
pub mod tcp;
pub mod udp;

/// Why bytes are not the header they were taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// The checksum over the header or message is wrong.
    Checksum,
    /// A length field contradicts the header it stands in or the bytes there are.
    Length {
        /// The least that would have been right, in bytes.
        expected_bytes: usize,
        /// What the field says, in bytes.
        got_bytes: usize,
    },
    /// Fewer bytes than the header has.
    Truncated {
        /// Bytes needed.
        expected_bytes: usize,
        /// Bytes there are.
        got_bytes: usize,
    },
    /// A version or type field that is not this protocol's.
    Version {
        /// What it should be.
        expected: u16,
        /// What it is.
        got: u16,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Checksum => write!(f, "wrong checksum"),
            Self::Length {
                expected_bytes,
                got_bytes,
            } => write!(
                f,
                "length field says {got_bytes} bytes, expected {expected_bytes}"
            ),
            Self::Truncated {
                expected_bytes,
                got_bytes,
            } => write!(f, "expected {expected_bytes} bytes, got {got_bytes}"),
            Self::Version { expected, got } => {
                write!(f, "expected version or type {expected:#x}, got {got:#x}")
            }
        }
    }
}

impl core::error::Error for ParseError {}

/// The first `N` bytes, or an error that says how many there are.
fn head<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], ParseError> {
    bytes.first_chunk().ok_or(ParseError::Truncated {
        expected_bytes: N,
        got_bytes: bytes.len(),
    })
}
