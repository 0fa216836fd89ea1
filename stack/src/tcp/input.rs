//! What a segment does to a connection (RFC 9293 §3.10.7).

use super::{
    congestion::CongestionWindow,
    connection::{Connection, Context, Failure, State},
    ecn::Arrival,
    out_of_order::Range,
    seq::{SeqNum, UnscaledWindow, WindowScale},
};
use crate::{
    device::{Page, RxMemory},
    ip::RxSlices,
    time::Duration,
    wire::tcp::{Flags, Header},
};

/// Smallest segment size believed of a peer, options included: as Linux's `TCP_MIN_SND_MSS`, lest
/// a peer make us send a header per byte.
const MIN_PEER_MSS: u16 = 48;
/// How long TS.Recent counts (RFC 7323 §5.5).
const TIMESTAMP_LIFE: Duration = Duration::from_hours(576);

/// What is to be done beyond the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Done,
    /// The segment is answered with a reset.
    Reset,
}

/// A segment's payload.
pub(super) struct Payload<P> {
    /// Its pieces; the first may be empty.
    pub(super) slices: RxSlices<P>,
    /// All of them together.
    pub(super) bytes: u32,
    /// Of a segment put together from several: the payload bytes of each.
    pub(super) segment_bytes: Option<u16>,
    /// ECN field of the packet that brought it.
    pub(super) ecn: u8,
    /// What the device has left to keep it in.
    pub(super) memory: RxMemory,
}

impl<P> Payload<P> {
    /// How many segments it came in.
    pub(super) fn segments(&self) -> u64 {
        match self.segment_bytes {
            Some(each) if each > 0 => u64::from(self.bytes.div_ceil(u32::from(each)).max(1)),
            _ => 1,
        }
    }
}

/// How much older than the newest timestamp one may be, in ticks of the peer's clock, which are
/// milliseconds or shorter with the usual stacks. RFC 7323 §5.3 allows none. In this time no
/// sequence number comes round below 800 Gb/s, so nothing this young is of the last time round.
const PAWS_SLACK_MS: u32 = 40;

impl<P: Page> Connection<P> {
    /// Takes a segment in.
    pub(super) fn on_segment(
        &mut self,
        ctx: &mut Context<'_>,
        header: &Header,
        payload: Payload<P>,
    ) -> Verdict {
        let segments = payload.segments();
        self.receive_buffer.set_memory(payload.memory);
        self.stats.segs_in += segments;
        if payload.bytes > 0 {
            self.stats.data_segs_in += segments;
        }
        match self.state {
            State::Closed | State::TimeWait => Verdict::Done,
            State::SynSent => self.on_segment_in_syn_sent(ctx, header),
            State::Established if self.is_predicted(header) => {
                self.on_predicted(ctx, header, payload);
                Verdict::Done
            }
            _ => self.on_segment_in_order(ctx, header, payload),
        }
    }

    /// Whether a segment is the next one expected on an undisturbed connection, so that all of
    /// RFC 9293's checks would pass ("header prediction").
    fn is_predicted(&self, header: &Header) -> bool {
        let timestamps_fit = match (&self.timestamps, &header.options.timestamps) {
            (None, None) => true,
            (Some(own), Some(peer)) => SeqNum(peer.value).after_or_eq(SeqNum(own.recent)),
            _ => false,
        };
        header.flags.difference(Flags::PSH) == Flags::ACK
            && SeqNum(header.seq) == self.rcv.nxt
            && self.rcv.adv.after(self.rcv.nxt)
            && SeqNum(header.ack).after_or_eq(self.snd.una)
            && SeqNum(header.ack).before_or_eq(self.snd.nxt)
            && timestamps_fit
            && header.options.sack.is_empty()
            && self.out_of_order.is_empty()
            && self.held
    }

    fn on_predicted(&mut self, ctx: &mut Context<'_>, header: &Header, payload: Payload<P>) {
        self.heard(ctx, header);
        self.on_ack(ctx, header, payload.bytes);
        if payload.bytes == 0 {
            ctx.counters.hp_acks += 1;
            return;
        }
        ctx.counters.hp_hits += 1;
        self.measure_receiver_rtt(ctx.now, header, payload.bytes);
        self.on_ecn_field(header, &payload);
        self.on_data(ctx, self.rcv.nxt, payload, false);
    }

    /// SYN-SENT (RFC 9293 §3.10.7.3).
    fn on_segment_in_syn_sent(&mut self, ctx: &mut Context<'_>, header: &Header) -> Verdict {
        let ack = SeqNum(header.ack);
        let has_ack = header.flags.contains(Flags::ACK);
        let ack_fits = ack.after(self.snd.iss) && ack.before_or_eq(self.snd.nxt);
        if has_ack && !ack_fits {
            return Verdict::Reset;
        }
        if header.flags.contains(Flags::RST) {
            if has_ack {
                self.fail(Failure::Refused);
                ctx.counters.attempt_fails += 1;
            }
            return Verdict::Done;
        }
        if !header.flags.contains(Flags::SYN) {
            return Verdict::Done;
        }
        self.take_syn(ctx, header);
        if has_ack {
            self.snd.una = ack;
            self.establish(ctx, header);
            self.rcv.ack_now = true;
        } else {
            // Both sides opened at once.
            self.state = State::SynReceived;
            self.snd.syn_pending = true;
        }
        Verdict::Done
    }

    /// Takes in what a peer's SYN says: its sequence number, options and window.
    pub(super) fn take_syn(&mut self, ctx: &Context<'_>, header: &Header) {
        let options = &header.options;
        self.rcv.irs = SeqNum(header.seq);
        self.rcv.nxt = self.rcv.irs + 1;
        self.rcv.acked = self.rcv.nxt;
        self.rcv.adv = self.rcv.nxt + u32::from(self.syn_window().0);
        self.rcv.last_at = ctx.now;
        if let Some(mss) = options.mss {
            self.snd.peer_mss = mss.max(MIN_PEER_MSS);
        }
        self.sack &= options.sack_permitted;
        self.ecn.receive_syn(header.flags, ctx.config.ecn);
        match options.window_scale {
            Some(shift) if self.scaling => self.snd.wscale = WindowScale::new(shift),
            _ => {
                self.scaling = false;
                self.rcv.wscale = WindowScale::ZERO;
            }
        }
        match (&mut self.timestamps, options.timestamps) {
            (Some(own), Some(peer)) => {
                own.recent = peer.value;
                own.recent_at = ctx.now;
            }
            (own, _) => *own = None,
        }
        // RFC 7323 §2.2: the window of a SYN is never scaled.
        self.set_peer_window(header, WindowScale::ZERO);
    }

    fn set_peer_window(&mut self, header: &Header, scale: WindowScale) {
        self.snd.wnd = scale.expand(UnscaledWindow(header.window));
        self.snd.max_wnd = self.snd.max_wnd.max(self.snd.wnd);
        self.snd.wl1 = SeqNum(header.seq);
        self.snd.wl2 = SeqNum(header.ack);
    }

    /// The window for our SYN.
    pub(super) fn syn_window(&self) -> UnscaledWindow {
        WindowScale::ZERO.compress(self.rcvbuf_bytes())
    }

    /// Our SYN has been acknowledged, and the peer's is here.
    fn establish(&mut self, ctx: &mut Context<'_>, header: &Header) {
        let passive = self.listener.is_some();
        self.state = State::Established;
        self.snd.syn_pending = false;
        if passive {
            ctx.counters.passive_opens += 1;
        }
        self.update_mss_from_peer();
        self.window = CongestionWindow::new(self.snd.mss);
        if self.timeouts > 1 {
            // RFC 5681 §3.1. One timeout may be a long path's rather than a loss (RFC 6298 §5.7).
            self.window.cwnd = self.snd.mss;
        }
        if self.timeouts == 0 {
            self.rtt.sample(ctx.now.since(self.stalled_since), ctx.now);
        } else if let Some(rtt) = self.rtt_from_timestamp(ctx.now, header) {
            self.rtt.sample(rtt, ctx.now);
        } else {
            self.rtt.syn_timed_out();
        }
        self.rtt.reset_backoff();
        self.timeouts = 0;
        self.timers.retransmit = None;
        if self.snd.closed {
            self.state = State::FinWait1;
        }
        self.restart_keepalive(ctx.now);
        self.wakers.wake_writer();
    }

    /// A segment of the peer came that is no stray.
    fn heard(&mut self, ctx: &Context<'_>, header: &Header) {
        if let (Some(own), Some(peer)) = (&mut self.timestamps, &header.options.timestamps) {
            // RFC 7323 §4.3: of the segment that the last acknowledgment waited for, not of one
            // ahead of it.
            let is_newer = SeqNum(peer.value).after_or_eq(SeqNum(own.recent));
            // RFC 7323 §5.5: what was noted long ago says nothing any more.
            let is_outdated = ctx.now.since(own.recent_at) >= TIMESTAMP_LIFE;
            if (is_newer || is_outdated) && SeqNum(header.seq).before_or_eq(self.rcv.acked) {
                own.recent = peer.value;
                own.recent_at = ctx.now;
            }
        }
        self.rcv.last_at = ctx.now;
        self.keepalive_probes = 0;
    }

    /// All states with the peer's SYN in hand (RFC 9293 §3.10.7.4).
    fn on_segment_in_order(
        &mut self,
        ctx: &mut Context<'_>,
        header: &Header,
        payload: Payload<P>,
    ) -> Verdict {
        let mut seq = SeqNum(header.seq);
        let mut flags = header.flags;
        if self.state == State::SynReceived && flags.contains(Flags::SYN) && seq == self.rcv.irs {
            if flags.contains(Flags::ACK) {
                // The peer's answer when both opened at once: its SYN is known.
                seq += 1;
                flags.remove(Flags::SYN);
            } else {
                // The peer has not heard us yet.
                if self.challenge.allow(ctx.now) {
                    self.snd.syn_pending = true;
                }
                return Verdict::Done;
            }
        }
        let fin = flags.contains(Flags::FIN);
        let end = seq + payload.bytes + u32::from(fin);
        let is_reset = flags.contains(Flags::RST);
        if !is_reset && self.has_old_timestamp(ctx, header) {
            ctx.counters.paws_estab += 1;
            self.note_duplicate(ctx, seq, payload.bytes);
            self.answer_stray(ctx, payload.bytes > 0);
            return Verdict::Done;
        }
        let outside = end.before(self.rcv.nxt) || seq.after(self.rcv.adv);
        if outside && !(is_reset && self.is_number_of_fin(seq)) {
            if !is_reset {
                self.note_duplicate(ctx, seq, payload.bytes);
                self.answer_stray(ctx, payload.bytes > 0);
            }
            return Verdict::Done;
        }
        if is_reset {
            self.on_reset(ctx, seq);
            return Verdict::Done;
        }
        if flags.contains(Flags::SYN) {
            // RFC 5961 §4.2.
            ctx.counters.syn_challenge += 1;
            self.challenge(ctx);
            return Verdict::Done;
        }
        if !flags.contains(Flags::ACK) {
            return Verdict::Done;
        }
        if !self.takes_ack(ctx, header) {
            return if self.state == State::SynReceived {
                Verdict::Reset
            } else {
                Verdict::Done
            };
        }
        self.heard(ctx, header);
        self.on_ack(ctx, header, payload.bytes);
        self.on_fin_acked(ctx);
        if !self.state.can_receive() {
            // A FIN that comes again must be acknowledged again.
            if (payload.bytes > 0 || fin) && self.state.is_synchronized() {
                self.note_duplicate(ctx, seq, payload.bytes);
                self.answer_stray(ctx, true);
            }
            return Verdict::Done;
        }
        let is_new = payload.bytes > 0 && (seq + payload.bytes).after(self.rcv.nxt);
        if is_new && !self.held && self.listener.is_none() {
            // RFC 9293 §3.10.7.4 and RFC 2525 §2.17: nobody will ever read it.
            ctx.counters.abort_on_data += 1;
            self.abort(Failure::Aborted);
            return Verdict::Done;
        }
        if payload.bytes > 0 || fin {
            self.measure_receiver_rtt(ctx.now, header, payload.bytes);
            self.on_ecn_field(header, &payload);
            self.on_data(ctx, seq, payload, fin);
        }
        Verdict::Done
    }

    /// Data came by a packet that may have been marked on its way.
    fn on_ecn_field(&mut self, header: &Header, payload: &Payload<P>) {
        if self.ecn.receive_data(header.flags, payload.ecn) == Arrival::Urgent {
            self.rcv.ack_now = true;
        }
    }

    /// Whether the acknowledgment is one to go on with: in SYN-RECEIVED, of our SYN; later, not
    /// of what was never sent, nor of the distant past (RFC 5961 §5.2).
    fn takes_ack(&mut self, ctx: &mut Context<'_>, header: &Header) -> bool {
        let ack = SeqNum(header.ack);
        if self.state == State::SynReceived {
            if !ack.after(self.snd.una) || ack.after(self.snd.nxt) {
                return false;
            }
            self.snd.una = self.snd.iss + 1;
            self.establish(ctx, header);
            self.set_peer_window(header, self.snd.wscale);
            return true;
        }
        let oldest = self.snd.una - self.snd.max_wnd.min(1 << 30);
        if ack.after(self.snd.nxt) || ack.before(oldest) {
            self.challenge(ctx);
            return false;
        }
        true
    }

    /// Whether the timestamp says that the segment is an old duplicate (PAWS, RFC 7323 §5).
    ///
    /// A little older than the newest is not old: a packet that is overtaken by a retransmission
    /// is only late, and were it dropped, each recovery would make losses for the next one.
    fn has_old_timestamp(&self, ctx: &Context<'_>, header: &Header) -> bool {
        match (&self.timestamps, &header.options.timestamps) {
            (Some(own), Some(peer)) => {
                SeqNum(peer.value.wrapping_add(PAWS_SLACK_MS)).before(SeqNum(own.recent))
                    && ctx.now.since(own.recent_at) < TIMESTAMP_LIFE
            }
            // RFC 7323 §3.2: once agreed on, every segment has them.
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// A reset within the window (RFC 5961 §3.2).
    fn on_reset(&mut self, ctx: &mut Context<'_>, seq: SeqNum) {
        if seq != self.rcv.nxt && !self.is_number_of_fin(seq) {
            self.challenge(ctx);
            return;
        }
        match self.state {
            State::SynReceived => {
                ctx.counters.attempt_fails += 1;
                self.fail(Failure::Refused);
            }
            State::Established | State::CloseWait => {
                ctx.counters.estab_resets += 1;
                self.fail(Failure::Reset);
            }
            _ => self.fail(Failure::Reset),
        }
    }

    /// Whether `seq` is that of the peer's FIN, with nothing missing before it: a peer that resets
    /// after its FIN may leave the FIN out of its count.
    fn is_number_of_fin(&self, seq: SeqNum) -> bool {
        self.rcv.fin == Some(seq) && seq + 1 == self.rcv.nxt
    }

    /// Acknowledges a segment that does not fit, at a limited rate (RFC 5961 §7).
    fn challenge(&mut self, ctx: &mut Context<'_>) {
        if self.state == State::SynReceived {
            // Ours would be a SYN and ACK; the timer sends it.
            return;
        }
        if self.challenge.allow(ctx.now) {
            ctx.counters.challenge_ack += 1;
            self.rcv.ack_now = true;
        } else {
            ctx.counters.ack_skipped_challenge += 1;
        }
    }

    /// Acknowledges a segment outside the window. One with data is a retransmission, whose sender
    /// waits for the answer; others are limited, so that two ends cannot keep on contradicting
    /// each other.
    fn answer_stray(&mut self, ctx: &mut Context<'_>, has_data: bool) {
        if self.state == State::SynReceived {
            // Ours would be a SYN and ACK; the timer sends it.
            return;
        }
        if has_data || self.challenge.allow(ctx.now) {
            self.rcv.ack_now = true;
        }
    }

    /// Bytes came that are here already (RFC 2883).
    pub(super) fn note_duplicate(&mut self, ctx: &mut Context<'_>, seq: SeqNum, bytes: u32) {
        let end = (seq + bytes).earliest(self.rcv.nxt);
        if bytes > 0 && self.sack && ctx.config.dsack && seq.before(end) {
            ctx.counters.dsack_old_sent += 1;
            self.out_of_order.note_duplicate(Range::new(seq, end));
        }
    }

    /// After an acknowledgment: what that of our FIN does to the state.
    fn on_fin_acked(&mut self, ctx: &Context<'_>) {
        if !self.fin_acked() {
            return;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if !self.held {
                    self.timers.linger = Some(ctx.now + ctx.config.fin_timeout);
                }
            }
            State::Closing => self.finish(State::TimeWait),
            State::LastAck => self.finish(State::Closed),
            _ => {}
        }
    }
}
