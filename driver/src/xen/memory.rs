//! Where the frames that belong to Xen go: `shared_info` and the grant table.
//!
//! They want guest frame numbers that hold no memory (Xen would free it) and no device: a hole in
//! the memory map. The page tables must map them write-back; uncached grant table frames cost a
//! guest most of its throughput.

use super::errno::Errno;
use super::hypercall::{Hypervisor, SpecialFrame};
use super::start_info::MemoryRegion;
use super::types::{Gfn, PAGE_BYTES};
use core::cell::Cell;
use core::fmt;
use core::ops::Range;

/// Holes are looked for between these addresses: above the first 16 MiB, where PCs have legacy
/// holes, and below ACPI tables, special pages, APICs and firmware (`HVM_BELOW_4G_MMIO_START` and up
/// hold nothing but those on Xen).
const SEARCH: Range<u64> = 0x100_0000..0xfc00_0000;

/// Alignment of a hole: Xen need not split the large page of memory beside it.
const HOLE_ALIGN: u64 = 2 << 20;

/// Finds `pages` frames in a row that the memory map leaves free, as low as may be. The map need
/// not be sorted and may overlap.
pub fn find_hole(map: &[MemoryRegion], pages: u64) -> Option<Hole> {
    let bytes = pages.checked_mul(PAGE_BYTES as u64)?;
    let mut start = SEARCH.start;
    // Each pass moves past at least one region, so there are at most as many passes as regions.
    for _ in 0..=map.len() {
        let end = start.checked_add(bytes).filter(|end| *end <= SEARCH.end)?;
        let Some(clash) = map.iter().find(|r| r.start < end && start < r.end) else {
            return Some(Hole::new(Gfn::of_paddr(start), pages));
        };
        start = clash.end.checked_next_multiple_of(HOLE_ALIGN)?;
    }
    None
}

/// A range of guest frame numbers with nothing behind them, handed out piecewise.
#[derive(Debug)]
pub struct Hole {
    next: Cell<u64>,
    end: u64,
}

impl Hole {
    /// The `pages` frames from `first` on.
    pub fn new(first: Gfn, pages: u64) -> Self {
        Self {
            next: Cell::new(first.0),
            end: first.0.saturating_add(pages),
        }
    }

    /// The frames that are left.
    pub fn remaining(&self) -> Range<Gfn> {
        Gfn(self.next.get())..Gfn(self.end)
    }

    /// Maps the `shared_info` page and returns its frame.
    pub fn map_shared_info(&self, xen: &impl Hypervisor) -> Result<Gfn, MapError> {
        let gfn = self.take(1)?;
        map(xen, SpecialFrame::SharedInfo, gfn)?;
        Ok(gfn)
    }

    /// Maps the first `frames` frames of the grant table, in a row, and returns the first.
    pub fn map_grant_table(&self, xen: &impl Hypervisor, frames: u32) -> Result<Gfn, MapError> {
        let first = self.take(u64::from(frames))?;
        // Highest first: Xen grows the table to the index it is asked for, once.
        for index in (0..frames).rev() {
            let gfn = Gfn(first.0 + u64::from(index));
            map(xen, SpecialFrame::GrantTable(index), gfn)?;
        }
        Ok(first)
    }

    fn take(&self, pages: u64) -> Result<Gfn, MapError> {
        let first = self.next.get();
        let left = self.end - first;
        if pages > left {
            return Err(MapError::HoleFull {
                wanted: pages,
                left,
            });
        }
        self.next.set(first + pages);
        Ok(Gfn(first))
    }
}

fn map(xen: &impl Hypervisor, frame: SpecialFrame, gfn: Gfn) -> Result<(), MapError> {
    xen.add_to_physmap(frame, gfn)
        .map_err(|errno| MapError::Refused { frame, gfn, errno })
}

/// Why a frame could not be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// The hole has too few frames left.
    HoleFull {
        /// Frames asked for.
        wanted: u64,
        /// Frames left.
        left: u64,
    },
    /// Xen refused.
    Refused {
        /// What was to be mapped.
        frame: SpecialFrame,
        /// Where.
        gfn: Gfn,
        /// Why not.
        errno: Errno,
    },
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HoleFull { wanted, left } => {
                write!(f, "the hole has {left} frames left, {wanted} wanted")
            }
            Self::Refused { frame, gfn, errno } => {
                write!(f, "Xen does not map {frame:?} at frame {gfn}: {errno}")
            }
        }
    }
}

impl core::error::Error for MapError {}

#[cfg(test)]
mod tests;
