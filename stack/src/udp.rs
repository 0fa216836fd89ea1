//! UDP (RFC 768): ports and receive queues.

use crate::{
    device::{Page, Slice},
    ip::{IcmpError, IcmpErrorKind, SendError},
};
use alloc::{collections::VecDeque, vec::Vec};
use core::{
    fmt,
    net::SocketAddr,
    task::{Context, Waker},
};

/// Longest payload: what an IPv4 packet holds.
pub const MAX_PAYLOAD_BYTES: usize = 65_535 - 20 - 8;

/// Default bound on what a socket's receive queue holds on to, in bytes of memory.
pub const DEFAULT_RECV_LIMIT_BYTES: usize = 512 * 1024;

/// What a slice is charged: the page it holds on to, however few of its bytes are used.
const SLICE_CHARGE_BYTES: usize = 4096;

/// Ports given to sockets that do not ask for one (RFC 6335 §6).
const EPHEMERAL_PORTS: core::ops::RangeInclusive<u16> = 49_152..=65_535;

/// Why an operation on a UDP socket failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UdpError {
    /// Another socket has the port.
    AddressInUse,
    /// The address is not ours.
    AddressNotAvailable,
    /// The socket has no peer: [`crate::socket::UdpSocket::connect`] was not called.
    NotConnected,
    /// Administratively prohibited, says a router.
    Prohibited,
    /// The peer has no socket at the port.
    Refused,
    /// The network layer does not send it.
    Send(SendError),
    /// More than a datagram holds.
    TooLong {
        /// The most it holds, in bytes.
        max_bytes: usize,
        /// What was to be sent, in bytes.
        got_bytes: usize,
    },
}

impl fmt::Display for UdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddressInUse => f.write_str("port in use"),
            Self::AddressNotAvailable => f.write_str("address not ours"),
            Self::NotConnected => f.write_str("not connected"),
            Self::Prohibited => f.write_str("administratively prohibited"),
            Self::Refused => f.write_str("peer has no socket at the port"),
            Self::Send(error) => error.fmt(f),
            Self::TooLong {
                max_bytes,
                got_bytes,
            } => write!(f, "expected at most {max_bytes} bytes, got {got_bytes}"),
        }
    }
}

impl core::error::Error for UdpError {}

/// One task that waits.
#[derive(Debug, Default)]
pub(crate) struct WakerSlot(Option<Waker>);

impl WakerSlot {
    /// Registers the task of `context`. Another one that waits there is woken, to wait anew.
    pub(crate) fn register(&mut self, context: &Context<'_>) {
        let waker = context.waker();
        match &self.0 {
            Some(old) if old.will_wake(waker) => {}
            _ => {
                self.wake();
                self.0 = Some(waker.clone());
            }
        }
    }

    /// Wakes the task, if one waits.
    pub(crate) fn wake(&mut self) {
        if let Some(waker) = self.0.take() {
            waker.wake();
        }
    }
}

/// The start of a queued datagram.
#[derive(Clone, Copy, Debug)]
struct Head {
    from: SocketAddr,
    slices: usize,
}

/// A socket's state.
#[derive(Debug)]
pub(crate) struct Socket<P> {
    port: u16,
    pub(crate) remote: Option<SocketAddr>,
    heads: VecDeque<Head>,
    slices: VecDeque<Slice<P>>,
    pub(crate) recv_limit_bytes: usize,
    error: Option<UdpError>,
    pub(crate) recv_waker: WakerSlot,
    pub(crate) send_waker: WakerSlot,
}

impl<P: Page> Socket<P> {
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// An error that came in since the last call.
    pub(crate) fn take_error(&mut self) -> Option<UdpError> {
        self.error.take()
    }

    /// Takes out the oldest datagram: its sender, and its slices.
    pub(crate) fn pop(&mut self) -> Option<(SocketAddr, impl Iterator<Item = Slice<P>>)> {
        let Head { from, slices } = self.heads.pop_front()?;
        Some((from, self.slices.drain(..slices)))
    }

    fn push(&mut self, from: SocketAddr, slices: impl Iterator<Item = Slice<P>>) -> Delivery {
        let before = self.slices.len();
        self.slices.extend(slices);
        let slices = self.slices.len() - before;
        // An empty datagram counts as one slice, so that they are bounded too.
        let charge = (self.slices.len() + self.heads.len()) * SLICE_CHARGE_BYTES;
        if charge >= self.recv_limit_bytes && !self.heads.is_empty() {
            self.slices.truncate(before);
            return Delivery::Full;
        }
        self.heads.push_back(Head { from, slices });
        self.recv_waker.wake();
        Delivery::Queued
    }
}

/// What became of a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The socket's queue is full.
    Full,
    /// No socket has the port.
    NoPort,
    /// It is in a queue.
    Queued,
}

/// All UDP sockets of a stack.
#[derive(Debug)]
pub(crate) struct Udp<P> {
    sockets: Vec<Option<Socket<P>>>,
    /// Where the search for an ephemeral port goes on.
    next_port: u16,
    /// Whether a socket waits to send.
    pub(crate) send_waiting: bool,
}

impl<P: Page> Udp<P> {
    /// No sockets. Ephemeral ports begin at a place chosen by `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        let (first, last) = (*EPHEMERAL_PORTS.start(), *EPHEMERAL_PORTS.end());
        let count = u64::from(last - first) + 1;
        Self {
            sockets: Vec::new(),
            next_port: first + (seed % count) as u16,
            send_waiting: false,
        }
    }

    /// Opens a socket at `port`, or at one that is free when `port` is zero. A port can be
    /// shared with sockets that are connected, to which other datagrams do not go.
    pub(crate) fn bind(&mut self, port: u16) -> Result<usize, UdpError> {
        let port = match port {
            0 => self.free_port().ok_or(UdpError::AddressInUse)?,
            port if self.is_open(port) => return Err(UdpError::AddressInUse),
            port => port,
        };
        let socket = Some(Socket {
            port,
            remote: None,
            heads: VecDeque::new(),
            slices: VecDeque::new(),
            recv_limit_bytes: DEFAULT_RECV_LIMIT_BYTES,
            error: None,
            recv_waker: WakerSlot::default(),
            send_waker: WakerSlot::default(),
        });
        if let Some(index) = self.sockets.iter().position(Option::is_none) {
            self.sockets[index] = socket;
            return Ok(index);
        }
        self.sockets.push(socket);
        Ok(self.sockets.len() - 1)
    }

    /// Closes a socket.
    pub(crate) fn close(&mut self, id: usize) {
        if let Some(socket) = self.sockets.get_mut(id) {
            *socket = None;
        }
    }

    /// The socket that [`Udp::bind`] called `id`.
    pub(crate) fn socket(&mut self, id: usize) -> Option<&mut Socket<P>> {
        self.sockets.get_mut(id)?.as_mut()
    }

    /// Takes in a datagram: from whom, to which port, and its payload.
    pub(crate) fn input(
        &mut self,
        from: SocketAddr,
        port: u16,
        slices: impl Iterator<Item = Slice<P>>,
    ) -> Delivery {
        let fits = |socket: &&mut Socket<P>| {
            socket.port == port && socket.remote.is_none_or(|remote| remote == from)
        };
        self.sockets
            .iter_mut()
            .flatten()
            .filter(fits)
            .max_by_key(|socket| socket.remote.is_some())
            .map_or(Delivery::NoPort, |socket| socket.push(from, slices))
    }

    /// Takes in an ICMP error; true when a socket may have sent the quoted datagram. Only a
    /// connected socket is told (RFC 1122 §4.1.3.3): others talk to many.
    pub(crate) fn icmp_error(&mut self, error: &IcmpError) -> bool {
        let remote = SocketAddr::new(error.remote, error.remote_port);
        let mut known = false;
        for socket in self.sockets.iter_mut().flatten() {
            if socket.port != error.local_port || socket.remote.is_some_and(|r| r != remote) {
                continue;
            }
            known = true;
            let told = match error.kind {
                IcmpErrorKind::Refused => UdpError::Refused,
                IcmpErrorKind::Prohibited => UdpError::Prohibited,
                IcmpErrorKind::PacketTooBig { .. } | IcmpErrorKind::Unreachable => continue,
            };
            if socket.remote.is_some() {
                socket.error = Some(told);
                socket.recv_waker.wake();
                socket.send_waker.wake();
            }
        }
        known
    }

    /// Wakes the tasks that wait to send: there may be room now.
    pub(crate) fn wake_senders(&mut self) {
        if core::mem::take(&mut self.send_waiting) {
            for socket in self.sockets.iter_mut().flatten() {
                socket.send_waker.wake();
            }
        }
    }

    /// Whether a socket that is not connected has `port`.
    fn is_open(&self, port: u16) -> bool {
        let open = |socket: &Socket<P>| socket.port == port && socket.remote.is_none();
        self.sockets.iter().flatten().any(open)
    }

    fn free_port(&mut self) -> Option<u16> {
        for _ in EPHEMERAL_PORTS {
            let port = self.next_port;
            self.next_port = match port.checked_add(1) {
                Some(next) => next,
                None => *EPHEMERAL_PORTS.start(),
            };
            if !self.sockets.iter().flatten().any(|s| s.port == port) {
                return Some(port);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
