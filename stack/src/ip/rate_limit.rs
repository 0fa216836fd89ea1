//! A token bucket.

use crate::time::Instant;

/// Allows a burst, then a steady rate.
#[derive(Debug)]
pub(crate) struct RateLimit {
    burst: u32,
    interval_us: u64,
    /// When the bucket would be full again; in the past when it is full.
    full_at_us: u64,
}

impl RateLimit {
    /// Allows `burst` events at once and `per_second` of them in the long run (at least one).
    pub(crate) const fn new(per_second: u32, burst: u32) -> Self {
        let per_second = if per_second == 0 { 1 } else { per_second };
        Self {
            burst,
            interval_us: 1_000_000 / per_second as u64,
            full_at_us: 0,
        }
    }

    /// Allows one event in `secs` seconds.
    pub(crate) const fn every_secs(secs: u32) -> Self {
        Self {
            burst: 1,
            interval_us: secs as u64 * 1_000_000,
            full_at_us: 0,
        }
    }

    /// Whether one more event may happen; if so, it is counted.
    pub(crate) fn allow(&mut self, now: Instant) -> bool {
        let now_us = now.as_micros();
        let full_at_us = self.full_at_us.max(now_us) + self.interval_us;
        let allowed = full_at_us - now_us <= u64::from(self.burst) * self.interval_us;
        if allowed {
            self.full_at_us = full_at_us;
        }
        allowed
    }
}

#[cfg(test)]
mod tests;
