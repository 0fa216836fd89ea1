//! Reassembly of IPv4 datagrams (RFC 791 §3.2), bounded in datagrams, fragments and time.
//!
//! Fragments keep their pages: nothing is copied. A fragment that overlaps another condemns its
//! datagram, as RFC 5722 §4 rules for IPv6: no honest sender makes one.

use crate::{
    device::{Page, Slice},
    time::{Duration, Instant},
    wire::ipv4,
};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

/// Most datagrams in the making.
const MAX_DATAGRAMS: usize = 8;

/// Most fragments held, over all datagrams: each holds on to a page at least.
const MAX_FRAGMENTS: usize = 192;

/// Most bytes of a datagram's payload: the total length field holds no more.
const MAX_PAYLOAD_BYTES: usize = 65_535 - ipv4::HEADER_BYTES;

/// How long fragments wait for the rest. RFC 1122 §3.3.2 wants 60 to 120 s; pages are too dear
/// for that, and Linux's `net.ipv4.ipfrag_time` is 30 s too.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What tells datagrams apart (RFC 791 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    src: Ipv4Addr,
    dst: Ipv4Addr,
    protocol: u8,
    id: u16,
}

#[derive(Debug)]
struct Fragment<P> {
    start: usize,
    end: usize,
    slices: Vec<Slice<P>>,
}

#[derive(Debug)]
struct Datagram<P> {
    key: Key,
    expires: Instant,
    /// Sorted, without overlaps.
    fragments: Vec<Fragment<P>>,
    received_bytes: usize,
    /// Length of the whole payload, known from the last fragment.
    total_bytes: Option<usize>,
    congestion_experienced: bool,
    /// Header of the fragment that came first in the datagram, for an ICMP error about it.
    first: Option<RawHeader>,
}

/// An IP header as it was received.
pub(crate) type RawHeader = heapless::Vec<u8, { ipv4::MAX_HEADER_BYTES }>;

/// What became of a fragment.
#[derive(Debug)]
pub(crate) enum Outcome<P> {
    /// It completed a datagram: the header to process it with, and its payload.
    Complete(ipv4::Header, Vec<Slice<P>>),
    /// It was dropped, with its datagram or without.
    Dropped,
    /// It waits for others.
    Held,
}

/// A datagram given up for lack of fragments.
#[derive(Debug)]
pub(crate) struct Expired<P> {
    /// Header and payload of its first fragment, if that was received: whom to tell.
    pub(crate) first: Option<(RawHeader, Vec<Slice<P>>)>,
}

/// Datagrams in the making.
#[derive(Debug)]
pub(crate) struct Reassembly<P> {
    /// Oldest first.
    datagrams: Vec<Datagram<P>>,
    fragments: usize,
}

impl<P: Page> Reassembly<P> {
    pub(crate) fn new() -> Self {
        Self {
            datagrams: Vec::new(),
            fragments: 0,
        }
    }

    /// Takes in a fragment: its header, parsed and raw, and its payload. Adds the datagrams that
    /// had to give way to `evicted`.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        header: &ipv4::Header,
        raw: &[u8],
        slices: impl IntoIterator<Item = Slice<P>>,
        evicted: &mut u64,
    ) -> Outcome<P> {
        let slices: Vec<_> = slices.into_iter().filter(|s| !s.is_empty()).collect();
        let len: usize = slices.iter().map(Slice::len).sum();
        let start = usize::from(header.fragment_offset_bytes);
        let end = start + len;
        let key = Key {
            src: header.src,
            dst: header.dst,
            protocol: header.protocol,
            id: header.id,
        };
        let known = self.datagrams.iter().position(|d| d.key == key);
        // RFC 791 §3.2: all but the last fragment are multiples of eight bytes.
        if len == 0 || end > MAX_PAYLOAD_BYTES || (header.more_fragments && !len.is_multiple_of(8))
        {
            return self.condemn(known);
        }
        let index = known.unwrap_or_else(|| {
            while self.datagrams.len() >= MAX_DATAGRAMS {
                self.remove(0);
                *evicted += 1;
            }
            self.datagrams.push(Datagram {
                key,
                expires: now + TIMEOUT,
                fragments: Vec::new(),
                received_bytes: 0,
                total_bytes: None,
                congestion_experienced: false,
                first: None,
            });
            self.datagrams.len() - 1
        });
        let datagram = &mut self.datagrams[index];
        let at = datagram.fragments.partition_point(|f| f.start < start);
        if let Some(same) = datagram.fragments.get(at)
            && (same.start, same.end) == (start, end)
        {
            // A copy of one we have, as the network makes them: RFC 8200 §4.5 allows to keep on.
            return Outcome::Dropped;
        }
        let overlaps = datagram.fragments.get(at).is_some_and(|f| f.start < end)
            || (at > 0 && datagram.fragments[at - 1].end > start);
        let beyond = datagram.total_bytes.is_some_and(|total| end > total);
        let second_end = !header.more_fragments
            && (datagram.total_bytes.is_some_and(|total| end != total)
                || datagram.fragments.last().is_some_and(|f| f.end > end));
        if overlaps || beyond || second_end {
            return self.condemn(Some(index));
        }
        if !header.more_fragments {
            datagram.total_bytes = Some(end);
        }
        if start == 0 {
            datagram.first = RawHeader::from_slice(raw).ok();
        }
        datagram.congestion_experienced |= header.ecn() == 0b11;
        datagram.received_bytes += len;
        datagram
            .fragments
            .insert(at, Fragment { start, end, slices });
        self.fragments += 1;
        if datagram.total_bytes == Some(datagram.received_bytes) {
            return self.complete(index, header);
        }
        while self.fragments > MAX_FRAGMENTS {
            self.remove(0);
            *evicted += 1;
        }
        Outcome::Held
    }

    /// Takes out a datagram whose time is over.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Expired<P>> {
        if self.datagrams.first()?.expires > now {
            return None;
        }
        let mut datagram = self.remove(0);
        let first = datagram.first.take().and_then(|raw| {
            let fragment = datagram.fragments.into_iter().next()?;
            Some((raw, fragment.slices))
        });
        Some(Expired { first })
    }

    /// When [`Reassembly::expire`] has something to do next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.datagrams.first().map(|datagram| datagram.expires)
    }

    fn complete(&mut self, index: usize, last: &ipv4::Header) -> Outcome<P> {
        let datagram = self.remove(index);
        let ecn = if datagram.congestion_experienced {
            0b11
        } else {
            last.ecn()
        };
        let header = ipv4::Header {
            // RFC 3168 §5.3: one marked fragment marks the datagram.
            traffic_class: last.traffic_class & !0b11 | ecn,
            // At most 65,535, by the bound on fragments.
            total_bytes: (ipv4::HEADER_BYTES + datagram.received_bytes) as u16,
            more_fragments: false,
            fragment_offset_bytes: 0,
            ..*last
        };
        let slices = datagram.fragments.into_iter().flat_map(|f| f.slices);
        Outcome::Complete(header, slices.collect())
    }

    fn condemn(&mut self, index: Option<usize>) -> Outcome<P> {
        if let Some(index) = index {
            self.remove(index);
        }
        Outcome::Dropped
    }

    fn remove(&mut self, index: usize) -> Datagram<P> {
        let datagram = self.datagrams.remove(index);
        self.fragments -= datagram.fragments.len();
        datagram
    }
}

#[cfg(test)]
mod tests;
