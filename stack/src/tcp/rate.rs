//! Rates, in whole bytes per second.

use crate::time::{Duration, Instant};

const US_PER_SECOND: u64 = 1_000_000;
const NS_PER_SECOND: u64 = 1_000_000_000;

/// A rate in bytes per second. Its arithmetic saturates; none of it divides by zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// More than there is.
    pub const UNLIMITED: Self = Self(u64::MAX);

    /// So many bytes a second.
    pub const fn from_bytes_per_second(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Bytes a second.
    pub const fn bytes_per_second(self) -> u64 {
        self.0
    }

    /// The rate that moves `bytes` in `span_us` microseconds; [`Rate::UNLIMITED`] when that is no
    /// time at all.
    pub fn of(bytes: u64, span_us: u64) -> Self {
        bytes
            .saturating_mul(US_PER_SECOND)
            .checked_div(span_us)
            .map_or(Self::UNLIMITED, Self)
    }

    /// So many hundredths of it.
    #[must_use]
    pub fn percent(self, percent: u32) -> Self {
        let percent = u64::from(percent);
        Self(
            self.0
                .checked_mul(percent)
                .map_or_else(|| (self.0 / 100).saturating_mul(percent), |all| all / 100),
        )
    }

    /// Bytes it moves in `span_us` microseconds, rounded down.
    pub fn bytes_in_us(self, span_us: u64) -> u64 {
        match self.0.checked_mul(span_us) {
            Some(all) => all / US_PER_SECOND,
            None => (self.0 / US_PER_SECOND).saturating_mul(span_us),
        }
    }

    /// Nanoseconds it takes to move `bytes`, rounded down.
    pub fn ns_for(self, bytes: u32) -> u64 {
        (u64::from(bytes) * NS_PER_SECOND)
            .checked_div(self.0)
            .unwrap_or(u64::MAX)
    }
}

/// `now` in nanoseconds.
pub(super) fn nanoseconds(now: Instant) -> u64 {
    now.as_micros().saturating_mul(1000)
}

/// `span` in microseconds, as far as they can be told.
pub(super) fn microseconds(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
