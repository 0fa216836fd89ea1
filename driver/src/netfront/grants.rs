//! Granting pages of one pool to one backend, and getting them back.

use super::statistics::Statistics;
use crate::page::{Page, PagePool};
use crate::xen::grant::{Access, DeferredGrants, GrantError, GrantTable};
use crate::xen::{DomId, Gfn, GrantRef};
use alloc::rc::Rc;

/// How often a grant is tried to be ended, every [`super::RETRY_US`], before it is given up with
/// its page.
const END_ATTEMPTS: u32 = 6_000;

/// The grants that a device has given.
pub(super) struct BackendGrants {
    table: Rc<GrantTable>,
    pool: PagePool,
    backend: DomId,
    deferred: DeferredGrants<Page>,
    /// Pages of the pool whose read-only grant the backend did not let end: they are held out of
    /// circulation, for there the backend could read what other connections send.
    held: usize,
}

impl BackendGrants {
    pub(super) fn new(table: Rc<GrantTable>, pool: PagePool) -> Self {
        Self {
            table,
            pool,
            backend: DomId::DOM0,
            deferred: DeferredGrants::new(END_ATTEMPTS),
            held: 0,
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

    /// Lets the backend use a page of the pool.
    pub(super) fn grant(&self, gfn: Gfn, access: Access) -> Result<GrantRef, GrantError> {
        self.table.grant(self.backend, gfn, access)
    }

    /// The grant under which `page` is sent. A page keeps it until the connection ends, so that
    /// in the long run sending takes no grant operation; any number of slots may use it at once.
    ///
    /// None when there is no grant reference, or a former backend still has the page mapped.
    pub(super) fn tx_gref(&self, page: &Page) -> Option<GrantRef> {
        let index = page.index();
        if self.held > 0 && self.pool.is_held(index) {
            return None;
        }
        if let Some(gref) = self.pool.tx_gref(index) {
            return Some(gref);
        }
        let gref = self.grant(page.gfn(), Access::ReadOnly).ok()?;
        self.pool.set_tx_gref(index, Some(gref));
        Some(gref)
    }

    /// Ends a grant and returns its page; if the backend has it mapped, keeps both.
    pub(super) fn end(
        &mut self,
        gref: GrantRef,
        page: Page,
        statistics: &mut Statistics,
    ) -> Option<Page> {
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
