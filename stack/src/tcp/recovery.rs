//! When data is lost, and what the sender does until it is repaired: fast recovery (RFC 6675 with
//! SACK, RFC 6582 without) and recovery after a timeout (RFC 6298 §5).

use super::{
    congestion::{Cause, Congestion, CongestionEvent, CongestionWindow},
    retransmit_queue::RetransmitQueue,
    sack::DUP_THRESH,
    seq::SeqNum,
};

/// What the sender is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is known to be lost.
    #[default]
    Open,
    /// Fast recovery, until everything sent before `high` is acknowledged.
    Recovery {
        /// snd_nxt when the loss was found: "RecoveryPoint".
        high: SeqNum,
    },
    /// Recovery from a timeout, until everything sent before `high` is acknowledged.
    Loss {
        /// snd_nxt when the timer ran out.
        high: SeqNum,
    },
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
}

impl Recovery {
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Duplicate acknowledgments in a row, where SACK is not in use.
    pub(super) fn dup_acks(&self) -> u32 {
        self.dup_acks
    }

    /// Whether the window may grow on acknowledgments: not in fast recovery.
    pub(super) fn may_grow(&self) -> bool {
        !matches!(self.phase, Phase::Recovery { .. })
    }

    /// Bytes that duplicate acknowledgments say have left the network, where no SACK says which
    /// (RFC 5681 §3.2, steps 1 and 4).
    pub(super) fn dup_acked_bytes(&self, queue: &RetransmitQueue, mss: u32) -> u32 {
        self.dup_acks
            .saturating_mul(mss)
            .min(queue.in_flight_bytes())
    }

    /// A duplicate acknowledgment came on a connection without SACK.
    pub(super) fn on_dup_ack(&mut self, queue: &mut RetransmitQueue, una: SeqNum, mss: u32) {
        self.dup_acks = self.dup_acks.saturating_add(1);
        let same_event = self.recover.is_some_and(|recover| una.before(recover));
        if self.dup_acks == DUP_THRESH && self.phase == Phase::Open && !same_event {
            queue.mark_head_lost(mss);
        }
    }

    /// The acknowledgment `una` advanced over new data. Returns whether that ended a recovery.
    pub(super) fn on_advance(
        &mut self,
        queue: &mut RetransmitQueue,
        window: &mut CongestionWindow,
        una: SeqNum,
        sack: bool,
    ) -> bool {
        self.dup_acks = 0;
        self.recover = self.recover.filter(|recover| una.before(*recover));
        let (Phase::Recovery { high } | Phase::Loss { high }) = self.phase else {
            return false;
        };
        if una.before(high) {
            // RFC 6582 §3.2, step 3: a partial acknowledgment means that the next segment is
            // lost too. With SACK the scoreboard knows.
            if !sack && matches!(self.phase, Phase::Recovery { .. }) {
                queue.mark_head_lost(window.mss);
            }
            return false;
        }
        if matches!(self.phase, Phase::Recovery { .. }) && !sack {
            // RFC 6582 §3.2, step 3, option 1: no burst when little is in flight. With SACK the
            // window was filled all the time (RFC 6675 §5, step C).
            let in_flight = queue.in_flight_bytes().max(window.mss);
            window.cwnd = window
                .ssthresh
                .min(in_flight.saturating_add(window.mss))
                .max(window.minimum());
        }
        self.phase = Phase::Open;
        true
    }

    /// Enters fast recovery when something has been found lost, of a window of which `used_bytes`
    /// were in use. Returns whether it did.
    pub(super) fn on_loss(
        &mut self,
        queue: &RetransmitQueue,
        window: &mut CongestionWindow,
        congestion: &mut Congestion,
        used_bytes: u32,
        una: SeqNum,
        nxt: SeqNum,
    ) -> bool {
        let same_event = self.recover.is_some_and(|recover| una.before(recover));
        if queue.lost_bytes() == 0 || self.phase != Phase::Open {
            return false;
        }
        if !same_event {
            let event = CongestionEvent {
                cause: Cause::Loss,
                used_bytes,
            };
            congestion.on_event(window, event);
        }
        window.cwnd = window.cwnd.min(window.ssthresh);
        self.phase = Phase::Recovery { high: nxt };
        self.recover = Some(nxt);
        true
    }

    /// The retransmission timer ran out; the queue has been marked lost.
    pub(super) fn on_timeout(
        &mut self,
        window: &mut CongestionWindow,
        congestion: &mut Congestion,
        used_bytes: u32,
        nxt: SeqNum,
    ) {
        // RFC 5681 §3.1: the threshold is cut once per event, not once per timeout.
        if self.phase == Phase::Open {
            let event = CongestionEvent {
                cause: Cause::Timeout,
                used_bytes,
            };
            congestion.on_event(window, event);
        }
        congestion.on_timeout();
        window.cwnd = window.mss;
        self.dup_acks = 0;
        self.phase = Phase::Loss { high: nxt };
        self.recover = Some(nxt);
    }
}

#[cfg(test)]
mod tests;
