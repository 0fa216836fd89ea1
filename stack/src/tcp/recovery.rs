//! What the sender is about: nothing, reducing its window, fast recovery (RFC 6675 with SACK,
//! RFC 6582 without), or recovery after a timeout (RFC 6298 §5). What is lost is found in
//! [`super::rack`] and [`super::loss`].

use super::{
    congestion::{Cause, Congestion, CongestionEvent, CongestionWindow},
    frto::Frto,
    out_of_order::Range,
    prr::{Prr, PrrAck},
    retransmit_queue::RetransmitQueue,
    seq::SeqNum,
    undo::Undo,
};

/// What the sender is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is known to be lost.
    #[default]
    Open,
    /// The window comes down, though nothing is known to be lost now ("CWR"), until everything
    /// sent before `high` is acknowledged.
    Reducing {
        /// snd_nxt when congestion was found.
        high: SeqNum,
    },
    /// Fast recovery, until everything sent before `high` is acknowledged.
    Recovery {
        /// snd_nxt when the loss was found: "RecoveryPoint".
        high: SeqNum,
    },
    /// Recovery from a timeout, until everything sent before `high` is acknowledged; or from
    /// packets too big for the path, which takes nothing off the window.
    Loss {
        /// snd_nxt when the timer ran out.
        high: SeqNum,
    },
}

/// The flight as it was before the acknowledgment under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    pub(super) outstanding_bytes: u32,
    pub(super) sacked_bytes: u32,
}

impl Flight {
    pub(super) fn of(queue: &RetransmitQueue) -> Self {
        Self {
            outstanding_bytes: queue.outstanding_bytes(),
            sacked_bytes: queue.sacked_bytes(),
        }
    }
}

/// The variables that an episode begins from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Episode {
    pub(super) una: SeqNum,
    pub(super) nxt: SeqNum,
    /// How much of the window was in use.
    pub(super) used_bytes: u32,
    pub(super) flight: Flight,
}

/// Loss recovery of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Recovery {
    phase: Phase,
    /// Duplicate acknowledgments in a row; kept where SACK is not in use.
    dup_acks: u32,
    /// Everything before this had been sent when the last loss event was handled: another loss
    /// among it is the same event (RFC 6582 §3.2, "recover").
    recover: Option<SeqNum>,
    prr: Prr,
    pub(super) undo: Undo,
    pub(super) frto: Frto,
    /// Bytes delivered behind a gap that was not filled yet.
    uncredited_bytes: u32,
}

impl Recovery {
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether losses are being repaired.
    pub(super) fn is_recovering(&self) -> bool {
        matches!(self.phase, Phase::Recovery { .. } | Phase::Loss { .. })
    }

    /// Duplicate acknowledgments in a row, where SACK is not in use.
    pub(super) fn dup_acks(&self) -> u32 {
        self.dup_acks
    }

    /// Whether the window may grow on acknowledgments: not while it comes down.
    pub(super) fn may_grow(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Loss { .. })
    }

    /// Bytes that duplicate acknowledgments say have left the network, where no SACK says which
    /// (RFC 5681 §3.2, steps 1 and 4).
    pub(super) fn dup_acked_bytes(&self, queue: &RetransmitQueue, mss: u32) -> u32 {
        self.dup_acks
            .saturating_mul(mss)
            .min(queue.in_flight_bytes())
    }

    /// Bytes to credit the window with: those `delivered_bytes`, or all since the last credit.
    ///
    /// Reports of gaps do not widen the window, only their filling does (RFC 5681 §3.1); but what
    /// arrived behind a gap counts when it is filled. Linux forgets it, until it has seen
    /// reordering: a path that always reorders something would hardly let a window grow.
    pub(super) fn credit(&mut self, delivered_bytes: u32, advanced: bool) -> u32 {
        let bytes = self.uncredited_bytes.saturating_add(delivered_bytes);
        self.uncredited_bytes = if advanced || !self.may_grow() {
            0
        } else {
            bytes
        };
        bytes
    }

    /// A duplicate acknowledgment came on a connection without SACK.
    pub(super) fn on_dup_ack(
        &mut self,
        queue: &mut RetransmitQueue,
        una: SeqNum,
        mss: u32,
        dup_thresh: u32,
    ) {
        self.dup_acks = self.dup_acks.saturating_add(1);
        let same_event = self.recover.is_some_and(|recover| una.before(recover));
        let is_waiting = matches!(self.phase, Phase::Open | Phase::Reducing { .. });
        if self.dup_acks == dup_thresh && is_waiting && !same_event {
            queue.mark_head_lost(mss);
        }
    }

    /// The acknowledgment `una` advanced over new data.
    pub(super) fn on_advance(&mut self, una: SeqNum) {
        self.dup_acks = 0;
        self.recover = self.recover.filter(|recover| una.before(*recover));
    }

    /// Enters fast recovery when something has been found lost. Returns whether it did.
    pub(super) fn on_loss(
        &mut self,
        queue: &RetransmitQueue,
        window: &mut CongestionWindow,
        congestion: &mut Congestion,
        episode: Episode,
    ) -> bool {
        if queue.lost_bytes() == 0 {
            return false;
        }
        match self.phase {
            Phase::Open => self.begin(queue, window, congestion, Cause::Loss, episode),
            // The window comes down already, once per window of data.
            Phase::Reducing { .. } => {}
            Phase::Recovery { .. } | Phase::Loss { .. } => return false,
        }
        self.phase = Phase::Recovery { high: episode.nxt };
        true
    }

    /// Brings the window down though nothing is known to be lost now: the path marked data, or a
    /// probe repaired a loss. Returns whether it did: not twice in a window of data.
    pub(super) fn reduce(
        &mut self,
        queue: &RetransmitQueue,
        window: &mut CongestionWindow,
        congestion: &mut Congestion,
        cause: Cause,
        episode: Episode,
    ) -> bool {
        if self.phase != Phase::Open {
            return false;
        }
        self.begin(queue, window, congestion, cause, episode);
        self.undo.clear();
        self.phase = Phase::Reducing { high: episode.nxt };
        true
    }

    /// Begins an episode of reduction.
    fn begin(
        &mut self,
        queue: &RetransmitQueue,
        window: &mut CongestionWindow,
        congestion: &mut Congestion,
        cause: Cause,
        episode: Episode,
    ) {
        let Episode {
            una,
            nxt,
            used_bytes,
            flight,
        } = episode;
        if self.recover.is_none_or(|recover| !una.before(recover)) {
            congestion.on_event(window, CongestionEvent { cause, used_bytes });
            self.undo = Undo::begin(&self.undo, una, queue.retransmitted_bytes());
        }
        self.prr = Prr::new(flight.outstanding_bytes, flight.sacked_bytes);
        self.recover = Some(nxt);
        self.uncredited_bytes = 0;
    }

    /// Sets the window after an acknowledgment that does not end the reduction: `delivered_bytes`
    /// left the network, of which `pipe_bytes` are still in it.
    pub(super) fn proportion(
        &mut self,
        window: &mut CongestionWindow,
        delivered_bytes: u32,
        pipe_bytes: u32,
        is_safe: bool,
    ) {
        if !matches!(self.phase, Phase::Reducing { .. } | Phase::Recovery { .. }) {
            return;
        }
        window.cwnd = self.prr.on_ack(PrrAck {
            delivered_bytes,
            in_flight_bytes: pipe_bytes,
            ssthresh: window.ssthresh,
            mss: window.mss,
            is_safe,
        });
    }

    /// Bytes were sent, new or old.
    pub(super) fn on_sent(&mut self, bytes: u32) {
        if matches!(self.phase, Phase::Reducing { .. } | Phase::Recovery { .. }) {
            self.prr.on_sent(bytes);
        }
    }

    /// The peer got `range` twice.
    pub(super) fn on_duplicate(&mut self, range: Range) {
        self.undo.on_duplicate(range);
    }

    /// The end of a reduction or recovery, everything it was about being acknowledged.
    pub(super) fn finish(
        &mut self,
        queue: &RetransmitQueue,
        window: &mut CongestionWindow,
        nxt: SeqNum,
        sack: bool,
    ) {
        match self.phase {
            Phase::Open | Phase::Loss { .. } => {}
            Phase::Reducing { .. } => window.cwnd = window.ssthresh,
            // RFC 9937 §6.
            Phase::Recovery { .. } if sack => window.cwnd = window.ssthresh,
            Phase::Recovery { .. } => {
                // RFC 6582 §3.2, step 3, option 1: no burst when little is in flight.
                let in_flight = queue.in_flight_bytes().max(window.mss);
                window.cwnd = window
                    .ssthresh
                    .min(in_flight.saturating_add(window.mss))
                    .max(window.minimum());
            }
        }
        self.undo.on_recovered(nxt);
        self.phase = Phase::Open;
    }

    /// What the sender did was for nothing: nothing had been lost.
    pub(super) fn on_undone(&mut self) {
        self.undo.clear();
        self.frto.give_up();
        self.recover = None;
        self.phase = Phase::Open;
    }

    /// The retransmission timer ran out; the queue has been marked lost.
    pub(super) fn on_timeout(
        &mut self,
        queue: &RetransmitQueue,
        window: &mut CongestionWindow,
        congestion: &mut Congestion,
        episode: Episode,
        frto: bool,
    ) {
        let was = self.phase;
        // RFC 5681 §3.1: the threshold is cut once per event, not once per timeout.
        if was == Phase::Open {
            self.recover = None;
            self.begin(queue, window, congestion, Cause::Timeout, episode);
        }
        congestion.on_timeout();
        // What is not held for lost keeps its place (RFC 5681 §3.1, "loss window").
        window.cwnd = queue.in_flight_bytes().saturating_add(window.mss);
        self.dup_acks = 0;
        self.uncredited_bytes = 0;
        self.phase = Phase::Loss { high: episode.nxt };
        self.recover = Some(episode.nxt);
        // Within fast recovery, the timer tells of a retransmission: RFC 5682 §2.1, step 1.
        self.frto
            .on_timeout(frto && !matches!(was, Phase::Recovery { .. }));
    }

    /// Packets were too big for the path, and are sent again: no congestion, so the window stays
    /// (RFC 1191 §6.4, RFC 4821 §7.6).
    pub(super) fn on_packet_too_big(&mut self, nxt: SeqNum) {
        if self.phase == Phase::Open {
            self.undo.clear();
            self.frto.give_up();
            self.phase = Phase::Loss { high: nxt };
        }
    }
}

#[cfg(test)]
mod tests;
