//! The Internet checksum (RFC 1071).

use core::net::IpAddr;

/// A one's complement sum in progress, over bytes that come in pieces of any length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum {
    /// The sum so far in the machine's byte order, folded to 16 bits.
    sum: u16,
    /// Whether an odd number of bytes has been summed.
    odd: bool,
}

impl Checksum {
    /// The sum of no bytes.
    pub const fn new() -> Self {
        Self { sum: 0, odd: false }
    }

    /// Starts with the pseudo-header of a transport message of `transport_bytes` (header and
    /// payload): RFC 9293 §3.1 for IPv4, RFC 8200 §8.1 for IPv6. Addresses of two families sum
    /// to something meaningless.
    pub fn pseudo_header(src: IpAddr, dst: IpAddr, protocol: u8, transport_bytes: u32) -> Self {
        let mut sum = Self::new();
        for address in [src, dst] {
            match address {
                IpAddr::V4(address) => sum.add(&address.octets()),
                IpAddr::V6(address) => sum.add(&address.octets()),
            }
        }
        sum.add(&u32::from(protocol).to_be_bytes());
        sum.add(&transport_bytes.to_be_bytes());
        sum
    }

    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut part = fold(sum_words(bytes));
        if self.odd {
            // RFC 1071 §2(B): bytes that sit one off their place sum to a swapped sum.
            part = part.swap_bytes();
        }
        self.sum = add_carry(self.sum, part);
        self.odd ^= bytes.len() % 2 == 1;
    }

    /// The sum, not complemented: what a checksum field holds whose completion is left to the
    /// device.
    pub fn partial(self) -> u16 {
        u16::from_be(self.sum)
    }

    /// The checksum: the sum's complement. Over bytes with a right checksum in them this is zero.
    pub fn finish(self) -> u16 {
        !self.partial()
    }

    /// Whether the bytes summed, their checksum field among them, are intact.
    pub fn is_valid(self) -> bool {
        self.sum == 0xffff
    }
}

/// The checksum of `bytes`.
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = Checksum::new();
    sum.add(bytes);
    sum.finish()
}

/// The checksum `old` after a 16-bit word under it changed (RFC 1624 §3, equation 3).
pub fn update(old: u16, from: u16, to: u16) -> u16 {
    !add_carry(add_carry(!old, !from), to)
}

/// One's complement sum of 64-bit words in the machine's byte order; a tail is padded with zeros.
fn sum_words(bytes: &[u8]) -> u64 {
    // Two chains, so that one addition does not wait for the other's carry.
    let (mut even, mut odd) = (0_u64, 0_u64);
    let (pairs, rest) = bytes.as_chunks::<16>();
    for pair in pairs {
        let word = u128::from_ne_bytes(*pair);
        even = add_carry64(even, word as u64);
        odd = add_carry64(odd, (word >> 64) as u64);
    }
    let (words, tail) = rest.as_chunks::<8>();
    for word in words {
        even = add_carry64(even, u64::from_ne_bytes(*word));
    }
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    add_carry64(add_carry64(even, odd), u64::from_ne_bytes(last))
}

fn add_carry64(a: u64, b: u64) -> u64 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u64::from(carry)
}

fn add_carry(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests;
