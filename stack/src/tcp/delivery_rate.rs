//! How fast data arrives (draft-ietf-ccwg-bbr, "delivery rate estimation"): bytes delivered over
//! the time it took to send them or to have them acknowledged, whichever is longer.

use super::sent::Sent;
use crate::time::{Duration, Instant};

/// What had been delivered when a run was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    delivered_bytes: u64,
    delivered_at: Instant,
    /// When the data was sent whose acknowledgment had come last.
    first_sent_at: Instant,
    is_app_limited: bool,
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    bytes: u64,
    interval: Duration,
    /// Whether the application, not the path, set the pace at some time in it: then the path may
    /// be faster than this.
    pub(super) is_app_limited: bool,
}

impl Sample {
    /// Bytes a second.
    pub(super) fn rate(self) -> u64 {
        let rate = u128::from(self.bytes) * 1_000_000 / self.interval.as_micros().max(1);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

/// The estimator of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct DeliveryRate {
    delivered_bytes: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Until so much has been delivered, what is sent is limited by the application.
    app_limited_to: Option<u64>,
    latest: Option<Sample>,
}

impl DeliveryRate {
    /// Bytes known to have arrived, ever.
    pub(super) fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// The last measurement worth keeping.
    pub(super) fn latest(&self) -> Option<Sample> {
        self.latest
    }

    /// Takes the snapshot for a run sent now, with or without other data in flight.
    pub(super) fn on_send(&mut self, now: Instant, in_flight_bytes: u32) -> Snapshot {
        if in_flight_bytes == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered_bytes: self.delivered_bytes,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            is_app_limited: self.app_limited_to.is_some(),
        }
    }

    /// Nothing waits to be sent, and nothing but the application is the reason, while
    /// `in_flight_bytes` are on their way.
    pub(super) fn on_app_limited(&mut self, in_flight_bytes: u32) {
        self.app_limited_to = Some(self.delivered_bytes + u64::from(in_flight_bytes));
    }

    /// `bytes` have arrived, of which `latest` was sent last. An interval shorter than `min_rtt`
    /// is no measurement: acknowledgments came in a heap.
    pub(super) fn on_delivered(
        &mut self,
        bytes: u32,
        latest: &Sent,
        min_rtt: Duration,
        now: Instant,
    ) {
        self.delivered_bytes += u64::from(bytes);
        self.delivered_at = now;
        self.app_limited_to = self.app_limited_to.filter(|&to| self.delivered_bytes <= to);
        let snapshot = latest.snapshot;
        let send = latest.time.since(snapshot.first_sent_at);
        let ack = now.since(snapshot.delivered_at);
        self.first_sent_at = self.first_sent_at.max(latest.time);
        let sample = Sample {
            bytes: self.delivered_bytes - snapshot.delivered_bytes,
            interval: send.max(ack),
            is_app_limited: snapshot.is_app_limited,
        };
        if sample.interval < min_rtt || sample.interval.is_zero() {
            return;
        }
        // One that the application held down is a lower bound: it replaces none that is higher.
        if !sample.is_app_limited
            || self
                .latest
                .is_none_or(|latest| sample.rate() >= latest.rate())
        {
            self.latest = Some(sample);
        }
    }
}

#[cfg(test)]
mod tests;
