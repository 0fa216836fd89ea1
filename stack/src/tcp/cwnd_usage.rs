//! Whether the congestion window is what limits the sender: a window that nothing tries must not
//! grow (RFC 7661; the rule is Linux's).

use super::{congestion::CongestionWindow, seq::SeqNum};

/// How much of the window the last round used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CwndUsage {
    limited: bool,
    /// Whether it would have been, had the device or pacing not held data back.
    held_back: bool,
    max_in_flight_bytes: u32,
    /// snd_nxt when this round began.
    round_end: Option<SeqNum>,
}

impl CwndUsage {
    /// Notes the end of a burst: what is in flight, and whether the window stopped it.
    pub(super) fn on_burst_end(
        &mut self,
        in_flight_bytes: u32,
        limited: bool,
        una: SeqNum,
        nxt: SeqNum,
    ) {
        let new_round = self.round_end.is_none_or(|end| una.after_or_eq(end));
        self.held_back &= !new_round;
        if new_round || limited || (!self.limited && in_flight_bytes > self.max_in_flight_bytes) {
            self.limited = limited;
            self.max_in_flight_bytes = in_flight_bytes;
            self.round_end = Some(nxt);
        }
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
