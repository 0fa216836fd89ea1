//! Round-trip time and the retransmission timeout (RFC 6298), in microseconds.

use crate::time::{Duration, Instant};

/// RTO before the first measurement (RFC 6298 §2.1).
const INITIAL_RTO_US: u32 = 1_000_000;
/// RTO once a SYN has timed out and no measurement came of the handshake (RFC 6298 §5.7).
const RTO_AFTER_LOST_SYN_US: u32 = 3_000_000;
/// Most times that the RTO is doubled: enough to reach any ceiling.
const MAX_BACKOFF: u8 = 16;
/// A sample longer than this is the clock's fault, not the network's.
const MAX_SAMPLE_US: u32 = 1 << 28;
/// How long a minimum counts before a later sample may replace it, as long as Linux keeps it.
const MIN_RTT_WINDOW: Duration = Duration::from_mins(5);

/// The estimator of one connection.
#[derive(Clone, Debug)]
pub(super) struct RttEstimator {
    /// Smoothed RTT in eighths of a microsecond; 0 before the first sample.
    srtt_us_x8: u32,
    /// Mean deviation in quarters of a microsecond.
    rttvar_us_x4: u32,
    min: Option<(u32, Instant)>,
    backoff: u8,
    initial_rto_us: u32,
    min_rto_us: u32,
    max_rto_us: u32,
}

impl RttEstimator {
    /// An estimator without samples, whose RTO stays between the two limits.
    pub(super) fn new(min_rto: Duration, max_rto: Duration) -> Self {
        let us = |span: Duration| u32::try_from(span.as_micros()).unwrap_or(u32::MAX).max(1);
        Self {
            srtt_us_x8: 0,
            rttvar_us_x4: 0,
            min: None,
            backoff: 0,
            initial_rto_us: INITIAL_RTO_US,
            min_rto_us: us(min_rto),
            max_rto_us: us(max_rto).max(us(min_rto)),
        }
    }

    /// Takes a sample in (RFC 6298 §2.2, §2.3). It must come from a segment sent once (Karn's
    /// rule, RFC 6298 §3) or from an echoed timestamp.
    pub(super) fn sample(&mut self, rtt: Duration, now: Instant) {
        let rtt_us = u32::try_from(rtt.as_micros())
            .unwrap_or(MAX_SAMPLE_US)
            .clamp(1, MAX_SAMPLE_US);
        if self
            .min
            .is_none_or(|(min_us, at)| rtt_us <= min_us || now.since(at) > MIN_RTT_WINDOW)
        {
            self.min = Some((rtt_us, now));
        }
        if self.srtt_us_x8 == 0 {
            self.srtt_us_x8 = rtt_us * 8;
            self.rttvar_us_x4 = rtt_us * 2;
        } else {
            let deviation_us = (self.srtt_us_x8 / 8).abs_diff(rtt_us);
            self.rttvar_us_x4 = self.rttvar_us_x4 - self.rttvar_us_x4 / 4 + deviation_us;
            self.srtt_us_x8 = (self.srtt_us_x8 - self.srtt_us_x8 / 8 + rtt_us).max(1);
        }
    }

    /// Smoothed RTT in microseconds; none before the first sample.
    pub(super) fn srtt_us(&self) -> Option<u32> {
        (self.srtt_us_x8 != 0).then_some(self.srtt_us_x8 / 8)
    }

    /// Mean deviation of the RTT in microseconds.
    pub(super) fn rttvar_us(&self) -> u32 {
        self.rttvar_us_x4 / 4
    }

    /// The least sample of the last five minutes in microseconds.
    pub(super) fn min_us(&self) -> Option<u32> {
        self.min.map(|(us, _)| us)
    }

    /// The retransmission timeout with backoff.
    ///
    /// The floor is added through the deviation, as Linux does: RTO = SRTT + max(4·RTTVAR, floor),
    /// so that a steady path keeps the whole floor as slack over its RTT.
    pub(super) fn rto(&self) -> Duration {
        let base_us = if self.srtt_us_x8 == 0 {
            self.initial_rto_us
        } else {
            (self.srtt_us_x8 / 8).saturating_add(self.rttvar_us_x4.max(self.min_rto_us))
        };
        let backed_off_us = u64::from(base_us) << self.backoff;
        Duration::from_micros(backed_off_us.min(u64::from(self.max_rto_us)))
    }

    /// Doubles the RTO after a timeout (RFC 6298 §5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    /// How often the RTO has been doubled.
    pub(super) fn backoff(&self) -> u8 {
        self.backoff
    }

    /// Ends the doubling: an acknowledgment of new data came.
    pub(super) fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Notes at the end of a handshake that its SYN timed out (RFC 6298 §5.7).
    pub(super) fn syn_timed_out(&mut self) {
        self.initial_rto_us = RTO_AFTER_LOST_SYN_US;
    }
}

#[cfg(test)]
mod tests;
