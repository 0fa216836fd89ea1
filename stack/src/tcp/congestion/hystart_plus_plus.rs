//! HyStart++ (RFC 9406): a round whose least delay exceeds the last one's starts Conservative Slow
//! Start; five rounds of that end slow start, unless delay falls again.

use super::{AckSample, SlowStartExit};
use crate::tcp::seq::SeqNum;

/// `MIN_RTT_THRESH` and `MAX_RTT_THRESH` (RFC 9406 §4.3).
const MIN_RTT_THRESH_US: u32 = 4000;
const MAX_RTT_THRESH_US: u32 = 16_000;
/// `MIN_RTT_DIVISOR`.
const MIN_RTT_DIVISOR: u32 = 8;
/// `N_RTT_SAMPLE`.
const SAMPLES: u32 = 8;
/// `CSS_GROWTH_DIVISOR`.
const CSS_GROWTH_DIVISOR: u32 = 4;
/// `CSS_ROUNDS`.
const CSS_ROUNDS: u32 = 5;

/// HyStart++ of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStartPlusPlus {
    /// Where this round ends: "windowEnd".
    round_end: Option<SeqNum>,
    /// "lastRoundMinRTT".
    last_least_us: Option<u32>,
    /// "currentRoundMinRTT".
    least_us: Option<u32>,
    /// "rttSampleCount".
    samples: u32,
    conservative: Option<Conservative>,
    /// The first slow start is over.
    retired: bool,
}

/// Conservative Slow Start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// "cssBaselineMinRtt".
    baseline_us: u32,
    /// Rounds begun in it.
    rounds: u32,
}

impl HyStartPlusPlus {
    /// Takes in an acknowledgment during slow start; returns why it is to end, if it is, and what
    /// the window's growth is to be divided by.
    ///
    /// RFC 9406 §4.2 would count at most eight segments of an acknowledgment where the sender is
    /// not paced (L). One acknowledgment is as many segments here as the peer's device joins, up
    /// to 64 KiB of them, and what it sets free is that much at most.
    pub(super) fn on_ack(&mut self, ack: &AckSample) -> (Option<SlowStartExit>, u32) {
        if self.retired {
            return (None, 1);
        }
        if self.round_end.is_none_or(|end| ack.una.after(end)) {
            self.round_end = Some(ack.nxt);
            self.last_least_us = self.least_us.or(self.last_least_us);
            self.least_us = None;
            self.samples = 0;
            if let Some(css) = &mut self.conservative {
                css.rounds += 1;
                if css.rounds >= CSS_ROUNDS {
                    self.retired = true;
                    return (Some(SlowStartExit::Delay), CSS_GROWTH_DIVISOR);
                }
            }
        }
        if let Some(rtt_us) = ack.rtt_us {
            self.samples = self.samples.saturating_add(1);
            self.least_us = Some(self.least_us.map_or(rtt_us, |least| least.min(rtt_us)));
        }
        self.judge();
        match self.conservative {
            Some(_) => (None, CSS_GROWTH_DIVISOR),
            None => (None, 1),
        }
    }

    /// Enters Conservative Slow Start, or leaves it when the delay was no queue's.
    fn judge(&mut self) {
        let (Some(least_us), true) = (self.least_us, self.samples >= SAMPLES) else {
            return;
        };
        if let Some(css) = self.conservative {
            if least_us < css.baseline_us {
                self.conservative = None;
            }
            return;
        }
        let Some(last_us) = self.last_least_us else {
            return;
        };
        let slack_us = (last_us / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH_US, MAX_RTT_THRESH_US);
        if least_us >= last_us.saturating_add(slack_us) {
            self.conservative = Some(Conservative {
                baseline_us: least_us,
                rounds: 0,
            });
        }
    }

    /// There is no more to find out: the first slow start is over.
    pub(super) fn retire(&mut self) {
        self.retired = true;
    }
}

#[cfg(test)]
mod tests;
