//! From a segment's addresses and ports to its connection.

use core::{net::IpAddr, num::NonZeroU32};
use hashbrown::HashTable;

use crate::device::Owner;

/// What a connection is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuple {
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
}

impl Tuple {
    /// Writes all of it into `out` and returns how many bytes that took, at most 36.
    pub(super) fn write(&self, out: &mut [u8; 40]) -> usize {
        let Self {
            local,
            remote,
            local_port,
            remote_port,
        } = self;
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        for address in [local, remote] {
            match address {
                IpAddr::V4(address) => put(&address.octets()),
                IpAddr::V6(address) => put(&address.octets()),
            }
        }
        put(&local_port.to_be_bytes());
        put(&remote_port.to_be_bytes());
        at
    }
}

/// Bits of an [`Owner`] that tell the place of a connection; the rest tell its generation.
const INDEX_BITS: u32 = 20;
/// Most connections at a time.
pub(super) const MAX_CONNECTIONS: usize = 1 << INDEX_BITS;
const GENERATIONS: u32 = 1 << (u32::BITS - INDEX_BITS);

/// A connection: its place and which of those that had the place it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId(NonZeroU32);

impl ConnectionId {
    /// The one at `index` after `generation` others.
    pub(super) fn new(index: usize, generation: u32) -> Self {
        // Generation 0 is left out, so that no identity is 0: that one owns nothing.
        let generation = generation % (GENERATIONS - 1) + 1;
        let bits = generation << INDEX_BITS | (index as u32 & (MAX_CONNECTIONS as u32 - 1));
        Self(NonZeroU32::new(bits).unwrap_or(NonZeroU32::MAX))
    }

    pub(super) fn index(self) -> usize {
        self.0.get() as usize & (MAX_CONNECTIONS - 1)
    }

    /// What the device is told.
    pub(super) fn owner(self) -> Owner {
        Owner(self.0.get())
    }

    /// What the device tells back.
    pub(super) fn from_owner(owner: Owner) -> Option<Self> {
        NonZeroU32::new(owner.0).map(Self)
    }
}

/// The table from hashes to values, which know their tuples.
#[derive(Debug)]
pub(super) struct Demux {
    table: HashTable<(u64, Tuple, usize)>,
    /// The last one found: bulk transfers ask for the same again and again.
    last: Option<(Tuple, usize)>,
}

impl Demux {
    pub(super) fn new() -> Self {
        Self {
            table: HashTable::new(),
            last: None,
        }
    }

    /// The index kept for `tuple`; `hash` tells its hash, if that is needed.
    pub(super) fn find(&mut self, tuple: &Tuple, hash: impl FnOnce() -> u64) -> Option<usize> {
        if let Some((last, index)) = &self.last
            && last == tuple
        {
            return Some(*index);
        }
        let index = self
            .table
            .find(hash(), |(_, other, _)| other == tuple)
            .map(|&(_, _, index)| index)?;
        self.last = Some((*tuple, index));
        Some(index)
    }

    /// Keeps `index` for `tuple`, which must not be in yet.
    pub(super) fn insert(&mut self, tuple: Tuple, hash: u64, index: usize) {
        self.table
            .insert_unique(hash, (hash, tuple, index), |&(hash, _, _)| hash);
    }

    /// Forgets `tuple`.
    pub(super) fn remove(&mut self, tuple: &Tuple, hash: u64) -> Option<usize> {
        if self.last.is_some_and(|(last, _)| last == *tuple) {
            self.last = None;
        }
        let entry = self
            .table
            .find_entry(hash, |(_, other, _)| other == tuple)
            .ok()?;
        let ((_, _, index), _) = entry.remove();
        Some(index)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }
}

#[cfg(test)]
mod tests;
