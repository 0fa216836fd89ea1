//! What sockets call: open, accept, read, write, close (RFC 9293 §3.9.1).

use super::{
    AcceptError, Chunk, Config, ConnectError, ConnectionId, Counters, Info, ListenError, Options,
    PAGE_RETRY, ReadError, Tcp, WriteError,
    connection::{Connection, Failure, Start, State},
    demux::{MAX_CONNECTIONS, Tuple},
    device_share::DeviceQueue,
    isn::Secrets,
    listener::Listener,
    reply::Replies,
    table::Table,
    time_wait::TimeWait,
    timers::TimerQueue,
};
use crate::{
    device::{Page, Slice},
    time::Instant,
};
use alloc::{collections::VecDeque, vec::Vec};
use core::{
    net::{IpAddr, SocketAddr},
    task::{Poll, Waker},
};

/// A listener, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListenerId(usize);

#[cfg(any(test, feature = "sim"))]
impl ListenerId {
    pub(super) fn index(self) -> usize {
        self.0
    }
}

impl<P: Page> Tcp<P> {
    /// No connections yet. `secret` keys initial sequence numbers and ports (RFC 6528 §3).
    pub fn new(secret: [u8; 16]) -> Self {
        Self {
            now: Instant::ZERO,
            config: Config::default(),
            secrets: Secrets::new(secret),
            table: Table::new(),
            time_wait: TimeWait::new(),
            listeners: Vec::new(),
            timers: TimerQueue::default(),
            ready: VecDeque::new(),
            left_off: false,
            replies: Replies::default(),
            queue: DeviceQueue::default(),
            counters: Counters::default(),
            page_waiters: Vec::new(),
            pages_freed: false,
            page_retry: None,
            prune_at: None,
        }
    }

    /// The settings of connections to come.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The settings of connections to come, to be changed.
    pub fn config_mut(&mut self) -> &mut Config {
        &mut self.config
    }

    /// What has been counted over all connections.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Connections and their addresses, local before remote, as `ss -ti` lists them.
    pub fn connections(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr, Info)> {
        self.table.iter().map(|connection| {
            let Tuple {
                local,
                remote,
                local_port,
                remote_port,
            } = connection.tuple;
            (
                SocketAddr::new(local, local_port),
                SocketAddr::new(remote, remote_port),
                connection.info(self.now),
            )
        })
    }

    /// How many connections there are, without those in TIME-WAIT; and how many of these.
    pub fn count(&self) -> (usize, usize) {
        (self.table.len(), self.time_wait.len())
    }

    pub(crate) fn listen(
        &mut self,
        local: SocketAddr,
        backlog: usize,
        options: Options,
    ) -> Result<ListenerId, ListenError> {
        if local.port() == 0 {
            return Err(ListenError::PortZero);
        }
        if let Some(other) = self
            .listeners
            .iter()
            .flatten()
            .find(|other| other.conflicts_with(local))
        {
            return Err(ListenError::AddressInUse(other.local()));
        }
        let listener = Some(Listener::new(local, backlog, options));
        if let Some(free) = self.listeners.iter().position(Option::is_none) {
            self.listeners[free] = listener;
            return Ok(ListenerId(free));
        }
        self.listeners.push(listener);
        Ok(ListenerId(self.listeners.len() - 1))
    }

    /// Ends a listener; connections it holds are reset.
    pub(crate) fn close_listener(&mut self, id: ListenerId) {
        if let Some(listener) = self.listeners.get_mut(id.0) {
            *listener = None;
        }
        let orphans: Vec<usize> = self
            .table
            .iter()
            .filter(|connection| connection.listener == Some(id.0))
            .map(|connection| connection.id.index())
            .collect();
        for index in orphans {
            if let Some(connection) = self.table.at(index) {
                connection.listener = None;
                connection.abort(Failure::Aborted);
            }
            self.settle(index);
        }
    }

    pub(crate) fn poll_accept(
        &mut self,
        id: ListenerId,
        waker: &Waker,
    ) -> Poll<Result<(ConnectionId, SocketAddr, SocketAddr), AcceptError>> {
        let Some(listener) = self.listeners.get_mut(id.0).and_then(Option::as_mut) else {
            return Poll::Ready(Err(AcceptError::Closed));
        };
        let Some(accepted) = listener.accept() else {
            listener.wait(waker);
            return Poll::Pending;
        };
        // One that failed meanwhile has been taken out of the queue.
        let Some(connection) = self.table.get(accepted) else {
            waker.wake_by_ref();
            return Poll::Pending;
        };
        connection.listener = None;
        connection.held = true;
        let Tuple {
            local,
            remote,
            local_port,
            remote_port,
        } = connection.tuple;
        Poll::Ready(Ok((
            accepted,
            SocketAddr::new(local, local_port),
            SocketAddr::new(remote, remote_port),
        )))
    }

    /// Begins a connection from `local` (any port, when that is 0) to `remote`.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        options: Options,
    ) -> Result<ConnectionId, ConnectError> {
        let is_host = match remote.ip() {
            IpAddr::V4(ip) => !ip.is_unspecified() && !ip.is_multicast() && !ip.is_broadcast(),
            IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast(),
        };
        if !is_host || remote.port() == 0 {
            return Err(ConnectError::InvalidAddress(remote));
        }
        if self.table.len() >= self.config.max_connections.min(MAX_CONNECTIONS) {
            return Err(ConnectError::TooManyConnections);
        }
        let mut tuple = Tuple {
            local: local.ip(),
            remote: remote.ip(),
            local_port: local.port(),
            remote_port: remote.port(),
        };
        if tuple.local_port == 0 {
            tuple.local_port = self.free_port(tuple).ok_or(ConnectError::NoPortLeft)?;
        } else if self.table.contains(&tuple, &self.secrets) {
            return Err(ConnectError::AddressInUse);
        }
        let mut iss = self.secrets.initial_sequence(&tuple, now);
        if let Some(closed) = self.time_wait.find(&tuple, &self.secrets) {
            // The peer takes the SYN for a new one only if it comes after the old connection
            // (RFC 6191 §2).
            if !iss.after(closed.snd_nxt) {
                iss = closed.snd_nxt + 65_537;
            }
            self.time_wait.remove(&tuple, &self.secrets);
            self.counters.time_wait_recycled += 1;
        }
        let timestamp_offset = self.secrets.timestamp_offset(&tuple);
        let config = &self.config;
        let id = self.table.insert(&self.secrets, |id| {
            let start = Start {
                id,
                tuple,
                iss,
                timestamp_offset,
                options,
            };
            Connection::new(start, config, now)
        });
        self.counters.active_opens += 1;
        self.settle(id.index());
        Ok(id)
    }

    /// A port for a connection; one whose last connection is in TIME-WAIT only if all are used.
    fn free_port(&mut self, tuple: Tuple) -> Option<u16> {
        let mut second_best = None;
        for local_port in self.secrets.ephemeral_ports(&tuple) {
            let tuple = Tuple {
                local_port,
                ..tuple
            };
            if self.table.contains(&tuple, &self.secrets)
                || self
                    .listeners
                    .iter()
                    .flatten()
                    .any(|listener| listener.takes(tuple.local, local_port))
            {
                continue;
            }
            if self.time_wait.find(&tuple, &self.secrets).is_none() {
                return Some(local_port);
            }
            second_best = second_best.or(Some(local_port));
        }
        second_best
    }

    /// Whether the connection is established, or why it never will be.
    pub(crate) fn poll_connected(
        &mut self,
        id: ConnectionId,
        waker: &Waker,
    ) -> Poll<Result<(), ConnectError>> {
        let Some(connection) = self.table.get(id) else {
            return Poll::Ready(Err(ConnectError::Aborted));
        };
        match connection.state {
            State::SynSent | State::SynReceived => {
                wait(&mut connection.wakers.write, waker);
                Poll::Pending
            }
            _ => match connection.failure {
                Some(failure) => Poll::Ready(Err(failure.into())),
                None => Poll::Ready(Ok(())),
            },
        }
    }

    /// The next bytes; none at the end of the stream.
    pub(crate) fn poll_chunk(
        &mut self,
        id: ConnectionId,
        waker: &Waker,
    ) -> Poll<Result<Option<Chunk<P>>, ReadError>> {
        let Some(connection) = self.table.get(id) else {
            return Poll::Ready(Err(ReadError::Aborted));
        };
        if let Some(chunk) = connection.recv_queue.pop() {
            self.has_read(id.index(), chunk.bytes().len());
            return Poll::Ready(Ok(Some(chunk)));
        }
        Poll::Ready(match poll_end(connection, waker) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(end) => end.map(|()| None),
        })
    }

    /// Copies bytes out: 0 at the end of the stream, or when `out` is empty.
    pub(crate) fn poll_read(
        &mut self,
        id: ConnectionId,
        waker: &Waker,
        out: &mut [u8],
    ) -> Poll<Result<usize, ReadError>> {
        let Some(connection) = self.table.get(id) else {
            return Poll::Ready(Err(ReadError::Aborted));
        };
        let len = connection.recv_queue.read(out);
        if len > 0 {
            self.has_read(id.index(), len);
            return Poll::Ready(Ok(len));
        }
        if out.is_empty() {
            return Poll::Ready(Ok(0));
        }
        poll_end(connection, waker).map_ok(|()| 0)
    }

    /// After reading: the peer may have to hear that there is room.
    fn has_read(&mut self, index: usize, bytes: usize) {
        self.pages_freed = true;
        let Some(connection) = self.table.at(index) else {
            return;
        };
        if self.config.moderate_rcvbuf {
            connection.on_read(self.now, bytes, self.config.max_rcvbuf_bytes);
        }
        if connection.wants_window_update() {
            self.enqueue(index);
        }
    }

    /// Whether there is room to write into.
    fn poll_room(
        &mut self,
        id: ConnectionId,
        waker: &Waker,
    ) -> Poll<Result<&mut Connection<P>, WriteError>> {
        let Some(connection) = self.table.get(id) else {
            return Poll::Ready(Err(WriteError::Aborted));
        };
        if let Some(failure) = connection.failure {
            return Poll::Ready(Err(failure.into()));
        }
        if connection.snd.closed {
            return Poll::Ready(Err(WriteError::Closed));
        }
        match connection.state {
            State::Established | State::CloseWait if connection.send_room() > 0 => {
                return Poll::Ready(Ok(connection));
            }
            State::Established | State::CloseWait => connection.writer_turned_away(),
            State::SynSent | State::SynReceived => {}
            _ => return Poll::Ready(Err(WriteError::Closed)),
        }
        wait(&mut connection.wakers.write, waker);
        Poll::Pending
    }

    /// Copies bytes in, as many as there is room for; `alloc` gives pages.
    pub(crate) fn poll_write(
        &mut self,
        id: ConnectionId,
        waker: &Waker,
        data: &[u8],
        alloc: &mut dyn FnMut() -> Option<P>,
    ) -> Poll<Result<usize, WriteError>> {
        let now = self.now;
        let connection = match self.poll_room(id, waker) {
            Poll::Ready(Ok(connection)) => connection,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        };
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let room = connection.send_room();
        let len = connection.send_queue.append(data, room, alloc);
        if len == 0 {
            self.wait_for_pages(waker);
            return Poll::Pending;
        }
        if room < data.len() {
            connection.writer_turned_away();
        } else {
            connection.send_queue_refilled();
        }
        connection.note_refill(now);
        self.enqueue(id.index());
        Poll::Ready(Ok(len))
    }

    /// Takes a slice in whole, by reference, once there is room for any of it; then `slice` is
    /// none.
    pub(crate) fn poll_write_slice(
        &mut self,
        id: ConnectionId,
        waker: &Waker,
        slice: &mut Option<Slice<P>>,
    ) -> Poll<Result<(), WriteError>> {
        let now = self.now;
        match self.poll_room(id, waker) {
            Poll::Ready(Ok(connection)) => {
                if let Some(slice) = slice.take() {
                    connection.send_queue.push_slice(slice);
                    connection.send_queue_refilled();
                    connection.note_refill(now);
                }
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
        self.enqueue(id.index());
        Poll::Ready(Ok(()))
    }

    /// Whether a writer is worth its while, as `poll` tells it (`POLLOUT`): there is more room than
    /// the first byte that may be written.
    pub(crate) fn poll_writable(
        &mut self,
        id: ConnectionId,
        waker: &Waker,
    ) -> Poll<Result<(), WriteError>> {
        match self.poll_room(id, waker) {
            Poll::Ready(Ok(connection)) if !connection.is_writable() => {
                connection.writer_turned_away();
                wait(&mut connection.wakers.write, waker);
                Poll::Pending
            }
            room => room.map_ok(|_| ()),
        }
    }

    /// A page to write into, once there is room for it.
    pub(crate) fn poll_reserve(
        &mut self,
        id: ConnectionId,
        waker: &Waker,
        alloc: &mut dyn FnMut() -> Option<P>,
    ) -> Poll<Result<P, WriteError>> {
        match self.poll_room(id, waker) {
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
        if let Some(page) = alloc() {
            Poll::Ready(Ok(page))
        } else {
            self.wait_for_pages(waker);
            Poll::Pending
        }
    }

    /// Whether everything written has been acknowledged.
    pub(crate) fn poll_flush(
        &mut self,
        id: ConnectionId,
        waker: &Waker,
    ) -> Poll<Result<(), WriteError>> {
        let Some(connection) = self.table.get(id) else {
            return Poll::Ready(Err(WriteError::Aborted));
        };
        if let Some(failure) = connection.failure {
            return Poll::Ready(Err(failure.into()));
        }
        if connection.send_queue.len() == 0 {
            return Poll::Ready(Ok(()));
        }
        wait(&mut connection.wakers.write, waker);
        Poll::Pending
    }

    /// Closes the sending side once everything written is sent.
    pub(crate) fn shutdown(&mut self, id: ConnectionId) {
        if let Some(connection) = self.table.get(id) {
            connection.close();
            connection.wakers.wake_writer();
            self.settle(id.index());
        }
    }

    /// Resets the connection.
    pub(crate) fn abort(&mut self, id: ConnectionId) {
        if let Some(connection) = self.table.get(id) {
            connection.abort(Failure::Aborted);
            self.settle(id.index());
        }
    }

    /// The application lets go of the connection: it closes in the background; or is reset, when
    /// data that came was never read (RFC 2525 §2.17). `unread` tells of data that the socket
    /// itself still held.
    pub(crate) fn release(&mut self, id: ConnectionId, unread: bool, now: Instant) {
        let fin_timeout = self.config.fin_timeout;
        let Some(connection) = self.table.get(id) else {
            return;
        };
        connection.held = false;
        connection.wakers.read = None;
        connection.wakers.write = None;
        let unread =
            unread || connection.recv_queue.len() > 0 || !connection.out_of_order.is_empty();
        if connection.state == State::SynSent {
            connection.abort(Failure::Aborted);
        } else if unread && connection.state != State::Closed {
            self.counters.abort_on_close += 1;
            connection.abort(Failure::Aborted);
        } else {
            connection.close();
            if connection.state == State::FinWait2 {
                connection.timers.linger = Some(now + fin_timeout);
            }
        }
        connection.recv_queue.clear();
        self.settle(id.index());
    }

    /// What the connection tells of itself.
    pub(crate) fn info(&self, id: ConnectionId) -> Option<Info> {
        self.table
            .peek(id)
            .map(|connection| connection.info(self.now))
    }

    /// Changes a connection's settings.
    pub(crate) fn set_options(
        &mut self,
        id: ConnectionId,
        now: Instant,
        change: impl FnOnce(&mut Options),
    ) {
        if let Some(connection) = self.table.get(id) {
            let keepalive = connection.options.keepalive;
            change(&mut connection.options);
            if connection.options.keepalive != keepalive {
                connection.restart_keepalive(now);
            }
            connection.wake_writer_if_room();
            // Data that Nagle's rule held back may go now.
            self.settle(id.index());
        }
    }

    fn wait_for_pages(&mut self, waker: &Waker) {
        self.page_retry = self.page_retry.or(Some(self.now + PAGE_RETRY));
        if !self.page_waiters.iter().any(|other| other.will_wake(waker)) {
            self.page_waiters.push(waker.clone());
        }
    }
}

/// Where there is nothing to read: whether that is the end.
fn poll_end<P: Page>(connection: &mut Connection<P>, waker: &Waker) -> Poll<Result<(), ReadError>> {
    if connection.is_at_end() {
        return Poll::Ready(Ok(()));
    }
    if let Some(failure) = connection.failure {
        return Poll::Ready(Err(failure.into()));
    }
    if connection.state == State::Closed {
        return Poll::Ready(Ok(()));
    }
    wait(&mut connection.wakers.read, waker);
    Poll::Pending
}

/// Remembers whom to wake. One task waits for each event; another takes its place.
fn wait(place: &mut Option<Waker>, waker: &Waker) {
    match place {
        Some(known) if known.will_wake(waker) => {}
        _ => {
            if let Some(old) = place.replace(waker.clone()) {
                old.wake();
            }
        }
    }
}
