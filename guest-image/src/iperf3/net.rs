//! What the server needs of a network: a listener, its connections, and a clock.

use core::fmt;
use core::future::{Future, poll_fn};
use core::net::SocketAddr;
use core::pin::pin;
use core::task::{Context, Poll};
use futures_util::future::{Either, select};
use paceline_stack::time::{Duration, Instant};

/// A listening port and the clock beside it.
pub trait Network {
    /// A connection.
    type Stream: Stream;

    /// The next established connection; cancelling it loses none.
    fn accept(&self) -> impl Future<Output = Self::Stream>;

    /// The time.
    fn now(&self) -> Instant;

    /// Waits until `deadline`.
    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()>;

    /// How long the processor has not been idle, where that is known.
    fn busy(&self) -> Option<Duration> {
        None
    }
}

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// The peer reset it.
    Reset,
    /// The peer stopped acknowledging.
    TimedOut,
    /// This side had closed it.
    Closed,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "connection reset by peer",
            Self::TimedOut => "connection timed out",
            Self::Closed => "connection is closed",
        })
    }
}

/// Settings that a client asks for; none leaves the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// Largest segment, in bytes.
    pub mss_bytes: Option<u16>,
    /// Size of either buffer.
    pub buffer_bytes: Option<usize>,
    /// Whether small segments wait for nothing (TCP_NODELAY).
    pub nodelay: bool,
    /// Congestion control, by name.
    pub congestion: Option<&'a str>,
}

/// Why [`Options`] could not be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// There is no such congestion control.
    Congestion,
    /// Buffers cannot be that large; the most they can be.
    Buffer {
        /// Most bytes a buffer can hold.
        max_bytes: usize,
    },
}

/// What the sender's side of a connection looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Segments sent again.
    pub total_retrans: u64,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Congestion control's name.
    pub congestion: &'static str,
}

/// An established connection. Dropping it closes it: what was queued is still delivered.
///
/// A pending call leaves the task registered for the event it waits for.
pub trait Stream {
    /// This side's address.
    fn local_addr(&self) -> SocketAddr;

    /// The peer's address.
    fn peer_addr(&self) -> SocketAddr;

    /// Copies received bytes to `buf` and returns how many; 0 is the end of the stream.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<Result<usize, StreamError>>;

    /// Queues a copy of the start of `data` and returns how many bytes that is.
    fn poll_write(&mut self, cx: &mut Context<'_>, data: &[u8])
    -> Poll<Result<usize, StreamError>>;

    /// Drops up to `max` received bytes unread and returns how many; 0 is the end of the stream.
    fn poll_discard(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<usize, StreamError>>;

    /// Queues up to `max` bytes of no meaning, without copying them, and returns how many.
    fn poll_send(&mut self, cx: &mut Context<'_>, max: usize) -> Poll<Result<usize, StreamError>>;

    /// Ends the sending direction behind what is queued.
    fn shutdown(&mut self);

    /// Changes settings. What can be met is, whatever is returned.
    fn configure(&mut self, options: &Options<'_>) -> Result<(), OptionError>;

    /// The sender's state.
    fn info(&self) -> Info;
}

/// How long a connection that is being closed may still be read.
const FAREWELL: Duration = Duration::from_secs(1);

/// What a peer may still send while its connection is being closed.
const FAREWELL_BYTES: usize = 1 << 20;

/// Runs `future` for at most `span`; none when that was not enough.
pub(crate) async fn with_timeout<N: Network, F: Future>(
    net: &N,
    span: Duration,
    future: F,
) -> Option<F::Output> {
    let deadline = net.now() + span;
    match select(pin!(future), pin!(net.sleep_until(deadline))).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(((), _)) => None,
    }
}

/// Closes `stream` so that the peer reads all that was sent to it: a close with unread bytes would
/// reset the connection and could destroy our last words on their way (RFC 2525 §2.17).
pub(crate) async fn farewell<N: Network>(net: &N, mut stream: N::Stream) {
    stream.shutdown();
    let mut left = FAREWELL_BYTES;
    let drain = async {
        while left > 0 {
            match poll_fn(|cx| stream.poll_discard(cx, left)).await {
                Ok(len) if len > 0 => left = left.saturating_sub(len),
                _ => return,
            }
        }
    };
    let _ = with_timeout(net, FAREWELL, drain).await;
}
