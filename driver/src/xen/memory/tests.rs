use super::*;
use crate::xen::fake::{FakeXen, MAX_GRANT_FRAMES};
use crate::xen::start_info::MemoryKind;
use alloc::format;

const MIB: u64 = 1 << 20;

fn region(start: u64, end: u64) -> MemoryRegion {
    MemoryRegion {
        start,
        end,
        kind: MemoryKind::Ram,
    }
}

fn hole_start(map: &[MemoryRegion], pages: u64) -> Option<u64> {
    find_hole(map, pages).map(|hole| hole.remaining().start.paddr())
}

#[test]
fn the_hole_is_above_memory() {
    // As Xen gives it to a PVH guest of 32 MiB.
    let map = [
        region(0, 32 * MIB),
        region(0xfc00_0000, 0xfc00_b000),
        region(0xfeff_8000, 0xff00_0000),
    ];
    assert_eq!(hole_start(&map, 65), Some(32 * MIB));
}

#[test]
fn an_odd_end_of_memory_shares_no_large_page() {
    let map = [region(0, 33 * MIB + 0x5000)];
    assert_eq!(hole_start(&map, 65), Some(34 * MIB));
}

#[test]
fn a_tiny_guest_gets_a_hole_past_the_legacy_range() {
    assert_eq!(hole_start(&[region(0, 8 * MIB)], 65), Some(16 * MIB));
}

#[test]
fn gaps_that_are_too_small_are_passed_over_in_any_order() {
    let map = [
        region(36 * MIB, 40 * MIB),
        region(0, 32 * MIB),
        region(20 * MIB, 34 * MIB),
    ];
    assert_eq!(hole_start(&map, 512), Some(34 * MIB));
    assert_eq!(hole_start(&map, 513), Some(40 * MIB));
}

#[test]
fn no_room_is_none() {
    assert_eq!(hole_start(&[region(0, u64::MAX)], 1), None);
    assert_eq!(hole_start(&[region(0, 0xfc00_0000)], 1), None);
    assert_eq!(hole_start(&[], u64::MAX), None);
    assert_eq!(hole_start(&[region(0, u64::MAX - 5)], 1), None);
}

#[test]
fn frames_appear_where_they_were_mapped() {
    let xen = FakeXen::new();
    let hole = find_hole(&[region(0, 32 * MIB)], 5).unwrap();
    let info = hole.map_shared_info(&xen).unwrap();
    assert_eq!(xen.translate(info), Some(xen.shared_info().cast()));
    let grants = hole.map_grant_table(&xen, 4).unwrap();
    assert_eq!(grants, Gfn(info.0 + 1));
    let first = xen.translate(grants).unwrap();
    let last = xen.translate(Gfn(grants.0 + 3)).unwrap();
    assert_eq!(last.addr().get() - first.addr().get(), 3 * PAGE_BYTES);

    let error = hole.map_shared_info(&xen).unwrap_err();
    assert_eq!(error, MapError::HoleFull { wanted: 1, left: 0 });
}

#[test]
fn a_refusal_says_what_and_where() {
    let xen = FakeXen::new();
    let hole = Hole::new(Gfn(0x2000), 100);
    let error = hole
        .map_grant_table(&xen, MAX_GRANT_FRAMES + 1)
        .unwrap_err();
    assert_eq!(
        format!("{error}"),
        "Xen does not map GrantTable(64) at frame 0x2040: EINVAL"
    );
}
