//! What an acknowledgment does: it frees data, measures the path, opens windows, finds losses
//! (RFC 9293 §3.10.7.4, RFC 5681, RFC 6675).

use super::{
    congestion::{AckSample, SlowStartExit},
    connection::{Connection, Context},
    loss::News,
    out_of_order::Range,
    recovery::Flight,
    sack::{self, Bounds, Duplicate},
    sent::Delivered,
    seq::{SeqNum, UnscaledWindow},
    timers::arm,
};
use crate::{
    device::Page,
    time::{Duration, Instant},
    wire::tcp::{Flags, Header},
};

/// Ticks of the timestamp clock under which a difference of two is more error than measurement.
const COARSE_MS: u32 = 4;

impl<P: Page> Connection<P> {
    /// Takes in the acknowledgment of a segment that has passed all checks.
    pub(super) fn on_ack(&mut self, ctx: &mut Context<'_>, header: &Header, payload_bytes: u32) {
        let ack = SeqNum(header.ack);
        let is_old = ack.before(self.snd.una);
        if is_old && header.options.sack.is_empty() {
            return;
        }
        let window_changed = !is_old && self.update_window(header);
        let advanced = ack.after(self.snd.una);
        let flight = Flight::of(&self.retransmits);
        let (mut delivered, duplicate) = self.take_sacks(ctx, header);
        let newly_sacked = delivered.bytes > 0;
        let is_dup_ack = !advanced
            && !is_old
            && payload_bytes == 0
            && !window_changed
            && !self.retransmits.is_empty()
            && !header.flags.intersects(Flags::SYN | Flags::FIN);
        let mut delivered_bytes = delivered.bytes;
        if advanced {
            // Karn's rule: what was sent twice measures nothing, and what arrived behind it may
            // have waited for it; but an echoed timestamp tells when the answered segment was sent.
            let dup_acked = self.recovery.dup_acks().saturating_mul(self.snd.mss);
            let acked = self.advance(ctx, ack);
            let rtt = if acked.retransmitted {
                delivered
                    .rtt
                    .or_else(|| self.rtt_from_timestamp(ctx.now, header))
            } else {
                delivered.rtt.max(acked.rtt)
            };
            self.sample_rtt(ctx, rtt);
            delivered.merge(acked);
            // Duplicates told of the rest already, but not of what filled the gap.
            delivered_bytes += acked
                .bytes
                .saturating_sub(dup_acked)
                .max(acked.bytes.min(self.snd.mss));
        } else {
            self.sample_rtt(ctx, delivered.rtt);
            if self.timers.persist.is_some() || self.snd.wnd == 0 {
                // The peer lives; its window may stay closed for ever.
                self.timeouts = 0;
            }
            if is_dup_ack && !self.sack {
                delivered_bytes = self.snd.mss;
            }
        }
        if let Some(latest) = delivered.latest() {
            let min_rtt = Duration::from_micros(u64::from(self.rtt.min_us().unwrap_or(0)));
            self.delivery
                .on_delivered(delivered.bytes, &latest, min_rtt, ctx.now);
        }
        let is_news = advanced || newly_sacked || duplicate.is_some() || is_dup_ack;
        if is_news {
            let echo = header.options.timestamps.map(|peer| peer.echo);
            let is_marked = !is_old && self.ecn.hears_echo(header.flags, ack);
            self.learn(
                ctx,
                &News {
                    delivered,
                    advanced,
                    newly_sacked,
                    duplicate,
                    is_dup_ack,
                    echo,
                    is_marked,
                    flight,
                    delivered_bytes,
                },
            );
        }
        if advanced || newly_sacked {
            // Reports of gaps do not widen the window, only their filling does (RFC 5681 §3.1).
            let is_cwnd_limited = self.usage.may_grow(&self.window);
            let is_recovering = !self.recovery.may_grow();
            let sample = AckSample {
                now: ctx.now,
                delivered_bytes: self.recovery.credit(delivered.bytes, advanced),
                arrived_bytes: delivered.bytes,
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
            self.plan_probe(ctx);
        }
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

    fn sample_rtt(&mut self, ctx: &Context<'_>, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt, ctx.now);
        }
    }

    /// Takes in the SACK blocks of a segment: what they report, and a duplicate to believe in.
    fn take_sacks(&mut self, ctx: &mut Context<'_>, header: &Header) -> (Delivered, Option<Range>) {
        if !self.sack || header.options.sack.is_empty() {
            return (Delivered::default(), None);
        }
        let bounds = Bounds {
            ack: SeqNum(header.ack),
            una: self.snd.una,
            nxt: self.snd.nxt,
            max_wnd: self.snd.max_wnd,
        };
        let outcome = sack::receive(&mut self.retransmits, &header.options.sack, bounds, ctx.now);
        ctx.counters.sack_discard += u64::from(outcome.discarded);
        let duplicate = outcome
            .duplicate
            .and_then(|duplicate| self.believe(ctx, duplicate));
        (outcome.delivered, duplicate)
    }

    /// A duplicate reported, if it can be one of ours: the network may have made it, or the peer
    /// may lie.
    fn believe(&mut self, ctx: &mut Context<'_>, duplicate: Duplicate) -> Option<Range> {
        let Duplicate {
            range,
            is_out_of_order,
            is_dubious,
        } = duplicate;
        if is_out_of_order {
            ctx.counters.dsack_ofo_recv += 1;
        } else {
            ctx.counters.dsack_recv += 1;
        }
        let segments = range.len().div_ceil(self.snd.mss.max(1));
        self.stats.dsack_dups += u64::from(segments);
        if is_dubious || self.stats.dsack_dups > self.stats.total_retrans {
            ctx.counters.dsack_ignored_dubious += 1;
            return None;
        }
        match self.recovery.undo.marker() {
            None => ctx.counters.dsack_ignored_no_undo += 1,
            Some(marker) if range.start.before(marker) => ctx.counters.dsack_ignored_old += 1,
            Some(_) => self.recovery.on_duplicate(range),
        }
        Some(range)
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

    /// The acknowledgment moves on to `ack`; returns what had not been known to have arrived.
    fn advance(&mut self, ctx: &mut Context<'_>, ack: SeqNum) -> Delivered {
        let delivered = self.retransmits.acknowledge(ack, ctx.now);
        let before = self.send_queue.len();
        self.send_queue.release_to(self.position_of(ack));
        let released = before - self.send_queue.len();
        self.stats.bytes_acked += released as u64;
        self.snd.una = ack;
        self.snd.small_end = self.snd.small_end.filter(|end| end.after(ack));
        self.rtt.reset_backoff();
        self.timeouts = 0;
        self.stalled_since = ctx.now;
        self.timers.persist = None;
        // RFC 6298 §5.2, §5.3.
        if self.retransmits.is_empty() {
            self.timers.retransmit = None;
        } else {
            arm(&mut self.timers.retransmit, ctx.now, self.rtt.rto());
        }
        delivered
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

    /// The RTT by the peer's echo of our clock, which ticks in milliseconds. On a path of few
    /// milliseconds it says nothing that is not known better, unless that path has become longer.
    pub(super) fn rtt_from_timestamp(&self, now: Instant, header: &Header) -> Option<Duration> {
        let own = self.timestamps.as_ref()?;
        let peer = header.options.timestamps.as_ref()?;
        let elapsed_ms = own.value(now).wrapping_sub(peer.echo);
        let is_coarse = elapsed_ms < COARSE_MS && self.rtt.srtt_us().is_some();
        // An echo from the future, or from before the longest possible RTO, is a lie.
        (peer.echo != 0 && elapsed_ms < 1 << 18 && !is_coarse)
            .then(|| Duration::from_millis(u64::from(elapsed_ms.max(1))))
    }
}

fn saturating_us(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}
