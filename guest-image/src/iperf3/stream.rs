//! Data connections: bytes sent or received by reference, and counted.

use super::net::{Info, Network, Stream, StreamError};
use super::params::Params;
use super::results::StreamTotals;
use core::cell::{Cell, RefCell};
use core::convert::Infallible;
use core::future::{pending, poll_fn};
use core::task::{Context, Poll};
use paceline_stack::time::{Duration, Instant};

/// What a stream may move before others get their turn.
const TURN_BYTES: usize = 256 << 10;

/// What one call costs of a turn at least, so that tiny blocks make no endless one.
const CALL_BYTES: usize = 512;

/// What all streams of a test share.
#[derive(Debug)]
pub(crate) struct Plan {
    block_bytes: usize,
    rate_bps: Option<u64>,
    /// Bytes after which senders stop, all together; none when the client ends the test.
    limit_bytes: Option<u64>,
    sent_bytes: Cell<u64>,
    start: Instant,
}

impl Plan {
    /// The plan of a test that starts now.
    pub(crate) fn new(params: &Params, start: Instant) -> Self {
        Self {
            block_bytes: params.block_bytes,
            rate_bps: params.rate_bps,
            // The client may leave out other bytes than this side does: with some left out, only
            // the client knows when it has enough.
            limit_bytes: params.limit_bytes.filter(|_| params.omit.is_zero()),
            sent_bytes: Cell::new(0),
            start,
        }
    }

    fn is_reached(&self) -> bool {
        self.limit_bytes
            .is_some_and(|limit| self.sent_bytes.get() >= limit)
    }

    /// When a stream that has sent `bytes` may send its next block.
    fn due(&self, bytes: u64) -> Option<Instant> {
        let rate_bps = self.rate_bps?;
        let us = u128::from(bytes) * 8 * 1_000_000 / u128::from(rate_bps.max(1));
        let span = Duration::from_micros(u64::try_from(us).unwrap_or(u64::MAX));
        Some(self.start + span)
    }
}

/// What a stream did in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) bytes: u64,
    pub(crate) retransmits: u64,
    pub(crate) cwnd_bytes: u64,
}

/// A data connection and its counters.
#[derive(Debug)]
pub(crate) struct DataStream<S> {
    id: u32,
    sends: bool,
    socket: RefCell<S>,
    /// Bytes moved since the test started.
    bytes: Cell<u64>,
    /// Where counting started.
    base: Cell<Mark>,
    /// Where the current interval started.
    interval: Cell<Mark>,
}

/// Counters at a point in time.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    bytes: u64,
    retransmits: u64,
}

impl<S: Stream> DataStream<S> {
    /// Takes the data connection accepted `index`-th, from 0.
    pub(crate) fn new(index: usize, sends: bool, socket: S) -> Self {
        // Number 2 is skipped: stock iperf3 does, and compares numbers.
        let id = if index == 0 { 1 } else { index as u32 + 2 };
        Self {
            id,
            sends,
            socket: RefCell::new(socket),
            bytes: Cell::new(0),
            base: Cell::new(Mark::default()),
            interval: Cell::new(Mark::default()),
        }
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Whether this side sends.
    pub(crate) fn sends(&self) -> bool {
        self.sends
    }

    /// The connection.
    pub(crate) fn socket(&self) -> &RefCell<S> {
        &self.socket
    }

    /// Bytes moved since the test started.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// The sender's state.
    pub(crate) fn info(&self) -> Info {
        self.socket.borrow().info()
    }

    /// Forgets what was counted so far.
    pub(crate) fn reset(&self) {
        let mark = self.mark();
        self.base.set(mark);
        self.interval.set(mark);
    }

    /// Ends an interval and starts the next.
    pub(crate) fn take_interval(&self) -> Interval {
        let now = self.mark();
        let then = self.interval.replace(now);
        Interval {
            bytes: now.bytes - then.bytes,
            retransmits: now.retransmits.saturating_sub(then.retransmits),
            cwnd_bytes: self.info().cwnd_bytes,
        }
    }

    /// What counts.
    pub(crate) fn totals(&self) -> StreamTotals {
        let now = self.mark();
        let base = self.base.get();
        StreamTotals {
            id: self.id,
            bytes: now.bytes - base.bytes,
            retransmits: self
                .sends
                .then(|| now.retransmits.saturating_sub(base.retransmits)),
        }
    }

    /// Sends or receives until the connection fails.
    pub(crate) async fn run<N: Network<Stream = S>>(
        &self,
        net: &N,
        plan: &Plan,
    ) -> Result<Infallible, StreamError> {
        if self.sends {
            self.send(net, plan).await
        } else {
            poll_fn(|cx| self.poll_receive(cx)).await?;
            // The client has no more to say here. What it means by that it says on the control
            // connection.
            pending().await
        }
    }

    /// Counts what has been received but not yet been looked at.
    pub(crate) fn receive_rest(&self, cx: &mut Context<'_>) {
        let mut socket = self.socket.borrow_mut();
        // What a receive buffer can hold, at most.
        let mut left = 64 << 20;
        while left > 0 {
            match socket.poll_discard(cx, left) {
                Poll::Ready(Ok(len)) if len > 0 => {
                    self.count(len);
                    left = left.saturating_sub(len);
                }
                _ => return,
            }
        }
    }

    async fn send<N: Network<Stream = S>>(
        &self,
        net: &N,
        plan: &Plan,
    ) -> Result<Infallible, StreamError> {
        let mut in_block = 0;
        loop {
            match poll_fn(|cx| self.poll_send(cx, net, plan, &mut in_block)).await? {
                SendPause::Until(due) => net.sleep_until(due).await,
                SendPause::ForEver => pending().await,
            }
        }
    }

    /// Sends until there is reason to pause. `in_block` is what is left of the current block.
    fn poll_send<N: Network<Stream = S>>(
        &self,
        cx: &mut Context<'_>,
        net: &N,
        plan: &Plan,
        in_block: &mut usize,
    ) -> Poll<Result<SendPause, StreamError>> {
        let mut socket = self.socket.borrow_mut();
        let mut turn = TURN_BYTES;
        while turn > 0 {
            if *in_block == 0 {
                if plan.is_reached() {
                    return Poll::Ready(Ok(SendPause::ForEver));
                }
                if let Some(due) = plan.due(self.bytes.get())
                    && due > net.now()
                {
                    return Poll::Ready(Ok(SendPause::Until(due)));
                }
                *in_block = plan.block_bytes;
            }
            let len = match socket.poll_send(cx, *in_block) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(StreamError::Closed)),
                Poll::Ready(Ok(len)) => len.min(*in_block),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            };
            *in_block -= len;
            self.count(len);
            plan.sent_bytes.set(plan.sent_bytes.get() + len as u64);
            turn = turn.saturating_sub(len.max(CALL_BYTES));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Receives until the end of the stream.
    fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        let mut socket = self.socket.borrow_mut();
        let mut turn = TURN_BYTES;
        while turn > 0 {
            match socket.poll_discard(cx, turn) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(len)) => {
                    self.count(len);
                    turn = turn.saturating_sub(len.max(CALL_BYTES));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn count(&self, len: usize) {
        self.bytes.set(self.bytes.get() + len as u64);
    }

    fn mark(&self) -> Mark {
        Mark {
            bytes: self.bytes.get(),
            retransmits: if self.sends {
                self.info().total_retrans
            } else {
                0
            },
        }
    }
}

/// Why a sender waits for something else than room.
enum SendPause {
    /// It is ahead of its rate.
    Until(Instant),
    /// The test's bytes are sent.
    ForEver,
}
