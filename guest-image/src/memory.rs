//! The memory map and what becomes of it: page tables, heap and the NIC's pages.

use core::ops::Range;
use paceline_driver::xen::start_info::{MemoryKind, MemoryRegion};

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;

/// Most pieces that free memory is kept in; the rest is left alone.
pub const MAX_PIECES: usize = 64;

/// Largest pool of NIC pages.
const MAX_POOL_BYTES: u64 = 64 << 20;

/// Below this the firmware has its data.
const LOW_MEMORY_END: u64 = 1 << 20;

const FOUR_GIB: u64 = 1 << 32;

const ONE_GIB: u64 = 1 << 30;

/// The usable regions of a memory map, cut inward to whole pages.
pub fn ram(map: &[MemoryRegion]) -> impl Iterator<Item = Range<u64>> {
    map.iter()
        .filter(|region| region.kind == MemoryKind::Ram)
        .filter_map(|region| {
            let start = region.start.checked_next_multiple_of(PAGE_BYTES)?;
            Some(start..(region.end & !(PAGE_BYTES - 1)))
        })
        .filter(|range| !range.is_empty())
}

/// Bytes of usable memory.
pub fn ram_bytes(map: &[MemoryRegion]) -> u64 {
    ram(map).map(|range| range.end - range.start).sum()
}

/// Divides the usable memory; none when there is less than the tables need.
///
/// `image` is where the image itself lies.
pub fn plan(map: &[MemoryRegion], image: &Range<u64>) -> Option<Layout> {
    let mut free = heapless::Vec::<Range<u64>, MAX_PIECES>::new();
    for range in ram(map) {
        let range = range.start.max(LOW_MEMORY_END)..range.end;
        let below = range.start..range.end.min(image.start);
        let above = range.start.max(image.end)..range.end;
        for piece in [below, above] {
            if !piece.is_empty() {
                // Past MAX_PIECES pieces memory is left unused.
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
    let pool_bytes = (ram_bytes(map) / 2)
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

/// What becomes of the usable memory.
#[derive(Clone, Debug)]
pub struct Layout {
    /// For page tables; below 4 GiB.
    pub tables: Range<u64>,
    /// For the NIC's pages; below 4 GiB.
    pub pool: Range<u64>,
    /// For the heap.
    pub heap: heapless::Vec<Range<u64>, MAX_PIECES>,
}

#[cfg(test)]
mod tests;
