//! Path MTUs learned from ICMP (RFC 1191), within limits.

use crate::time::{Duration, Instant};
use core::net::Ipv4Addr;

/// Most destinations remembered.
const CAPACITY: usize = 16;

/// Least path MTU believed: no real link is smaller, and smaller values only serve attackers that
/// want many tiny packets (RFC 5927 §7.2). The same as Linux's `net.ipv4.route.min_pmtu`.
pub(crate) const MIN_MTU_BYTES: u16 = 552;

/// How long an estimate holds before a larger one is tried (RFC 1191 §6.3).
const LIFETIME: Duration = Duration::from_mins(10);

#[derive(Debug)]
struct Entry {
    dst: Ipv4Addr,
    mtu_bytes: u16,
    expires: Instant,
}

/// Destinations whose path takes less than the link.
#[derive(Debug, Default)]
pub(crate) struct PathMtus {
    entries: heapless::Vec<Entry, CAPACITY>,
}

impl PathMtus {
    /// The path MTU to `dst`, or `link_bytes` when that is not known to be smaller.
    pub(crate) fn lookup(&self, now: Instant, dst: Ipv4Addr, link_bytes: u16) -> u16 {
        self.entries
            .iter()
            .find(|entry| entry.dst == dst && now < entry.expires)
            .map_or(link_bytes, |entry| entry.mtu_bytes.min(link_bytes))
    }

    /// Lowers the path MTU to `dst`. Reports that would raise it are ignored (RFC 1191 §6.3).
    pub(crate) fn lower(&mut self, now: Instant, dst: Ipv4Addr, mtu_bytes: u16, link_bytes: u16) {
        let mtu_bytes = mtu_bytes.max(MIN_MTU_BYTES);
        if mtu_bytes >= self.lookup(now, dst, link_bytes) {
            return;
        }
        let entry = Entry {
            dst,
            mtu_bytes,
            expires: now + LIFETIME,
        };
        if let Some(old) = self.entries.iter_mut().find(|old| old.dst == dst) {
            *old = entry;
        } else if let Err(entry) = self.entries.push(entry)
            && let Some(oldest) = self.entries.iter_mut().min_by_key(|old| old.expires)
        {
            *oldest = entry;
        }
    }
}

#[cfg(test)]
mod tests;
