//! A transmission, and what an acknowledgment brings of it.

use super::{delivery_rate::Snapshot, seq::SeqNum};
use crate::time::{Duration, Instant};

bitflags::bitflags! {
    /// What is known of a sent range.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) struct SentFlags: u8 {
        /// The peer holds it, by its SACK blocks.
        const SACKED = 1;
        /// Held for lost.
        const LOST = 2;
        /// A retransmission of it is in the network.
        const RETRANSMITTED = 4;
        /// It has been retransmitted once: its acknowledgment is ambiguous (Karn).
        const EVER_RETRANSMITTED = 8;
    }
}

/// A range of sequence numbers sent together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) seq: SeqNum,
    pub(super) end: SeqNum,
    /// When it was last handed to the device.
    pub(super) time: Instant,
    /// Payload of each of its segments, of which the last may be smaller.
    pub(super) segment_bytes: u16,
    pub(super) flags: SentFlags,
    /// How many segments the peer holds of it.
    pub(super) sacked_segments: u32,
    /// What had been delivered when it was sent.
    pub(super) snapshot: Snapshot,
}

impl Sent {
    pub(super) fn len(&self) -> u32 {
        self.end.distance_from(self.seq)
    }

    /// How many segments it was sent in.
    pub(super) fn segments(&self) -> u32 {
        if self.has(SentFlags::SACKED) {
            self.sacked_segments
        } else {
            self.len().div_ceil(self.segment())
        }
    }

    pub(super) fn has(&self, flags: SentFlags) -> bool {
        self.flags.contains(flags)
    }

    pub(super) fn segment(&self) -> u32 {
        u32::from(self.segment_bytes).max(1)
    }

    /// Whether it is lost, and no retransmission is on its way.
    pub(super) fn is_pending(&self) -> bool {
        self.has(SentFlags::LOST) && !self.has(SentFlags::RETRANSMITTED)
    }

    /// Whether a retransmission of it, sent at `time`, may still arrive.
    pub(super) fn is_again_in_flight(&self, time: Instant) -> bool {
        self.time == time
            && self.has(SentFlags::EVER_RETRANSMITTED)
            && !self.has(SentFlags::SACKED)
            && !self.is_pending()
    }

    /// Whether it was sent after `other` (RFC 8985 §6.2, `RACK_sent_after`).
    pub(super) fn is_after(&self, other: &Self) -> bool {
        Reference::of(self).is_after(other.time, other.end)
    }
}

/// A transmission by which earlier ones are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) time: Instant,
    pub(super) end: SeqNum,
}

impl Reference {
    pub(super) fn of(sent: &Sent) -> Self {
        Self {
            time: sent.time,
            end: sent.end,
        }
    }

    /// Whether it was sent after what was sent at `time` and ends at `end`: of one moment, in the
    /// order of the numbers.
    pub(super) fn is_after(self, time: Instant, end: SeqNum) -> bool {
        self.time > time || (self.time == time && self.end.after(end))
    }
}

/// What an acknowledgment brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delivered {
    /// Bytes newly known to have arrived.
    pub(super) bytes: u32,
    /// Time since the first transmission of the oldest of them that was sent only once.
    pub(super) rtt: Option<Duration>,
    /// The same of the latest sent: what congestion control takes for the path's delay.
    pub(super) latest_rtt: Option<Duration>,
    /// Whether any of them had been retransmitted.
    pub(super) retransmitted: bool,
    /// The latest sent of those that were sent only once.
    pub(super) latest_original: Option<Sent>,
    /// The latest sent of those that were retransmitted.
    pub(super) latest_again: Option<Sent>,
    /// The lowest number of those that were sent only once.
    pub(super) lowest_original: Option<SeqNum>,
    /// The highest number among them, plus one.
    pub(super) end: Option<SeqNum>,
}

impl Delivered {
    /// Takes in what another part of the same acknowledgment brought.
    pub(super) fn merge(&mut self, other: Self) {
        let Self {
            bytes,
            rtt,
            latest_rtt,
            retransmitted,
            latest_original,
            latest_again,
            lowest_original,
            end,
        } = other;
        self.bytes += bytes;
        self.rtt = self.rtt.max(rtt);
        self.latest_rtt = both(self.latest_rtt, latest_rtt, Ord::min);
        self.retransmitted |= retransmitted;
        self.latest_original = both(self.latest_original, latest_original, later);
        self.latest_again = both(self.latest_again, latest_again, later);
        self.lowest_original = both(self.lowest_original, lowest_original, SeqNum::earliest);
        self.end = both(self.end, end, SeqNum::latest);
    }

    /// Takes in `part`, a part of an entry.
    pub(super) fn note(&mut self, part: &Sent, now: Instant) {
        let again = part.has(SentFlags::EVER_RETRANSMITTED);
        let rtt = (!again).then(|| now.since(part.time));
        self.merge(Self {
            bytes: part.len(),
            rtt,
            latest_rtt: rtt,
            retransmitted: again,
            latest_original: (!again).then_some(*part),
            latest_again: again.then_some(*part),
            lowest_original: (!again).then_some(part.seq),
            end: Some(part.end),
        });
    }

    /// The latest sent of all.
    pub(super) fn latest(&self) -> Option<Sent> {
        both(self.latest_original, self.latest_again, later)
    }
}

/// What there is of two, or what `pick` makes of both.
pub(super) fn both<T>(a: Option<T>, b: Option<T>, pick: impl FnOnce(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(pick(a, b)),
        (a, b) => a.or(b),
    }
}

fn later(a: Sent, b: Sent) -> Sent {
    if b.is_after(&a) { b } else { a }
}
