//! A xenstore client for `core::future`: requests, transactions and watches over the ring that the
//! domain shares with xenstored (`io/xs_wire.h`, docs/misc/xenstore.txt and xenstore-ring.txt).
//!
//! Requests go out at once, as far as the ring has room. The main loop calls [`Xenstore::poll`]
//! after an event on the ring's port: it moves bytes and wakes the tasks whose replies came. No
//! executor is assumed and nothing blocks.
//!
//! ```
//! use paceline_driver::xen::xenstore::{Error, Xenstore, optional};
//!
//! async fn publish(store: &Xenstore, dir: &str, gref: u32) -> Result<Option<u32>, Error> {
//!     store
//!         .transaction(async |t| {
//!             t.write(format_args!("{dir}/tx-ring-ref"), gref).await?;
//!             t.write(format_args!("{dir}/state"), 4).await
//!         })
//!         .await?;
//!     optional(store.read_u32(format_args!("{dir}/mtu")).await)
//! }
//! ```
//!
//! **Timeouts** are the caller's: every future may be dropped at any time, and its late reply is
//! then thrown away; a dropped transaction is aborted, a dropped watch is removed.
//! [`Xenstore::fail_all`] ends all waits at once.
//!
//! **Trust:** xenstored runs in another domain. What breaks the protocol fails all waits with
//! [`Error::Protocol`], and the client refuses requests until [`Xenstore::reconnect`] or
//! [`Xenstore::reset`].

mod client;
mod error;
mod request;
pub(crate) mod ring;
mod transaction;
mod watch;
pub(crate) mod wire;

pub use client::Polled;
pub use error::{Error, ProtocolError};
pub use request::{Reply, Requests, optional};
pub use transaction::Transaction;
pub use watch::Watch;

use super::hypercall::Hypervisor;
use super::types::EventPort;
use alloc::rc::Rc;
use client::Client;
use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

/// How often [`Xenstore::transaction`] starts over before it gives up.
const MAX_COMMIT_ATTEMPTS: usize = 64;

/// A handle to the domain's xenstore connection; clones share it.
///
/// Requests outside of transactions are those of [`Requests`], to which a handle dereferences.
/// Relative paths are below the domain's own directory.
pub struct Xenstore(Requests);

impl Xenstore {
    /// A client on the ring at `page`, which Xen names in `HVM_PARAM_STORE_PFN`, and its `port`
    /// (`HVM_PARAM_STORE_EVTCHN`).
    ///
    /// # Safety
    ///
    /// `page` points to the page of the ring, mapped writable until the last handle is gone or
    /// [`Xenstore::reset`] replaced it, and no other code uses it.
    pub unsafe fn new(xen: Rc<dyn Hypervisor>, page: NonNull<u8>, port: EventPort) -> Self {
        // SAFETY: as this function's caller vouches.
        let client = unsafe { Client::new(xen, page, port) };
        Self(Requests::new(Rc::new(client), 0))
    }

    /// Moves bytes from and to the ring and wakes the tasks that wait for what came.
    ///
    /// Call it after an event on [`Xenstore::port`], and again when it says that there is more.
    pub fn poll(&self) -> Polled {
        self.client().poll()
    }

    /// The event channel of the ring.
    pub fn port(&self) -> EventPort {
        self.client().port()
    }

    /// Runs `body` in a transaction and commits; starts over when another domain changed what it
    /// touched. When that happens 64 times in a row it gives up, with [`super::Errno::EAGAIN`].
    ///
    /// An error of `body` aborts the transaction and is returned.
    pub async fn transaction<T>(
        &self,
        mut body: impl AsyncFnMut(&Transaction) -> Result<T, Error>,
    ) -> Result<T, Error> {
        for _ in 0..MAX_COMMIT_ATTEMPTS {
            let transaction = Transaction::start(self.client().clone()).await?;
            let value = body(&transaction).await?;
            match transaction.commit().await {
                Ok(()) => return Ok(value),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Refused(super::Errno::EAGAIN))
    }

    /// Watches `path` and everything below it. xenstored reports the path once at the start.
    pub async fn watch(&self, path: impl fmt::Display) -> Result<Watch, Error> {
        Watch::register(self.client().clone(), path).await
    }

    /// Ends every wait with `error`: for a caller that has lost patience with xenstored.
    pub fn fail_all(&self, error: &Error) {
        self.client().fail_all(error);
    }

    /// Why the connection is unusable, if it is.
    pub fn broken(&self) -> Option<ProtocolError> {
        self.client().broken()
    }

    /// Asks xenstored for a fresh connection on the same ring, where it offers that. All waits end
    /// with [`Error::Disconnected`]; watches are set again and report once more.
    pub fn reconnect(&self) -> Result<(), Error> {
        self.client().reconnect()
    }

    /// Goes over to another ring: after a resume in a new domain. All waits end with
    /// [`Error::Disconnected`]; watches are set again and report once more.
    ///
    /// # Safety
    ///
    /// As for [`Xenstore::new`].
    pub unsafe fn reset(&self, page: NonNull<u8>, port: EventPort) {
        // SAFETY: as this function's caller vouches.
        unsafe { self.client().reset(page, port) };
    }

    fn client(&self) -> &Rc<Client> {
        self.0.client()
    }
}

impl Clone for Xenstore {
    fn clone(&self) -> Self {
        Self(Requests::new(self.client().clone(), 0))
    }
}

impl Deref for Xenstore {
    type Target = Requests;

    fn deref(&self) -> &Requests {
        &self.0
    }
}

impl fmt::Debug for Xenstore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Xenstore")
            .field("port", &self.port())
            .field("broken", &self.broken())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
