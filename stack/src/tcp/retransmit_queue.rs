//! What has been sent and not acknowledged: when, how often, and what the peer and the loss
//! detector think of it. The SACK scoreboard of RFC 6675 is part of it ([`super::sack`]), and so
//! is the order of transmission that RFC 8985 looks at ([`super::rack`]).
//!
//! An entry covers what one call to the device sent, up to 64 KiB, until a SACK block or a
//! retransmission splits it; splits fall on segment boundaries, and what the peer holds joins into
//! one entry with its neighbours. So there are at most two entries a hole, and hostile blocks
//! cannot make more of them than [`MAX_ENTRIES`].
//!
//! Data sent for the first time stands in the order of its transmission; retransmissions have a
//! list of their own in theirs. Judging by time what is lost walks each once: an acknowledgment
//! costs what it changes, however many holes there are.

use super::{
    delivery_rate::Snapshot,
    out_of_order::Range,
    sent::{Delivered, Reference, Sent, SentFlags, both},
    seq::SeqNum,
};
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;

/// With so many entries, SACK blocks split no more of them: what they tell of parts is forgotten.
/// Half as many holes are more than a window of honest losses has; a peer that reports every
/// second segment shall not have us move megabytes for each of its acknowledgments.
pub(super) const MAX_ENTRIES: usize = 8192;

/// What judging by time found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Judgment {
    /// Bytes newly held for lost.
    pub(super) lost_bytes: u32,
    /// Of these, bytes of retransmissions.
    pub(super) lost_again_bytes: u32,
    /// When the first was sent that is under suspicion, but may still be on its way.
    pub(super) suspect_since: Option<Instant>,
}

/// A retransmission, or what became of it.
#[derive(Clone, Copy, Debug)]
struct Again {
    time: Instant,
    range: Range,
}

/// The queue; its ranges are contiguous from snd_una to snd_nxt.
#[derive(Debug, Default)]
pub(super) struct RetransmitQueue {
    entries: VecDeque<Sent>,
    /// Retransmissions by the time they were sent; those at the front may be over.
    again: VecDeque<Again>,
    sacked_bytes: u32,
    sacked_segments: u32,
    lost_bytes: u32,
    retransmitted_bytes: u32,
    /// Lost bytes of which no retransmission is in the network.
    pending_bytes: u32,
    /// No pending bytes lie before this number; none: look from the start.
    pending_from: Option<SeqNum>,
    /// Of what lies before this number, nothing that was sent only once waits to be judged.
    judged_to: Option<SeqNum>,
    /// Entries looked at.
    #[cfg(test)]
    pub(super) visits: usize,
}

impl RetransmitQueue {
    /// Whether nothing is outstanding.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What was sent, by sequence number.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Sent> {
        self.entries.iter()
    }

    /// How many entries there are.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.entries.len()
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

    /// Segments the peer holds out of order.
    pub(super) fn sacked_segments(&self) -> u32 {
        self.sacked_segments
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

    /// Whether the peer holds the very first bytes, and yet does not acknowledge them.
    pub(super) fn is_head_sacked(&self) -> bool {
        self.entries
            .front()
            .is_some_and(|head| head.has(SentFlags::SACKED))
    }

    /// Adds new data behind what there is, in segments of `segment_bytes`.
    pub(super) fn push(
        &mut self,
        range: Range,
        segment_bytes: u16,
        now: Instant,
        snapshot: Snapshot,
    ) {
        self.entries.push_back(Sent {
            seq: range.start,
            end: range.end,
            time: now,
            segment_bytes,
            flags: SentFlags::empty(),
            sacked_segments: 0,
            snapshot,
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
            let part = Sent { end: cut, ..front };
            if !front.has(SentFlags::SACKED) {
                delivered.note(&part, now);
            }
            if cut == front.end {
                self.subtract(&front);
                self.entries.pop_front();
                continue;
            }
            // The segments of a run are counted from its start: when the acknowledgment ends
            // inside of one, the rest of that becomes a run of its own.
            let boundary = front.seq + part.len().next_multiple_of(front.segment());
            if boundary != cut && boundary.before(front.end) && !front.has(SentFlags::SACKED) {
                self.split(0, boundary);
            }
            self.change(0, |head| head.seq = cut);
        }
        self.drop_stale();
        self.pending_from = self.pending_from.filter(|seq| seq.after(una));
        self.judged_to = self.judged_to.filter(|seq| seq.after(una));
        delivered
    }

    /// Changes entry `at`, and the sums with it.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut Sent)) {
        let mut sent = self.entries[at];
        self.subtract(&sent);
        change(&mut sent);
        self.entries[at] = sent;
        self.add(&sent);
    }

    fn subtract(&mut self, sent: &Sent) {
        let bytes = sent.len();
        if sent.has(SentFlags::SACKED) {
            self.sacked_bytes -= bytes;
            self.sacked_segments -= sent.sacked_segments;
        }
        if sent.has(SentFlags::LOST) {
            self.lost_bytes -= bytes;
        }
        if sent.is_pending() {
            self.pending_bytes -= bytes;
        }
        if sent.has(SentFlags::RETRANSMITTED) {
            self.retransmitted_bytes -= bytes;
        }
    }

    fn add(&mut self, sent: &Sent) {
        let bytes = sent.len();
        if sent.has(SentFlags::SACKED) {
            self.sacked_bytes += bytes;
            self.sacked_segments += sent.sacked_segments;
        }
        if sent.has(SentFlags::LOST) {
            self.lost_bytes += bytes;
        }
        if sent.is_pending() {
            self.pending_from = match self.pending_from {
                _ if self.pending_bytes == 0 => Some(sent.seq),
                from => from.map(|from| from.earliest(sent.seq)),
            };
            self.pending_bytes += bytes;
        }
        if sent.has(SentFlags::RETRANSMITTED) {
            self.retransmitted_bytes += bytes;
        }
    }

    fn visit(&mut self, entries: usize) {
        #[cfg(test)]
        {
            self.visits += entries;
        }
        let _ = (self, entries);
    }

    /// Index of the entry that holds `seq`, or of the first one after it.
    fn index_of(&self, seq: SeqNum) -> usize {
        self.entries
            .partition_point(|sent| sent.end.before_or_eq(seq))
    }

    /// Splits entry `at` before `seq`, which lies inside it.
    fn split(&mut self, at: usize, seq: SeqNum) {
        let mut right = self.entries[at];
        right.seq = seq;
        self.entries[at].end = seq;
        self.entries.insert(at + 1, right);
    }

    /// Marks the bytes `range` as arrived, as far as they are whole segments.
    pub(super) fn mark_sacked(&mut self, range: Range, now: Instant) -> Delivered {
        let mut delivered = Delivered::default();
        let Some((first, behind)) = self.cut_out(range) else {
            return delivered;
        };
        let mut segments = 0;
        let mut flags = SentFlags::SACKED;
        for at in first..behind {
            let sent = self.entries[at];
            flags |= sent.flags & SentFlags::EVER_RETRANSMITTED;
            segments += sent.segments();
            if !sent.has(SentFlags::SACKED) {
                delivered.note(&sent, now);
            }
        }
        self.visit(behind - first);
        self.join(first, behind, |joined| {
            joined.flags = flags;
            joined.sacked_segments = segments;
        });
        delivered
    }

    /// Splits entries so that the whole segments of `range` are entries of their own, and finds
    /// these, together with what the peer holds on either side of them.
    fn cut_out(&mut self, range: Range) -> Option<(usize, usize)> {
        let may_split = self.entries.len() < MAX_ENTRIES;
        let mut first = self.index_of(range.start);
        let head = *self.entries.get(first)?;
        if !head.has(SentFlags::SACKED) && head.seq.before(range.start) {
            let into = range.start.distance_from(head.seq);
            let boundary = head.seq + into.next_multiple_of(head.segment());
            let inside = boundary.before(head.end) && boundary.before(range.end);
            if inside && may_split {
                self.split(first, boundary);
            }
            first += 1;
        }
        let mut behind = self.index_of(range.end);
        if behind < first {
            return None;
        }
        if let Some(&tail) = self.entries.get(behind)
            && tail.seq.before(range.end)
        {
            let whole = range.end.distance_from(tail.seq) / tail.segment() * tail.segment();
            if tail.has(SentFlags::SACKED) {
                behind += 1;
            } else if whole > 0 && may_split {
                self.split(behind, tail.seq + whole);
                behind += 1;
            }
        }
        if behind <= first {
            return None;
        }
        let is_sacked = |at: usize| {
            self.entries
                .get(at)
                .is_some_and(|sent| sent.has(SentFlags::SACKED))
        };
        let joins_right = is_sacked(behind);
        let joins_left = first > 0 && is_sacked(first - 1);
        Some((
            first - usize::from(joins_left),
            behind + usize::from(joins_right),
        ))
    }

    /// Makes one entry of those from `first` up to `behind`.
    fn join(&mut self, first: usize, behind: usize, change: impl FnOnce(&mut Sent)) {
        let end = self.entries[behind - 1].end;
        for at in first + 1..behind {
            let sent = self.entries[at];
            self.subtract(&sent);
        }
        if behind - first > 1 {
            self.entries.drain(first + 1..behind);
        }
        // The sums still hold the first entry at its old length.
        self.change(first, |joined| {
            change(joined);
            joined.end = end;
        });
    }

    /// Judges by time (RFC 8985 §6.2, step 5): what was sent before `reference` and longer than
    /// `patience` ago is lost, retransmissions too.
    pub(super) fn judge(
        &mut self,
        reference: Reference,
        patience: Duration,
        now: Instant,
    ) -> Judgment {
        let mut judgment = Judgment::default();
        self.judge_originals(reference, patience, now, &mut judgment);
        self.judge_again(reference, patience, now, &mut judgment);
        judgment
    }

    fn judge_originals(
        &mut self,
        reference: Reference,
        patience: Duration,
        now: Instant,
        judgment: &mut Judgment,
    ) {
        let passed = SentFlags::SACKED | SentFlags::LOST | SentFlags::EVER_RETRANSMITTED;
        let mut at = self.judged_to.map_or(0, |seq| self.index_of(seq));
        while let Some(&sent) = self.entries.get(at) {
            self.visit(1);
            if !sent.flags.intersects(passed) {
                if !reference.is_after(sent.time, sent.end) {
                    break;
                }
                if sent.time + patience > now {
                    judgment.suspect_since = Some(sent.time);
                    break;
                }
                self.change(at, |sent| sent.flags |= SentFlags::LOST);
                judgment.lost_bytes += sent.len();
            }
            at += 1;
        }
        self.judged_to = match self.entries.get(at) {
            Some(next) => Some(next.seq),
            None => self.entries.back().map(|last| last.end),
        };
    }

    fn judge_again(
        &mut self,
        reference: Reference,
        patience: Duration,
        now: Instant,
        judgment: &mut Judgment,
    ) {
        self.drop_stale();
        while let Some(&Again { time, range }) = self.again.front() {
            if !reference.is_after(time, range.start) {
                break;
            }
            if time + patience > now {
                judgment.suspect_since = both(judgment.suspect_since, Some(time), Ord::min);
                break;
            }
            let mut at = self.index_of(range.start);
            let mut rest = None;
            while let Some(&sent) = self.entries.get(at)
                && sent.seq.before(range.end)
            {
                self.visit(1);
                if !reference.is_after(time, sent.end) {
                    rest = Some(sent.seq.latest(range.start));
                    break;
                }
                if sent.is_again_in_flight(time) {
                    self.change(at, |sent| {
                        sent.flags |= SentFlags::LOST;
                        sent.flags -= SentFlags::RETRANSMITTED;
                    });
                    judgment.lost_bytes += sent.len();
                    judgment.lost_again_bytes += sent.len();
                }
                at += 1;
            }
            match (rest, self.again.front_mut()) {
                (Some(rest), Some(front)) => {
                    front.range.start = rest;
                    break;
                }
                _ => self.again.pop_front(),
            };
            self.drop_stale();
        }
    }

    /// Drops retransmissions from the front of their list that arrived, are lost again, or were
    /// repeated.
    fn drop_stale(&mut self) {
        while let Some(&Again { time, range }) = self.again.front() {
            let mut at = self.index_of(range.start);
            let mut is_live = false;
            while let Some(sent) = self.entries.get(at)
                && sent.seq.before(range.end)
            {
                if sent.is_again_in_flight(time) {
                    is_live = true;
                    break;
                }
                at += 1;
            }
            self.visit(1);
            if is_live {
                return;
            }
            self.again.pop_front();
        }
    }

    /// Holds the first `len` bytes outstanding for lost, whatever became of them before; for
    /// connections without SACK.
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
        self.change(0, mark_lost);
    }

    /// After a timeout (RFC 8985 §6.3): the first segment is lost, and all that was sent longer
    /// than `patience` ago; what was sent since may well be on its way. When the peer holds the
    /// very first bytes without acknowledging them, it has thrown away what it had reported
    /// (RFC 2018 §8): then nothing counts as arrived. Returns whether that was so.
    pub(super) fn mark_lost_on_timeout(&mut self, patience: Duration, now: Instant) -> bool {
        let reneged = self.is_head_sacked();
        if let Some(&head) = self.entries.front()
            && head.len() > head.segment()
            && !reneged
            && head.time + patience > now
        {
            self.split(0, head.seq + head.segment());
        }
        for at in 0..self.entries.len() {
            let sent = self.entries[at];
            let is_due = at == 0 || sent.time + patience <= now;
            if reneged || (!sent.has(SentFlags::SACKED) && is_due) {
                self.change(at, mark_lost);
            }
        }
        self.drop_stale();
        reneged
    }

    /// A packet of more than `segment_bytes` of payload cannot have passed: those that the peer
    /// does not hold are to be sent again.
    pub(super) fn mark_larger_lost(&mut self, segment_bytes: u32) {
        for at in 0..self.entries.len() {
            let sent = self.entries[at];
            let largest = sent.segment().min(sent.len());
            if largest > segment_bytes && !sent.has(SentFlags::SACKED) {
                self.change(at, mark_lost);
            }
        }
        self.drop_stale();
    }

    /// What was held for lost is not: it was late. Retransmissions stay in the network.
    pub(super) fn unmark_lost(&mut self) {
        self.again.clear();
        for at in 0..self.entries.len() {
            if self.entries[at].has(SentFlags::LOST) {
                self.change(at, |sent| sent.flags -= SentFlags::LOST);
            }
            let sent = self.entries[at];
            if sent.has(SentFlags::EVER_RETRANSMITTED) && !sent.has(SentFlags::SACKED) {
                self.again.push_back(Again {
                    time: sent.time,
                    range: Range::new(sent.seq, sent.end),
                });
            }
        }
        // Stable: of one moment, the order of the numbers stays.
        self.again.make_contiguous().sort_by_key(|again| again.time);
        self.judged_to = None;
        self.pending_from = None;
    }

    /// The first run of lost bytes that wait for retransmission, at most `max_bytes`.
    pub(super) fn next_pending(&mut self, max_bytes: u32) -> Option<Range> {
        if self.pending_bytes == 0 {
            self.pending_from = None;
            return None;
        }
        let from = self.pending_from.map_or(0, |seq| self.index_of(seq));
        let first = (from..self.entries.len()).find(|&at| self.entries[at].is_pending())?;
        self.visit(first - from);
        let start = self.entries[first].seq;
        self.pending_from = Some(start);
        let mut end = start;
        for sent in self.entries.range(first..) {
            if !sent.is_pending() || end.distance_from(start) >= max_bytes {
                break;
            }
            end = sent.end;
        }
        Some(Range::new(
            start,
            start + end.distance_from(start).min(max_bytes),
        ))
    }

    /// The last segment that the peer does not hold: what a loss probe repeats
    /// (RFC 8985 §7.3).
    pub(super) fn last_segment(&self) -> Option<Range> {
        let last = self
            .entries
            .iter()
            .rev()
            .find(|sent| !sent.has(SentFlags::SACKED))?;
        // Whole segments precede the last one.
        let before = (last.len() - 1) / last.segment() * last.segment();
        Some(Range::new(last.seq + before, last.end))
    }

    /// Notes that `range`, from [`Self::next_pending`] or [`Self::last_segment`], has been sent
    /// again in segments of `segment_bytes`. It becomes one entry.
    pub(super) fn mark_retransmitted(
        &mut self,
        range: Range,
        segment_bytes: u16,
        now: Instant,
        snapshot: Snapshot,
    ) {
        let first = self.index_of(range.start);
        let Some(&head) = self.entries.get(first) else {
            return;
        };
        let first = if head.seq.before(range.start) {
            self.split(first, range.start);
            first + 1
        } else {
            first
        };
        let mut behind = self.index_of(range.end);
        if self
            .entries
            .get(behind)
            .is_some_and(|sent| sent.seq.before(range.end))
        {
            self.split(behind, range.end);
            behind += 1;
        }
        if behind <= first {
            return;
        }
        self.visit(behind - first);
        self.join(first, behind, |sent| {
            sent.flags |= SentFlags::RETRANSMITTED | SentFlags::EVER_RETRANSMITTED;
            sent.time = now;
            sent.segment_bytes = segment_bytes;
            sent.snapshot = snapshot;
        });
        self.again.push_back(Again { time: now, range });
    }

    /// Lets go of everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The sums, worked out anew: bytes in flight are those neither held by the peer nor lost,
    /// and those retransmitted since. And the lists: every retransmission in the network waits to
    /// be judged, and so does everything else.
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
        let exclusive = self.entries.iter().all(|sent| {
            !sent.has(SentFlags::SACKED)
                || !sent
                    .flags
                    .intersects(SentFlags::LOST | SentFlags::RETRANSMITTED)
        });
        let in_order = self
            .again
            .iter()
            .zip(self.again.iter().skip(1))
            .all(|(left, right)| left.time <= right.time);
        contiguous
            && exclusive
            && in_order
            && self.in_flight_bytes() == in_flight + again
            && self.sacked_bytes == sum(|sent| sent.has(SentFlags::SACKED))
            && self.lost_bytes == sum(|sent| sent.has(SentFlags::LOST))
            && self.pending_bytes == sum(Sent::is_pending)
            && self.retransmitted_bytes == again
    }
}

/// Held for lost, whatever it was before.
fn mark_lost(sent: &mut Sent) {
    let kept = sent.flags & SentFlags::EVER_RETRANSMITTED;
    sent.flags = kept | SentFlags::LOST;
    sent.sacked_segments = 0;
}

#[cfg(test)]
mod tests;
