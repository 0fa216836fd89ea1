//! Tail loss probes (RFC 8985 §7): when acknowledgments stop coming, one segment is sent to draw
//! one, long before the retransmission timer runs out; from what it tells RACK finds the losses.
//!
//! RFC 8985 §7.2 probes only while nothing is known to be lost, and Linux the same. Here fast
//! recovery is probed too: when a retransmission and all that was sent behind it are lost, only the
//! timer is left otherwise, whose floor of 200 ms is two thousand round trips of a LAN.

use super::{out_of_order::Range, seq::SeqNum};
use crate::time::Duration;

/// What a probe waits beyond two round trips: acknowledgments are held up by interrupt moderation
/// and by receivers that batch. Linux's value; the RFC has none, and would probe a LAN of 100 µs
/// all the time.
const SLACK: Duration = Duration::from_millis(2);
/// How long a peer may delay the acknowledgment of a lone segment: `TLP.max_ack_delay`
/// (RFC 8985 §7.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// Before the first measurement of the RTT (RFC 8985 §7.2).
const INITIAL: Duration = Duration::from_secs(1);

/// A probe that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    /// snd_nxt behind it: `TLP.end_seq`.
    end: SeqNum,
    /// What it repeated; none: it was new data.
    repeated: Option<Range>,
}

/// The probe of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tlp {
    /// The timer has run out: a probe is to be sent.
    due: bool,
    /// The one that was sent and is not answered.
    sent: Option<Probe>,
}

/// What an acknowledgment told of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlpVerdict {
    /// Nothing that asks for an answer.
    Nothing,
    /// The probe repaired a loss: the path is congested.
    Repaired,
}

impl Tlp {
    /// How long to wait for acknowledgments before probing.
    pub(super) fn timeout(srtt: Option<Duration>, is_lone_segment: bool) -> Duration {
        let Some(srtt) = srtt else {
            return INITIAL;
        };
        let delay = if is_lone_segment {
            MAX_ACK_DELAY
        } else {
            SLACK
        };
        2 * srtt + delay
    }

    /// Whether another probe may be planned: not while one is out.
    pub(super) fn may_probe(&self) -> bool {
        self.sent.is_none() && !self.due
    }

    /// The timer ran out.
    pub(super) fn on_timer(&mut self) {
        self.due = true;
    }

    /// Whether a probe is to be sent now.
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// There is nothing to probe for any more.
    pub(super) fn cancel(&mut self) {
        self.due = false;
    }

    /// The probe went; snd_nxt is `nxt` now. `repeated`: what it repeated, if it was no new data.
    pub(super) fn on_sent(&mut self, nxt: SeqNum, repeated: Option<Range>) {
        self.due = false;
        self.sent = Some(Probe { end: nxt, repeated });
    }

    /// Everything is lost anyway, or acknowledged.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether the probe is what the peer reports to have got twice.
    pub(super) fn is_probe(&self, duplicate: Range) -> bool {
        self.sent
            .and_then(|probe| probe.repeated)
            .is_some_and(|range| duplicate.end == range.end)
    }

    /// An acknowledgment came (RFC 8985 §7.4.2, `TLP_process_ack`).
    pub(super) fn on_ack(
        &mut self,
        una: SeqNum,
        duplicate: Option<Range>,
        is_bare_dup_ack: bool,
    ) -> TlpVerdict {
        let Some(Probe { end, repeated }) = self.sent else {
            return TlpVerdict::Nothing;
        };
        if una.before(end) {
            return TlpVerdict::Nothing;
        }
        let Some(range) = repeated else {
            self.sent = None;
            return TlpVerdict::Nothing;
        };
        if duplicate.is_some_and(|duplicate| duplicate.end == range.end) {
            // Both arrived.
            self.sent = None;
        } else if una.after(end) {
            self.sent = None;
            return TlpVerdict::Repaired;
        } else if is_bare_dup_ack {
            // Both arrived, and the peer does not send DSACKs.
            self.sent = None;
        }
        TlpVerdict::Nothing
    }
}

#[cfg(test)]
mod tests;
