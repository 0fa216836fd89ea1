//! What a socket could do at once, without doing it: what `poll` tells.

use super::{ConnectionId, ListenerId, Tcp, connection::State};
use crate::device::Page;

/// What a connection could do at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readiness {
    /// Reading returns: with data, the end of the stream, or a failure.
    pub(crate) readable: bool,
    /// Writing returns: it is worth while, or would fail.
    pub(crate) writable: bool,
    /// The peer has closed its side.
    pub(crate) peer_closed: bool,
    /// Nothing can be read or written any more.
    pub(crate) closed: bool,
    /// It ended otherwise than by both sides closing it.
    pub(crate) failed: bool,
}

impl<P: Page> Tcp<P> {
    /// What a connection could do at once.
    pub(crate) fn readiness(&self, id: ConnectionId) -> Readiness {
        let Some(connection) = self.table.peek(id) else {
            return Readiness::default();
        };
        let failed = connection.failure.is_some();
        let closed = connection.state == State::Closed;
        let at_end = connection.is_at_end();
        let peer_closed = connection
            .rcv
            .fin
            .is_some_and(|fin| connection.rcv.nxt.after(fin));
        let may_write = match connection.state {
            State::SynSent | State::SynReceived => false,
            _ => connection.snd.closed || connection.is_writable(),
        };
        Readiness {
            readable: connection.recv_queue.len() > 0 || at_end || failed || closed,
            writable: may_write || failed || closed,
            peer_closed,
            closed,
            failed,
        }
    }

    /// Whether a connection waits to be accepted.
    pub(crate) fn may_accept(&self, id: ListenerId) -> bool {
        let listener = self.listeners.get(id.index()).and_then(Option::as_ref);
        listener.is_some_and(|listener| !listener.is_idle())
    }
}
