//! How long the device holds what it is given, apart from what waits there for our own sake.
//!
//! The time from handing a packet over to its completion has two parts: what the device takes
//! whatever we do, and the time that the packet queues behind others of ours. Only the first may
//! decide how much to keep in the device. A limit of rate × whole time would confirm itself
//! (Little's law: rate × time *is* what is in the device), and with any headroom grow until the
//! ring is full.
//!
//! So the estimate, [`CompletionTime::us`], is a base time that goes by means over rounds: all
//! that is in the device at a round's start is done at its end, and [`ROUND_SAMPLES`] have been
//! taken.
//!
//! * A round that is faster lowers it, halfway each time. That makes it the least of many means,
//!   and these must not vary much, or the limit would be too small for the time that is usual.
//! * Times that are slower by no more than our own queue explains leave it.
//! * From time to time the queue is made short, and a round of that tells the base anew: when times
//!   have been slower for long; seldom, when they have not, since a queue that the base already
//!   counts in is not seen otherwise; soon again, when that has lowered it.
//! * Times far from the base that the queue does not explain replace it after
//!   [`WINDOW`] completions, up or down.
//!
//! Completions seen at one moment are one sample, the longest of them: a device that answers in
//! batches holds the first of each batch longest, and that is what the limit must bridge.

/// Samples in a row that must agree that the time has changed.
const WINDOW: usize = 6;
/// A change is one by this factor.
const JUMP: u32 = 2;
/// Differences below this are the clock's, or the loop's.
const SLACK_US: u32 = 20;
/// Samples of a round at least.
const ROUND_SAMPLES: u32 = 32;
/// Rounds from one short queue to the next: when the last lowered the base, when times are slower
/// than the base, and otherwise.
const PROBE_ROUNDS: [u32; 3] = [4, 32, 128];

/// The estimate of one device queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CompletionTime {
    base_us: Option<u32>,
    /// The last samples, the newest last.
    recent: [u32; WINDOW],
    /// Samples in `recent`.
    samples: usize,
    round: Round,
    /// Rounds since the base was last told anew.
    rounds: u32,
    /// Whether that lowered it.
    is_settling: bool,
    probe: Probe,
}

/// A queue that is kept short to measure the base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Probe {
    #[default]
    Off,
    /// What was given to the device before must be done first.
    Draining,
    /// This round tells.
    Measuring,
}

/// Sums over a round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Bytes that must be done for it to end.
    bytes: u64,
    done_bytes: u64,
    samples: u32,
    /// Times weighted by bytes.
    held_us_bytes: u64,
}

impl CompletionTime {
    /// The base time in microseconds; none before the first sample.
    pub(super) fn us(&self) -> Option<u32> {
        self.base_us
    }

    /// Whether the queue must be kept short until the base has shown.
    pub(super) fn is_probing(&self) -> bool {
        self.probe != Probe::Off
    }

    /// The device is done with `bytes` bytes, some of which it held for `held_us`.
    /// `queue_us` is how long our own queue can have made that, `left_bytes` what it still holds.
    pub(super) fn sample(&mut self, held_us: u32, bytes: u64, queue_us: u32, left_bytes: u64) {
        self.recent.rotate_left(1);
        self.recent[WINDOW - 1] = held_us;
        self.samples = (self.samples + 1).min(WINDOW);
        let Some(base_us) = self.base_us else {
            self.restart(held_us, left_bytes);
            return;
        };
        let lowest = self.recent.iter().copied().min().unwrap_or(held_us);
        let highest = self.recent.iter().copied().max().unwrap_or(held_us);
        let explained_us = base_us.max(queue_us);
        if self.samples == WINDOW {
            let is_slower = lowest > explained_us.saturating_mul(JUMP).saturating_add(SLACK_US);
            let is_faster = highest.saturating_mul(JUMP).saturating_add(SLACK_US) < base_us;
            if is_slower {
                self.restart(lowest, left_bytes);
                return;
            }
            if is_faster {
                self.restart(highest, left_bytes);
                return;
            }
        }
        self.round.samples += 1;
        self.round.done_bytes += bytes;
        self.round.held_us_bytes += u64::from(held_us) * bytes;
        let is_over = self.probe == Probe::Draining || self.round.samples >= ROUND_SAMPLES;
        if is_over && self.round.done_bytes >= self.round.bytes {
            self.end_round(base_us, left_bytes);
        }
    }

    /// All that was in the device when the round began is done.
    fn end_round(&mut self, base_us: u32, left_bytes: u64) {
        let Round {
            bytes: _,
            done_bytes,
            samples: _,
            held_us_bytes,
        } = self.round;
        let mean_us = (held_us_bytes / done_bytes.max(1)) as u32;
        self.round = Round {
            bytes: left_bytes,
            ..Round::default()
        };
        match self.probe {
            Probe::Draining => {
                self.probe = Probe::Measuring;
                return;
            }
            Probe::Measuring => {
                self.probe = Probe::Off;
                self.base_us = Some(mean_us);
                self.rounds = 0;
                self.is_settling = mean_us < base_us - base_us / 16;
                return;
            }
            Probe::Off => {}
        }
        if mean_us < base_us {
            self.base_us = Some(mean_us.midpoint(base_us));
        }
        let [settling, slower, otherwise] = PROBE_ROUNDS;
        let rounds = if self.is_settling {
            settling
        } else if mean_us > base_us.saturating_add(base_us / 16) {
            slower
        } else {
            otherwise
        };
        self.rounds += 1;
        if self.rounds >= rounds {
            self.probe = Probe::Draining;
        }
    }

    /// The base is `base_us`, whatever it was.
    fn restart(&mut self, base_us: u32, left_bytes: u64) {
        self.base_us = Some(base_us);
        self.rounds = 0;
        self.is_settling = false;
        self.probe = Probe::Off;
        self.round = Round {
            bytes: left_bytes,
            ..Round::default()
        };
    }
}

#[cfg(test)]
mod tests;
