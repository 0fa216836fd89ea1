//! How much received data may wait to be read, and so how wide a window the peer gets: dynamic
//! right-sizing (Fisk and Feng, 2001; the rule is Linux's).
//!
//! The window must hold what the path delivers in a round trip, and the application has to have
//! read that much before the window is widened: who reads slowly does not get more memory. The
//! buffer counts bytes of data; that pages hold them well enough, so that memory stays a small
//! multiple of it, is seen to where they are queued. So, unlike Linux, the window need not be
//! opened step by step to learn what a segment costs.

use super::{
    ack_policy::Round,
    connection::Connection,
    seq::{SeqNum, UnscaledWindow},
};
use crate::{
    device::{Page, RxMemory},
    time::{Duration, Instant},
    wire::tcp::Header,
};

/// What a connection may hold while the device has little memory: two of the largest segments.
pub(super) const SCARCE_BYTES: u32 = 128 << 10;
/// Paths shorter than this need less than twice the window on top (`tcp_rcvbuf_low_rtt`).
const LOW_RTT_US: u64 = 1000;
/// Most bytes that wait in one connection: sequence numbers tell before from after only within
/// half their circle.
const MAX_RCVBUF_BYTES: u32 = 1 << 30;
/// A longer round trip is the clock's fault, not the network's.
const MAX_RTT_US: u64 = 1 << 28;

/// The receive buffer of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveBuffer {
    /// Its size by right-sizing.
    bytes: u32,
    /// What the device had left when a segment last came.
    memory: RxMemory,
    rtt: ReceiverRtt,
    /// Bytes read in the best round trip so far.
    space: u32,
    /// Bytes read in the last round trip.
    last_round_bytes: u32,
    /// Bytes ever read.
    read: u64,
    /// Beginning of the round trip that is being measured, and what had been read by then.
    round: (Instant, u64),
}

/// The round-trip time as a receiver can see it.
#[derive(Clone, Copy, Debug, Default)]
struct ReceiverRtt {
    /// Smoothed, in eighths of a microsecond; 0: not known.
    us_x8: u64,
    /// The echo that was measured last.
    echo: Option<u32>,
    /// The window's edge at some time; it takes a round trip at least until data comes that lies
    /// beyond it.
    window: Option<(SeqNum, Instant)>,
}

impl ReceiverRtt {
    /// A measurement of a round trip.
    fn sample(&mut self, us: u64) {
        let us = us.clamp(1, MAX_RTT_US);
        self.us_x8 = if self.us_x8 == 0 {
            us * 8
        } else {
            self.us_x8 - self.us_x8 / 8 + us
        };
    }

    /// A measurement of a round trip and more.
    fn upper_bound(&mut self, us: u64) {
        let us = us.clamp(1, MAX_RTT_US);
        if self.us_x8 == 0 || us * 8 < self.us_x8 {
            self.us_x8 = us * 8;
        }
    }

    fn us(self) -> Option<u64> {
        (self.us_x8 != 0).then_some(self.us_x8 / 8)
    }
}

impl ReceiveBuffer {
    /// A buffer that starts at `bytes`.
    pub(super) fn new(bytes: u32, now: Instant) -> Self {
        Self {
            bytes,
            memory: RxMemory::Plenty,
            rtt: ReceiverRtt::default(),
            space: 0,
            last_round_bytes: 0,
            read: 0,
            round: (now, 0),
        }
    }

    /// Notes what the device has left.
    pub(super) fn set_memory(&mut self, memory: RxMemory) {
        self.memory = memory;
    }

    /// Whether the device has enough left for buffers to grow.
    pub(super) fn has_plenty(&self) -> bool {
        self.memory == RxMemory::Plenty
    }

    /// The round-trip time in microseconds (`tcpi_rcv_rtt`).
    pub(super) fn rtt_us(&self) -> Option<u32> {
        self.rtt.us().map(|us| us as u32)
    }

    /// Bytes read in the best round trip (`tcpi_rcv_space`).
    pub(super) fn space(&self) -> u32 {
        self.space
    }

    /// The last round trip, once one was measured.
    pub(super) fn last_round(&self) -> Option<Round> {
        let rtt_us = self.rtt_us()?;
        (self.last_round_bytes > 0).then_some(Round {
            rtt_us,
            bytes: self.last_round_bytes,
        })
    }

    /// The application has read `bytes`; `queued` more wait. At the end of a round trip in which
    /// it read more than in any before, the buffer grows. `gap_bytes` is how far what is held
    /// reaches beyond the first gap.
    fn on_read(&mut self, now: Instant, bytes: usize, queued: usize, most: u32, gap_bytes: u32) {
        self.read += bytes as u64;
        let Some(rtt_us) = self.rtt.us() else {
            return;
        };
        let (since, read_before) = self.round;
        let elapsed = now.since(since);
        if elapsed < Duration::from_micros(rtt_us) {
            return;
        }
        self.round = (now, self.read);
        let copied = (self.read - read_before).saturating_sub(queued as u64);
        let copied = copied.min(u64::from(MAX_RCVBUF_BYTES)) as u32;
        // Who pauses ends the round late.
        let share = u128::from(rtt_us) * u128::from(copied) / elapsed.as_micros().max(1);
        self.last_round_bytes = share as u32;
        if copied > self.space {
            let wanted = wanted(copied, self.space, rtt_us) + u64::from(gap_bytes);
            self.space = copied;
            if self.has_plenty() {
                let wanted = u32::try_from(wanted).unwrap_or(MAX_RCVBUF_BYTES);
                self.bytes = self.bytes.max(wanted.min(most));
            }
        }
    }
}

/// The buffer for an application that has read `now` bytes in a round trip of `rtt_us`, and at
/// most `before` in any earlier: each [`MAX_RCVBUF_BYTES`] at most.
///
/// Twice that, as what was read is a round trip old and the window is also needed for what is
/// under way. And when the sender is still speeding up, so much more that it may double again.
fn wanted(now: u32, before: u32, rtt_us: u64) -> u64 {
    let twice = 2 * u64::from(now);
    if rtt_us < LOW_RTT_US {
        return twice + twice * rtt_us / LOW_RTT_US;
    }
    let growth = u64::from(now - before.min(now));
    twice + (2 * twice * growth / u64::from(before.max(1))).min(2 * twice)
}

impl<P: Page> Connection<P> {
    /// The size of the receive buffer: what the application asked for, or right-sized; less while
    /// the device has little memory. The window never shrinks for it, it only ceases to grow.
    pub(super) fn rcvbuf_bytes(&self) -> u32 {
        let bytes = self
            .options
            .rcvbuf_bytes
            .unwrap_or(self.receive_buffer.bytes)
            .min(MAX_RCVBUF_BYTES);
        if self.receive_buffer.has_plenty() {
            bytes
        } else {
            bytes.min(SCARCE_BYTES)
        }
    }

    /// Most memory that received data may take, used or not.
    pub(super) fn max_receive_truesize(&self) -> usize {
        2 * self.rcvbuf_bytes() as usize
    }

    /// Measures the round trip by a segment with `bytes` of data.
    pub(super) fn measure_receiver_rtt(&mut self, now: Instant, header: &Header, bytes: u32) {
        if let Some(peer) = &header.options.timestamps
            && bytes >= self.rcv.mss
            && self.receive_buffer.rtt.echo != Some(peer.echo)
            && let Some(rtt) = self.rtt_from_timestamp(now, header)
        {
            self.receive_buffer.rtt.echo = Some(peer.echo);
            let us = rtt.as_micros() as u64;
            // Where data waits to be read, the peer may have waited for the window.
            if self.recv_queue.len() == 0 {
                self.receive_buffer.rtt.sample(us);
            } else {
                self.receive_buffer.rtt.upper_bound(us);
            }
        }
    }

    /// Measures the round trip by the window: after data in order has come.
    pub(super) fn measure_window_rtt(&mut self, now: Instant) {
        match self.receive_buffer.rtt.window {
            // What lies beyond the edge was not sent before the peer had heard of a later one.
            Some((end, _)) if self.rcv.nxt.before_or_eq(end) => return,
            Some((_, since)) => {
                let us = now.since(since).as_micros() as u64;
                self.receive_buffer.rtt.upper_bound(us);
            }
            None => {}
        }
        self.receive_buffer.rtt.window = Some((self.rcv.adv, now));
    }

    /// The application has read `bytes`: the buffer may have to grow, up to `max_bytes`.
    pub(super) fn on_read(&mut self, now: Instant, bytes: usize, max_bytes: u32) {
        let gap_bytes = self
            .out_of_order
            .end()
            .map_or(0, |end| end.bytes_since(self.rcv.nxt));
        let most = max_bytes.min(MAX_RCVBUF_BYTES);
        let queued = self.recv_queue.len();
        self.receive_buffer
            .on_read(now, bytes, queued, most, gap_bytes);
    }

    /// The window to tell the peer now: the header's field, and the right edge it stands for.
    ///
    /// The edge never moves left (RFC 9293 §3.8.6); it moves right only by steps that are worth
    /// a segment (§3.8.6.2.2).
    pub(super) fn window_to_tell(&self) -> (UnscaledWindow, SeqNum) {
        let grown = self.window_growth();
        let step = self.window_step();
        let edge = if grown >= step {
            self.rcv.adv + grown
        } else {
            self.rcv.adv
        };
        let scale = self.rcv.wscale;
        let bytes = edge.bytes_since(self.rcv.nxt);
        let mut field = scale.compress(bytes);
        // Rounding down must not take back what was given.
        let given = self.rcv.adv.bytes_since(self.rcv.nxt);
        if scale.expand(field) < given {
            field = scale.compress(given.saturating_add(scale.granularity() - 1));
        }
        let edge = self.rcv.nxt + scale.expand(field);
        (field, edge.latest(self.rcv.adv))
    }

    /// How far the right edge could move.
    fn window_growth(&self) -> u32 {
        let free = (self.rcvbuf_bytes() as usize).saturating_sub(self.recv_queue.len());
        let most = self.rcv.wscale.expand(UnscaledWindow(u16::MAX));
        let edge = self.rcv.nxt + (free as u32).min(most);
        edge.bytes_since(self.rcv.adv)
    }

    /// The least step by which the edge moves: two segments, or half the buffer if that is less.
    fn window_step(&self) -> u32 {
        (2 * self.rcv.mss)
            .min(self.rcvbuf_bytes() / 2)
            .max(self.rcv.wscale.granularity())
    }

    /// Whether the peer must be told of a wider window though nothing else is to be said: when it
    /// has less than half the buffer left, and would have twice as much. So a peer never waits
    /// for a window that is there, while a reader who takes a page at a time costs few
    /// acknowledgments; a peer with more left sends, and is told when its data is acknowledged.
    pub(super) fn wants_window_update(&self) -> bool {
        if !self.state.can_receive() {
            return false;
        }
        let left = self.rcv.adv.bytes_since(self.rcv.nxt);
        let growth = self.window_growth();
        left < self.rcvbuf_bytes() / 2 && growth >= left && growth >= self.window_step()
    }
}

#[cfg(test)]
mod tests;
