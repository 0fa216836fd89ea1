//! RACK: loss found by time (RFC 8985). What was sent before something that has arrived, and has
//! had a round trip and some patience to arrive itself, is lost. It finds lost retransmissions as
//! it finds others, and needs no count of duplicates; connections without SACK keep that count
//! ([`super::recovery`]).
//!
//! Where RFC 8985 and Linux differ, and what is done here:
//! * The timer runs out when the *first* suspect's patience ends, not the last one's: no more
//!   timers, as each holds something for lost, and repair up to a reordering window sooner. Nor is
//!   there Linux's floor of 2 ms, which its clock needs and this one does not.
//! * A retransmission found spurious counts as reordering seen, as does a segment that arrives
//!   behind a later one: the first tells as much, and on a path that reorders by more than three
//!   segments it is the first that is seen.
//! * A duplicate of a loss probe says nothing about reordering (Linux; the RFC does not say).

use super::{
    sent::{Delivered, Reference, Sent},
    seq::SeqNum,
};
use crate::time::{Duration, Instant};

/// Recoveries for which a window widened by DSACKs stays so (RFC 8985 §6.2, step 4).
const PERSIST_RECOVERIES: u8 = 16;
/// The window is counted in quarters of the least RTT (RFC 8985 §6.2, step 4).
const WINDOW_FRACTION: u32 = 4;

/// The detector of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Rack {
    /// The latest sent of what has arrived: `RACK.xmit_ts`, `RACK.end_seq`.
    latest: Option<Reference>,
    /// Its round-trip time.
    rtt: Duration,
    /// The highest number that has arrived: `RACK.fack`.
    fack: Option<SeqNum>,
    reordering_events: u32,
    /// snd_nxt at the last DSACK that widened the window: one a round trip counts.
    dsack_round: Option<SeqNum>,
    /// `RACK.reo_wnd_mult`, less one.
    extra_quarters: u8,
    /// `RACK.reo_wnd_persist`.
    persist: u8,
}

/// What the patience depends on beside the detector's own state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) min_rtt: Duration,
    pub(super) srtt: Duration,
    /// Segments the peer holds out of order.
    pub(super) sacked_segments: u32,
    pub(super) dup_thresh: u32,
    pub(super) is_recovering: bool,
}

impl Rack {
    /// Times that data arrived behind data sent later.
    pub(super) fn reordering_events(&self) -> u32 {
        self.reordering_events
    }

    /// The transmission that all others are judged by.
    pub(super) fn latest(&self) -> Option<Reference> {
        self.latest
    }

    /// The round-trip time of that transmission.
    pub(super) fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Takes in what arrived (steps 2 and 3); `is_spurious` tells of a retransmission whether the
    /// peer's timestamp answers the original. Returns whether this showed reordering.
    pub(super) fn on_delivered(
        &mut self,
        delivered: &Delivered,
        una: SeqNum,
        min_rtt: Duration,
        now: Instant,
        is_spurious: impl Fn(&Sent) -> bool,
    ) -> bool {
        if let Some(sent) = &delivered.latest_original {
            self.advance(sent, now);
        }
        if let Some(sent) = &delivered.latest_again
            && now.since(sent.time) >= min_rtt
            && !is_spurious(sent)
        {
            self.advance(sent, now);
        }
        let fack_before = self.fack;
        let arrived = delivered.end.map_or(una, |end| end.latest(una));
        self.fack = Some(fack_before.map_or(arrived, |fack| fack.latest(arrived)));
        let reordered = match (delivered.lowest_original, fack_before) {
            (Some(lowest), Some(fack)) => lowest.before(fack),
            _ => false,
        };
        self.reordering_events += u32::from(reordered);
        reordered
    }

    fn advance(&mut self, sent: &Sent, now: Instant) {
        let is_later = self
            .latest
            .is_none_or(|latest| !latest.is_after(sent.time, sent.end));
        if is_later {
            self.latest = Some(Reference::of(sent));
            self.rtt = now.since(sent.time);
        }
    }

    /// What was held for lost has arrived after all.
    pub(super) fn on_spurious(&mut self) {
        self.reordering_events += 1;
    }

    /// A recovery was for nothing: what seemed to answer its retransmissions answered the
    /// originals, and is no measure for others.
    pub(super) fn on_undone(&mut self) {
        self.latest = None;
        self.on_spurious();
    }

    /// The peer got something twice that we had sent twice (step 4): more patience, at most once a
    /// round trip.
    pub(super) fn on_duplicate(&mut self, nxt: SeqNum) {
        if self.dsack_round.is_none() {
            self.dsack_round = Some(nxt);
            self.extra_quarters = self.extra_quarters.saturating_add(1);
            self.persist = PERSIST_RECOVERIES;
        }
    }

    /// snd_una moved on.
    pub(super) fn on_advance(&mut self, una: SeqNum) {
        self.dsack_round = self.dsack_round.filter(|round| una.before(*round));
    }

    /// A recovery ended: patience wears off.
    pub(super) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.extra_quarters = 0;
        }
    }

    /// How long ago something must have been sent to be lost when something sent later has arrived:
    /// `RACK.rtt` and the reordering window (step 4).
    pub(super) fn patience(&self, patience: Patience) -> Duration {
        self.rtt + self.reordering_window(patience)
    }

    fn reordering_window(&self, patience: Patience) -> Duration {
        let Patience {
            min_rtt,
            srtt,
            sacked_segments,
            dup_thresh,
            is_recovering,
        } = patience;
        // Where nothing ever overtook anything, three segments are evidence enough.
        if self.reordering_events == 0 && (is_recovering || sacked_segments >= dup_thresh) {
            return Duration::ZERO;
        }
        let quarters = u32::from(self.extra_quarters) + 1;
        (min_rtt / WINDOW_FRACTION)
            .saturating_mul(quarters)
            .min(srtt)
    }
}

#[cfg(test)]
mod tests;
