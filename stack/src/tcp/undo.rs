//! Whether a loss was none: the data had only been late, or overtaken. Two things tell: the
//! timestamp that an acknowledgment echoes (Eifel, RFC 3522), and DSACKs of all that was sent again
//! (RFC 3708). What the window was before is [`super::congestion::Congestion`]'s to restore.

use super::{out_of_order::Range, seq::SeqNum};

/// The case of one congestion event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Undo {
    /// snd_una when the event was found; none: there is nothing to undo.
    marker: Option<SeqNum>,
    /// Bytes sent again since, less those reported to have arrived twice.
    unexplained_bytes: Option<u32>,
    /// Our timestamp on the first retransmission that is or was on its way.
    first_stamp: Option<u32>,
    /// Whether that is not known: then an echo tells nothing.
    is_ambiguous: bool,
    /// snd_nxt when recovery ended: with that acknowledged, no more evidence will come.
    expires: Option<SeqNum>,
}

impl Undo {
    /// A congestion event is found. `in_network_bytes` of retransmissions from before are on their
    /// way (a loss probe, or what the `earlier` event had sent again): they have to be explained
    /// too, and their timestamps are no older transmission's.
    pub(super) fn begin(earlier: &Self, una: SeqNum, in_network_bytes: u32) -> Self {
        let from_before = in_network_bytes > 0;
        let first_stamp = earlier.first_stamp.filter(|_| from_before);
        Self {
            marker: Some(una),
            unexplained_bytes: from_before.then_some(in_network_bytes),
            first_stamp,
            is_ambiguous: from_before && (earlier.is_ambiguous || first_stamp.is_none()),
            expires: None,
        }
    }

    /// There is nothing to undo, or not any more.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// snd_una when the event was found, while it can be undone.
    pub(super) fn marker(&self) -> Option<SeqNum> {
        self.marker
    }

    /// Bytes were sent again, with our timestamp `stamp` if timestamps are in use.
    pub(super) fn on_retransmit(&mut self, bytes: u32, stamp: Option<u32>) {
        if self.marker.is_none() {
            return;
        }
        let before = self.unexplained_bytes.unwrap_or(0);
        self.unexplained_bytes = Some(before.saturating_add(bytes));
        self.first_stamp = self.first_stamp.or(stamp);
    }

    /// The peer got `range` twice.
    pub(super) fn on_duplicate(&mut self, range: Range) {
        if let (Some(marker), Some(bytes)) = (self.marker, &mut self.unexplained_bytes)
            && range.start.after_or_eq(marker)
        {
            *bytes = bytes.saturating_sub(range.len());
        }
    }

    /// Whether all that was sent again has arrived twice.
    pub(super) fn is_explained_by_duplicates(&self) -> bool {
        self.marker.is_some() && self.unexplained_bytes == Some(0)
    }

    /// Whether the data that an acknowledgment with timestamp `echo` answers was sent before
    /// anything was sent again; then the original arrived. So it is when nothing has been sent
    /// again.
    pub(super) fn is_original(&self, echo: Option<u32>) -> bool {
        if self.marker.is_none() || self.is_ambiguous {
            return false;
        }
        if self.unexplained_bytes.is_none() {
            return true;
        }
        match (self.first_stamp, echo) {
            (Some(stamp), Some(echo)) => echo != 0 && SeqNum(echo).before(SeqNum(stamp)),
            _ => false,
        }
    }

    /// Recovery has ended in good order: reports of duplicates may still come for a round trip.
    pub(super) fn on_recovered(&mut self, nxt: SeqNum) {
        self.expires = Some(nxt);
    }

    /// snd_una moved on. Returns whether the case is closed: the loss was one.
    pub(super) fn on_advance(&mut self, una: SeqNum) -> bool {
        let over = self.expires.is_some_and(|end| una.after(end));
        if over {
            self.clear();
        }
        over
    }
}

#[cfg(test)]
mod tests;
