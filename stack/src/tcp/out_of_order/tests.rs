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
    while let Some(chunk) = queue.pop_in_order(seq) {
        seq += chunk.bytes().len() as u32;
        tags.extend_from_slice(chunk.bytes());
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

/// A peer that sends byte by byte behind a gap, forwards, backwards or mixed: no page each, and no
/// chunk each.
#[test]
fn tiny_segments_share_pages() {
    let orders: [fn(u32) -> u32; 3] = [
        |i| i,
        |i| 9999 - i,
        |i| if i % 2 == 0 { i / 2 } else { 9999 - i / 2 },
    ];
    orders.into_iter().for_each(share_pages);
}

fn share_pages(order: fn(u32) -> u32) {
    let mut queue = queue();
    for i in 0..10_000 {
        let at = order(i);
        let got = queue.insert(SeqNum(1 + at), [TestPage::slice(&[at as u8])], AMPLE);
        assert_eq!(got, Insert::Stored);
    }
    assert_eq!((queue.bytes(), queue.runs()), (10_000, 1));
    assert!(
        queue.truesize() <= 2 * 10_000 + PAGE_BYTES,
        "{}",
        queue.truesize()
    );
    let mut seq = SeqNum(1);
    while let Some(chunk) = queue.pop_in_order(seq) {
        for &byte in chunk.bytes() {
            assert_eq!(byte, (seq.0 - 1) as u8);
            seq += 1;
        }
    }
    assert_eq!(seq, SeqNum(10_001));
}

/// A window's worth of full segments fits in twice its size, though they fill their pages badly.
#[test]
fn a_window_of_segments_fits_after_a_gap() {
    let window = 256 << 10;
    let mut queue = queue();
    let mut seq = 1;
    while seq + 1448 <= window {
        let segment = [TestPage::slice(&[seq as u8; 1448])];
        let got = queue.insert(SeqNum(seq), segment, 2 * window as usize);
        assert_eq!(got, Insert::Stored, "at {seq}");
        seq += 1448;
    }
    assert!(queue.truesize() <= 2 * window as usize);
    let mut next = SeqNum(1);
    while let Some(chunk) = queue.pop_in_order(next) {
        for &byte in chunk.bytes() {
            let segment = (next.0 - 1) / 1448 * 1448 + 1;
            assert_eq!(byte, segment as u8);
            next += 1;
        }
    }
    assert_eq!(next, SeqNum(seq));
}

#[test]
fn full_segments_are_kept_by_reference() {
    let mut queue = queue();
    for i in 0..10 {
        insert(&mut queue, 1 + i * 1448, 1448);
    }
    for i in 0..10 {
        let chunk = queue.pop_in_order(SeqNum(1 + i * 1448));
        assert!(matches!(chunk, Some(Chunk::Page(slice)) if slice.len() == 1448));
    }
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
            if let Some(chunk) = queue.pop_in_order(origin + offset) {
                for &byte in chunk.bytes() {
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
