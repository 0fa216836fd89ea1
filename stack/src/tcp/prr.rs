//! Proportional Rate Reduction (RFC 9937): how much may be sent on each acknowledgment while the
//! window comes down to the slow start threshold, so that it comes down evenly instead of by a
//! pause and a burst.

/// One episode of reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub(super) struct Prr {
    /// `RecoverFS`: bytes in flight when the episode began, of which deliveries will be heard.
    recover_bytes: u32,
    delivered_bytes: u32,
    out_bytes: u32,
}

/// What an acknowledgment says to the reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrrAck {
    /// Bytes newly delivered (`DeliveredData`).
    pub(super) delivered_bytes: u32,
    /// Bytes in flight after it ("pipe").
    pub(super) in_flight_bytes: u32,
    pub(super) ssthresh: u32,
    pub(super) mss: u32,
    /// Whether snd_una moved on and nothing more was found lost (`SafeACK`).
    pub(super) is_safe: bool,
}

impl Prr {
    /// Begins an episode (RFC 9937 §6): `outstanding_bytes` between snd_una and snd_nxt, and
    /// `sacked_bytes` of them held by the peer, both as they were before the acknowledgment that
    /// began it.
    ///
    /// Linux takes the congestion window for `RecoverFS`; where the flow did not fill its window,
    /// that makes the first half of recovery send less than its share.
    pub(super) fn new(outstanding_bytes: u32, sacked_bytes: u32) -> Self {
        Self {
            recover_bytes: outstanding_bytes.saturating_sub(sacked_bytes).max(1),
            delivered_bytes: 0,
            out_bytes: 0,
        }
    }

    /// An acknowledgment came that does not end the episode; returns the congestion window.
    pub(super) fn on_ack(&mut self, ack: PrrAck) -> u32 {
        let PrrAck {
            delivered_bytes,
            in_flight_bytes,
            ssthresh,
            mss,
            is_safe,
        } = ack;
        self.delivered_bytes = self.delivered_bytes.saturating_add(delivered_bytes);
        let mut may_send = if in_flight_bytes > ssthresh {
            let share = (u64::from(self.delivered_bytes) * u64::from(ssthresh))
                .div_ceil(u64::from(self.recover_bytes));
            u32::try_from(share)
                .unwrap_or(u32::MAX)
                .saturating_sub(self.out_bytes)
        } else {
            // PRR-CRB, and PRR-SSRB where the acknowledgment is a good one.
            let conserved = self.delivered_bytes.saturating_sub(self.out_bytes);
            let allowed =
                conserved
                    .max(delivered_bytes)
                    .saturating_add(if is_safe { mss } else { 0 });
            allowed.min(ssthresh - in_flight_bytes)
        };
        if self.out_bytes == 0 {
            // The fast retransmission goes whatever the arithmetic says.
            may_send = may_send.max(mss);
        }
        // A window of less than a segment, with nothing in flight, would wait for the timer.
        in_flight_bytes.saturating_add(may_send).max(mss)
    }

    /// Data was sent, new or old.
    pub(super) fn on_sent(&mut self, bytes: u32) {
        self.out_bytes = self.out_bytes.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests;
