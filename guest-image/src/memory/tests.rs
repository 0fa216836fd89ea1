use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const IMAGE: Range<u64> = MIB..2 * MIB;

fn region(start: u64, end: u64, kind: u32) -> MemoryRegion {
    MemoryRegion {
        start,
        end,
        kind: kind.into(),
    }
}

/// A PVH guest of 16 MiB, with Xen's special pages below 4 GiB.
fn xen_16_mib() -> [MemoryRegion; 3] {
    [
        region(0, 16 * MIB, 1),
        region(0xfeff_8000, 0xff00_0000, 2),
        region(0xfc00_0000, 0xfc00_b000, 3),
    ]
}

#[test]
fn sixteen_mib_give_a_pool_and_a_heap() {
    let layout = plan(&xen_16_mib(), &IMAGE).unwrap();
    assert_eq!(layout.tables.start, 2 * MIB);
    assert_eq!(layout.pool.end, 16 * MIB);
    let pool = layout.pool.end - layout.pool.start;
    assert!((6 * MIB..=8 * MIB).contains(&pool), "pool of {pool} bytes");
    assert_eq!(layout.heap.len(), 1);
    assert_eq!(layout.heap[0], layout.tables.end..layout.pool.start);
}

#[test]
fn pool_is_capped_and_high_memory_goes_to_the_heap() {
    let map = [
        region(0, 0x9fc00, 1),
        region(MIB, 3072 * MIB, 1),
        region(FOUR_GIB, 2 * FOUR_GIB, 1),
    ];
    let layout = plan(&map, &IMAGE).unwrap();
    assert_eq!(layout.pool.end - layout.pool.start, 64 * MIB);
    assert!(layout.pool.end <= 3072 * MIB);
    assert!(layout.heap.contains(&(FOUR_GIB..2 * FOUR_GIB)));
}

#[test]
fn too_little_memory_is_no_plan() {
    assert!(plan(&[region(0, 2 * MIB, 1)], &IMAGE).is_none());
    assert!(plan(&[], &IMAGE).is_none());
}

#[test]
fn region_at_the_end_of_the_address_space_is_no_ram() {
    assert_eq!(ram(&[region(u64::MAX - 10, u64::MAX, 1)]).count(), 0);
}

proptest! {
    #[test]
    fn parts_never_overlap(
        entries in prop::collection::vec((0..3 * FOUR_GIB, 0..FOUR_GIB, 1..4_u32), 0..8),
    ) {
        let mut map = Vec::new();
        let mut at = 0;
        for (gap, len, kind) in entries {
            at += gap % (64 * MIB);
            map.push(region(at, at + len, kind));
            at += len;
        }
        if let Some(layout) = plan(&map, &IMAGE) {
            let mut parts = layout.heap.to_vec();
            parts.extend([layout.tables, layout.pool, IMAGE]);
            parts.retain(|part| !part.is_empty());
            parts.sort_by_key(|part| part.start);
            for pair in parts.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start, "{pair:x?}");
            }
        }
    }
}
