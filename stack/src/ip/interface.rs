//! Our address, and how it tells other addresses apart.

use core::{fmt, net::Ipv4Addr};

/// Why an interface cannot be set up as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The address is not one a host can have.
    Address(Ipv4Addr),
    /// The gateway is not a host on the link, or is the interface's own address.
    Gateway(Ipv4Addr),
    /// The prefix length is not from 1 to 32.
    Prefix(u8),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(got) => write!(f, "expected a host's address, got {got}"),
            Self::Gateway(got) => write!(f, "expected a gateway on the link, got {got}"),
            Self::Prefix(got) => write!(f, "expected a prefix length from 1 to 32, got {got}"),
        }
    }
}

impl core::error::Error for ConfigError {}

/// The interface's IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) address: Ipv4Addr,
    pub(crate) gateway: Option<Ipv4Addr>,
    mask: u32,
    prefix: u8,
}

/// Where a packet goes on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextHop {
    /// To everybody.
    Broadcast,
    /// To a group.
    Multicast(Ipv4Addr),
    /// To a station.
    Neighbour(Ipv4Addr),
}

impl Interface {
    pub(crate) fn new(
        address: Ipv4Addr,
        prefix: u8,
        gateway: Option<Ipv4Addr>,
    ) -> Result<Self, ConfigError> {
        if !(1..=32).contains(&prefix) {
            return Err(ConfigError::Prefix(prefix));
        }
        let interface = Self {
            address,
            gateway,
            mask: u32::MAX << (32 - prefix),
            prefix,
        };
        if !interface.is_host(address) {
            return Err(ConfigError::Address(address));
        }
        if let Some(gateway) = gateway
            && (gateway == address || !interface.is_neighbour(gateway))
        {
            return Err(ConfigError::Gateway(gateway));
        }
        Ok(interface)
    }

    /// Whether `address` lies in our subnet.
    fn is_on_link(&self, address: Ipv4Addr) -> bool {
        (address.to_bits() ^ self.address.to_bits()) & self.mask == 0
    }

    /// Whether `address` means everybody on the link. A subnet of two addresses or one has no
    /// broadcast address (RFC 3021 §2.1).
    pub(crate) fn is_broadcast(&self, address: Ipv4Addr) -> bool {
        address.is_broadcast()
            || (self.prefix < 31
                && self.is_on_link(address)
                && address.to_bits() | self.mask == u32::MAX)
    }

    /// Whether one host can have `address`: what a source must be (RFC 1122 §3.2.1.3).
    pub(crate) fn is_host(&self, address: Ipv4Addr) -> bool {
        let [first, ..] = address.octets();
        let is_network =
            self.prefix < 31 && self.is_on_link(address) && address.to_bits() & !self.mask == 0;
        first != 0 && first != 127 && first < 224 && !is_network && !self.is_broadcast(address)
    }

    /// Whether `address` can be that of another station on the link.
    pub(crate) fn is_neighbour(&self, address: Ipv4Addr) -> bool {
        address != self.address && self.is_on_link(address) && self.is_host(address)
    }

    /// Where packets to `dst` go first; none when there is no way.
    pub(crate) fn next_hop(&self, dst: Ipv4Addr) -> Option<NextHop> {
        if self.is_broadcast(dst) {
            Some(NextHop::Broadcast)
        } else if dst.is_multicast() {
            Some(NextHop::Multicast(dst))
        } else if dst == self.address || !self.is_host(dst) {
            None
        } else if self.is_on_link(dst) {
            Some(NextHop::Neighbour(dst))
        } else {
            self.gateway.map(NextHop::Neighbour)
        }
    }
}

#[cfg(test)]
mod tests;
