//! Whether the congestion window is what limits the sender: a window that nothing tries must not
//! grow, and says less and less about the path the longer it is not tried.
//!
//! The rules are Linux's, which are RFC 2861's. RFC 7661 would keep an unused window whole for
//! five minutes and cut it at once after a loss; the second half is done here too
//! ([`CwndUsage::used_bytes`]), the first is not: a path that has not been tried for minutes may
//! have any number of new flows on it, and a sender whose data is not always paced would burst
//! into it with the whole window.

use super::{congestion::CongestionWindow, seq::SeqNum};
use crate::time::{Duration, Instant};

/// How much of the window is used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CwndUsage {
    limited: bool,
    /// Whether it would have been, had the device or pacing not held data back.
    held_back: bool,
    /// Most in flight in this round.
    max_in_flight_bytes: u32,
    /// snd_nxt when this round began.
    round_end: Option<SeqNum>,
    /// Most in flight since `full_at`.
    used_bytes: u32,
    /// When the window last was full, or was cut for not being so.
    full_at: Instant,
}

/// The end of a burst: nothing more may go, or nothing more is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct BurstEnd {
    pub(super) now: Instant,
    pub(super) in_flight_bytes: u32,
    /// Whether the window stopped it.
    pub(super) is_cwnd_limited: bool,
    /// Whether it ended for want of data.
    pub(super) is_app_limited: bool,
    pub(super) una: SeqNum,
    pub(super) nxt: SeqNum,
}

impl CwndUsage {
    /// Notes the end of a burst.
    pub(super) fn on_burst_end(&mut self, burst: &BurstEnd) {
        let &BurstEnd {
            now,
            in_flight_bytes,
            is_cwnd_limited,
            is_app_limited,
            una,
            nxt,
        } = burst;
        let new_round = self.round_end.is_none_or(|end| una.after_or_eq(end));
        self.held_back &= !new_round;
        if new_round
            || is_cwnd_limited
            || (!self.limited && in_flight_bytes > self.max_in_flight_bytes)
        {
            self.limited = is_cwnd_limited;
            self.max_in_flight_bytes = in_flight_bytes;
            self.round_end = Some(nxt);
        }
        self.used_bytes = self.used_bytes.max(in_flight_bytes);
        // A device or a peer that does not take more is no reason to cut the window: it may take
        // more the moment after, and the window's rate is what the device's share is set by.
        if is_cwnd_limited || !is_app_limited {
            self.used_bytes = 0;
            self.full_at = now;
        }
    }

    /// Cuts a window of which the application has used only a part for a whole `rto`: half-way to
    /// that part (RFC 2861 §3). The threshold remembers three quarters of the window, so that slow
    /// start soon brings it back. To be called while nothing is being recovered.
    pub(super) fn decay(&mut self, window: &mut CongestionWindow, now: Instant, rto: Duration) {
        if now.since(self.full_at) < rto {
            return;
        }
        let used = self.used_bytes.max(window.initial());
        if used < window.cwnd {
            window.remember();
            window.cwnd -= (window.cwnd - used) / 2;
        }
        self.used_bytes = 0;
        self.full_at = now;
    }

    /// Cuts the window when data is about to be sent with nothing in flight, the last having been
    /// sent at `sent_at`: to half for every `rto` since, down to the initial window (RFC 2861 §3;
    /// RFC 5681 §4.1 would go there at once).
    pub(super) fn restart(
        &mut self,
        window: &mut CongestionWindow,
        now: Instant,
        sent_at: Instant,
        rto: Duration,
    ) {
        // Not twice, when it is not sent after all.
        let idle = now.since(sent_at.max(self.full_at));
        if idle <= rto {
            return;
        }
        window.remember();
        let halvings = idle.as_micros().saturating_sub(1) / rto.as_micros().max(1);
        let shift = u32::try_from(halvings).unwrap_or(u32::MAX).min(31);
        let least = window.initial().min(window.cwnd);
        window.cwnd = (window.cwnd >> shift).max(least);
        self.used_bytes = 0;
        self.full_at = now;
    }

    /// Notes that data waited at the end of a burst for the device, or for its time to leave.
    pub(super) fn held_back(&mut self) {
        self.held_back = true;
    }

    /// Whether an acknowledgment may widen the window. In slow start the window may run ahead of
    /// what is used by a factor of two; and always, as far as data waits for the device or for its
    /// time to leave. Such a flow never fills its window, and where its limit there comes from the
    /// window, neither would ever grow. RFC 7661 §4.2 has the same bound for windows that
    /// applications leave unused.
    pub(super) fn may_grow(&self, window: &CongestionWindow) -> bool {
        self.limited
            || ((window.is_slow_start() || self.held_back)
                && window.cwnd < self.max_in_flight_bytes.saturating_mul(2))
    }

    /// How much of the window the last round used: all of it where that was the limit, otherwise
    /// the most that was in flight, or what is `outstanding_bytes` now. A loss says that the path
    /// holds no more than that, and nothing about the part of the window that nobody tried
    /// (RFC 7661 §4.4.1, RFC 9438 §4.6).
    pub(super) fn used_bytes(&self, window: &CongestionWindow, outstanding_bytes: u32) -> u32 {
        if self.limited {
            return window.cwnd;
        }
        outstanding_bytes
            .max(self.max_in_flight_bytes)
            .min(window.cwnd)
    }
}

#[cfg(test)]
mod tests;
