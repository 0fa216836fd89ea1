use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;
use std::alloc::{Layout, alloc};

/// A pool in memory full of 0xa5, as a boot loader might leave it.
pub(crate) fn pool(pages: usize) -> PagePool {
    let layout = Layout::from_size_align(pages * PAGE_BYTES, PAGE_BYTES).unwrap();
    // SAFETY: the layout has a size; the memory is leaked to the pool.
    unsafe {
        let base = NonNull::new(alloc(layout)).unwrap();
        base.write_bytes(0xa5, pages * PAGE_BYTES);
        PagePool::new(base, pages, Gfn(0x100))
    }
}

#[test]
fn a_page_is_zero_before_first_use_and_keeps_its_frame_number() {
    let pool = pool(2);
    let (mut first, second) = (pool.alloc().unwrap(), pool.alloc().unwrap());
    assert!(pool.alloc().is_none());
    assert!(first.spare_mut().iter().all(|&byte| byte == 0));
    assert_eq!(first.spare_mut().len(), PAGE_BYTES);
    assert_eq!(first.bytes(), b"");
    assert_eq!([first.gfn(), second.gfn()], [Gfn(0x100), Gfn(0x101)]);
    assert_eq!([first.index(), second.index()], [0, 1]);
}

#[test]
fn a_clone_reads_what_was_written_and_cannot_write() {
    let pool = pool(1);
    let mut writer = pool.alloc().unwrap();
    writer.spare_mut()[..3].copy_from_slice(b"abc");
    writer.commit(3);
    let mut early = writer.clone();
    writer.spare_mut()[..2].copy_from_slice(b"de");
    writer.commit(2);
    assert_eq!(early.bytes(), b"abc");
    assert_eq!(early.spare_mut(), b"");
    early.commit(10);
    assert_eq!(early.bytes(), b"abc");
    assert_eq!(writer.bytes(), b"abcde");
    drop(writer);
    assert_eq!(early.bytes(), b"abc");
    assert_eq!(pool.available(), 0);
    drop(early);
    assert_eq!(pool.available(), 1);
}

#[test]
fn reads_and_writes_of_different_handles_may_overlap_in_time() {
    let pool = pool(1);
    let mut writer = pool.alloc().unwrap();
    writer.commit(100);
    let reader = writer.clone();
    let (read, spare) = (reader.bytes(), writer.spare_mut());
    spare.fill(7);
    assert!(read.iter().all(|&byte| byte == 0));
    assert_eq!(read.len() + spare.len(), PAGE_BYTES);
}

#[test]
fn commit_is_cut_to_the_room() {
    let pool = pool(1);
    let mut page = pool.alloc().unwrap();
    page.commit(usize::MAX);
    assert_eq!(page.bytes().len(), PAGE_BYTES);
    page.commit(1);
    assert_eq!(page.bytes().len(), PAGE_BYTES);
    assert!(page.spare_mut().is_empty());
}

#[test]
fn a_sealed_page_has_no_room() {
    let pool = pool(1);
    let mut page = pool.alloc().unwrap();
    page.commit(8);
    let mut page = page.sealed();
    assert!(page.spare_mut().is_empty());
    assert_eq!(page.bytes().len(), 8);
}

#[test]
fn a_held_page_comes_back_only_after_unhold() {
    let pool = pool(3);
    let free = pool.alloc().unwrap();
    drop(free);
    let used = pool.alloc().unwrap();
    assert_eq!(used.index(), 0);
    pool.hold(0);
    pool.hold(1);
    pool.hold(0);
    assert_eq!(pool.available(), 1);
    drop(used);
    assert_eq!(pool.available(), 1);
    let other = pool.alloc().unwrap();
    assert_eq!(other.index(), 2);
    assert!(pool.alloc().is_none());
    pool.unhold(0);
    pool.unhold(1);
    pool.unhold(1);
    assert_eq!(pool.available(), 2);
    let pages: Vec<_> = core::iter::from_fn(|| pool.alloc()).collect();
    assert_eq!(pages.len(), 2);
}

#[test]
fn a_page_held_and_released_while_listed_is_listed_once() {
    let pool = pool(1);
    drop(pool.alloc());
    pool.hold(0);
    pool.unhold(0);
    assert_eq!(pool.available(), 1);
    let page = pool.alloc();
    assert!(page.is_some());
    assert!(pool.alloc().is_none());
}

proptest! {
    #[test]
    fn pages_are_neither_lost_nor_given_twice(ops in prop::collection::vec((0u8..5, 0usize..8), 0..200)) {
        let pool = pool(8);
        let mut handles: Vec<Page> = Vec::new();
        let mut held = [false; 8];
        for (op, which) in ops {
            match op {
                0 => if let Some(page) = pool.alloc() {
                    prop_assert!(handles.iter().all(|other| other.index() != page.index()));
                    prop_assert!(!held[page.index()]);
                    handles.push(page);
                },
                1 => if let Some(page) = handles.get(which).cloned() { handles.push(page) },
                2 => if which < handles.len() { drop(handles.swap_remove(which)) },
                3 => { pool.hold(which); held[which] = true },
                _ => { pool.unhold(which); held[which] = false },
            }
            let free = (0..8)
                .filter(|&index| !held[index] && handles.iter().all(|page| page.index() != index))
                .count();
            prop_assert_eq!(pool.available(), free);
        }
        handles.clear();
        for index in 0..8 { pool.unhold(index) }
        prop_assert_eq!(core::iter::from_fn(|| pool.alloc()).inspect(|page| { core::mem::forget(page.clone()) }).count(), 8);
    }
}
