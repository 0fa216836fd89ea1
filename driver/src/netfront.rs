//! The frontend of Xen's paravirtual network device (`io/netif.h` of Xen's public headers).
//!
//! [`Netfront`] is the device: frames in and out. [`Vif`] is its life in xenstore: it finds the
//! backend, agrees with it on features, and has the device opened, started and closed.
//!
//! The backend is not trusted. Whatever it writes to the rings, the pages it may write to or
//! xenstore, the device does not panic, does not touch memory that is not its own, does not loop
//! without bound and does not reuse a page that the backend can still write to. A breach of the
//! protocol stops the device for good, with a [`Violation`] that says what was wrong; connecting
//! anew starts from scratch.
//!
//! One thread drives a device, from its main loop:
//!
//! 1. [`Netfront::receive`] until there is nothing, or the budget is spent;
//! 2. [`Netfront::complete`];
//! 3. [`Netfront::transmit`] as often as there is something to send;
//! 4. [`Netfront::flush`], once for all of it;
//! 5. before it goes idle, [`Netfront::arm`]; if that says true, it starts over instead. It idles
//!    for no longer than [`Netfront::poll_within_us`] says.

mod grants;
#[cfg(any(test, feature = "fake"))]
pub mod mock;
mod queue;
mod ring;
mod rx;
mod statistics;
mod tx;
mod vif;
mod violation;
mod wire;

pub use rx::{MAX_RX_SLICES, RX_SLOTS_MIN, RxFrame};
pub use statistics::Statistics;
pub use tx::{
    Completion, IpVersion, MAX_FRAME_BYTES, MAX_HEADER_BYTES, MAX_TX_SLICES, TX_RING_BYTES,
    TxError, TxFrame, TxOffload, TxSlice,
};
pub use vif::{ConnectError, Vif, XenbusState};
pub use violation::{RingKind, Violation};

use crate::page::{Page, PagePool, Supply};
use crate::xen::event::EventChannels;
use crate::xen::grant::{GrantError, GrantTable};
use crate::xen::{DomId, Errno, EventPort, GrantRef, Hypervisor, PAGE_BYTES};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::fmt;
use grants::BackendGrants;
use queue::{Ports, Queue};
use tx::{ETHERNET_HEADER_BYTES, Slots};

/// How often what failed for want of pages, or because the backend has a page mapped, is tried
/// again, in microseconds.
const RETRY_US: u64 = 10_000;

/// How long responses to what was sent may lie on the ring unseen, in microseconds. Events are
/// coalesced, and this bounds what that costs.
const TX_POLL_US: u64 = 1_000;

/// Pages that a device needs to be opened and its receive ring filled, and then some to receive.
const OPEN_PAGES: usize = 10 + ring::RING_SLOTS + RX_SLOTS_MIN;

/// What was agreed on with the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Largest IP packet on the wire, in bytes.
    pub mtu_bytes: u16,
    /// Frames may have several slots. Without it a frame is copied into one page.
    pub scatter_gather: bool,
    /// The backend takes large TCP segments over IPv4; with scatter-gather only.
    pub tso4: bool,
    /// The backend takes large TCP segments over IPv6; with scatter-gather only.
    pub tso6: bool,
    /// The backend completes checksums over IPv6. It does over IPv4 always.
    pub tx_checksum6: bool,
    /// Each ring has its own event channel.
    pub split_event_channels: bool,
}

impl Features {
    /// Longest frame that is not a large segment, in bytes.
    pub fn max_frame_bytes(self) -> usize {
        let limit = if self.scatter_gather {
            MAX_FRAME_BYTES
        } else {
            PAGE_BYTES
        };
        limit.min(usize::from(self.mtu_bytes) + ETHERNET_HEADER_BYTES)
    }
}

impl Default for Features {
    /// What every backend has.
    fn default() -> Self {
        Self {
            mtu_bytes: 1500,
            scatter_gather: false,
            tso4: false,
            tso6: false,
            tx_checksum6: false,
            split_event_channels: false,
        }
    }
}

/// Why a device could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// It is open already.
    Busy,
    /// An event channel could not be had.
    Channel(Errno),
    /// A page could not be granted.
    Grant(GrantError),
    /// The page pool is spent.
    Pages,
}

impl From<GrantError> for OpenError {
    fn from(error: GrantError) -> Self {
        Self::Grant(error)
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("the device is open; expected it closed"),
            Self::Channel(error) => write!(f, "event channel: {error}"),
            Self::Grant(error) => write!(f, "grant: {error}"),
            Self::Pages => write!(f, "page pool spent; expected {OPEN_PAGES} free pages"),
        }
    }
}

impl core::error::Error for OpenError {}

/// What the backend has to know of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueKeys {
    /// The transmit ring's grant.
    pub tx_ring_ref: GrantRef,
    /// The receive ring's grant.
    pub rx_ring_ref: GrantRef,
    /// The event channel of the transmit ring.
    pub tx_port: EventPort,
    /// The event channel of the receive ring: the same, unless they are split.
    pub rx_port: EventPort,
}

/// A network device.
///
/// Times are microseconds of one monotonic clock of the caller's.
pub struct Netfront {
    xen: Rc<dyn Hypervisor>,
    events: Rc<EventChannels>,
    grants: BackendGrants,
    mac: [u8; 6],
    features: Features,
    /// None before it is opened and after it is closed, which may be at any time (XSA-465).
    queue: Option<Queue>,
    /// Frames can flow: there is a queue, the backend is connected to it and has broken no rule.
    running: bool,
    violation: Option<Violation>,
    /// What was on the rings when the device was closed, until the owners are credited.
    uncredited: Vec<Slots>,
    retry_at_us: u64,
    statistics: Statistics,
}

impl Netfront {
    /// A device that is closed, whose frames lie in the pages of `pool`. It is the only device to
    /// use that pool, which should have 512 pages or more.
    pub fn new(
        xen: Rc<dyn Hypervisor>,
        events: Rc<EventChannels>,
        grants: Rc<GrantTable>,
        pool: PagePool,
    ) -> Self {
        Self {
            xen,
            events,
            grants: BackendGrants::new(grants, pool),
            mac: [0; 6],
            features: Features::default(),
            queue: None,
            running: false,
            violation: None,
            uncredited: Vec::new(),
            retry_at_us: 0,
            statistics: Statistics::default(),
        }
    }

    /// Sets up rings and channels for a backend, and says what it has to be told of them.
    pub fn open(
        &mut self,
        backend: DomId,
        mac: [u8; 6],
        features: Features,
    ) -> Result<QueueKeys, OpenError> {
        if self.queue.is_some() {
            return Err(OpenError::Busy);
        }
        self.grants.set_backend(backend);
        let ports = Ports::open(&self.xen, backend, features.split_event_channels)?;
        let queue = match Queue::open(ports, &mut self.grants, &mut self.statistics) {
            Ok(queue) => queue,
            Err(error) => {
                ports.close(&self.xen, &self.events);
                return Err(error);
            }
        };
        let keys = queue.keys();
        self.mac = mac;
        self.features = features;
        self.violation = None;
        self.queue = Some(queue);
        Ok(keys)
    }

    /// Lets frames flow, once the backend is connected: fills the receive ring and sends an event
    /// on each channel, for the backend may have missed what went before.
    pub fn start(&mut self) {
        let Some(queue) = &mut self.queue else {
            return;
        };
        self.running = true;
        self.statistics.connects += 1;
        queue.start(&self.xen, &self.events, &self.grants, &mut self.statistics);
    }

    /// Ends the connection, if there is one. Pages that the backend has mapped still stay out of
    /// use until it lets go of them, for which [`Self::flush`] looks from time to time.
    ///
    /// The next [`Self::complete`] credits what was on the ring.
    pub fn close(&mut self) {
        self.running = false;
        let Some(queue) = self.queue.take() else {
            return;
        };
        queue.ports().close(&self.xen, &self.events);
        let uncredited = queue.close(&mut self.grants, &mut self.statistics);
        if uncredited.owe() {
            self.uncredited.push(uncredited);
        }
    }

    /// Its Ethernet address; zero before it was first opened.
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// What was agreed on when it was last opened.
    pub fn features(&self) -> Features {
        self.features
    }

    /// Whether frames can flow.
    pub fn link_up(&self) -> bool {
        self.running
    }

    /// Which rule the backend has broken, if it has. The device then stays down until it is closed
    /// and opened again.
    pub fn violation(&self) -> Option<Violation> {
        self.violation
    }

    /// What it has done so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Grants that the backend has kept in use, so that their pages could not be reused yet.
    pub fn grants_waiting(&self) -> usize {
        self.grants.waiting()
    }

    /// Slots of the transmit ring that are free.
    pub fn tx_room(&self) -> usize {
        self.queue.as_ref().map_or(0, |queue| queue.tx.room())
    }

    /// Buffers on the receive ring.
    pub fn rx_posted(&self) -> usize {
        self.queue.as_ref().map_or(0, |queue| queue.rx.posted())
    }

    /// A page to write payload into. None unless [`Self::supply`] is plenty: without receiving,
    /// no acknowledgement would ever free one.
    pub fn alloc_page(&mut self) -> Option<Page> {
        (self.supply() == Supply::Plenty).then(|| self.grants.pool().alloc())?
    }

    /// How many pages there are beyond those that the rings need.
    pub fn supply(&self) -> Supply {
        let pool = self.grants.pool();
        let left = pool.available().saturating_sub(self.reserve());
        Supply::of(left, pool.pages().saturating_sub(OPEN_PAGES))
    }

    /// The next received frame, if any.
    pub fn receive(&mut self) -> Option<RxFrame> {
        let queue = self.queue.as_mut().filter(|_| self.running)?;
        match queue.rx.receive(&mut self.grants, &mut self.statistics) {
            Ok(frame) => frame,
            Err(violation) => {
                self.fail(violation);
                None
            }
        }
    }

    /// Puts a frame on the ring, to be published by [`Self::flush`]; or nothing of it.
    pub fn transmit<'a, I>(&mut self, frame: TxFrame<'a, I>) -> Result<(), TxError>
    where
        I: IntoIterator<Item = TxSlice<'a>>,
    {
        let reserve = self.reserve();
        let Some(queue) = self.queue.as_mut().filter(|_| self.running) else {
            self.statistics.tx_down += 1;
            return Err(TxError::Down);
        };
        let (features, statistics) = (self.features, &mut self.statistics);
        queue
            .tx
            .transmit(frame, &self.grants, features, reserve, statistics)
    }

    /// Publishes what was put on the ring since the last call and refills the receive ring, with
    /// at most one event for each channel.
    pub fn flush(&mut self, now_us: u64) {
        if self.grants.waiting() > 0 && now_us >= self.retry_at_us {
            self.retry_at_us = now_us.saturating_add(RETRY_US);
            self.grants.retry(&mut self.statistics);
        }
        if let Some(queue) = self.queue.as_mut().filter(|_| self.running) {
            queue.flush(&self.xen, &self.grants, now_us, &mut self.statistics);
        }
    }

    /// Takes back what the backend is done with and tells `sink` of it, slot by slot.
    ///
    /// What was on the ring when the connection ended is credited too, for nothing else will come
    /// of it.
    pub fn complete(&mut self, now_us: u64, sink: &mut dyn FnMut(Completion)) {
        for mut slots in self.uncredited.drain(..) {
            slots.credit_all(now_us, sink);
        }
        let Some(queue) = &mut self.queue else {
            return;
        };
        if self.running {
            let result = queue.tx.complete(now_us, &mut self.statistics, sink);
            if let Err(violation) = result {
                self.fail(violation);
            }
        }
        if self.violation.is_some()
            && let Some(queue) = &mut self.queue
        {
            queue.tx.slots.credit_all(now_us, sink);
        }
    }

    /// Asks for an event when there is something to do again; true when there is already, and the
    /// caller must not go idle. What was put on the ring must have been flushed.
    pub fn arm(&mut self) -> bool {
        let Some(queue) = self.queue.as_mut().filter(|_| self.running) else {
            return false;
        };
        match queue.arm() {
            Ok(ready) => ready,
            Err(violation) => {
                self.fail(violation);
                true
            }
        }
    }

    /// In how many microseconds to go round the main loop again, events or not; none: at the next
    /// event.
    pub fn poll_within_us(&self) -> Option<u64> {
        let retry = self.grants.waiting() > 0;
        let Some(queue) = self.queue.as_ref().filter(|_| self.running) else {
            return retry.then_some(RETRY_US);
        };
        if queue.tx.coalesces() {
            return Some(TX_POLL_US);
        }
        (retry || queue.rx.is_short() || queue.tx.is_short()).then_some(RETRY_US)
    }

    /// How many pages are not to be had for anything but receiving.
    fn reserve(&self) -> usize {
        match &self.queue {
            Some(queue) => queue.rx.reserve(),
            None => OPEN_PAGES,
        }
    }

    /// Stops using rings and channels. All that the backend has access to stays as it is.
    fn fail(&mut self, violation: Violation) {
        log::error!("netfront: {violation}; the device stops");
        self.running = false;
        self.violation = Some(violation);
        self.statistics.violations += 1;
        if let Some(queue) = &self.queue {
            queue.ports().mask(&self.events);
        }
    }
}

impl Drop for Netfront {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Netfront {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Netfront")
            .field("mac", &self.mac)
            .field("features", &self.features)
            .field("running", &self.running)
            .field("violation", &self.violation)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
