//! Listeners: connections begun by peers, until the application accepts them.

use super::{config::Options, demux::ConnectionId};
use alloc::collections::VecDeque;
use core::{
    net::{IpAddr, SocketAddr},
    task::Waker,
};

/// A port that takes connections.
#[derive(Debug)]
pub(super) struct Listener {
    /// The address and port; an unspecified address stands for all.
    local: SocketAddr,
    /// Most connections half open, and most that wait to be accepted.
    backlog: usize,
    /// Oldest first.
    half_open: VecDeque<ConnectionId>,
    established: VecDeque<ConnectionId>,
    /// Settings its connections start with.
    pub(super) options: Options,
    waker: Option<Waker>,
}

impl Listener {
    pub(super) fn new(local: SocketAddr, backlog: usize, options: Options) -> Self {
        Self {
            local,
            backlog: backlog.max(1),
            half_open: VecDeque::new(),
            established: VecDeque::new(),
            options,
            waker: None,
        }
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether connections to `address` and `port` are for this listener.
    pub(super) fn takes(&self, address: IpAddr, port: u16) -> bool {
        self.local.port() == port
            && (self.local.ip().is_unspecified() || self.local.ip() == address)
    }

    /// Whether two listeners would take the same connections.
    pub(super) fn conflicts_with(&self, other: SocketAddr) -> bool {
        self.local.port() == other.port()
            && (self.local.ip() == other.ip()
                || self.local.ip().is_unspecified()
                || other.ip().is_unspecified())
    }

    /// Whether there is room for one more half-open connection.
    pub(super) fn takes_syn(&self) -> bool {
        self.half_open.len() < self.backlog && self.takes_established()
    }

    /// Whether there is room for one more that waits to be accepted.
    pub(super) fn takes_established(&self) -> bool {
        self.established.len() < self.backlog
    }

    /// The half-open connection that keeps another one from beginning, if it is only that: the
    /// oldest.
    pub(super) fn in_the_way(&self) -> Option<ConnectionId> {
        let full = self.half_open.len() >= self.backlog && self.takes_established();
        self.half_open.front().copied().filter(|_| full)
    }

    /// A connection begins.
    pub(super) fn begin(&mut self, id: ConnectionId) {
        self.half_open.push_back(id);
    }

    /// A half-open connection is established.
    pub(super) fn establish(&mut self, id: ConnectionId) {
        self.half_open.retain(|&other| other != id);
        self.established.push_back(id);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// A connection is gone that was half open or waited to be accepted.
    pub(super) fn lost(&mut self, id: ConnectionId) {
        self.half_open.retain(|&other| other != id);
        self.established.retain(|&other| other != id);
    }

    /// The connection that has waited longest.
    pub(super) fn accept(&mut self) -> Option<ConnectionId> {
        self.established.pop_front()
    }

    /// Whether no connection waits to be accepted.
    #[cfg(any(test, feature = "sim"))]
    pub(super) fn is_idle(&self) -> bool {
        self.established.is_empty()
    }

    /// Asks to be woken when one is there.
    pub(super) fn wait(&mut self, waker: &Waker) {
        match &mut self.waker {
            Some(known) if known.will_wake(waker) => {}
            known => {
                // One task accepts at a time; a second one takes over, and the first must look
                // again lest it sleep for ever.
                if let Some(old) = known.replace(waker.clone()) {
                    old.wake();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
