use super::*;
use crate::xen::fake::Pages;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

/// A table over memory of the test's own.
struct Fixture {
    memory: Pages,
    table: GrantTable,
}

impl Fixture {
    fn new(entries: u32) -> Self {
        assert!(entries <= ENTRIES_PER_FRAME);
        let memory = Pages::new(1);
        let base = memory.base().cast::<GrantEntryV1>();
        for i in 0..entries as usize {
            // SAFETY: in bounds of the page.
            unsafe { base.add(i).as_ref() }
                .flags
                .store(0x55, Ordering::Relaxed);
        }
        // SAFETY: the memory lives as long as the fixture and nobody else grants with it.
        let table = unsafe { GrantTable::new(base, entries) };
        Self { memory, table }
    }

    /// An entry as Xen sees it.
    fn shared(&self, gref: GrantRef) -> &GrantEntryV1 {
        assert!(gref.0 < ENTRIES_PER_FRAME);
        // SAFETY: in bounds of the page; the fields are atomics.
        unsafe { self.memory.base().cast().add(gref.0 as usize).as_ref() }
    }

    fn entry(&self, gref: GrantRef) -> (u16, u16, u32) {
        let GrantEntryV1 {
            flags,
            domid,
            frame,
        } = self.shared(gref);
        (
            flags.load(Ordering::Relaxed),
            domid.load(Ordering::Relaxed),
            frame.load(Ordering::Relaxed),
        )
    }

    fn mark(&self, gref: GrantRef, flags: u16) {
        self.shared(gref).flags.fetch_or(flags, Ordering::Relaxed);
    }

    fn unmark(&self, gref: GrantRef, flags: u16) {
        self.shared(gref).flags.fetch_and(!flags, Ordering::Relaxed);
    }

    fn grant(&self) -> GrantRef {
        self.table
            .grant(DomId(3), Gfn(0x1234), Access::ReadOnly)
            .unwrap()
    }
}

#[test]
fn entry_layout_is_that_of_the_public_header() {
    assert_eq!(size_of::<GrantEntryV1>(), 8);
    assert_eq!(core::mem::offset_of!(GrantEntryV1, domid), 2);
    assert_eq!(core::mem::offset_of!(GrantEntryV1, frame), 4);
    assert_eq!(ENTRIES_PER_FRAME, 512);
}

#[test]
fn a_grant_is_written_and_taken_back() {
    let f = Fixture::new(32);
    let ro = f
        .table
        .grant(DomId(3), Gfn(0x1234), Access::ReadOnly)
        .unwrap();
    assert_eq!(f.entry(ro), (GTF_PERMIT_ACCESS | GTF_READONLY, 3, 0x1234));
    let rw = f
        .table
        .grant(DomId(0), Gfn(u32::MAX.into()), Access::ReadWrite)
        .unwrap();
    assert_eq!(f.entry(rw), (GTF_PERMIT_ACCESS, 0, u32::MAX));
    assert_ne!(ro, rw);
    f.table.end_access(ro).unwrap();
    assert_eq!(f.entry(ro).0, 0);
}

#[test]
fn reserved_entries_are_neither_touched_nor_handed_out() {
    let f = Fixture::new(16);
    for i in 0..RESERVED_ENTRIES {
        assert_eq!(f.entry(GrantRef(i)).0, 0x55);
    }
    let grefs: Vec<_> = (0..8).map(|_| f.grant().0).collect();
    assert!(grefs.iter().all(|gref| (8..16).contains(gref)));
    assert_eq!(f.table.available(), 0);
    assert_eq!(
        f.table.grant(DomId::DOM0, Gfn(1), Access::ReadOnly),
        Err(GrantError::Exhausted)
    );
}

#[test]
fn a_table_of_reserved_entries_only_is_exhausted() {
    for entries in [0, 1, 8] {
        let f = Fixture::new(entries);
        assert_eq!(
            f.table.grant(DomId::DOM0, Gfn(1), Access::ReadOnly),
            Err(GrantError::Exhausted)
        );
    }
}

#[test]
fn frames_that_version_1_cannot_name_are_refused_without_a_leak() {
    let f = Fixture::new(9);
    let gfn = Gfn(1 << 32);
    assert_eq!(
        f.table.grant(DomId::DOM0, gfn, Access::ReadOnly),
        Err(GrantError::FrameTooLarge(gfn))
    );
    assert_eq!(f.table.available(), 1);
}

#[test]
fn a_mapped_grant_is_not_ended() {
    let f = Fixture::new(9);
    let gref = f.grant();
    for flag in [GTF_READING, GTF_WRITING] {
        f.mark(gref, flag);
        assert_eq!(f.table.end_access(gref), Err(StillMapped { gref }));
        assert_ne!(f.entry(gref).0, 0);
        assert_eq!(f.table.available(), 0);
        f.unmark(gref, flag);
    }
    assert_eq!(f.table.end_access(gref), Ok(()));
    assert_eq!(f.table.available(), 1);
}

#[test]
fn grants_come_and_go_without_end() {
    let f = Fixture::new(64);
    let mut held = Vec::new();
    for i in 0..if cfg!(miri) { 200 } else { 10_000_usize } {
        if i % 3 < 2 && f.table.available() > 0 {
            held.push(f.grant());
        } else if !held.is_empty() {
            f.table
                .end_access(held.swap_remove(i % held.len()))
                .unwrap();
        }
        let mut unique: Vec<_> = held.iter().map(|g| g.0).collect();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len() as u32 + f.table.available(), 56);
    }
}

#[test]
#[should_panic(expected = "not in use")]
fn a_double_end_is_caught() {
    let f = Fixture::new(16);
    let gref = f.grant();
    f.table.end_access(gref).unwrap();
    let _ = f.table.end_access(gref);
}

/// Tells when it is dropped.
struct Page(u32, Rc<RefCell<Vec<u32>>>);

impl Drop for Page {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

#[test]
fn deferred_grants_are_retried_then_leaked() {
    let f = Fixture::new(32);
    let dropped = Rc::new(RefCell::new(Vec::new()));
    let page = |n| Page(n, dropped.clone());
    let mut deferred = DeferredGrants::new(3);

    let at_once = f.grant();
    assert!(
        deferred
            .end_or_defer(&f.table, at_once, page(0))
            .is_some_and(|page| page.0 == 0)
    );
    let (late, never) = (f.grant(), f.grant());
    f.mark(late, GTF_READING);
    f.mark(never, GTF_WRITING);
    assert!(deferred.end_or_defer(&f.table, late, page(1)).is_none());
    assert!(deferred.end_or_defer(&f.table, never, page(2)).is_none());
    assert_eq!(dropped.borrow()[..], [0]);

    let outcome = deferred.retry(&f.table, drop);
    assert_eq!((outcome.released, outcome.waiting), (0, 2));
    f.unmark(late, GTF_READING);
    let outcome = deferred.retry(&f.table, drop);
    assert_eq!((outcome.released, outcome.waiting), (1, 1));
    assert_eq!(dropped.borrow()[..], [0, 1]);

    let outcome = deferred.retry(&f.table, drop);
    assert_eq!((outcome.leaked, outcome.waiting), (1, 0));
    assert_eq!(deferred.leaked(), 1);
    assert!(deferred.is_empty());
    // Neither the page nor its reference ever come back.
    assert_eq!(dropped.borrow()[..], [0, 1]);
    assert_eq!(f.table.available(), 23);
}

#[test]
fn pages_that_wait_outlive_the_list() {
    let f = Fixture::new(16);
    let dropped = Rc::new(RefCell::new(Vec::new()));
    let gref = f.grant();
    f.mark(gref, GTF_WRITING);
    let mut deferred = DeferredGrants::new(3);
    let _ = deferred.end_or_defer(&f.table, gref, Page(7, dropped.clone()));
    drop(deferred);
    assert!(dropped.borrow().is_empty());
}

/// Another CPU maps and unmaps like Xen while access is ended: it ends only between the two, and
/// the page cannot be mapped afterwards.
#[test]
fn ending_access_races_with_mapping() {
    extern crate std;
    use core::sync::atomic::AtomicBool;

    let rounds = if cfg!(miri) { 5 } else { 500 };
    let f = Fixture::new(16);
    for _ in 0..rounds {
        let gref = f.grant();
        let flags = &f.shared(gref).flags;
        let (mapped, ended) = (&AtomicBool::new(false), &AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // As `_set_status_v1` of Xen's grant_table.c.
                while let Ok(before) =
                    flags.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |flags| {
                        (flags & GTF_PERMIT_ACCESS != 0).then_some(flags | GTF_READING)
                    })
                {
                    assert_eq!(before & GTF_READING, 0);
                    mapped.store(true, Ordering::SeqCst);
                    assert!(!ended.load(Ordering::SeqCst), "ended while mapped");
                    flags.fetch_and(!GTF_READING, Ordering::SeqCst);
                    std::thread::yield_now();
                }
            });
            while !mapped.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            while f.table.end_access(gref).is_err() {
                std::thread::yield_now();
            }
            ended.store(true, Ordering::SeqCst);
        });
        assert_eq!(f.entry(gref).0, 0);
    }
}
