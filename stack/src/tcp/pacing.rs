//! Pacing: data leaves no faster than the congestion window makes sense of, so that a window that
//! opens at once does not leave in one burst (RFC 9002 §7.7 has the same for QUIC; the rates are
//! Linux's).
//!
//! Each packet has an earliest departure time, one packet's time after that of the packet before
//! it. A timer for each packet would cost more than it gives, in a guest above all, so departures
//! within [`QUANTUM_NS`] of now leave now: a burst lasts as long as the largest packet that
//! [`super::tso`] makes, and a path with a round trip of that length or less is not paced at all.
//! Flows that are ahead of their time by more are held until it has come, to a grid of
//! [`GRID_US`] that they share: however many they are, the timer wakes the loop no oftener.

use super::{
    congestion::CongestionWindow,
    rate::{Rate, nanoseconds},
};
use crate::time::Instant;

/// How far ahead of its time data may leave.
const QUANTUM_NS: u64 = 1_000_000;
/// Held flows are looked at when the clock passes a multiple of this.
const GRID_US: u64 = 500;
/// Round-trip time to assume before the first sample, as Linux does.
const UNKNOWN_RTT_US: u64 = 1000;

/// By how much the pacing rate exceeds cwnd / srtt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ratios {
    /// In the first doublings of slow start, in hundredths.
    pub(super) ss_percent: u32,
    /// From half of ssthresh on, in hundredths.
    pub(super) ca_percent: u32,
}

impl Ratios {
    /// The rate that sends a window in a round-trip time, and so much more that pacing does not
    /// keep the window from growing. Slow start's last doubling has the lower rate already: it
    /// must not overshoot what the threshold says of the path.
    pub(super) fn rate(
        self,
        window: &CongestionWindow,
        in_flight_bytes: u32,
        srtt_us: Option<u32>,
    ) -> Rate {
        let Self {
            ss_percent,
            ca_percent,
        } = self;
        let percent = if window.cwnd < window.ssthresh / 2 {
            ss_percent
        } else {
            ca_percent
        };
        let bytes = u64::from(window.cwnd.max(in_flight_bytes)) * u64::from(percent);
        let rtt_us = srtt_us.map_or(UNKNOWN_RTT_US, |us| u64::from(us.max(1)));
        Rate::of(bytes, rtt_us.saturating_mul(100))
    }
}

/// When a flow's next packet may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacer {
    /// Its earliest departure time.
    next_ns: u64,
    /// What may still leave before it.
    unpaced_bytes: u32,
    /// Whether the flow has run ahead of its time and waits for it.
    is_holding: bool,
    /// Since when the flow has had data that only its pacing or the device holds back.
    held_since_ns: Option<u64>,
}

impl Pacer {
    /// Until when the next packet is held; none: it may leave.
    pub(super) fn holds_until(&mut self, now: Instant) -> Option<Instant> {
        if self.unpaced_bytes > 0 {
            self.is_holding = false;
            return None;
        }
        let now_ns = nanoseconds(now);
        let ahead_ns = if self.is_holding { 0 } else { QUANTUM_NS };
        self.is_holding = self.next_ns > now_ns.saturating_add(ahead_ns);
        self.is_holding.then(|| {
            let at_us = self.next_ns.div_ceil(1000);
            let on_grid_us = at_us.checked_next_multiple_of(GRID_US);
            Instant::from_micros(on_grid_us.unwrap_or(u64::MAX))
        })
    }

    /// Nothing is in flight: what a connection may send at its start in one burst
    /// ([`CongestionWindow::initial`]), it may send so now, if it has not just done so: an answer
    /// that fits does not dawdle. It counts, so that the rate is kept in the long run.
    pub(super) fn rested(&mut self, now: Instant, initial_window_bytes: u32) {
        if self.next_ns <= nanoseconds(now) {
            self.unpaced_bytes = initial_window_bytes;
        }
    }

    /// There is data that may go, but for the pacing rate or for what is in the device.
    pub(super) fn held(&mut self, now: Instant) {
        let since_ns = nanoseconds(now).saturating_sub(QUANTUM_NS);
        self.held_since_ns.get_or_insert(since_ns.max(self.next_ns));
    }

    /// There is none, or something else holds it: what is not sent now is not made up for.
    pub(super) fn not_held(&mut self) {
        self.held_since_ns = None;
    }

    /// Notes that `bytes` bytes of payload left.
    ///
    /// A flow that comes late for want of data or of window may catch up on a quantum and no more.
    /// One that came late because the timer did, as on a processor that is shared with others, or
    /// the device, has the rate due all the same: otherwise each delay would cost throughput, and
    /// the rate, which is made from what comes through, would follow. The congestion window bounds
    /// the burst.
    pub(super) fn sent(&mut self, now: Instant, bytes: u32, rate: Rate) {
        self.unpaced_bytes = self.unpaced_bytes.saturating_sub(bytes);
        let earliest_ns = nanoseconds(now).saturating_sub(QUANTUM_NS);
        let from_ns = self.next_ns.max(self.held_since_ns.unwrap_or(earliest_ns));
        self.next_ns = from_ns.saturating_add(rate.ns_for(bytes));
        if self.next_ns >= earliest_ns {
            self.held_since_ns = None;
        }
    }

    /// Whether a path of this round-trip time is paced: bursts are short against it.
    pub(super) fn spaces(srtt_us: Option<u32>) -> bool {
        srtt_us.is_some_and(|us| u64::from(us) * 1000 > 2 * QUANTUM_NS)
    }
}

#[cfg(test)]
mod tests;
