use super::{super::testing::TestPage, *};
use alloc::{vec, vec::Vec};
use proptest::prelude::*;

#[test]
fn tiny_segments_do_not_pin_a_page_each() {
    let mut queue = RecvQueue::new();
    for i in 0..100_000u32 {
        queue.push(TestPage::slice(&[i as u8]), 64 * PAGE_BYTES);
    }
    assert_eq!(queue.len(), 100_000);
    assert!(queue.truesize() <= (64 + 100_000 / PAGE_BYTES + 1) * PAGE_BYTES);
    let mut out = vec![0; 100_001];
    assert_eq!(queue.read(&mut out), 100_000);
    assert!(
        out[..100_000]
            .iter()
            .zip(0u32..)
            .all(|(&got, i)| got == i as u8)
    );
    assert_eq!(queue.truesize(), 0);
}

#[test]
fn full_pages_stay_by_reference_whatever_the_limit() {
    let mut queue = RecvQueue::new();
    queue.push(TestPage::slice(&[1; 4096]), 0);
    assert!(matches!(queue.pop(), Some(Chunk::Page(_))));
    assert_eq!(queue.len(), 0);
}

proptest! {
    #[test]
    fn reads_what_was_pushed(
        sizes in proptest::collection::vec(1usize..4097, 0..30),
        reads in proptest::collection::vec(0usize..5000, 0..60),
        limit in 0usize..10,
    ) {
        let mut queue = RecvQueue::new();
        let mut sent = Vec::new();
        let mut got = Vec::new();
        for (i, size) in sizes.into_iter().enumerate() {
            let data = vec![i as u8; size];
            queue.push(TestPage::slice(&data), limit * PAGE_BYTES);
            sent.extend(data);
        }
        for (i, size) in reads.into_iter().enumerate() {
            if i % 3 == 0 && let Some(mut chunk) = queue.pop() {
                let half = chunk.bytes().len() / 2;
                got.extend_from_slice(&chunk.bytes()[..half]);
                chunk.advance(half);
                got.extend_from_slice(chunk.bytes());
            }
            let mut out = vec![0; size];
            let len = queue.read(&mut out);
            got.extend_from_slice(&out[..len]);
        }
        prop_assert_eq!(&got[..], &sent[..got.len()]);
        prop_assert_eq!(queue.len(), sent.len() - got.len());
    }
}
