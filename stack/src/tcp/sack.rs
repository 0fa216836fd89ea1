//! The sender's use of SACK: which reports to believe, and what they say is lost (RFC 6675,
//! RFC 2883).

use super::{
    out_of_order::Range,
    retransmit_queue::{Delivered, RetransmitQueue, SentFlags},
    seq::SeqNum,
};
use crate::{
    time::Instant,
    wire::tcp::{SackBlock, SackBlocks},
};

/// Duplicates that make a loss (RFC 6675 §2, RFC 5681 §3.2).
pub(super) const DUP_THRESH: u32 = 3;

/// What one segment's SACK blocks brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SackOutcome {
    pub(super) delivered: Delivered,
    /// A duplicate the peer got (RFC 2883).
    pub(super) duplicate: Option<Range>,
    /// Blocks that cannot be true.
    pub(super) discarded: u32,
}

/// The scoreboard beside the retransmission queue.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    /// The blocks of the last segment: what they cover need not be walked again.
    seen: SackBlocks,
    /// Behind the highest byte SACKed.
    high_end: Option<SeqNum>,
    /// Up to here, losses have been marked.
    marked_to: Option<SeqNum>,
}

impl Scoreboard {
    /// Takes in the blocks of a segment that acknowledges `una`, before the queue is cut there.
    /// Reports of what was never sent, or of nothing, are discarded.
    pub(super) fn receive(
        &mut self,
        queue: &mut RetransmitQueue,
        blocks: &SackBlocks,
        una: SeqNum,
        nxt: SeqNum,
        mss: u32,
        now: Instant,
    ) -> SackOutcome {
        let mut outcome = SackOutcome::default();
        let mut seen = SackBlocks::new();
        for (at, block) in blocks.iter().enumerate() {
            let range = Range::new(SeqNum(block.left), SeqNum(block.right));
            if !range.start.before(range.end) || range.end.after(nxt) {
                outcome.discarded += 1;
                continue;
            }
            if at == 0 && Self::is_duplicate(range, blocks.get(1), una) {
                outcome.duplicate = Some(range);
                continue;
            }
            if range.start.before(una) {
                outcome.discarded += u32::from(range.end.after(una));
                continue;
            }
            self.high_end = Some(self.high_end.map_or(range.end, |end| end.latest(range.end)));
            // As many as there are blocks: there is room.
            let _ = seen.push(*block);
            let Some(fresh) = self.fresh_part(range, mss) else {
                continue;
            };
            outcome.delivered.merge(queue.mark_sacked(fresh, mss, now));
        }
        self.seen = seen;
        outcome
    }

    /// Whether a first block reports a duplicate: it lies under the acknowledgment, or inside the
    /// second block (RFC 2883 §4).
    fn is_duplicate(range: Range, second: Option<&SackBlock>, una: SeqNum) -> bool {
        range.end.before_or_eq(una)
            || second.is_some_and(|second| {
                SeqNum(second.left).before_or_eq(range.start)
                    && SeqNum(second.right).after_or_eq(range.end)
            })
    }

    /// The part of `range` that the last segment did not report, and the segment before it, which
    /// may not have been whole then.
    fn fresh_part(&self, range: Range, mss: u32) -> Option<Range> {
        for old in &self.seen {
            let old = Range::new(SeqNum(old.left), SeqNum(old.right));
            if old == range {
                return None;
            }
            if old.start == range.start && old.end.before(range.end) && old.end.after(range.start) {
                return Some(Range::new(range.start.latest(old.end - mss), range.end));
            }
        }
        Some(range)
    }

    /// Marks lost what RFC 6675 §4 (`IsLost`) says is: bytes above which three runs, or more than
    /// two segments of bytes, have been SACKed. Retransmissions are not judged.
    pub(super) fn mark_lost(&mut self, queue: &mut RetransmitQueue, mss: u32) {
        let Some(high_end) = self.high_end else {
            return;
        };
        let mut bytes = 0;
        let mut runs = 0;
        let mut in_run = false;
        let mut edge = None;
        for at in (0..queue.index_of(high_end)).rev() {
            let sent = &queue.entries[at];
            let sacked = sent.flags.contains(SentFlags::SACKED);
            runs += u32::from(sacked && !in_run);
            in_run = sacked;
            if sacked {
                bytes += sent.len();
                if runs >= DUP_THRESH || bytes > (DUP_THRESH - 1) * mss {
                    edge = Some(at);
                    break;
                }
            }
        }
        let Some(edge) = edge else {
            return;
        };
        let from = self.marked_to.map_or(0, |seq| queue.index_of(seq));
        for at in from..edge {
            queue.mark_lost(at);
        }
        let reached = queue.entries[edge].seq;
        self.marked_to = Some(self.marked_to.map_or(reached, |seq| seq.latest(reached)));
    }

    /// Forgets the marks that lie under `una`.
    pub(super) fn acknowledge(&mut self, una: SeqNum) {
        self.high_end = self.high_end.filter(|end| end.after(una));
        self.marked_to = self.marked_to.filter(|seq| seq.after(una));
    }

    /// After a timeout that made all lost; `reneged`: and took back what the peer had reported.
    pub(super) fn timed_out(&mut self, reneged: bool) {
        if reneged {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests;
