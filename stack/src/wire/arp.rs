//! ARP packets for IPv4 over Ethernet (RFC 826).

use super::{ParseError, ethernet::Mac, head};
use core::net::Ipv4Addr;

/// Length of a packet in bytes.
pub const PACKET_BYTES: usize = 28;

/// Hardware type Ethernet, protocol type IPv4, and the lengths of their addresses.
const PREAMBLE: [u8; 6] = [0x00, 0x01, 0x08, 0x00, 6, 4];

/// What a packet wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Who has the target address?
    Request,
    /// The sender has the sender address.
    Reply,
}

/// An ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Request or reply.
    pub operation: Operation,
    /// The sender's Ethernet address.
    pub sender_mac: Mac,
    /// The sender's IPv4 address; unspecified in a probe (RFC 5227 §1.1).
    pub sender: Ipv4Addr,
    /// The target's Ethernet address; meaningless in a request.
    pub target_mac: Mac,
    /// The target's IPv4 address.
    pub target: Ipv4Addr,
}

impl Packet {
    /// Parses the packet at the start of `bytes`; padding may follow it.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let bytes = head::<PACKET_BYTES>(bytes)?;
        if let Some((&expected, &got)) = PREAMBLE.iter().zip(bytes).find(|(a, b)| a != b) {
            return Err(ParseError::Version {
                expected: u16::from(expected),
                got: u16::from(got),
            });
        }
        let operation = match u16::from_be_bytes([bytes[6], bytes[7]]) {
            1 => Operation::Request,
            2 => Operation::Reply,
            got => return Err(ParseError::Version { expected: 1, got }),
        };
        let mac = |at: usize| Mac(core::array::from_fn(|i| bytes[at + i]));
        let ip = |at: usize| Ipv4Addr::from_octets(core::array::from_fn(|i| bytes[at + i]));
        Ok(Self {
            operation,
            sender_mac: mac(8),
            sender: ip(14),
            target_mac: mac(18),
            target: ip(24),
        })
    }

    /// Writes the packet.
    pub fn emit(&self, out: &mut [u8; PACKET_BYTES]) {
        let Self {
            operation,
            sender_mac,
            sender,
            target_mac,
            target,
        } = self;
        let operation: u16 = match operation {
            Operation::Request => 1,
            Operation::Reply => 2,
        };
        out[..6].copy_from_slice(&PREAMBLE);
        out[6..8].copy_from_slice(&operation.to_be_bytes());
        out[8..14].copy_from_slice(&sender_mac.0);
        out[14..18].copy_from_slice(&sender.octets());
        out[18..24].copy_from_slice(&target_mac.0);
        out[24..].copy_from_slice(&target.octets());
    }
}

#[cfg(test)]
mod tests;
