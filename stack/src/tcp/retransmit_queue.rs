//! What has been sent and not acknowledged: when, how often, and what the peer and the loss
//! detector think of it. The SACK scoreboard of RFC 6675 is part of it ([`super::sack`]).
//!
//! An entry covers what one call to the device sent, up to 64 KiB, until a SACK block or a
//! retransmission splits it; splits fall on segment boundaries, so that hostile blocks cannot make
//! more entries than segments were sent.

use super::{out_of_order::Range, seq::SeqNum};
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;

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
    pub(super) flags: SentFlags,
}

impl Sent {
    pub(super) fn len(&self) -> u32 {
        self.end.distance_from(self.seq)
    }

    fn has(&self, flags: SentFlags) -> bool {
        self.flags.contains(flags)
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
}

impl Delivered {
    /// Joins what two parts of one acknowledgment brought.
    pub(super) fn merge(&mut self, other: Self) {
        let Self {
            bytes,
            rtt,
            latest_rtt,
            retransmitted,
        } = other;
        self.bytes += bytes;
        self.rtt = self.rtt.max(rtt);
        self.latest_rtt = match (self.latest_rtt, latest_rtt) {
            (Some(ours), Some(others)) => Some(ours.min(others)),
            (ours, others) => ours.or(others),
        };
        self.retransmitted |= retransmitted;
    }

    fn note(&mut self, sent: &Sent, bytes: u32, now: Instant) {
        self.bytes += bytes;
        if sent.has(SentFlags::EVER_RETRANSMITTED) {
            self.retransmitted = true;
        } else {
            let rtt = now.since(sent.time);
            self.rtt = Some(self.rtt.map_or(rtt, |longest| longest.max(rtt)));
            self.latest_rtt = Some(self.latest_rtt.map_or(rtt, |latest| latest.min(rtt)));
        }
    }
}

/// The queue; its ranges are contiguous from snd_una to snd_nxt.
#[derive(Debug, Default)]
pub(super) struct RetransmitQueue {
    pub(super) entries: VecDeque<Sent>,
    sacked_bytes: u32,
    lost_bytes: u32,
    retransmitted_bytes: u32,
    /// Lost bytes of which no retransmission is in the network.
    pending_bytes: u32,
    /// No pending bytes lie before this entry's number.
    pending_from: Option<SeqNum>,
}

impl RetransmitQueue {
    /// Whether nothing is outstanding.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes between snd_una and snd_nxt.
    pub(super) fn outstanding_bytes(&self) -> u32 {
        match (self.entries.front(), self.entries.back()) {
            (Some(first), Some(last)) => last.end.distance_from(first.seq),
            _ => 0,
        }
    }

    /// Bytes believed to be in the network: "pipe" of RFC 6675 §4.
    pub(super) fn in_flight_bytes(&self) -> u32 {
        (self.outstanding_bytes() + self.retransmitted_bytes)
            .saturating_sub(self.sacked_bytes + self.lost_bytes)
    }

    /// Bytes the peer holds out of order.
    pub(super) fn sacked_bytes(&self) -> u32 {
        self.sacked_bytes
    }

    /// Bytes held for lost.
    pub(super) fn lost_bytes(&self) -> u32 {
        self.lost_bytes
    }

    /// Bytes retransmitted and not acknowledged.
    pub(super) fn retransmitted_bytes(&self) -> u32 {
        self.retransmitted_bytes
    }

    /// Lost bytes that wait for their retransmission.
    pub(super) fn pending_bytes(&self) -> u32 {
        self.pending_bytes
    }

    /// Adds new data behind what there is.
    pub(super) fn push(&mut self, seq: SeqNum, len: u32, now: Instant) {
        self.entries.push_back(Sent {
            seq,
            end: seq + len,
            time: now,
            flags: SentFlags::empty(),
        });
    }

    /// Drops everything before `una`, cumulatively acknowledged.
    pub(super) fn acknowledge(&mut self, una: SeqNum, now: Instant) -> Delivered {
        let mut delivered = Delivered::default();
        while let Some(&front) = self.entries.front() {
            if front.seq.after_or_eq(una) {
                break;
            }
            let cut = front.end.earliest(una);
            let bytes = cut.distance_from(front.seq);
            self.subtract(front.flags, bytes);
            if !front.has(SentFlags::SACKED) {
                delivered.note(&front, bytes, now);
            }
            if cut == front.end {
                self.entries.pop_front();
            } else {
                self.entries[0].seq = cut;
            }
        }
        delivered
    }

    /// Changes the flags of entry `at`, and the sums with them.
    pub(super) fn set_flags(&mut self, at: usize, flags: SentFlags) {
        let sent = self.entries[at];
        self.subtract(sent.flags, sent.len());
        self.entries[at].flags = flags;
        self.add(flags, sent.len(), sent.seq);
    }

    fn subtract(&mut self, flags: SentFlags, bytes: u32) {
        if flags.contains(SentFlags::SACKED) {
            self.sacked_bytes -= bytes;
        }
        if flags.contains(SentFlags::LOST) {
            self.lost_bytes -= bytes;
            if !flags.contains(SentFlags::RETRANSMITTED) {
                self.pending_bytes -= bytes;
            }
        }
        if flags.contains(SentFlags::RETRANSMITTED) {
            self.retransmitted_bytes -= bytes;
        }
    }

    fn add(&mut self, flags: SentFlags, bytes: u32, seq: SeqNum) {
        if flags.contains(SentFlags::SACKED) {
            self.sacked_bytes += bytes;
        }
        if flags.contains(SentFlags::LOST) {
            self.lost_bytes += bytes;
            if !flags.contains(SentFlags::RETRANSMITTED) {
                self.pending_bytes += bytes;
                self.pending_from = Some(self.pending_from.map_or(seq, |at| at.earliest(seq)));
            }
        }
        if flags.contains(SentFlags::RETRANSMITTED) {
            self.retransmitted_bytes += bytes;
        }
    }

    /// Index of the entry that holds `seq`, or of the first one after it.
    pub(super) fn index_of(&self, seq: SeqNum) -> usize {
        self.entries
            .partition_point(|sent| sent.end.before_or_eq(seq))
    }

    /// Marks the bytes `range` as arrived, on whole segments of `mss` only.
    pub(super) fn mark_sacked(&mut self, range: Range, mss: u32, now: Instant) -> Delivered {
        let mut delivered = Delivered::default();
        let mut at = self.index_of(range.start);
        while let Some(&sent) = self.entries.get(at) {
            if sent.seq.after_or_eq(range.end) {
                break;
            }
            if sent.has(SentFlags::SACKED) {
                at += 1;
                continue;
            }
            let start = sent.seq
                + range
                    .start
                    .bytes_since(sent.seq)
                    .next_multiple_of(mss.max(1));
            let end = if range.end.after_or_eq(sent.end) {
                sent.end
            } else {
                let whole = range.end.distance_from(sent.seq) / mss.max(1) * mss.max(1);
                sent.seq + whole
            };
            if start.after_or_eq(end) {
                at += 1;
                continue;
            }
            if start != sent.seq {
                self.split(at, start);
                at += 1;
            }
            if end != sent.end {
                self.split(at, end);
            }
            let sent = self.entries[at];
            delivered.note(&sent, sent.len(), now);
            let kept = sent.flags & SentFlags::EVER_RETRANSMITTED;
            self.set_flags(at, kept | SentFlags::SACKED);
            at += 1;
        }
        delivered
    }

    /// Splits entry `at` before `seq`, which lies inside it.
    fn split(&mut self, at: usize, seq: SeqNum) {
        let mut right = self.entries[at];
        right.seq = seq;
        self.entries[at].end = seq;
        self.entries.insert(at + 1, right);
    }

    /// Holds entry `at` for lost, unless it arrived, or is lost already.
    pub(super) fn mark_lost(&mut self, at: usize) {
        let flags = self.entries[at].flags;
        if !flags.intersects(SentFlags::SACKED | SentFlags::LOST) {
            self.set_flags(at, flags | SentFlags::LOST);
        }
    }

    /// Holds the first `len` bytes outstanding for lost, whatever became of them before.
    pub(super) fn mark_head_lost(&mut self, len: u32) {
        let Some(&head) = self.entries.front() else {
            return;
        };
        if head.has(SentFlags::SACKED) {
            return;
        }
        if head.len() > len && len > 0 {
            self.split(0, head.seq + len);
        }
        let kept = head.flags & SentFlags::EVER_RETRANSMITTED;
        self.set_flags(0, kept | SentFlags::LOST);
    }

    /// After a timeout: everything the peer does not hold is lost, retransmissions too
    /// (RFC 6675 §5.1 keeps the SACK marks). When the peer holds the very first bytes without
    /// acknowledging them, it has thrown away what it had reported (RFC 2018 §8): then nothing
    /// counts as arrived. Returns whether that was so.
    pub(super) fn mark_all_lost(&mut self) -> bool {
        let reneged = self
            .entries
            .front()
            .is_some_and(|head| head.has(SentFlags::SACKED));
        for at in 0..self.entries.len() {
            let flags = self.entries[at].flags;
            if reneged || !flags.contains(SentFlags::SACKED) {
                let kept = flags & SentFlags::EVER_RETRANSMITTED;
                self.set_flags(at, kept | SentFlags::LOST);
            }
        }
        reneged
    }

    /// The first run of lost bytes that wait for retransmission, at most `max_bytes`.
    pub(super) fn next_pending(&mut self, max_bytes: u32) -> Option<Range> {
        if self.pending_bytes == 0 {
            self.pending_from = None;
            return None;
        }
        let is_pending =
            |sent: &Sent| sent.has(SentFlags::LOST) && !sent.has(SentFlags::RETRANSMITTED);
        let from = self.pending_from.map_or(0, |seq| self.index_of(seq));
        let first = (from..self.entries.len()).find(|&at| is_pending(&self.entries[at]))?;
        let start = self.entries[first].seq;
        self.pending_from = Some(start);
        let mut end = start;
        for sent in self.entries.range(first..) {
            if !is_pending(sent) || end.distance_from(start) >= max_bytes {
                break;
            }
            end = sent.end;
        }
        Some(Range::new(
            start,
            start + end.distance_from(start).min(max_bytes),
        ))
    }

    /// Notes that `range`, from [`Self::next_pending`], has been sent again.
    pub(super) fn mark_retransmitted(&mut self, range: Range, now: Instant) {
        let mut at = self.index_of(range.start);
        while let Some(&sent) = self.entries.get(at) {
            if sent.seq.after_or_eq(range.end) {
                break;
            }
            if sent.end.after(range.end) {
                self.split(at, range.end);
            }
            let sent_again = SentFlags::RETRANSMITTED | SentFlags::EVER_RETRANSMITTED;
            self.entries[at].time = now;
            self.set_flags(at, sent.flags | sent_again);
            at += 1;
        }
    }

    /// Lets go of everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The sums, worked out anew: bytes in flight are those neither held by the peer nor lost,
    /// and those retransmitted since.
    pub(super) fn is_consistent(&self) -> bool {
        let sum = |pick: fn(&Sent) -> bool| -> u32 {
            self.entries
                .iter()
                .filter(|sent| pick(sent))
                .map(Sent::len)
                .sum()
        };
        let in_flight = sum(|sent| !sent.flags.intersects(SentFlags::SACKED | SentFlags::LOST));
        let again = sum(|sent| sent.has(SentFlags::RETRANSMITTED));
        let contiguous = self
            .entries
            .iter()
            .zip(self.entries.iter().skip(1))
            .all(|(left, right)| left.end == right.seq && left.len() > 0);
        contiguous
            && self.in_flight_bytes() == in_flight + again
            && self.sacked_bytes == sum(|sent| sent.has(SentFlags::SACKED))
            && self.lost_bytes == sum(|sent| sent.has(SentFlags::LOST))
            && self.retransmitted_bytes == again
            && again == sum(|sent| sent.has(SentFlags::LOST.union(SentFlags::RETRANSMITTED)))
    }
}

#[cfg(test)]
mod tests;
