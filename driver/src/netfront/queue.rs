//! A queue: a transmit and a receive ring, with their event channels.

use super::grants::BackendGrants;
use super::rx::RxQueue;
use super::statistics::Statistics;
use super::tx::{Slots, TxQueue};
use super::violation::Violation;
use super::{OpenError, QueueKeys};
use crate::xen::event::EventChannels;
use crate::xen::{DomId, EventPort, Hypervisor};

/// The event channels of a queue: one for both rings, or one for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    tx: EventPort,
    rx: EventPort,
}

impl Ports {
    /// Channels that the backend may bind to.
    pub(super) fn open(
        xen: &impl Hypervisor,
        backend: DomId,
        split: bool,
    ) -> Result<Self, OpenError> {
        let alloc = || {
            xen.evtchn_alloc_unbound(backend)
                .map_err(OpenError::Channel)
        };
        let tx = alloc()?;
        if !split {
            return Ok(Self { tx, rx: tx });
        }
        match alloc() {
            Ok(rx) => Ok(Self { tx, rx }),
            Err(error) => {
                // It is ours and unbound: closing it cannot fail.
                let _ = xen.evtchn_close(tx);
                Err(error)
            }
        }
    }

    /// Each channel once.
    fn each(self) -> impl Iterator<Item = EventPort> {
        let rx = (self.rx != self.tx).then_some(self.rx);
        [Some(self.tx), rx].into_iter().flatten()
    }

    /// Lets events in.
    fn unmask(self, xen: &impl Hypervisor, events: &EventChannels) {
        for port in self.each() {
            events.clear(port);
            if let Err(error) = events.unmask(xen, port) {
                log::error!("netfront: cannot unmask event channel {port}: {error}");
            }
        }
    }

    /// Keeps events out.
    pub(super) fn mask(self, events: &EventChannels) {
        for port in self.each() {
            events.mask(port);
        }
    }

    /// Masks the channels, then closes them: an event that comes in between finds nobody.
    pub(super) fn close(self, xen: &impl Hypervisor, events: &EventChannels) {
        self.mask(events);
        for port in self.each() {
            if let Err(error) = xen.evtchn_close(port) {
                log::error!("netfront: cannot close event channel {port}: {error}");
            }
            events.clear(port);
        }
    }
}

/// A queue pair.
pub(super) struct Queue {
    ports: Ports,
    pub(super) tx: TxQueue,
    pub(super) rx: RxQueue,
}

impl Queue {
    /// Empty rings, granted to the backend.
    pub(super) fn open(
        ports: Ports,
        grants: &mut BackendGrants,
        statistics: &mut Statistics,
    ) -> Result<Self, OpenError> {
        let tx = TxQueue::open(grants, statistics)?;
        match RxQueue::open(grants) {
            Ok(rx) => Ok(Self { ports, tx, rx }),
            Err(error) => {
                tx.close(grants, statistics);
                Err(error)
            }
        }
    }

    /// What the backend has to know.
    pub(super) fn keys(&self) -> QueueKeys {
        QueueKeys {
            tx_ring_ref: self.tx.gref(),
            rx_ring_ref: self.rx.gref(),
            tx_port: self.ports.tx,
            rx_port: self.ports.rx,
        }
    }

    /// Its channels.
    pub(super) fn ports(&self) -> Ports {
        self.ports
    }

    /// Fills the receive ring and sends an event on each channel.
    pub(super) fn start(
        &mut self,
        xen: &impl Hypervisor,
        events: &EventChannels,
        grants: &BackendGrants,
        statistics: &mut Statistics,
    ) {
        self.ports.unmask(xen, events);
        self.rx.refill(grants, statistics);
        self.rx.flush();
        for port in self.ports.each() {
            notify(xen, port);
        }
    }

    /// Publishes and refills.
    pub(super) fn flush(
        &mut self,
        xen: &impl Hypervisor,
        grants: &BackendGrants,
        now_us: u64,
        statistics: &mut Statistics,
    ) {
        self.rx.refill(grants, statistics);
        let (rx, tx) = (self.rx.flush(), self.tx.flush(now_us));
        statistics.rx_notifies += u64::from(rx);
        statistics.tx_notifies += u64::from(tx);
        if tx {
            notify(xen, self.ports.tx);
        }
        if rx && !(tx && self.ports.rx == self.ports.tx) {
            notify(xen, self.ports.rx);
        }
    }

    /// Asks for events; true when there is something to do already.
    pub(super) fn arm(&mut self) -> Result<bool, Violation> {
        let rx = self.rx.arm()?;
        let tx = self.tx.arm()?;
        Ok(rx || tx)
    }

    /// Ends all grants, or leaves them to be ended later; returns whom to credit.
    pub(super) fn close(self, grants: &mut BackendGrants, statistics: &mut Statistics) -> Slots {
        let Self { ports: _, tx, rx } = self;
        rx.close(grants, statistics);
        // Before the ring lets go of its pages, so that those mapped still are held by then.
        grants.end_tx(statistics);
        tx.close(grants, statistics)
    }
}

/// Sends an event. That the other end is gone shows in xenstore, not here.
fn notify(xen: &impl Hypervisor, port: EventPort) {
    if let Err(error) = xen.evtchn_send(port) {
        log::debug!("netfront: cannot send on event channel {port}: {error}");
    }
}
