//! The sender's use of SACK: which reports to believe (RFC 2018, RFC 2883).

use super::{out_of_order::Range, retransmit_queue::RetransmitQueue, sent::Delivered, seq::SeqNum};
use crate::{time::Instant, wire::tcp::SackBlocks};

/// Within what a report can be true.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// What the segment acknowledges.
    pub(super) ack: SeqNum,
    /// First number not acknowledged before it came.
    pub(super) una: SeqNum,
    /// Next number to send.
    pub(super) nxt: SeqNum,
    /// The largest window the peer ever gave: it has seen no more than that at once.
    pub(super) max_wnd: u32,
}

/// What one segment's SACK blocks brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SackOutcome {
    pub(super) delivered: Delivered,
    /// A duplicate the peer got (RFC 2883).
    pub(super) duplicate: Option<Duplicate>,
    /// Blocks that cannot be true.
    pub(super) discarded: u32,
}

/// A report of a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Duplicate {
    pub(super) range: Range,
    /// Whether it is of data that the peer holds out of order.
    pub(super) is_out_of_order: bool,
    /// Whether it lies further back than a window, or is longer than one: nothing sent lately can
    /// be meant.
    pub(super) is_dubious: bool,
}

/// Takes in the blocks of a segment, before the queue is cut at its acknowledgment. Reports of
/// what was never sent, or of nothing, are discarded.
pub(super) fn receive(
    queue: &mut RetransmitQueue,
    blocks: &SackBlocks,
    bounds: Bounds,
    now: Instant,
) -> SackOutcome {
    let Bounds { ack, una, nxt, .. } = bounds;
    let mut outcome = SackOutcome::default();
    let second = blocks
        .get(1)
        .map(|block| Range::new(SeqNum(block.left), SeqNum(block.right)));
    for (at, block) in blocks.iter().enumerate() {
        let range = Range::new(SeqNum(block.left), SeqNum(block.right));
        if !range.start.before(range.end) || range.end.after(nxt) {
            outcome.discarded += 1;
            continue;
        }
        if at == 0
            && let Some(duplicate) = duplicate(range, second, bounds)
        {
            outcome.duplicate = Some(duplicate);
            continue;
        }
        if range.start.before(una.latest(ack)) {
            // An old acknowledgment, overtaken by a later one, may report what lies below that.
            let is_old = ack.before(una) && range.end.before_or_eq(una);
            outcome.discarded += u32::from(!is_old && range.end.after(ack));
            continue;
        }
        outcome.delivered.merge(queue.mark_sacked(range, now));
    }
    outcome
}

/// The duplicate that a first block reports, if it does: it lies under the acknowledgment, or
/// inside the second block (RFC 2883 §4).
fn duplicate(range: Range, second: Option<Range>, bounds: Bounds) -> Option<Duplicate> {
    let Bounds { ack, max_wnd, .. } = bounds;
    let is_out_of_order = second.is_some_and(|second| second.contains(range));
    if range.end.after(ack) && !is_out_of_order {
        return None;
    }
    let oldest = ack - max_wnd.min(1 << 30);
    Some(Duplicate {
        range,
        is_out_of_order,
        is_dubious: range.len() > max_wnd || range.start.before(oldest),
    })
}

#[cfg(test)]
mod tests;
