//! The server's network: Paceline's own stack.

use super::net::{Info, Network, OptionError, Options, Stream, StreamError};
use super::{Limits, PORT, serve};
use crate::executor::Timers;
use core::fmt;
use core::future::pending;
use core::net::SocketAddr;
use core::pin::pin;
use core::task::{Context, Poll, ready};
use embedded_io_async::{BufRead, Read, Write};
use paceline_stack::device::{Device, Page, Slice};
use paceline_stack::net::Net;
use paceline_stack::socket::{self, TcpListener, TcpStream};
use paceline_stack::tcp::{Keepalive, ListenError, ReadError, WriteError};
use paceline_stack::time::{Duration, Instant};

/// Connections that may wait to be accepted: a client opens all of a test's in one go.
const BACKLOG: usize = 128;

/// How a client that has vanished without a word is noticed.
const KEEPALIVE: Keepalive = Keepalive {
    time: Duration::from_secs(30),
    interval: Duration::from_secs(5),
    probes: 6,
};

/// Blocks from this size on are sent by reference; smaller ones are copied together, so that no
/// frame is made of hundreds of slices.
const BY_REFERENCE_BYTES: usize = 1024;

/// What is sent.
const FILLER: u8 = 0x55;

/// Small blocks to copy from.
static SMALL: [u8; BY_REFERENCE_BYTES] = [FILLER; BY_REFERENCE_BYTES];

/// Why a port cannot be served.
#[derive(Debug)]
pub enum OpenError {
    /// It cannot be listened on.
    Listen(ListenError),
    /// The device has no page left for what is sent.
    NoPage,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(error) => error.fmt(f),
            Self::NoPage => f.write_str("the device has no page left"),
        }
    }
}

impl core::error::Error for OpenError {}

/// Serves stock iperf3 clients on [`PORT`], for as long as the task lives.
pub async fn run<D: Device>(net: Net<D>, timers: Timers) {
    match Port::open(&net, &timers, PORT) {
        Ok(port) => match serve(&port, &Limits::default()).await {},
        Err(error) => log::error!(target: "iperf3", "no server: {error}"),
    }
}

/// A listening port of a [`Net`].
pub struct Port<D: Device> {
    net: Net<D>,
    listener: TcpListener<D>,
    timers: Timers,
    filler: Filler<D::Page>,
}

/// How many pages [`Filler`] has: so many that none is in more slots of a queue than Xen can count
/// mappings of it, with several to spare for a device that keeps them long.
const FILLER_PAGES: usize = 8;

/// What is sent, over and over: full pages in turn.
#[derive(Clone, Debug)]
struct Filler<P> {
    pages: [P; FILLER_PAGES],
    next: usize,
}

impl<P: Page> Filler<P> {
    /// None when the device has not as many pages left.
    fn new(mut alloc: impl FnMut() -> Option<P>) -> Option<Self> {
        let mut pages = heapless::Vec::<P, FILLER_PAGES>::new();
        for _ in 0..FILLER_PAGES {
            let mut page = alloc()?;
            let spare = page.spare_mut();
            spare.fill(FILLER);
            let len = spare.len();
            page.commit(len);
            pages.push(page).ok()?;
        }
        let pages = pages.into_array().ok()?;
        Some(Self { pages, next: 0 })
    }

    /// Up to `max` bytes.
    fn slice(&self, max: usize) -> Slice<P> {
        Slice::new(self.pages[self.next].clone(), 0..max)
    }

    /// The slice has been taken.
    fn advance(&mut self) {
        self.next = (self.next + 1) % FILLER_PAGES;
    }
}

impl<D: Device> Port<D> {
    /// Listens on `port` of all addresses.
    pub fn open(net: &Net<D>, timers: &Timers, port: u16) -> Result<Self, OpenError> {
        let filler = Filler::new(|| net.with(|stack| stack.device_mut().alloc_page()))
            .ok_or(OpenError::NoPage)?;
        let listener = TcpListener::bind_port(net, port, BACKLOG).map_err(OpenError::Listen)?;
        Ok(Self {
            net: net.clone(),
            listener,
            timers: timers.clone(),
            filler,
        })
    }
}

impl<D: Device> fmt::Debug for Port<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

impl<D: Device> Network for Port<D> {
    type Stream = Connection<D>;

    async fn accept(&self) -> Connection<D> {
        match self.listener.accept().await {
            Ok((stream, _)) => {
                stream.set_keepalive(Some(KEEPALIVE));
                // Control messages must not wait for each other's delayed ACKs; of a data
                // connection, the client decides.
                stream.set_nodelay(true);
                Connection {
                    stream,
                    filler: self.filler.clone(),
                    max_buffer_bytes: self.net.with(|stack| stack.tcp().config().max_rcvbuf_bytes),
                }
            }
            // Only a listener that was closed fails, and this one is not.
            Err(error) => {
                log::error!(target: "iperf3", "accept: {error}");
                pending().await
            }
        }
    }

    fn now(&self) -> Instant {
        self.timers.now()
    }

    async fn sleep_until(&self, deadline: Instant) {
        self.timers.sleep_until(deadline).await;
    }
}

/// A connection of a [`Port`].
pub struct Connection<D: Device> {
    stream: TcpStream<D>,
    filler: Filler<D::Page>,
    max_buffer_bytes: u32,
}

impl<D: Device> fmt::Debug for Connection<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

// The socket's futures keep nothing between polls and leave their waker with the connection:
// making one for each poll loses neither data nor wake-ups.
impl<D: Device> Stream for Connection<D> {
    fn local_addr(&self) -> SocketAddr {
        self.stream.local_addr()
    }

    fn peer_addr(&self) -> SocketAddr {
        self.stream.peer_addr()
    }

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<Result<usize, StreamError>> {
        let read = pin!(self.stream.read(buf)).poll(cx);
        read.map_err(from_socket)
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, StreamError>> {
        let write = pin!(self.stream.write(data)).poll(cx);
        write.map_err(from_socket)
    }

    fn poll_discard(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<usize, StreamError>> {
        let shown = pin!(self.stream.fill_buf()).poll(cx).map_ok(<[u8]>::len);
        let len = ready!(shown.map_err(from_socket))?.min(max);
        self.stream.consume(len);
        Poll::Ready(Ok(len))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, max: usize) -> Poll<Result<usize, StreamError>> {
        if let Some(small) = SMALL.get(..max) {
            return self.poll_write(cx, small);
        }
        let slice = self.filler.slice(max);
        let len = slice.len();
        let write = pin!(self.stream.write_slice(slice)).poll(cx);
        ready!(write.map_err(from_write))?;
        self.filler.advance();
        Poll::Ready(Ok(len))
    }

    fn shutdown(&mut self) {
        self.stream.shutdown();
    }

    fn configure(&mut self, options: &Options<'_>) -> Result<(), OptionError> {
        let &Options {
            mss_bytes,
            buffer_bytes,
            nodelay,
            congestion,
        } = options;
        self.stream.set_nodelay(nodelay);
        if mss_bytes.is_some() {
            self.stream.set_mss(mss_bytes);
        }
        if let Some(bytes) = buffer_bytes {
            let max_bytes = self.max_buffer_bytes;
            let Some(bytes) = u32::try_from(bytes)
                .ok()
                .filter(|bytes| *bytes <= max_bytes)
            else {
                let max_bytes = max_bytes as usize;
                return Err(OptionError::Buffer { max_bytes });
            };
            self.stream.set_sndbuf(bytes);
            self.stream.set_rcvbuf(bytes);
        }
        match congestion {
            Some(name) if name != self.info().congestion => Err(OptionError::Congestion),
            _ => Ok(()),
        }
    }

    fn info(&self) -> Info {
        self.stream.info().map_or_else(Info::default, |info| Info {
            total_retrans: info.total_retrans,
            cwnd_bytes: u64::from(info.cwnd_bytes),
            congestion: info.congestion_control,
        })
    }
}

fn from_socket(error: socket::StreamError) -> StreamError {
    match error {
        socket::StreamError::Read(ReadError::TimedOut)
        | socket::StreamError::Write(WriteError::TimedOut) => StreamError::TimedOut,
        socket::StreamError::Read(ReadError::Aborted)
        | socket::StreamError::Write(WriteError::Aborted | WriteError::Closed) => {
            StreamError::Closed
        }
        _ => StreamError::Reset,
    }
}

fn from_write(error: WriteError) -> StreamError {
    from_socket(socket::StreamError::Write(error))
}
