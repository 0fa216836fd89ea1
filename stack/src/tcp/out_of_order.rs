//! Data that arrived ahead of a gap, and the SACK blocks that tell the sender of it
//! (RFC 9293 §3.10.7.4, RFC 2018, RFC 2883).

use super::{recv_queue::Chunk, send_queue::PAGE_BYTES, seq::SeqNum};
use crate::{
    device::{Page, Slice},
    wire::tcp::{MAX_SACK_BLOCKS, SackBlock, SackBlocks},
};
use alloc::collections::VecDeque;

/// Most separate ranges held: what is more counts as lost, so that a peer that sends every second
/// byte costs bounded time.
const MAX_RANGES: usize = 256;

/// From `start` up to, but not with, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: SeqNum,
    pub(super) end: SeqNum,
}

impl Range {
    pub(super) fn new(start: SeqNum, end: SeqNum) -> Self {
        Self { start, end }
    }

    pub(super) fn len(self) -> u32 {
        self.end.distance_from(self.start)
    }

    pub(super) fn contains(self, other: Self) -> bool {
        self.start.before_or_eq(other.start) && self.end.after_or_eq(other.end)
    }
}

impl From<Range> for SackBlock {
    fn from(Range { start, end }: Range) -> Self {
        Self {
            left: start.0,
            right: end.0,
        }
    }
}

/// What became of bytes offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Insert {
    /// Some of them were new.
    Stored,
    /// All were held already: these.
    Duplicate(Range),
    /// There was no room.
    Full,
}

/// The out-of-order queue of one connection.
#[derive(Debug)]
pub(super) struct OutOfOrder<P> {
    /// Data by sequence number, without overlap.
    chunks: VecDeque<(SeqNum, Chunk<P>)>,
    /// Maximal runs of `chunks`, by sequence number.
    ranges: VecDeque<Range>,
    /// Points into the runs that changed last, latest first: the order of RFC 2018 §4.
    recent: heapless::Vec<SeqNum, MAX_SACK_BLOCKS>,
    /// A duplicate to report once (RFC 2883 §4).
    duplicate: Option<Range>,
    bytes: usize,
}

impl<P: Page> OutOfOrder<P> {
    pub(super) fn new() -> Self {
        Self {
            chunks: VecDeque::new(),
            ranges: VecDeque::new(),
            recent: heapless::Vec::new(),
            duplicate: None,
            bytes: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes held.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of the pages held, used or not.
    pub(super) fn truesize(&self) -> usize {
        self.chunks.len() * PAGE_BYTES
    }

    /// How many separate runs are held.
    pub(super) fn runs(&self) -> usize {
        self.ranges.len()
    }

    /// The number of the byte behind the last one held.
    pub(super) fn end(&self) -> Option<SeqNum> {
        self.ranges.back().map(|range| range.end)
    }

    /// Takes in the part of a segment that `slices` holds from `start` on, as far as it is new,
    /// while all pages together stay within `max_truesize`; bytes in badly used ones are copied
    /// together before any are refused.
    pub(super) fn insert(
        &mut self,
        start: SeqNum,
        slices: impl IntoIterator<Item = Slice<P>>,
        max_truesize: usize,
    ) -> Insert {
        let mut end = start;
        let mut stored = false;
        let mut refused = false;
        let mut known: Option<Range> = None;
        for slice in slices {
            let mut seq = end;
            end += slice.len() as u32;
            let mut rest = slice;
            while !rest.is_empty() {
                let range = Range::new(seq, seq + rest.len() as u32);
                let (held, part) = self.first_part(range);
                let mut piece = rest.clone();
                piece.truncate(part as usize);
                rest.advance(part as usize);
                let covered = Range::new(seq, seq + part);
                seq += part;
                if held {
                    known = Some(match known {
                        Some(known) if known.end == covered.start => {
                            Range::new(known.start, covered.end)
                        }
                        Some(known) => known,
                        None => covered,
                    });
                } else if self.has_page(max_truesize) && self.has_room_for(covered) {
                    self.store(covered, piece);
                    stored = true;
                } else {
                    refused = true;
                }
            }
        }
        if let Some(known) = known {
            self.duplicate = Some(known);
        }
        if stored {
            self.touch(end - 1);
        }
        match known {
            _ if stored => Insert::Stored,
            Some(known) if !refused => Insert::Duplicate(known),
            _ if refused => Insert::Full,
            _ => Insert::Stored,
        }
    }

    /// Whether the first bytes of `range` are held, and how many of them are alike in that.
    fn first_part(&self, range: Range) -> (bool, u32) {
        let next = self
            .ranges
            .partition_point(|held| held.end.before_or_eq(range.start));
        match self.ranges.get(next) {
            Some(held) if held.start.before_or_eq(range.start) => (
                true,
                held.end.earliest(range.end).distance_from(range.start),
            ),
            Some(held) => (
                false,
                held.start.earliest(range.end).distance_from(range.start),
            ),
            None => (false, range.len()),
        }
    }

    /// Whether there is room for a page more, after tidying up if need be.
    fn has_page(&mut self, max_truesize: usize) -> bool {
        if self.truesize() + PAGE_BYTES <= max_truesize {
            return true;
        }
        let least = self.bytes + self.ranges.len() * PAGE_BYTES;
        if least <= self.truesize() / 4 * 3 {
            self.collapse();
        }
        self.truesize() + PAGE_BYTES <= max_truesize
    }

    /// Copies the bytes of each run together, so that they fill their pages. What this saves pays
    /// for it: as much has to come in again before it can be done again.
    fn collapse(&mut self) {
        let mut packed: VecDeque<(SeqNum, Chunk<P>)> = VecDeque::new();
        for (mut seq, mut chunk) in self.chunks.drain(..) {
            if let Some((start, last)) = packed.back_mut()
                && *start + last.bytes().len() as u32 == seq
            {
                let room = PAGE_BYTES.saturating_sub(last.bytes().len());
                let moved = room.min(chunk.bytes().len());
                if moved > 0 {
                    last.append(&chunk.bytes()[..moved]);
                    chunk.advance(moved);
                    seq += moved as u32;
                }
            }
            if !chunk.bytes().is_empty() {
                packed.push_back((seq, chunk));
            }
        }
        self.chunks = packed;
    }

    /// Whether `range` may be added without making more runs than allowed.
    fn has_room_for(&self, range: Range) -> bool {
        self.ranges.len() < MAX_RANGES
            || self
                .ranges
                .iter()
                .any(|held| held.end == range.start || held.start == range.end)
    }

    /// Adds bytes none of which are held.
    fn store(&mut self, range: Range, slice: Slice<P>) {
        self.bytes += slice.len();
        self.store_chunk(range, slice);

        let next = self
            .ranges
            .partition_point(|held| held.end.before(range.start));
        let joins_left = self
            .ranges
            .get(next)
            .is_some_and(|held| held.end == range.start);
        let right = next + usize::from(joins_left);
        let joins_right = self
            .ranges
            .get(right)
            .is_some_and(|held| held.start == range.end);
        match (joins_left, joins_right) {
            (false, false) => self.ranges.insert(next, range),
            (true, false) => self.ranges[next].end = range.end,
            (false, true) => self.ranges[right].start = range.start,
            (true, true) => {
                self.ranges[next].end = self.ranges[right].end;
                self.ranges.remove(right);
            }
        }
    }

    /// Adds bytes to the chunks: to a neighbour they touch, when both are so small that a page each
    /// would be wasted on them. So a run takes no more pages than twice what full ones would, and
    /// a peer that sends byte by byte has neither the device's pages nor our time.
    fn store_chunk(&mut self, range: Range, slice: Slice<P>) {
        let at = self
            .chunks
            .partition_point(|(seq, _)| seq.before(range.start));
        if let Some(left) = at.checked_sub(1)
            && let Some((seq, chunk)) = self.chunks.get_mut(left)
            && *seq + chunk.bytes().len() as u32 == range.start
            && chunk.takes(slice.len())
        {
            chunk.append(slice.bytes());
            return;
        }
        if let Some((seq, chunk)) = self.chunks.get_mut(at)
            && *seq == range.end
            && chunk.takes(slice.len())
        {
            *seq = range.start;
            *chunk = Chunk::gathered(slice.bytes(), chunk.bytes());
            return;
        }
        self.chunks.insert(at, (range.start, Chunk::Page(slice)));
    }

    /// Puts the run around `seq` first in the order of reports.
    fn touch(&mut self, seq: SeqNum) {
        let Some(range) = self.range_around(seq) else {
            return;
        };
        self.recent
            .retain(|&other| !(other.after_or_eq(range.start) && other.before(range.end)));
        if self.recent.is_full() {
            self.recent.pop();
        }
        // There is room now: one was taken out if it was full.
        let _ = self.recent.insert(0, seq);
    }

    fn range_around(&self, seq: SeqNum) -> Option<Range> {
        let at = self
            .ranges
            .partition_point(|held| held.end.before_or_eq(seq));
        self.ranges
            .get(at)
            .copied()
            .filter(|held| held.start.before_or_eq(seq))
    }

    /// The lowest run that is held.
    pub(super) fn first_run(&self) -> Option<Range> {
        self.ranges.front().copied()
    }

    /// Takes out the next chunk that continues at `rcv_nxt`; what lies before it is dropped.
    pub(super) fn pop_in_order(&mut self, rcv_nxt: SeqNum) -> Option<Chunk<P>> {
        loop {
            if self.chunks.front()?.0.after(rcv_nxt) {
                return None;
            }
            let (seq, mut chunk) = self.chunks.pop_front()?;
            let len = chunk.bytes().len();
            self.bytes -= len;
            self.forget_before(seq + len as u32);
            let known = rcv_nxt.bytes_since(seq) as usize;
            if known < len {
                chunk.advance(known);
                return Some(chunk);
            }
        }
    }

    fn forget_before(&mut self, seq: SeqNum) {
        while let Some(range) = self.ranges.front_mut() {
            if range.end.after(seq) {
                range.start = range.start.latest(seq);
                break;
            }
            self.ranges.pop_front();
        }
        self.recent.retain(|point| point.after_or_eq(seq));
    }

    /// Notes a segment that brought nothing new, to be reported once (RFC 2883 §4).
    pub(super) fn note_duplicate(&mut self, range: Range) {
        if range.len() > 0 {
            self.duplicate = Some(range);
        }
    }

    /// The SACK blocks for the next segment out, at most `max`: a duplicate first, then the run
    /// that changed last, then the others (RFC 2018 §4, RFC 2883 §4).
    pub(super) fn sack_blocks(&self, max: usize) -> SackBlocks {
        let mut blocks = SackBlocks::new();
        if max == 0 {
            return blocks;
        }
        if let Some(duplicate) = self.duplicate {
            let _ = blocks.push(duplicate.into());
            // RFC 2883 §4.2: the run that holds the duplicate follows it.
            if let Some(range) = self.range_around(duplicate.start)
                && range.contains(duplicate)
                && blocks.len() < max
            {
                let _ = blocks.push(range.into());
            }
        }
        // Runs follow the duplicate, if there is one.
        let runs = blocks.len().min(1);
        let recent = self
            .recent
            .iter()
            .filter_map(|&point| self.range_around(point));
        for range in recent.chain(self.ranges.iter().copied()) {
            if blocks.len() >= max {
                break;
            }
            if !blocks[runs..].contains(&range.into()) {
                let _ = blocks.push(range.into());
            }
        }
        blocks
    }

    /// Notes that the blocks have been sent: a duplicate is reported once.
    pub(super) fn sack_blocks_sent(&mut self) {
        self.forget_duplicate();
    }

    /// Keeps a duplicate from being reported.
    pub(super) fn forget_duplicate(&mut self) {
        self.duplicate = None;
    }

    /// Whether a SACK option is due.
    pub(super) fn has_sack_blocks(&self) -> bool {
        self.duplicate.is_some() || !self.ranges.is_empty()
    }

    /// Lets go of everything.
    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests;
