//! HyStart: slow start ends when the path is full, not when its queue overflows (Ha and Rhee,
//! "Taming the elephants", 2011; the constants are Linux's).
//!
//! Two signs end it. Either a round's acknowledgments come close upon each other for so long that
//! they fill the round trip: the window covers the path. Or the round's least delay exceeds the
//! path's: a queue builds.
//!
//! Both are measured by rounds, so a round must begin when it begins: before any other test, on
//! any flow. Linux began rounds only where the window grows until 4e1fddc98d25, and thus counted
//! requests and responses for one long train; then, until 25c1a9ca53db, only above the low window,
//! so that the first measured round was part of one.

use super::{AckSample, CongestionWindow, SlowStartExit};
use crate::{
    tcp::{config::Mistakes, seq::SeqNum},
    time::Instant,
};

/// Windows below this many segments are no reason to leave slow start.
const LOW_WINDOW_SEGS: u32 = 16;
/// Acknowledgments at most this far apart belong to one train.
const ACK_DELTA_US: u64 = 2000;
/// Samples of a round before its delay counts.
const MIN_SAMPLES: u32 = 8;
/// Least and most by which a round's delay must exceed the path's.
const DELAY_MIN_US: u32 = 4000;
const DELAY_MAX_US: u32 = 16_000;
/// What a train may be longer by because segments leave, and are acknowledged, by the burst: the
/// time of four of the largest at the rate of slow start, but no more than this. Linux halves it
/// with the rest where the sender is not paced; the devices at both ends are no faster for that.
const MAX_BURST_SLACK_US: u64 = 1000;
const MAX_BURST_BYTES: u64 = 65_536;

/// HyStart of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    round: Option<Round>,
    /// A sign has been seen; there is no second slow start but after a timeout.
    found: bool,
}

/// One round: from a window's first acknowledgment to its last.
#[derive(Clone, Copy, Debug)]
struct Round {
    start: Instant,
    /// snd_nxt when it began: acknowledged, it is over.
    end: SeqNum,
    /// The last acknowledgment of the train.
    train_end: Instant,
    /// What has come since the start.
    whole: Stretch,
    /// What has come of late.
    recent: Stretch,
}

/// Acknowledgments in a row.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    start: Instant,
    least_rtt_us: u32,
    samples: u32,
    /// Bytes delivered after the first of them.
    bytes: u64,
}

impl Stretch {
    fn new(start: Instant) -> Self {
        Self {
            start,
            least_rtt_us: u32::MAX,
            samples: 0,
            bytes: 0,
        }
    }

    fn add(&mut self, now: Instant, rtt_us: u32, bytes: u32) {
        // Every sample lowers the delay, also those after the eighth (b344579ca847).
        self.least_rtt_us = self.least_rtt_us.min(rtt_us);
        self.samples = self.samples.saturating_add(1);
        if now > self.start {
            self.bytes += u64::from(bytes);
        }
    }

    /// Whether all of it was late.
    fn is_late(&self, path_us: u32) -> bool {
        let slack_us = (path_us / 8).clamp(DELAY_MIN_US, DELAY_MAX_US);
        self.samples >= MIN_SAMPLES && self.least_rtt_us > path_us.saturating_add(slack_us)
    }

    /// What the path holds, at the rate at which this was delivered.
    fn path_bytes(&self, now: Instant, path_us: u32) -> u64 {
        let us = now.since(self.start).as_micros() as u64;
        (self.bytes * u64::from(path_us))
            .checked_div(us)
            .unwrap_or(0)
    }
}

impl HyStart {
    /// Takes in an acknowledgment during slow start; returns why slow start is to end, if it is,
    /// and with which window.
    pub(super) fn on_ack(
        &mut self,
        window: &CongestionWindow,
        ack: &AckSample,
    ) -> Option<(SlowStartExit, u32)> {
        if self.found {
            return None;
        }
        let is_low = window.cwnd < window.mss.saturating_mul(LOW_WINDOW_SEGS);
        let Mistakes {
            hystart_round_where_window_grows: begins_late,
            hystart_round_behind_low_window: is_missed,
            ..
        } = ack.mistakes;
        if !(begins_late || is_missed && is_low) {
            self.begin_round(ack);
        }
        let exit = match &mut self.round {
            Some(round) if !is_low => round.on_ack(window, ack),
            _ => None,
        };
        if begins_late && ack.may_grow {
            self.begin_round(ack);
        }
        self.found = exit.is_some();
        exit
    }

    /// Begins a round with the first acknowledgment of what had not been sent when the last one
    /// began.
    fn begin_round(&mut self, ack: &AckSample) {
        if self.round.is_none_or(|round| ack.una.after(round.end)) {
            self.round = Some(Round {
                start: ack.now,
                end: ack.nxt,
                train_end: ack.now,
                whole: Stretch::new(ack.now),
                recent: Stretch::new(ack.now),
            });
        }
    }
}

impl Round {
    fn on_ack(
        &mut self,
        window: &CongestionWindow,
        ack: &AckSample,
    ) -> Option<(SlowStartExit, u32)> {
        let rtt_us = ack.rtt_us?.max(1);
        let path_us = match ack.min_rtt_us {
            0 => rtt_us,
            us => us.min(rtt_us),
        };
        self.whole.add(ack.now, rtt_us, ack.arrived_bytes);
        self.recent.add(ack.now, rtt_us, ack.arrived_bytes);
        let exit = if self.is_train(window, ack, path_us) {
            SlowStartExit::AckTrain
        } else if self.whole.is_late(path_us) || (ack.is_paced && self.is_late_now(ack, path_us)) {
            SlowStartExit::Delay
        } else {
            return None;
        };
        // Also when it reports a gap: on a path that reorders, most acknowledgments do.
        let cwnd = if ack.is_paced && ack.is_cwnd_limited && !ack.is_recovering {
            self.full_path(window, ack.now, path_us)
        } else {
            window.cwnd
        };
        Some((exit, cwnd))
    }

    /// Whether a queue has built within the round. A burst builds one that is gone with the round,
    /// so that it says nothing; but a paced sender makes no bursts, and has sent twice what the
    /// path holds before the next round's beginning could tell.
    fn is_late_now(&mut self, ack: &AckSample, path_us: u32) -> bool {
        let Stretch { start, samples, .. } = self.recent;
        let is_long = ack.now.since(start).as_micros() >= u128::from(path_us / 8);
        if samples < MIN_SAMPLES || !is_long {
            return false;
        }
        let is_late = self.recent.is_late(path_us);
        if !is_late {
            self.recent = Stretch::new(ack.now);
        }
        is_late
    }

    /// The window that fills the path, when one that was paced is found to be more. What an
    /// acknowledgment says of a paced sender's rate, it says a round trip late, and the window has
    /// doubled meanwhile; but it says the path's rate, too. It never says less than half the
    /// window: that was not too much a round trip ago.
    fn full_path(&self, window: &CongestionWindow, now: Instant, path_us: u32) -> u32 {
        let whole = self.whole.path_bytes(now, path_us);
        let recent = self.recent.path_bytes(now, path_us);
        let least = u64::from(window.cwnd / 2);
        whole.max(recent).clamp(least, u64::from(window.cwnd)) as u32
    }

    /// Whether the train of acknowledgments is as long as the path. A sender that is not paced
    /// sends a round in half a round trip or less, and only the bottleneck stretches it.
    fn is_train(&mut self, window: &CongestionWindow, ack: &AckSample, path_us: u32) -> bool {
        let gap = ack.now.since(self.train_end).as_micros();
        if gap > u128::from(ACK_DELTA_US) {
            return false;
        }
        self.train_end = ack.now;
        let path_us = u64::from(if ack.is_paced { path_us } else { path_us / 2 });
        let threshold_us = path_us + burst_slack_us(window, ack.srtt_us);
        ack.now.since(self.start).as_micros() > u128::from(threshold_us)
    }
}

/// Four of the largest bursts, at twice the window a round trip: slow start's rate.
fn burst_slack_us(window: &CongestionWindow, srtt_us: u32) -> u64 {
    (4 * MAX_BURST_BYTES * u64::from(srtt_us))
        .checked_div(2 * u64::from(window.cwnd))
        .unwrap_or(MAX_BURST_SLACK_US)
        .min(MAX_BURST_SLACK_US)
}

#[cfg(test)]
mod tests;
