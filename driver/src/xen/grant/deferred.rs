//! Pages that a backend did not let go of in time.

use super::{GrantTable, StillMapped};
use crate::xen::types::GrantRef;
use alloc::vec::Vec;
use core::mem;

/// Grants that could not be ended, with their pages, to be retried by a timer.
///
/// `P` is whatever owns a page. One that stays mapped for too long is leaked, grant and all: the
/// alternative is to hand out memory that another domain writes to.
#[derive(Debug)]
pub struct DeferredGrants<P> {
    waiting: Vec<Deferred<P>>,
    max_attempts: u32,
    leaked: u64,
}

#[derive(Debug)]
struct Deferred<P> {
    gref: GrantRef,
    page: P,
    attempts: u32,
}

/// What [`DeferredGrants::retry`] achieved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryOutcome {
    /// Pages handed back.
    pub released: usize,
    /// Pages given up.
    pub leaked: usize,
    /// Pages that wait on.
    pub waiting: usize,
}

impl<P> DeferredGrants<P> {
    /// An empty list that gives a page up after `max_attempts` retries.
    pub const fn new(max_attempts: u32) -> Self {
        Self {
            waiting: Vec::new(),
            max_attempts,
            leaked: 0,
        }
    }

    /// Ends a grant and hands its page back; or keeps both, and returns `None`.
    pub fn end_or_defer(&mut self, table: &GrantTable, gref: GrantRef, page: P) -> Option<P> {
        match table.end_access(gref) {
            Ok(()) => Some(page),
            Err(StillMapped { gref }) => {
                self.waiting.push(Deferred {
                    gref,
                    page,
                    attempts: 0,
                });
                None
            }
        }
    }

    /// Tries to end every waiting grant once and passes the pages of those that ended to
    /// `release`.
    pub fn retry(&mut self, table: &GrantTable, mut release: impl FnMut(P)) -> RetryOutcome {
        let mut outcome = RetryOutcome::default();
        let mut i = 0;
        while let Some(entry) = self.waiting.get_mut(i) {
            if table.end_access(entry.gref).is_ok() {
                release(self.waiting.swap_remove(i).page);
                outcome.released += 1;
                continue;
            }
            entry.attempts += 1;
            if entry.attempts >= self.max_attempts {
                let Deferred { gref, page, .. } = self.waiting.swap_remove(i);
                log::error!("grant {gref} still mapped, leaking its page");
                mem::forget(page);
                self.leaked += 1;
                outcome.leaked += 1;
                continue;
            }
            i += 1;
        }
        outcome.waiting = self.waiting.len();
        outcome
    }

    /// How many grants wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many pages were ever given up.
    pub fn leaked(&self) -> u64 {
        self.leaked
    }
}

impl<P> Drop for DeferredGrants<P> {
    /// The owner goes, but backends still have the pages.
    fn drop(&mut self) {
        for Deferred { page, .. } in self.waiting.drain(..) {
            mem::forget(page);
        }
    }
}
