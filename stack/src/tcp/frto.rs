//! Forward RTO-Recovery (RFC 5682): whether a timeout was spurious. New data is sent before
//! anything but the first segment is repeated; when data arrives that was not repeated, it had
//! only been late.

/// Where the detection stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Frto {
    /// No timeout is in doubt.
    #[default]
    Off,
    /// The timer ran out, and the first segment is sent again (step 1).
    Armed,
    /// An acknowledgment moved on: new data goes first (step 2b).
    SendNew,
    /// New data went: the next acknowledgment tells (step 3).
    Sent,
}

/// What to make of an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrtoVerdict {
    /// Nothing yet, or the detection is off.
    Unknown,
    /// The timeout was spurious.
    Spurious,
}

/// What an acknowledgment brought, as far as this detection looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrtoAck {
    /// snd_una moved on.
    pub(super) advanced: bool,
    /// It reached what had been sent when the timer ran out.
    pub(super) recovered: bool,
    /// Data arrived that was sent before the timeout, and once only.
    pub(super) original_arrived: bool,
    /// It told of anything else: a duplicate acknowledgment, or SACKs.
    pub(super) is_dup: bool,
}

impl Frto {
    /// The timer ran out.
    pub(super) fn on_timeout(&mut self, is_enabled: bool) {
        *self = if is_enabled { Self::Armed } else { Self::Off };
    }

    /// An acknowledgment came while recovering from a timeout.
    ///
    /// Linux believes the very first acknowledgment when it covers more than the retransmission;
    /// but SACKs may have been lost, and then that data arrived before the timeout: RFC 5682 waits
    /// for the second, and so does this. With timestamps the first one tells anyway
    /// ([`super::undo`]).
    pub(super) fn on_ack(&mut self, ack: FrtoAck) -> FrtoVerdict {
        let FrtoAck {
            advanced,
            recovered,
            original_arrived,
            is_dup,
        } = ack;
        match *self {
            Self::Off => {}
            // Everything is here: nothing is left to tell by (step 2a).
            _ if recovered => *self = Self::Off,
            Self::Armed if advanced => *self = Self::SendNew,
            Self::Armed if is_dup => *self = Self::Off,
            Self::Armed => {}
            Self::SendNew | Self::Sent => {
                if original_arrived {
                    *self = Self::Off;
                    return FrtoVerdict::Spurious;
                }
                if is_dup || advanced {
                    *self = Self::Off;
                }
            }
        }
        FrtoVerdict::Unknown
    }

    /// Whether new data is to go before retransmissions.
    pub(super) fn wants_new(self) -> bool {
        self == Self::SendNew
    }

    /// Whether retransmissions wait for new data to go, and for its acknowledgment.
    pub(super) fn holds_retransmissions(self) -> bool {
        matches!(self, Self::SendNew | Self::Sent)
    }

    /// New data went.
    pub(super) fn on_new_sent(&mut self) {
        if *self == Self::SendNew {
            *self = Self::Sent;
        }
    }

    /// There is no new data to send: conventional recovery goes on.
    pub(super) fn give_up(&mut self) {
        *self = Self::Off;
    }
}

#[cfg(test)]
mod tests;
