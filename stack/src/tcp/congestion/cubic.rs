//! CUBIC (RFC 9438), in whole bytes and microseconds, on every acknowledgment.
//!
//! After a congestion event the window follows a cubic curve that is flat where the last event was
//! ("W_max"), so that it comes near it fast and stays there long; where Reno would have a larger
//! window it follows Reno ("W_est").
//!
//! Where Linux is coarser than the RFC, this follows the RFC: the curve is looked at on every
//! acknowledgment rather than once a jiffy, one smoothed RTT ahead; W_est grows as Reno's window
//! once it is where the last event was (§4.3); time in which the window is not used does not
//! count (§4.2, §5.8); what an undone event changed is restored in full (§4.9).

use super::{
    AckSample, Cause, CongestionControl, CongestionEvent, CongestionWindow, SlowStartExit,
    SlowStartMode, cube, slow_start::SlowStart,
};
use crate::time::{Duration, Instant};

/// What is left of the window after a loss: β = 0.7 (RFC 9438 §4.6).
const BETA: Ratio = Ratio(7, 10);
/// What is left of it after a mark: 0.85 (RFC 8511 §3.1, "ABE"). A queue that marks is kept short,
/// so that little of the window is in it, and cutting by more empties the path. Not in slow start,
/// whose window may be twice the path's.
const BETA_ECN: Ratio = Ratio(17, 20);
/// Growth of W_est in segments a round trip: 3·(1 - β) / (1 + β) (RFC 9438 §4.3).
const ALPHA: Ratio = Ratio(9, 17);
/// The same once W_est is back where the last event was.
const ALPHA_RENO: Ratio = Ratio(1, 1);
/// Growth in a round trip before anything was ever lost is at least this part of the window, as
/// in Linux. When HyStart has ended slow start too early there is no W_max to aim at, and a curve
/// that begins flat takes minutes to fill a long path.
const UNPROVEN_GROWTH_DIVISOR: u32 = 20;

/// A part of a whole.
#[derive(Clone, Copy, Debug)]
struct Ratio(u32, u32);

impl Ratio {
    fn of(self, bytes: u32) -> u32 {
        (u64::from(bytes) * u64::from(self.0) / u64::from(self.1)) as u32
    }

    /// The middle between the whole and the part.
    fn half_way_of(self, bytes: u32) -> u32 {
        (u64::from(bytes) * u64::from(self.0 + self.1) / u64::from(2 * self.1)) as u32
    }
}

/// CUBIC of one connection.
#[derive(Clone, Debug)]
pub(super) struct Cubic {
    slow_start: SlowStart,
    /// Where the curve is flat, in bytes: "W_max". 0: at the window of the next stage's start.
    w_max: u32,
    /// Window in use before the last event, in bytes: "cwnd_prior". 0: there was none.
    cwnd_prior: u32,
    stage: Option<Stage>,
    /// When the last acknowledgment came, or data was sent after idleness.
    last_at: Instant,
}

/// A congestion avoidance stage: from one event to the next.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// "epoch_start", moved on by all the time in which the window was not used.
    start: Instant,
    /// When the curve reaches its flat, in microseconds from the start: "K".
    k_us: u32,
    /// Height of the flat, in bytes.
    origin: u32,
    /// What Reno's window would be: "W_est", in 2^-32 bytes.
    w_est: u64,
    /// Growth that has not made a byte yet, in parts of the window.
    carry: u64,
}

impl Cubic {
    pub(super) fn new(mode: SlowStartMode) -> Self {
        Self {
            slow_start: SlowStart::new(mode),
            w_max: 0,
            cwnd_prior: 0,
            stage: None,
            last_at: Instant::ZERO,
        }
    }

    /// The time since the last acknowledgment does not count: the window was not used.
    fn skip(&mut self, now: Instant) {
        if let Some(stage) = &mut self.stage {
            stage.start = stage.start + now.since(self.last_at);
        }
        self.last_at = now;
    }

    /// Congestion avoidance for `acked` bytes.
    fn avoid(&mut self, window: &mut CongestionWindow, ack: &AckSample, acked: u32) {
        let Self {
            w_max, cwnd_prior, ..
        } = *self;
        let stage = self
            .stage
            .get_or_insert_with(|| Stage::new(window, w_max, ack.now));
        let cwnd = window.cwnd.max(1);
        let acked = acked.min(cwnd);
        stage.advance_reno(window.mss, cwnd, acked, cwnd_prior);
        let elapsed = ack.now.since(stage.start);
        let w_est = (stage.w_est >> 32) as u32;
        if cwnd_prior > 0 && stage.curve(elapsed, window.mss) < u64::from(w_est) {
            // The Reno-friendly region (RFC 9438 §4.3).
            window.grow(w_est.saturating_sub(cwnd));
            return;
        }
        // RFC 9438 §4.2: what the curve says one round trip ahead, but neither less than now nor
        // more than half as much again.
        let ahead = elapsed + Duration::from_micros(u64::from(ack.srtt_us));
        let least = if cwnd_prior == 0 {
            u64::from(cwnd + cwnd / UNPROVEN_GROWTH_DIVISOR)
        } else {
            u64::from(cwnd)
        };
        let target = stage
            .curve(ahead, window.mss)
            .clamp(least, u64::from(cwnd) * 3 / 2);
        // RFC 9438 §4.4: (target - cwnd) / cwnd of a byte for each byte.
        stage.carry += (target - u64::from(cwnd)) * u64::from(acked);
        let grown = stage.carry / u64::from(cwnd);
        stage.carry %= u64::from(cwnd);
        window.grow((grown as u32).max(w_est.saturating_sub(cwnd)));
    }
}

impl Stage {
    /// A stage that begins now, with the window as it is.
    fn new(window: &CongestionWindow, w_max: u32, now: Instant) -> Self {
        Self {
            start: now,
            // RFC 9438 §4.2: the time from here to W_max.
            k_us: cube::root(cube::volume(w_max.saturating_sub(window.cwnd), window.mss)),
            origin: w_max.max(window.cwnd),
            w_est: u64::from(window.cwnd) << 32,
            carry: 0,
        }
    }

    /// Height of the curve `elapsed` after the start, in bytes: W_cubic(t) (RFC 9438 §4.2).
    fn curve(&self, elapsed: Duration, mss: u32) -> u64 {
        let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        let k_us = u64::from(self.k_us);
        let distance = cube::height(elapsed_us.abs_diff(k_us), mss);
        let origin = u64::from(self.origin);
        if elapsed_us < k_us {
            origin.saturating_sub(distance)
        } else {
            origin + distance
        }
    }

    /// Moves W_est on by `acked` bytes: α segments for each window of them (RFC 9438 §4.3).
    fn advance_reno(&mut self, mss: u32, cwnd: u32, acked: u32, cwnd_prior: u32) {
        let Ratio(above, below) = if self.w_est >> 32 < u64::from(cwnd_prior) {
            ALPHA
        } else {
            ALPHA_RENO
        };
        let windows = (u64::from(acked) << 32) / u64::from(cwnd);
        let grown = windows * u64::from(mss) * u64::from(above) / u64::from(below);
        let most = u64::from(super::MAX_WINDOW_BYTES) << 32;
        self.w_est = self.w_est.saturating_add(grown).min(most);
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> Option<SlowStartExit> {
        if !ack.is_cwnd_limited && !ack.is_recovering {
            // RFC 9438 §4.2, §5.8.
            self.skip(ack.now);
        }
        self.last_at = ack.now;
        let mut acked = ack.delivered_bytes;
        let mut exit = None;
        if window.is_slow_start() && !ack.is_recovering {
            (exit, acked) = self.slow_start.on_ack(window, ack);
        }
        if ack.may_grow && acked > 0 {
            self.avoid(window, ack, acked);
        }
        exit
    }

    fn ssthresh(&mut self, window: &CongestionWindow, event: CongestionEvent) -> u32 {
        let used = event.used_bytes;
        let beta = match event.cause {
            Cause::Ecn if !window.is_slow_start() => BETA_ECN,
            _ => BETA,
        };
        // RFC 9438 §4.7, fast convergence: less than the last time means that another flow wants
        // its part.
        self.w_max = if used < self.w_max {
            beta.half_way_of(used)
        } else {
            used
        };
        self.cwnd_prior = used;
        self.stage = None;
        beta.of(used).max(window.minimum())
    }

    fn on_timeout(&mut self) {
        // RFC 9438 §4.8: the next stage starts from the flat of its curve.
        self.w_max = 0;
        self.stage = None;
        self.slow_start.on_timeout();
    }

    fn on_send_after_idle(&mut self, now: Instant) {
        self.skip(now);
    }

    fn name(&self) -> &'static str {
        "cubic"
    }
}

#[cfg(test)]
mod tests;
