//! The memory map and what becomes of it: page tables, heap and the NIC's pages.

use core::ops::Range;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;

/// Most regions kept of a memory map; the rest is left alone.
pub const MAX_REGIONS: usize = 64;

/// Largest pool of NIC pages.
const MAX_POOL_BYTES: u64 = 64 << 20;

/// Below this the firmware has its data.
const LOW_MEMORY_END: u64 = 1 << 20;

/// Where the interrupt controllers' registers begin: no hole for mapping frames lies above.
const MMIO_START: u64 = 0xfec0_0000;

const FOUR_GIB: u64 = 1 << 32;

const ONE_GIB: u64 = 1 << 30;

/// What a region of the memory map is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Usable memory: type 1 of an E820 map.
    Ram,
    /// Anything else: not to be used, and not free for mapping either.
    Reserved,
}

/// A region of the memory map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Physical addresses.
    pub range: Range<u64>,
    /// What it is.
    pub kind: Kind,
}

/// The memory map that the loader handed over.
#[derive(Clone, Debug, Default)]
pub struct MemoryMap {
    regions: heapless::Vec<Region, MAX_REGIONS>,
}

impl MemoryMap {
    /// An empty map.
    pub const fn new() -> Self {
        Self {
            regions: heapless::Vec::new(),
        }
    }

    /// Adds the E820 entry (`start`, `len`, `kind`); false when there is no room for it. What
    /// reaches past the end of the address space is cut off.
    pub fn add(&mut self, start: u64, len: u64, kind: u32) -> bool {
        let range = start..start.saturating_add(len);
        let kind = if kind == 1 { Kind::Ram } else { Kind::Reserved };
        range.is_empty() || self.regions.push(Region { range, kind }).is_ok()
    }

    /// The regions, in the loader's order.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The usable regions, cut inward to whole pages.
    pub fn ram(&self) -> impl Iterator<Item = Range<u64>> {
        self.regions
            .iter()
            .filter(|region| region.kind == Kind::Ram)
            .filter_map(|region| {
                let start = region.range.start.checked_next_multiple_of(PAGE_BYTES)?;
                Some(start..(region.range.end & !(PAGE_BYTES - 1)))
            })
            .filter(|range| !range.is_empty())
    }

    /// Bytes of usable memory.
    pub fn ram_bytes(&self) -> u64 {
        self.ram().map(|range| range.end - range.start).sum()
    }

    /// `len` bytes below the interrupt controllers' registers that no region covers, aligned to
    /// 2 MiB: a place to map frames at without losing the memory there.
    pub fn hole(&self, len: u64) -> Option<Range<u64>> {
        const ALIGN: u64 = 2 << 20;
        let mut end = MMIO_START;
        // Each round moves below one region, so as many rounds as regions are enough.
        for _ in 0..=self.regions.len() {
            let start = end.checked_sub(len)? & !(ALIGN - 1);
            let hole = start..start + len;
            let covering = self
                .regions
                .iter()
                .find(|r| r.range.start < hole.end && hole.start < r.range.end);
            match covering {
                None if hole.start >= LOW_MEMORY_END => return Some(hole),
                None => return None,
                Some(region) => end = region.range.start,
            }
        }
        None
    }

    /// Divides the usable memory; none when there is less than the tables need.
    ///
    /// `image` is where the image itself lies.
    pub fn plan(&self, image: &Range<u64>) -> Option<Layout> {
        let mut free = heapless::Vec::<Range<u64>, MAX_REGIONS>::new();
        for range in self.ram() {
            let range = range.start.max(LOW_MEMORY_END)..range.end;
            let below = range.start..range.end.min(image.start);
            let above = range.start.max(image.end)..range.end;
            for piece in [below, above] {
                if !piece.is_empty() {
                    // Past MAX_REGIONS pieces memory is left unused.
                    let _ = free.push(piece);
                }
            }
        }
        let (index, main) = free
            .iter()
            .map(|range| range.start..range.end.min(FOUR_GIB))
            .enumerate()
            .max_by_key(|(_, range)| range.end.saturating_sub(range.start))?;
        let top = free.iter().map(|range| range.end).max()?;

        // One table for each GiB, and a handful for the image, for edges and for devices.
        let table_bytes = (48 + top.div_ceil(ONE_GIB)) * PAGE_BYTES;
        let main_bytes = main.end.saturating_sub(main.start);
        if main_bytes < table_bytes + 64 * PAGE_BYTES {
            return None;
        }
        let tables = main.start..main.start + table_bytes;
        let pool_bytes = (self.ram_bytes() / 2)
            .min(MAX_POOL_BYTES)
            .min((main_bytes - table_bytes) / 2)
            & !(PAGE_BYTES - 1);
        let pool = main.end - pool_bytes..main.end;
        let end = free[index].end;
        free[index] = tables.end..pool.start;
        if end > pool.end {
            let _ = free.push(pool.end..end);
        }
        Some(Layout {
            tables,
            pool,
            heap: free,
        })
    }
}

/// What becomes of the usable memory.
#[derive(Clone, Debug)]
pub struct Layout {
    /// For page tables; below 4 GiB.
    pub tables: Range<u64>,
    /// For the NIC's pages; below 4 GiB.
    pub pool: Range<u64>,
    /// For the heap.
    pub heap: heapless::Vec<Range<u64>, MAX_REGIONS>,
}

#[cfg(test)]
mod tests;
