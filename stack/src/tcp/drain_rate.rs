//! How fast the device lets go of what it is given.
//!
//! Measured over rounds: a round ends when everything that was in the device at its start is
//! done, and not before [`ROUND_HOLDS`] times as long has passed as the device held any of it: what
//! was sent in one burst is done in one, and the pause that follows belongs to it. The rate is the
//! most that any of the last rounds saw, since rounds in which there was
//! little to send, or the device paused, say nothing of what it can do; it falls only on the word
//! of rounds in which more would have been sent, had there been room.

use super::rate::{Rate, microseconds};
use crate::time::Instant;

/// Times that a device may hold something within a round: with `n`, a burst that waited for its
/// completion when the round began can make the rate too high by one part of `n`.
const ROUND_HOLDS: u32 = 8;
/// Rounds of a span; the maximum is over this span and the one before it.
const SPAN_ROUNDS: u8 = 4;

/// The estimate, of one flow or of all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DrainRate {
    round: Option<Round>,
    /// When the last completions came.
    pass_at: Instant,
    /// The most seen in the current span of rounds, and in the one before.
    best: [Rate; 2],
    /// Rounds of the current span.
    rounds: u8,
    /// Whether the last round was a quarter faster than all before it.
    is_growing: bool,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    since: Instant,
    /// Bytes that must be done for it to end.
    bytes: u64,
    done_bytes: u64,
    /// The longest that any of them was held.
    held_us: u32,
    /// Whether more would have been sent.
    is_limited: bool,
}

impl Round {
    fn new(since: Instant, bytes: u64) -> Self {
        Self {
            since,
            bytes,
            done_bytes: 0,
            held_us: 0,
            is_limited: false,
        }
    }
}

impl DrainRate {
    /// The rate; none before the first round has ended.
    pub(super) fn rate(&self) -> Option<Rate> {
        let [current, previous] = self.best;
        let rate = current.max(previous);
        (rate > Rate::ZERO).then_some(rate)
    }

    /// Whether it still grows: nothing is known yet of where it will stop.
    pub(super) fn is_growing(&self) -> bool {
        self.is_growing || self.rate().is_none()
    }

    /// `bytes` bytes were given to the device, which held `before_bytes`.
    pub(super) fn sent(&mut self, now: Instant, bytes: u32, before_bytes: u64) {
        if before_bytes == 0 && now != self.pass_at {
            // A pause: there was nothing to send. It ends the round, but does not count.
            self.end_round(1, false);
            self.round = None;
        }
        if self.round.is_none() {
            self.round = Some(Round::new(now, u64::from(bytes)));
        }
    }

    /// More would have been sent, but for what is in the device.
    pub(super) fn limited(&mut self) {
        if let Some(round) = &mut self.round {
            round.is_limited = true;
        }
    }

    /// The device is done with `bytes` bytes that it held for `held_us`; `left_bytes` remain.
    pub(super) fn completed(&mut self, now: Instant, bytes: u32, held_us: u32, left_bytes: u64) {
        if now != self.pass_at {
            self.end_pass(left_bytes + u64::from(bytes));
            self.pass_at = now;
        }
        if let Some(round) = &mut self.round {
            round.done_bytes += u64::from(bytes);
            round.held_us = round.held_us.max(held_us);
        }
    }

    /// All completions that came at one moment have been told: the round may be over. Not before:
    /// of a batch the first would make a round by themselves.
    pub(super) fn end_pass(&mut self, left_bytes: u64) {
        if self.end_round(ROUND_HOLDS, true) {
            self.round = (left_bytes > 0).then(|| Round::new(self.pass_at, left_bytes));
        }
    }

    /// Takes the round in, if it is over and was as long as `holds` times what the device held
    /// some of it. The maximum ages by rounds that may `age` it.
    fn end_round(&mut self, holds: u32, age: bool) -> bool {
        let Some(Round {
            since,
            bytes,
            done_bytes,
            held_us,
            is_limited,
        }) = self.round
        else {
            return false;
        };
        let span_us = microseconds(self.pass_at.since(since));
        if done_bytes < bytes || span_us < held_us.saturating_mul(holds) {
            return false;
        }
        let rate = Rate::of(done_bytes, u64::from(span_us.max(1)));
        let known = self.rate().unwrap_or(Rate::ZERO);
        self.is_growing = rate >= known.percent(125);
        if is_limited && age {
            self.rounds += 1;
            if self.rounds >= SPAN_ROUNDS {
                self.rounds = 0;
                self.best = [Rate::ZERO, self.best[0]];
            }
        }
        self.best[0] = self.best[0].max(rate);
        true
    }
}

#[cfg(test)]
mod tests;
