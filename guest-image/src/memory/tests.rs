use super::*;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const IMAGE: Range<u64> = MIB..2 * MIB;

fn map(regions: &[(u64, u64, u32)]) -> MemoryMap {
    let mut map = MemoryMap::new();
    for &(start, end, kind) in regions {
        assert!(map.add(start, end - start, kind));
    }
    map
}

/// A PVH guest of 16 MiB, with Xen's special pages below 4 GiB.
fn xen_16_mib() -> MemoryMap {
    map(&[
        (0, 16 * MIB, 1),
        (0xfeff_8000, 0xff00_0000, 2),
        (0xfc00_0000, 0xfc00_b000, 3),
    ])
}

#[test]
fn sixteen_mib_give_a_pool_and_a_heap() {
    let layout = xen_16_mib().plan(&IMAGE).unwrap();
    assert_eq!(layout.tables.start, 2 * MIB);
    assert_eq!(layout.pool.end, 16 * MIB);
    let pool = layout.pool.end - layout.pool.start;
    assert!((6 * MIB..=8 * MIB).contains(&pool), "pool of {pool} bytes");
    assert_eq!(layout.heap[..], [layout.tables.end..layout.pool.start]);
}

#[test]
fn pool_is_capped_and_high_memory_goes_to_the_heap() {
    let map = map(&[
        (0, 0x9fc00, 1),
        (MIB, 3072 * MIB, 1),
        (FOUR_GIB, 2 * FOUR_GIB, 1),
    ]);
    let layout = map.plan(&IMAGE).unwrap();
    assert_eq!(layout.pool.end - layout.pool.start, 64 * MIB);
    assert!(layout.pool.end <= 3072 * MIB);
    assert!(layout.heap.contains(&(FOUR_GIB..2 * FOUR_GIB)));
}

#[test]
fn too_little_memory_is_no_plan() {
    assert!(map(&[(0, 2 * MIB, 1)]).plan(&IMAGE).is_none());
    assert!(MemoryMap::new().plan(&IMAGE).is_none());
}

#[test]
fn hole_avoids_every_region() {
    let hole = xen_16_mib().hole(4 * MIB).unwrap();
    assert_eq!(hole, 0xfe80_0000..0xfec0_0000);
    let map = map(&[(0, 0xf000_0000, 1), (0xfe90_0000, 0xff00_0000, 2)]);
    assert_eq!(map.hole(4 * MIB).unwrap(), 0xfe40_0000..0xfe80_0000);
    assert!(self::map(&[(0, FOUR_GIB, 1)]).hole(MIB).is_none());
}

#[test]
fn overflowing_entry_is_cut() {
    let mut map = MemoryMap::new();
    assert!(map.add(u64::MAX - 10, u64::MAX, 1));
    assert_eq!(map.ram().count(), 0);
}

proptest! {
    #[test]
    fn parts_never_overlap(
        entries in prop::collection::vec((0..3 * FOUR_GIB, 0..FOUR_GIB, 1..4_u32), 0..8),
    ) {
        let mut map = MemoryMap::new();
        let mut at = 0;
        for (gap, len, kind) in entries {
            at += gap % (64 * MIB);
            map.add(at, len, kind);
            at += len;
        }
        if let Some(layout) = map.plan(&IMAGE) {
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
