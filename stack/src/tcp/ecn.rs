//! Explicit congestion notification (RFC 3168 §6.1): the path marks packets instead of dropping
//! them, the receiver echoes the mark, the sender reduces its window and says so.

use super::{config::EcnMode, seq::SeqNum};
use crate::wire::tcp::Flags;

/// ECN field of a packet that may be marked: ECT(0) (RFC 3168 §5).
pub(super) const ECT0: u8 = 0b10;
/// ECN field of a packet that has been marked.
const CE: u8 = 0b11;

/// What the two ends have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Agreement {
    /// No ECN.
    #[default]
    None,
    /// Our SYN asked for it.
    Asked,
    /// Both want it.
    Made,
}

/// ECN of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ecn {
    agreement: Agreement,
    /// Whether acknowledgments say that marked data came: until the peer says that it heard.
    echo: bool,
    /// Whether the next new segment says that the window was reduced.
    announce: bool,
    /// End of the segment that said so, until it is acknowledged.
    unheard: Option<SeqNum>,
    /// Whether the peer's data was ever sent as one that may be marked.
    seen: bool,
}

/// What became of the peer's data on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Nothing to tell.
    Plain,
    /// Something that the peer should hear of at once.
    Urgent,
}

impl Ecn {
    /// Of a connection that we begin.
    pub(super) fn active(mode: EcnMode) -> Self {
        let agreement = match mode {
            EcnMode::On => Agreement::Asked,
            EcnMode::Off | EcnMode::Passive => Agreement::None,
        };
        Self {
            agreement,
            ..Self::default()
        }
    }

    /// Flags for our SYN. One that has to be sent again does without ECN, as there are paths that
    /// drop such SYNs (RFC 3168 §6.1.1.1).
    pub(super) fn syn_flags(&mut self, is_retransmission: bool) -> Flags {
        if is_retransmission {
            self.agreement = Agreement::None;
        }
        match self.agreement {
            Agreement::Asked => Flags::ECE | Flags::CWR,
            Agreement::None | Agreement::Made => Flags::empty(),
        }
    }

    /// Flags for our SYN and ACK.
    pub(super) fn syn_ack_flags(&self) -> Flags {
        match self.agreement {
            Agreement::Made => Flags::ECE,
            Agreement::None | Agreement::Asked => Flags::empty(),
        }
    }

    /// Takes in the flags of the peer's SYN, or SYN and ACK (RFC 3168 §6.1.1). A SYN that asks has
    /// both flags; an answer with both is a reflection by something that knows no better.
    pub(super) fn receive_syn(&mut self, flags: Flags, mode: EcnMode) {
        let both = Flags::ECE | Flags::CWR;
        let agreed = if flags.contains(Flags::ACK) {
            self.agreement == Agreement::Asked && flags & both == Flags::ECE
        } else {
            mode != EcnMode::Off && flags.contains(both)
        };
        self.agreement = if agreed {
            Agreement::Made
        } else {
            Agreement::None
        };
    }

    /// Whether ECN is in use.
    pub(super) fn is_on(&self) -> bool {
        self.agreement == Agreement::Made
    }

    /// Whether the peer's data could have been marked.
    pub(super) fn has_seen(&self) -> bool {
        self.seen
    }

    /// Takes in a segment of the peer's data: its flags, and the ECN field of the packet that
    /// brought it. Acknowledgments without data are not marked, nor do they carry CWR.
    pub(super) fn receive_data(&mut self, flags: Flags, field: u8) -> Arrival {
        if !self.is_on() {
            return Arrival::Plain;
        }
        self.seen |= field != 0;
        let was = self.echo;
        let heard = flags.contains(Flags::CWR);
        if heard {
            self.echo = false;
        }
        let marked = field & CE == CE;
        self.echo |= marked;
        // The peer's window may be down to a segment, for which it waits; and a mark is news.
        if heard || (marked && !was) {
            Arrival::Urgent
        } else {
            Arrival::Plain
        }
    }

    /// Flags for a segment that acknowledges.
    pub(super) fn ack_flags(&self) -> Flags {
        if self.echo {
            Flags::ECE
        } else {
            Flags::empty()
        }
    }

    /// Whether the flags of an acknowledgment of `una` say that our data was marked since the
    /// window was last reduced: the peer repeats itself until it has heard of that.
    pub(super) fn hears_echo(&mut self, flags: Flags, una: SeqNum) -> bool {
        if !self.is_on() {
            return false;
        }
        self.unheard = self.unheard.filter(|end| una.before(*end));
        flags.contains(Flags::ECE) && !self.announce && self.unheard.is_none()
    }

    /// The window was reduced, for whatever reason: the next new data says so (RFC 3168 §6.1.2).
    pub(super) fn on_reduction(&mut self) {
        self.announce = self.is_on();
    }

    /// Whether the next new segment is to say that the window was reduced. It goes alone: a device
    /// that cuts a large one may repeat the flag in all its parts, and the peer would take a mark
    /// that came between them for an answered one.
    pub(super) fn announces(&self) -> bool {
        self.announce
    }

    /// Notes that new data went out up to `end`, and with it what there was to announce.
    pub(super) fn announced(&mut self, end: SeqNum) {
        if self.announce {
            self.announce = false;
            self.unheard = Some(end);
        }
    }

    /// The reduction was undone before it was announced.
    pub(super) fn withdraw(&mut self) {
        self.announce = false;
    }

    /// The ECN field for new data; what is sent again, and what has no data, is never marked
    /// (RFC 3168 §6.1.4, §6.1.5).
    pub(super) fn field(&self) -> u8 {
        if self.is_on() { ECT0 } else { 0 }
    }
}

#[cfg(test)]
mod tests;
