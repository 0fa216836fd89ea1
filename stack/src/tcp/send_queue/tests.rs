use super::{super::testing::TestPage, *};
use alloc::vec::Vec;
use proptest::prelude::*;

fn bytes_at(queue: &SendQueue<TestPage>, position: u64, max: usize) -> Vec<u8> {
    let mut payload = Payload::new();
    let len = queue.gather(position, max, MAX_TX_SLICES, &mut payload);
    let bytes: Vec<u8> = payload
        .iter()
        .flat_map(|part| part.bytes().to_vec())
        .collect();
    assert_eq!(bytes.len(), len);
    bytes
}

fn pool(mut pages: usize) -> impl FnMut() -> Option<TestPage> {
    move || {
        pages = pages.checked_sub(1)?;
        Some(TestPage::new())
    }
}

#[test]
fn small_writes_share_a_page() {
    let mut queue = SendQueue::new();
    for i in 0..100u8 {
        assert_eq!(queue.append(&[i; 40], 1000, &mut pool(1)), 40);
    }
    assert_eq!(queue.truesize(), PAGE_BYTES);
    assert_eq!(bytes_at(&queue, 39, 3), [0, 1, 1]);
    queue.release_to(4000);
    assert_eq!(queue.len(), 0);
    // The page's rest serves the next write.
    assert_eq!(queue.append(&[7; 50], 1000, &mut pool(0)), 50);
    assert_eq!(bytes_at(&queue, 4000, 100), [7; 50]);
}

#[test]
fn spent_pool_takes_what_fits_and_loses_nothing() {
    let mut queue = SendQueue::new();
    assert_eq!(queue.append(&[1; 10_000], usize::MAX, &mut pool(2)), 8192);
    assert_eq!(queue.append(&[2; 10], usize::MAX, &mut pool(0)), 0);
    assert_eq!(queue.len(), 8192);
    queue.release_to(8192);
    assert_eq!(queue.truesize(), 0);
}

#[test]
fn one_page_is_queued_many_times_without_a_copy() {
    let mut queue = SendQueue::new();
    let page = TestPage::slice(&[5; 4096]);
    for _ in 0..20 {
        queue.push_slice(page.clone());
    }
    let mut payload = Payload::new();
    assert_eq!(
        queue.gather(100, 65_000, MAX_TX_SLICES, &mut payload),
        65_000
    );
    assert_eq!(payload.len(), 16);
    payload.clear();
    assert_eq!(queue.gather(100, 65_000, 3, &mut payload), 3996 + 2 * 4096);
}

#[test]
fn short_slices_are_copied_while_the_tail_has_room() {
    let mut queue = SendQueue::new();
    queue.append(&[0; 10], 10, &mut pool(1));
    for _ in 0..10 {
        queue.push_slice(TestPage::slice(&[9; 100]));
    }
    assert_eq!(queue.truesize(), PAGE_BYTES);
    queue.push_slice(TestPage::slice(&[8; 1000]));
    assert_eq!(queue.truesize(), 2 * PAGE_BYTES);
    assert_eq!(bytes_at(&queue, 1009, 2), [9, 8]);
}

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Slice(usize),
    Release(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0usize..9000).prop_map(Step::Append),
        (0usize..4097).prop_map(Step::Slice),
        (0usize..9000).prop_map(Step::Release),
    ]
}

proptest! {
    #[test]
    fn gathers_what_was_written(steps in proptest::collection::vec(step(), 0..40), at: u16, max in 0usize..70_000) {
        let mut queue = SendQueue::new();
        let mut model = Vec::new();
        let mut counter = 0u8;
        let mut fill = |len: usize| -> Vec<u8> {
            (0..len).map(|_| { counter = counter.wrapping_add(101); counter }).collect()
        };
        for step in steps {
            match step {
                Step::Append(len) => {
                    let data = fill(len);
                    prop_assert_eq!(queue.append(&data, usize::MAX, &mut pool(99)), len);
                    model.extend(data);
                }
                Step::Slice(len) => {
                    let data = fill(len);
                    queue.push_slice(TestPage::slice(&data));
                    model.extend(data);
                }
                Step::Release(len) => queue.release_to(queue.start() + len as u64),
            }
            prop_assert_eq!(queue.end(), model.len() as u64);
        }
        let at = (queue.start() + u64::from(at)).min(queue.end());
        let mut payload = Payload::new();
        let len = queue.gather(at, max, MAX_TX_SLICES, &mut payload);
        let got: Vec<u8> = payload.iter().flat_map(|part| part.bytes().to_vec()).collect();
        prop_assert_eq!(&got[..], &model[at as usize..at as usize + len]);
        prop_assert!(payload.iter().all(|part| !part.is_empty()));
        let left = (queue.end() - at) as usize;
        prop_assert!(len == left.min(max) || payload.len() == MAX_TX_SLICES);
        prop_assert!(queue.truesize() <= (model.len() + 200 * PAGE_BYTES));
    }
}
