use super::{super::testing::TestPage, *};
use alloc::{vec, vec::Vec};
use proptest::prelude::*;

const AMPLE: usize = 1 << 30;

fn queue() -> OutOfOrder<TestPage> {
    OutOfOrder::new()
}

fn insert(queue: &mut OutOfOrder<TestPage>, start: u32, len: usize) -> Insert {
    queue.insert(
        SeqNum(start),
        [TestPage::slice(&vec![start as u8; len])],
        AMPLE,
    )
}

fn blocks(queue: &mut OutOfOrder<TestPage>) -> Vec<(u32, u32)> {
    let blocks = queue.sack_blocks(MAX_SACK_BLOCKS);
    queue.sack_blocks_sent();
    blocks
        .iter()
        .map(|block| (block.left, block.right))
        .collect()
}

#[test]
fn rfc_2018_most_recent_run_comes_first() {
    let mut queue = queue();
    insert(&mut queue, 100, 10);
    insert(&mut queue, 300, 10);
    insert(&mut queue, 200, 10);
    assert_eq!(blocks(&mut queue), [(200, 210), (300, 310), (100, 110)]);
    insert(&mut queue, 110, 90);
    assert_eq!(blocks(&mut queue), [(100, 210), (300, 310)]);
}

#[test]
fn rfc_2883_duplicate_is_reported_once_with_its_run() {
    let mut queue = queue();
    insert(&mut queue, 100, 50);
    insert(&mut queue, 300, 10);
    let again = Range::new(SeqNum(110), SeqNum(120));
    assert_eq!(insert(&mut queue, 110, 10), Insert::Duplicate(again));
    assert_eq!(blocks(&mut queue), [(110, 120), (100, 150), (300, 310)]);
    assert_eq!(blocks(&mut queue), [(300, 310), (100, 150)]);
}

#[test]
fn overlaps_store_only_what_is_new() {
    let mut queue = queue();
    insert(&mut queue, 100, 10);
    insert(&mut queue, 120, 10);
    assert_eq!(insert(&mut queue, 95, 40), Insert::Stored);
    assert_eq!(queue.bytes(), 40);
    assert_eq!(queue.end(), Some(SeqNum(135)));
    let mut seq = SeqNum(95);
    let mut tags = Vec::new();
    while let Some(slice) = queue.pop_in_order(seq) {
        seq += slice.len() as u32;
        tags.extend_from_slice(slice.bytes());
    }
    assert_eq!(seq, SeqNum(135));
    let want = [
        vec![95; 5],
        vec![100; 10],
        vec![95; 10],
        vec![120; 10],
        vec![95; 5],
    ]
    .concat();
    assert_eq!(tags, want);
    assert_eq!(blocks(&mut queue), [(100, 110)], "the first duplicate part");
    assert!(queue.is_empty() && !queue.has_sack_blocks());
}

#[test]
fn memory_is_bounded_in_pages_not_bytes() {
    let mut queue = queue();
    let limit = 16 * PAGE_BYTES;
    for i in 0..100 {
        let byte = TestPage::slice(&[1]);
        let got = queue.insert(SeqNum(i * 2), [byte], limit);
        assert_eq!(got == Insert::Full, i >= 16);
    }
    assert_eq!(queue.truesize(), limit);
}

#[test]
fn ranges_are_bounded_whatever_the_room() {
    let mut queue = queue();
    for i in 0..2000 {
        insert(&mut queue, i * 2, 1);
    }
    assert_eq!(queue.bytes(), MAX_RANGES);
    // What joins a run is still taken.
    assert_eq!(insert(&mut queue, 1, 1), Insert::Stored);
}

proptest! {
    #[test]
    fn delivers_in_order_what_was_inserted(
        base: u32,
        parts in proptest::collection::vec((1u32..300, 1usize..60), 1..60),
    ) {
        let origin = SeqNum(base);
        let content = |offset: u32| (offset.wrapping_mul(31) >> 3) as u8;
        let mut queue = queue();
        let mut held = [false; 400];
        for (start, len) in parts {
            let data: Vec<u8> = (start..start + len as u32).map(content).collect();
            let (a, b) = data.split_at(len / 2);
            let slices: Vec<_> = [a, b].into_iter().filter(|s| !s.is_empty()).map(TestPage::slice).collect();
            queue.insert(origin + start, slices, AMPLE);
            held[start as usize..start as usize + len].fill(true);
            prop_assert_eq!(queue.bytes(), held.iter().filter(|&&h| h).count());
            prop_assert!(queue.recent.len() <= queue.ranges.len());
            for pair in queue.ranges.iter().zip(queue.ranges.iter().skip(1)) {
                prop_assert!(pair.0.end.before(pair.1.start));
            }
            for block in queue.sack_blocks(4) {
                let (l, r) = (block.left.wrapping_sub(base), block.right.wrapping_sub(base));
                prop_assert!(held[l as usize..r as usize].iter().all(|&h| h));
            }
        }
        // The gaps are filled; everything comes out once.
        let mut offset = 0u32;
        while (offset as usize) < held.len() {
            if let Some(slice) = queue.pop_in_order(origin + offset) {
                for &byte in slice.bytes() {
                    prop_assert!(held[offset as usize]);
                    prop_assert_eq!(byte, content(offset));
                    offset += 1;
                }
            } else {
                prop_assert!(!held[offset as usize]);
                offset += 1;
            }
        }
        prop_assert_eq!(queue.truesize(), 0);
    }
}
