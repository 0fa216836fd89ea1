//! Granting pages of one pool to one backend, and getting them back.

use super::OpenError;
use super::statistics::Statistics;
use super::tx::MAX_TX_SLICES;
use crate::page::{Page, PagePool};
use crate::xen::grant::{Access, DeferredGrants, GrantTable};
use crate::xen::{DomId, GrantRef};
use alloc::rc::Rc;
use core::cell::Cell;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

/// How often a grant is tried to be ended, every [`super::RETRY_US`], before it is given up with
/// its page.
const END_ATTEMPTS: u32 = 6_000;

/// How many grants are reclaimed at once when references are short.
const RECLAIM_GRANTS: usize = 64;

/// How many pages are looked at for that, at most.
const RECLAIM_LOOKS: usize = 1024;

/// How many requests may be about one page at once, before those of the frame that is planned.
///
/// Xen counts the mappings of a grant in eight bits, and refuses another once the highest of them
/// is set ("risk of counter overflow" in its `grant_table.c`): the backend would drop the frame.
const MAX_TX_USERS: u32 = 128 - MAX_TX_SLICES as u32;

/// A page that the backend may use.
///
/// Dropping this leaks the page: [`BackendGrants::end`] is the only way to get it back.
pub(super) struct GrantedPage {
    /// A writer with nothing written, so that it is the only handle.
    page: ManuallyDrop<Page>,
    gref: GrantRef,
    access: Access,
}

impl GrantedPage {
    /// What to tell the backend.
    pub(super) fn gref(&self) -> GrantRef {
        self.gref
    }

    /// Where the page starts.
    pub(super) fn as_ptr(&self) -> NonNull<u8> {
        self.page.start()
    }

    /// The bytes of a page that the backend cannot write to; none of another's.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self.access {
            Access::ReadOnly => self.page.spare_mut(),
            Access::ReadWrite => &mut [],
        }
    }
}

/// The grants that a device has given.
pub(super) struct BackendGrants {
    table: Rc<GrantTable>,
    pool: PagePool,
    backend: DomId,
    deferred: DeferredGrants<Page>,
    /// Pages of the pool whose read-only grant the backend did not let end: they are held out of
    /// circulation, for there the backend could read what other connections send.
    held: usize,
    /// Where to look next for a read-only grant that is not needed.
    reclaim_at: Cell<usize>,
}

impl BackendGrants {
    pub(super) fn new(table: Rc<GrantTable>, pool: PagePool) -> Self {
        Self {
            table,
            pool,
            backend: DomId::DOM0,
            deferred: DeferredGrants::new(END_ATTEMPTS),
            held: 0,
            reclaim_at: Cell::new(0),
        }
    }

    /// Whom to grant pages to from now on.
    pub(super) fn set_backend(&mut self, backend: DomId) {
        self.backend = backend;
    }

    /// Where the pages come from.
    pub(super) fn pool(&self) -> PagePool {
        self.pool
    }

    /// Takes a page from the pool and lets the backend use it. It is zeroed before if asked to.
    pub(super) fn grant(&self, access: Access, zero: bool) -> Result<GrantedPage, OpenError> {
        let mut page = self.pool.alloc().ok_or(OpenError::Pages)?;
        if zero {
            page.spare_mut().fill(0);
        }
        let gref = self.table.grant(self.backend, page.gfn(), access)?;
        Ok(GrantedPage {
            page: ManuallyDrop::new(page),
            gref,
            access,
        })
    }

    /// The grant under which `page` is sent. A page keeps it until the connection ends, so that
    /// in the long run sending takes no grant operation; many slots may use it at once.
    /// Only where there are more pages than references do those that no request is about have to
    /// give theirs up.
    ///
    /// None when no more than `reserve` references are left, when a former backend has the page
    /// mapped still, or when as many requests are about it as Xen allows.
    pub(super) fn tx_gref(&self, page: &Page, reserve: usize) -> Option<GrantRef> {
        let index = page.index();
        if self.held > 0 && self.pool.is_held(index) || self.pool.tx_users(index) > MAX_TX_USERS {
            return None;
        }
        if let Some(gref) = self.pool.tx_gref(index) {
            return Some(gref);
        }
        if self.table.available() as usize <= reserve {
            return None;
        }
        let gref = self
            .table
            .grant(self.backend, page.gfn(), Access::ReadOnly)
            .ok()?;
        self.pool.set_tx_gref(index, Some(gref));
        Some(gref)
    }

    /// Sees to it, if need be and if it can be, that `references` are left. Grants of pages that
    /// no request is about end for it, so this comes before the first look for those of a frame.
    pub(super) fn make_room(&self, references: usize) {
        if self.table.available() as usize >= references {
            return;
        }
        let touched = self.pool.touched();
        let mut ended = 0;
        for _ in 0..touched.min(RECLAIM_LOOKS) {
            let index = self.reclaim_at.get() % touched;
            self.reclaim_at.set(index + 1);
            if self.pool.tx_users(index) > 0 || self.pool.is_held(index) {
                continue;
            }
            if let Some(gref) = self.pool.tx_gref(index)
                && self.table.end_access(gref).is_ok()
            {
                self.pool.set_tx_gref(index, None);
                ended += 1;
                if ended == RECLAIM_GRANTS {
                    return;
                }
            }
        }
    }

    /// Ends a grant and returns its page; if the backend has it mapped, keeps both.
    pub(super) fn end(
        &mut self,
        granted: GrantedPage,
        statistics: &mut Statistics,
    ) -> Option<Page> {
        let GrantedPage {
            page,
            gref,
            access: _,
        } = granted;
        let page = ManuallyDrop::into_inner(page);
        let page = self.deferred.end_or_defer(&self.table, gref, page);
        if page.is_none() {
            statistics.grants_deferred += 1;
        }
        page
    }

    /// Ends the grants of [`Self::tx_gref`]; holds the pages of those that are mapped still.
    pub(super) fn end_tx(&mut self, statistics: &mut Statistics) {
        for index in 0..self.pool.touched() {
            if self.pool.is_held(index) {
                continue;
            }
            let Some(gref) = self.pool.tx_gref(index) else {
                continue;
            };
            if self.table.end_access(gref).is_ok() {
                self.pool.set_tx_gref(index, None);
            } else {
                self.pool.hold(index);
                self.held += 1;
                statistics.grants_deferred += 1;
            }
        }
    }

    /// Looks whether pages held by [`Self::end_tx`] can go back into circulation.
    fn retry_held(&mut self, statistics: &mut Statistics) {
        for index in 0..self.pool.touched() {
            if !self.pool.is_held(index) {
                continue;
            }
            let Some(gref) = self.pool.tx_gref(index) else {
                continue;
            };
            if self.table.end_access(gref).is_ok() {
                self.pool.set_tx_gref(index, None);
                self.pool.unhold(index);
                self.held = self.held.saturating_sub(1);
                statistics.grants_reclaimed += 1;
            }
        }
    }

    /// Tries once more to end what could not be ended.
    pub(super) fn retry(&mut self, statistics: &mut Statistics) {
        if !self.deferred.is_empty() {
            let outcome = self.deferred.retry(&self.table, drop);
            statistics.grants_reclaimed += outcome.released as u64;
            statistics.grants_leaked += outcome.leaked as u64;
        }
        if self.held > 0 {
            self.retry_held(statistics);
        }
    }

    /// How many grants wait to be ended.
    pub(super) fn waiting(&self) -> usize {
        self.deferred.len() + self.held
    }

    /// How many grants of received pages and rings wait to be ended.
    pub(super) fn deferred(&self) -> usize {
        self.deferred.len()
    }
}
