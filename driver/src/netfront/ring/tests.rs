use super::*;
use crate::page::PagePool;
use crate::xen::DomId;
use crate::xen::fake::{FakeXen, GrantMapping};
use alloc::rc::Rc;
use alloc::vec::Vec;

/// A ring whose indices start at `start`, and the backend's view of its page.
fn ring(start: u32) -> (FrontRing<2>, SharedWords, BackendGrants, GrantMapping) {
    let xen = FakeXen::new();
    let (base, gfn) = xen.alloc_pages(4);
    core::mem::forget(xen.clone());
    // SAFETY: the pages are aligned, used for nothing else, and stay.
    let pool = unsafe { PagePool::new(base, 4, gfn) };
    let grants = BackendGrants::new(Rc::new(xen.grant_table(1)), pool);
    let mut ring = FrontRing::open(RingKind::Rx, &grants).unwrap();
    for index in [
        &mut ring.req_prod,
        &mut ring.req_published,
        &mut ring.rsp_cons,
        &mut ring.rsp_prod,
    ] {
        *index = start;
    }
    let mapping = xen.map_grant(DomId::DOM0, ring.gref(), true).unwrap();
    // SAFETY: the page is mapped as long as the mapping, and accessed by atomics only.
    let words = unsafe { SharedWords::new(mapping.page()) };
    words.at(index::RSP_PROD).store(start, Ordering::Relaxed);
    words
        .at(index::REQ_EVENT)
        .store(start.wrapping_add(1), Ordering::Relaxed);
    (ring, words, grants, mapping)
}

const STARTS: [u32; 4] = [0, 1000, u32::MAX - 5, u32::MAX - 255];

#[test]
fn a_fresh_ring_asks_for_the_first_event_and_is_empty() {
    let xen = FakeXen::new();
    let (base, gfn) = xen.alloc_pages(1);
    core::mem::forget(xen.clone());
    // SAFETY: as in `ring`.
    let pool = unsafe { PagePool::new(base, 1, gfn) };
    // What was in the page is not for the backend to see.
    pool.alloc().unwrap().spare_mut().fill(0xa5);
    let grants = BackendGrants::new(Rc::new(xen.grant_table(1)), pool);
    let ring = FrontRing::<3>::open(RingKind::Tx, &grants).unwrap();
    let mapping = xen.map_grant(DomId::DOM0, ring.gref(), true).unwrap();
    // SAFETY: as in `ring`.
    let words = unsafe { SharedWords::new(mapping.page()) };
    let words: Vec<u32> = (0..1024)
        .map(|at| words.at(at).load(Ordering::Relaxed))
        .collect();
    assert_eq!(words[..4], [0, 1, 0, 1]);
    assert!(words[4..].iter().all(|&word| word == 0));
    assert!(
        FrontRing::<2>::open(RingKind::Rx, &grants).is_err(),
        "no page is left"
    );
}

#[test]
fn indices_wrap() {
    for start in STARTS {
        let (mut ring, words, ..) = ring(start);
        for round in 0..300_u32 {
            let at = start.wrapping_add(round);
            assert_eq!(ring.next_request(), at);
            ring.push([round, !round]);
            ring.publish();
            assert_eq!(
                words.at(index::REQ_PROD).load(Ordering::Relaxed),
                at.wrapping_add(1)
            );
            let slot = SharedWords::slot::<2>(at);
            assert_eq!(words.at(slot).load(Ordering::Relaxed), round);
            words.at(slot).store(7 * round, Ordering::Relaxed);
            assert_eq!(ring.poll(), Ok(0));
            words
                .at(index::RSP_PROD)
                .store(at.wrapping_add(1), Ordering::Relaxed);
            assert_eq!(ring.take::<2>(), None, "not before it is polled");
            assert_eq!(ring.poll(), Ok(1));
            assert_eq!(ring.take(), Some((at, [7 * round, !round])));
            assert_eq!(ring.take::<2>(), None);
        }
    }
}

#[test]
fn the_ring_has_room_for_256() {
    for start in STARTS {
        let (mut ring, words, ..) = ring(start);
        for used in 0..256 {
            assert_eq!((ring.room(), ring.outstanding()), (256 - used, used));
            ring.push([0; 2]);
        }
        assert_eq!(ring.room(), 0);
        ring.publish();
        words
            .at(index::RSP_PROD)
            .store(start.wrapping_add(2), Ordering::Relaxed);
        assert_eq!(ring.poll(), Ok(2));
        assert_eq!(ring.room(), 0, "responses count until they are taken");
        ring.take::<2>();
        assert_eq!(ring.room(), 1);
    }
}

#[test]
fn the_backend_is_notified_when_its_event_index_is_passed() {
    for start in STARTS {
        let (mut ring, words, ..) = ring(start);
        let mut publish = |count: u32, event: u32| {
            words
                .at(index::REQ_EVENT)
                .store(start.wrapping_add(event), Ordering::Relaxed);
            for _ in 0..count {
                ring.push([0; 2]);
            }
            ring.publish()
        };
        assert!(publish(1, 1));
        assert!(!publish(0, 1), "nothing new");
        assert!(!publish(1, 1), "the index lies behind");
        assert!(!publish(3, 6), "the index lies ahead");
        assert!(publish(1, 6));
        assert!(publish(10, 7), "the index lies within");
    }
}

#[test]
fn responses_must_be_within_the_requests() {
    for start in STARTS {
        let (mut ring, words, ..) = ring(start);
        for _ in 0..10 {
            ring.push([0; 2]);
        }
        ring.publish();
        // Written, and not shown.
        ring.push([0; 2]);
        let mut poll = |prod: u32| {
            words
                .at(index::RSP_PROD)
                .store(start.wrapping_add(prod), Ordering::Relaxed);
            ring.poll()
        };
        assert_eq!(poll(4), Ok(4));
        for wrong in [3, 11, 12, 300, 1 << 31, u32::MAX] {
            assert_eq!(
                poll(wrong),
                Err(Violation::ResponseProducer {
                    ring: RingKind::Rx,
                    got: start.wrapping_add(wrong),
                    seen: start.wrapping_add(4),
                    limit: start.wrapping_add(10),
                })
            );
        }
        assert_eq!(poll(10), Ok(10));
    }
}

#[test]
fn arming_sees_what_came_before() {
    for start in STARTS {
        let (mut ring, words, ..) = ring(start);
        for _ in 0..10 {
            ring.push([0; 2]);
        }
        ring.publish();
        assert_eq!(ring.arm(3), Ok(false));
        assert_eq!(
            words.at(index::RSP_EVENT).load(Ordering::Relaxed),
            start.wrapping_add(3)
        );
        words
            .at(index::RSP_PROD)
            .store(start.wrapping_add(2), Ordering::Relaxed);
        assert_eq!(ring.arm(3), Ok(false));
        words
            .at(index::RSP_PROD)
            .store(start.wrapping_add(3), Ordering::Relaxed);
        assert_eq!(ring.arm(3), Ok(true));
    }
}
