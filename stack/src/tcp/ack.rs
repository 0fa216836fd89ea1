//! What an acknowledgment does: it frees data, measures the path, opens windows, finds losses
//! (RFC 9293 §3.10.7.4, RFC 5681, RFC 6675).

use super::{
    congestion::{AckSample, SlowStartExit},
    connection::{Connection, Context},
    retransmit_queue::Delivered,
    seq::{SeqNum, UnscaledWindow},
    timers::arm,
};
use crate::{
    device::Page,
    time::{Duration, Instant},
    wire::tcp::{Flags, Header},
};

impl<P: Page> Connection<P> {
    /// Takes in the acknowledgment of a segment that has passed all checks.
    pub(super) fn on_ack(&mut self, ctx: &mut Context<'_>, header: &Header, payload_bytes: u32) {
        let ack = SeqNum(header.ack);
        if ack.before(self.snd.una) {
            return;
        }
        let window_changed = self.update_window(header);
        let advanced = ack.after(self.snd.una);
        let mut delivered = Delivered::default();
        if self.sack && !header.options.sack.is_empty() {
            let outcome = self.scoreboard.receive(
                &mut self.retransmits,
                &header.options.sack,
                ack,
                self.snd.nxt,
                self.snd.mss,
                ctx.now,
            );
            delivered = outcome.delivered;
            ctx.counters.sack_discard += u64::from(outcome.discarded);
            if outcome.duplicate.is_some() {
                ctx.counters.dsack_recv += 1;
                self.stats.dsack_dups += 1;
            }
        }
        if advanced {
            let (acked, rtt) = self.advance(ctx, header, ack);
            let rtt = delivered.rtt.max(rtt);
            delivered.merge(acked);
            if let Some(rtt) = rtt {
                self.rtt.sample(rtt, ctx.now);
            }
        } else {
            if self.timers.persist.is_some() || self.snd.wnd == 0 {
                // The peer lives; its window may stay closed for ever.
                self.timeouts = 0;
            }
            let is_dup_ack = payload_bytes == 0
                && !window_changed
                && !self.retransmits.is_empty()
                && !header.flags.intersects(Flags::SYN | Flags::FIN);
            if is_dup_ack && !self.sack {
                self.recovery
                    .on_dup_ack(&mut self.retransmits, ack, self.snd.mss);
            }
        }
        if advanced || delivered.bytes > 0 {
            // Reports of gaps do not widen the window, only their filling does (RFC 5681 §3.1).
            let is_cwnd_limited = self.usage.may_grow(&self.window);
            let is_recovering = !self.recovery.may_grow();
            let sample = AckSample {
                now: ctx.now,
                delivered_bytes: delivered.bytes,
                rtt_us: delivered.latest_rtt.map(saturating_us),
                srtt_us: self.rtt.srtt_us().unwrap_or(0),
                min_rtt_us: self.rtt.min_us().unwrap_or(0),
                una: self.snd.una,
                nxt: self.snd.nxt,
                is_paced: self.is_paced(),
                is_cwnd_limited,
                is_recovering,
                may_grow: advanced && is_cwnd_limited && !is_recovering,
                mistakes: ctx.config.mistakes(),
            };
            let exit = self.congestion.on_ack(&mut self.window, &sample);
            self.count_slow_start_exit(ctx, exit);
        }
        self.detect_losses(ctx);
        self.ack_taken_in(ctx);
        if self.retransmits.is_empty() {
            self.note_activity(ctx.now);
        }
        debug_assert!(
            self.retransmits.is_consistent(),
            "{:?} after acknowledgment of {ack}",
            self.retransmits
        );
    }

    /// Counts the ends of slow start that HyStart brought.
    fn count_slow_start_exit(&self, ctx: &mut Context<'_>, exit: Option<SlowStartExit>) {
        let segments = u64::from(self.window.cwnd / self.window.mss.max(1));
        match exit {
            Some(SlowStartExit::AckTrain) => {
                ctx.counters.hystart_train_detect += 1;
                ctx.counters.hystart_train_cwnd += segments;
            }
            Some(SlowStartExit::Delay) => {
                ctx.counters.hystart_delay_detect += 1;
                ctx.counters.hystart_delay_cwnd += segments;
            }
            None => {}
        }
    }

    /// The acknowledgment moves on to `ack`; returns what had not been known to have arrived, and
    /// the RTT to sample of it.
    fn advance(
        &mut self,
        ctx: &mut Context<'_>,
        header: &Header,
        ack: SeqNum,
    ) -> (Delivered, Option<Duration>) {
        let delivered = self.retransmits.acknowledge(ack, ctx.now);
        self.scoreboard.acknowledge(ack);
        let before = self.send_queue.len();
        self.send_queue.release_to(self.position_of(ack));
        let released = before - self.send_queue.len();
        self.stats.bytes_acked += released as u64;
        self.snd.una = ack;
        self.snd.small_end = self.snd.small_end.filter(|end| end.after(ack));
        // Karn's rule: what was sent twice measures nothing, and what arrived behind it may have
        // waited for it; but an echoed timestamp tells when the answered segment was sent.
        let rtt = if delivered.retransmitted {
            self.rtt_from_timestamp(ctx.now, header)
        } else {
            delivered.rtt
        };
        self.rtt.reset_backoff();
        self.timeouts = 0;
        self.stalled_since = ctx.now;
        self.timers.persist = None;
        self.recovery
            .on_advance(&mut self.retransmits, &mut self.window, ack, self.sack);
        // RFC 6298 §5.2, §5.3.
        if self.retransmits.is_empty() {
            self.timers.retransmit = None;
        } else {
            arm(&mut self.timers.retransmit, ctx.now, self.rtt.rto());
        }
        (delivered, rtt)
    }

    /// Takes in the peer's window, unless the segment is older than the one that told the last
    /// (RFC 9293 §3.10.7.4). Returns whether it changed.
    fn update_window(&mut self, header: &Header) -> bool {
        let (seq, ack) = (SeqNum(header.seq), SeqNum(header.ack));
        let is_newer =
            self.snd.wl1.before(seq) || (self.snd.wl1 == seq && self.snd.wl2.before_or_eq(ack));
        if !is_newer {
            return false;
        }
        let window = self.snd.wscale.expand(UnscaledWindow(header.window));
        let changed = window != self.snd.wnd;
        self.snd.wnd = window;
        self.snd.max_wnd = self.snd.max_wnd.max(window);
        self.snd.wl1 = seq;
        self.snd.wl2 = ack;
        changed
    }

    /// Holds for lost what the scoreboard or the duplicates say is, and begins recovery.
    fn detect_losses(&mut self, ctx: &mut Context<'_>) {
        if self.sack && self.retransmits.sacked_bytes() > 0 {
            self.scoreboard
                .mark_lost(&mut self.retransmits, self.snd.mss);
        }
        let outstanding = self.retransmits.outstanding_bytes();
        let used = self.usage.used_bytes(&self.window, outstanding);
        let entered = self.recovery.on_loss(
            &self.retransmits,
            &mut self.window,
            &mut self.congestion,
            used,
            self.snd.una,
            self.snd.nxt,
        );
        if entered && self.sack {
            ctx.counters.sack_recovery += 1;
        } else if entered {
            ctx.counters.reno_recovery += 1;
        }
    }

    /// The RTT by the peer's echo of our clock, which ticks in milliseconds.
    pub(super) fn rtt_from_timestamp(&self, now: Instant, header: &Header) -> Option<Duration> {
        let own = self.timestamps.as_ref()?;
        let peer = header.options.timestamps.as_ref()?;
        let elapsed_ms = own.value(now).wrapping_sub(peer.echo);
        // An echo from the future, or from before the longest possible RTO, is a lie.
        (peer.echo != 0 && elapsed_ms < 1 << 18)
            .then(|| Duration::from_millis(u64::from(elapsed_ms.max(1))))
    }
}

fn saturating_us(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}
