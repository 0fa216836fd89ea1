//! Ethernet II headers.

use super::{ParseError, head};
use core::{fmt, net::Ipv4Addr};

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 14;

/// EtherType of IPv4.
pub const TYPE_IPV4: u16 = 0x0800;

/// EtherType of ARP.
pub const TYPE_ARP: u16 = 0x0806;

/// An Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Everybody on the link.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// The address of an IPv4 multicast group (RFC 1112 §6.4).
    pub fn multicast(group: Ipv4Addr) -> Self {
        let [_, b, c, d] = group.octets();
        Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// Whether it names one station: neither a group nor all zeros.
    pub fn is_unicast(self) -> bool {
        self.0[0] & 1 == 0 && self.0 != [0; 6]
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            let colon = if i == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02x}")?;
        }
        Ok(())
    }
}

/// An Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// To.
    pub dst: Mac,
    /// From.
    pub src: Mac,
    /// EtherType of the payload.
    pub ether_type: u16,
}

impl Header {
    /// Parses the header at the start of `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let &[d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] =
            head::<HEADER_BYTES>(bytes)?;
        Ok(Self {
            dst: Mac([d0, d1, d2, d3, d4, d5]),
            src: Mac([s0, s1, s2, s3, s4, s5]),
            ether_type: u16::from_be_bytes([t0, t1]),
        })
    }

    /// Writes the header.
    pub fn emit(&self, out: &mut [u8; HEADER_BYTES]) {
        let Self {
            dst,
            src,
            ether_type,
        } = self;
        out[..6].copy_from_slice(&dst.0);
        out[6..12].copy_from_slice(&src.0);
        out[12..].copy_from_slice(&ether_type.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
