//! What a connection sends, and when (RFC 9293 §3.7, §3.8).
//!
//! [`Connection::transmit`] sends one packet. Nothing changes before the device has taken it: a
//! full device means the same decision again, later.

use super::{
    connection::{Connection, Context, Failure, Probe, State, TimestampState},
    cwnd_usage::BurstEnd,
    device_share::DeviceQueue,
    new_data::Held,
    out_of_order::Range,
    recovery::Phase,
    send_queue::Payload,
    seq::SeqNum,
    timers::arm,
};
use crate::{
    device::{Owner, Page},
    ip::{IpPacket, IpSender, MAX_TRANSPORT_BYTES, Route, SendError},
    wire::tcp::{
        Flags, Header, MAX_HEADER_BYTES, MAX_SACK_BLOCKS, MIN_HEADER_BYTES, PROTOCOL, Timestamps,
    },
};
use core::net::IpAddr;

/// Bytes of the timestamps option, padded.
const TIMESTAMPS_BYTES: u32 = 12;
/// Largest IP packet there is.
const MAX_PACKET_BYTES: u32 = 65_535;
/// The least payload a segment is cut to, whatever path and peer say.
const MIN_MSS: u32 = 32;

/// What came of an attempt to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transmit {
    /// One packet went; there may be more.
    Sent,
    /// Nothing is due.
    Idle,
    /// The device had no room for a packet that is due.
    Busy,
}

/// A run of new or old data to be sent in one packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) seq: SeqNum,
    pub(super) bytes: u32,
    pub(super) fin: bool,
    /// Whether it has been sent before.
    pub(super) again: bool,
    /// Whether it is a probe for a lost tail.
    pub(super) probe: bool,
}

impl<P: Page> Connection<P> {
    /// Sends packets for as long as the connection's turn lasts ([`super::fairness`]). Returns
    /// [`Transmit::Sent`] when there may be more for its next turn.
    pub(super) fn take_turn(
        &mut self,
        ctx: &mut Context<'_>,
        queue: &mut DeviceQueue,
        ip: &mut impl IpSender<P>,
    ) -> Transmit {
        self.turn.begin();
        loop {
            let sent_before = self.stats.bytes_sent;
            let outcome = self.transmit(ctx, queue, ip);
            match outcome {
                Transmit::Sent if self.turn.charge(self.stats.bytes_sent - sent_before) => {}
                Transmit::Sent | Transmit::Busy => return outcome,
                Transmit::Idle => {
                    self.turn.end();
                    return outcome;
                }
            }
        }
    }

    /// Sends the packet that is due first, if any.
    fn transmit(
        &mut self,
        ctx: &mut Context<'_>,
        queue: &mut DeviceQueue,
        ip: &mut impl IpSender<P>,
    ) -> Transmit {
        let outcome = match ip.route(self.tuple.remote) {
            Ok(route) => {
                let outcome = self.transmit_by(ctx, queue, ip, &route);
                if outcome == Transmit::Idle {
                    self.watch_window(ctx);
                }
                outcome
            }
            Err(error) => self.cannot_send(ctx, error),
        };
        if outcome != Transmit::Sent {
            self.note_activity(ctx.now);
            self.look_for_writers(ctx);
        }
        outcome
    }

    fn transmit_by(
        &mut self,
        ctx: &mut Context<'_>,
        queue: &mut DeviceQueue,
        ip: &mut impl IpSender<P>,
        route: &Route,
    ) -> Transmit {
        if self.reset_pending {
            return self.send_reset(ctx, ip);
        }
        if matches!(self.state, State::Closed | State::TimeWait) {
            return Transmit::Idle;
        }
        if self.snd.syn_pending {
            return self.send_syn(ctx, ip, route);
        }
        if !self.state.is_synchronized() {
            return Transmit::Idle;
        }
        self.set_mss(route);
        if self.recovery.frto.wants_new() {
            match self.next_new(ctx, queue, route) {
                Ok(run) => return self.send_run(ctx, queue, ip, route, run),
                // It will go soon.
                Err(Held::Device | Held::Pacing) => {}
                Err(Held::CongestionWindow | Held::Other) => self.recovery.frto.give_up(),
            }
        }
        if let Some(run) = self.loss_probe() {
            return self.send_run(ctx, queue, ip, route, run);
        }
        if let Some(run) = self.next_retransmission(route) {
            return self.send_run(ctx, queue, ip, route, run);
        }
        match self.next_new(ctx, queue, route) {
            Ok(run) => return self.send_run(ctx, queue, ip, route, run),
            Err(held) if self.state.can_send() => {
                if held != Held::Device {
                    self.device.yield_ring(queue);
                }
                let in_flight = self.pipe_bytes();
                self.usage.on_burst_end(&BurstEnd {
                    now: ctx.now,
                    in_flight_bytes: in_flight,
                    is_cwnd_limited: held == Held::CongestionWindow,
                    is_app_limited: self.notsent_bytes() == 0,
                    una: self.snd.una,
                    nxt: self.snd.nxt,
                });
                if ctx.config.slow_start_after_idle && self.recovery.phase() == Phase::Open {
                    let rto = self.rtt.rto();
                    self.usage.decay(&mut self.window, ctx.now, rto);
                }
                if matches!(held, Held::Device | Held::Pacing) {
                    self.usage.held_back();
                    self.pacer.held(ctx.now);
                } else {
                    self.pacer.not_held();
                }
                if held == Held::Other && self.is_app_limited() {
                    self.delivery.on_app_limited(in_flight);
                }
            }
            Err(_) => {}
        }
        if let Some(probe) = self.snd.probe {
            return self.send_probe(ctx, ip, probe);
        }
        if self.rcv.ack_now || self.wants_window_update() {
            return self.send_ack(ctx, ip);
        }
        Transmit::Idle
    }

    /// No way to the peer now.
    fn cannot_send(&mut self, ctx: &mut Context<'_>, error: SendError) -> Transmit {
        match error {
            SendError::Busy => Transmit::Busy,
            SendError::NoRoute | SendError::Unreachable if self.state == State::SynSent => {
                ctx.counters.attempt_fails += 1;
                self.fail(Failure::Unreachable);
                Transmit::Idle
            }
            // A soft error (RFC 9293 §3.9.2.2): the timers go on, and try again.
            SendError::NoRoute
            | SendError::Unreachable
            | SendError::Down
            | SendError::Unsendable => {
                self.reset_pending = false;
                if self.snd.syn_pending && self.timers.retransmit.is_none() {
                    arm(&mut self.timers.retransmit, ctx.now, self.rtt.rto());
                }
                self.snd.syn_pending = false;
                self.watch_window(ctx);
                Transmit::Idle
            }
        }
    }

    /// Bytes in the network: RFC 6675's pipe, or the like from duplicates where SACK is not used.
    pub(super) fn pipe_bytes(&self) -> u32 {
        let dup_acked = if self.sack {
            0
        } else {
            self.recovery
                .dup_acked_bytes(&self.retransmits, self.snd.mss)
        };
        self.retransmits.in_flight_bytes() - dup_acked
    }

    fn ip_header_bytes(&self) -> u32 {
        match self.tuple.remote {
            IpAddr::V4(_) => 20,
            IpAddr::V6(_) => 40,
        }
    }

    /// Payload of a full segment without options, by path and application.
    fn path_mss(&self, route: &Route) -> u32 {
        let path = u32::from(route.mtu_bytes)
            .saturating_sub(self.ip_header_bytes() + MIN_HEADER_BYTES as u32);
        let asked = self.options.max_segment_bytes.map_or(u32::MAX, u32::from);
        path.min(asked)
    }

    /// What every segment's options take.
    fn option_bytes(&self) -> u32 {
        if self.timestamps.is_some() {
            TIMESTAMPS_BYTES
        } else {
            0
        }
    }

    /// Sets the segment size by path and peer (RFC 9293 §3.7.1, RFC 6691).
    fn set_mss(&mut self, route: &Route) {
        let most = self.path_mss(route).min(u32::from(self.snd.peer_mss));
        let mss = most.saturating_sub(self.option_bytes()).max(MIN_MSS);
        self.stats.path_mtu = route.mtu_bytes;
        if mss != self.snd.mss {
            self.snd.mss = mss;
            self.window.mss = mss;
        }
    }

    /// The same when the peer's SYN has come and the path's share was known with ours.
    pub(super) fn update_mss_from_peer(&mut self) {
        let most = u32::from(self.snd.peer_mss.min(self.rcv.advmss));
        self.snd.mss = most.saturating_sub(self.option_bytes()).max(MIN_MSS);
    }

    /// A router says that packets longer than `mtu_bytes` do not pass: what is in flight has not
    /// arrived, through no fault of the congestion window's (RFC 1191 §6.4).
    pub(super) fn on_packet_too_big(&mut self, mtu_bytes: u16) {
        let headers = self.ip_header_bytes() + MIN_HEADER_BYTES as u32 + self.option_bytes();
        if u32::from(mtu_bytes).saturating_sub(headers) < self.snd.mss {
            let mss = u32::from(mtu_bytes).saturating_sub(headers).max(MIN_MSS);
            self.retransmits.mark_larger_lost(mss);
            self.recovery.on_packet_too_big(self.snd.nxt);
        }
    }

    /// The header of a segment at `seq`: with what has arrived, and the window.
    fn header(&self, ctx: &Context<'_>, seq: SeqNum, flags: Flags) -> Header {
        let mut header = Header {
            src_port: self.tuple.local_port,
            dst_port: self.tuple.remote_port,
            seq: seq.0,
            ack: self.rcv.nxt.0,
            flags: flags | Flags::ACK | self.ecn.ack_flags(),
            window: self.window_to_tell().0.0,
            ..Header::default()
        };
        if let Some(timestamps) = &self.timestamps {
            header.options.timestamps = Some(Timestamps {
                value: timestamps.value(ctx.now),
                echo: timestamps.recent,
            });
        }
        if self.sack && self.out_of_order.has_sack_blocks() {
            header.options.sack = self.out_of_order.sack_blocks(MAX_SACK_BLOCKS);
        }
        header
    }

    /// Hands a packet without slices to the device.
    fn send_header(&self, ip: &mut impl IpSender<P>, header: &Header) -> Result<(), SendError> {
        let mut bytes = [0; MAX_HEADER_BYTES];
        let len = header.emit(&mut bytes);
        ip.send(&IpPacket {
            src: self.tuple.local,
            dst: self.tuple.remote,
            protocol: PROTOCOL,
            traffic_class: 0,
            transport: &bytes[..len],
            payload: &[],
            segment_bytes: None,
            owner: Owner::NONE,
        })
    }

    fn send_reset(&mut self, ctx: &mut Context<'_>, ip: &mut impl IpSender<P>) -> Transmit {
        let mut header = self.header(ctx, self.snd.nxt, Flags::RST);
        header.options.sack.clear();
        header.flags.remove(Flags::ECE);
        match self.send_header(ip, &header) {
            Ok(()) => ctx.counters.out_rsts += 1,
            Err(SendError::Busy) => return Transmit::Busy,
            // The peer will learn of it when it sends something.
            Err(_) => {}
        }
        self.reset_pending = false;
        Transmit::Idle
    }

    fn send_syn(
        &mut self,
        ctx: &mut Context<'_>,
        ip: &mut impl IpSender<P>,
        route: &Route,
    ) -> Transmit {
        let advmss = u16::try_from(self.path_mss(route)).unwrap_or(u16::MAX);
        let is_answer = self.state == State::SynReceived;
        let mut header = Header {
            src_port: self.tuple.local_port,
            dst_port: self.tuple.remote_port,
            seq: self.snd.iss.0,
            flags: Flags::SYN,
            window: self.syn_window().0,
            ..Header::default()
        };
        if is_answer {
            header.flags |= Flags::ACK;
            header.flags |= self.ecn.syn_ack_flags();
            header.ack = self.rcv.nxt.0;
        } else {
            header.flags |= self.ecn.syn_flags(self.snd.nxt != self.snd.iss);
        }
        header.options.mss = Some(advmss);
        header.options.window_scale = self.scaling.then_some(self.rcv.wscale.shift());
        header.options.sack_permitted = self.sack;
        header.options.timestamps = self.timestamps.map(|own: TimestampState| Timestamps {
            value: own.value(ctx.now),
            echo: if is_answer { own.recent } else { 0 },
        });
        match self.send_header(ip, &header) {
            Ok(()) => {}
            Err(error) => return self.cannot_send(ctx, error),
        }
        self.rcv.advmss = advmss;
        self.rcv.mss = self.rcv.mss.min(u32::from(advmss));
        self.snd.syn_pending = false;
        if self.snd.nxt == self.snd.iss {
            self.snd.nxt = self.snd.iss + 1;
            self.stalled_since = ctx.now;
            ctx.counters.out_segs += 1;
        } else {
            ctx.counters.retrans_segs += 1;
            self.stats.total_retrans += 1;
        }
        self.stats.segs_out += 1;
        arm(&mut self.timers.retransmit, ctx.now, self.rtt.rto());
        Transmit::Sent
    }

    fn send_ack(&mut self, ctx: &mut Context<'_>, ip: &mut impl IpSender<P>) -> Transmit {
        let header = self.header(ctx, self.snd.nxt, Flags::empty());
        match self.send_header(ip, &header) {
            Ok(()) => {}
            Err(error) => return self.cannot_send(ctx, error),
        }
        ctx.counters.out_segs += 1;
        self.stats.segs_out += 1;
        self.ack_sent(ctx);
        Transmit::Sent
    }

    /// A segment that draws an acknowledgment: one the peer has already seen the numbers of
    /// (RFC 9293 §3.8.4), or what the window lets through of the data that waits.
    fn send_probe(
        &mut self,
        ctx: &mut Context<'_>,
        ip: &mut impl IpSender<P>,
        probe: Probe,
    ) -> Transmit {
        let header = self.header(ctx, self.snd.una - 1, Flags::empty());
        match self.send_header(ip, &header) {
            Ok(()) => {}
            Err(error) => return self.cannot_send(ctx, error),
        }
        self.snd.probe = None;
        ctx.counters.out_segs += 1;
        self.stats.segs_out += 1;
        match probe {
            Probe::Window => ctx.counters.win_probe += 1,
            Probe::Keepalive => ctx.counters.keepalive += 1,
        }
        self.ack_sent(ctx);
        Transmit::Sent
    }

    /// Notes what the segment just sent has told the peer.
    fn ack_sent(&mut self, ctx: &mut Context<'_>) {
        let (window, edge) = self.window_to_tell();
        match (self.rcv.zero_window, window.0 == 0) {
            (false, true) => ctx.counters.to_zero_window += 1,
            (true, false) => ctx.counters.from_zero_window += 1,
            _ => {}
        }
        self.rcv.zero_window = window.0 == 0;
        self.rcv.adv = edge;
        self.ack_policy.sent(self.rcv.acked != self.rcv.nxt);
        self.rcv.acked = self.rcv.nxt;
        self.rcv.ack_now = false;
        self.timers.delayed_ack = None;
        self.out_of_order.sack_blocks_sent();
    }

    /// The largest payload of one packet on `route`, in whole segments of `mss`.
    pub(super) fn max_run_bytes(&self, route: &Route, mss: u32) -> u32 {
        let most = route.max_tso_bytes.min(MAX_PACKET_BYTES);
        let headers = self.ip_header_bytes() + MAX_HEADER_BYTES as u32;
        (most.saturating_sub(headers) / mss * mss).max(mss)
    }

    /// Payload of a full segment with the SACK blocks that would go in its header now.
    pub(super) fn mss_now(&self) -> u32 {
        if self.sack && self.out_of_order.has_sack_blocks() {
            let room = MAX_HEADER_BYTES as u32 - MIN_HEADER_BYTES as u32 - self.option_bytes();
            self.snd.mss.saturating_sub(room).max(MIN_MSS)
        } else {
            self.snd.mss
        }
    }

    /// After an idle time the window says nothing about the path any more (RFC 5681 §4.1).
    pub(super) fn restart_after_idle(&mut self, ctx: &Context<'_>) {
        if !self.retransmits.is_empty() {
            return;
        }
        self.congestion.on_send_after_idle(ctx.now);
        if ctx.config.slow_start_after_idle {
            let (sent_at, rto) = (self.snd.last_data_at, self.rtt.rto());
            self.usage.restart(&mut self.window, ctx.now, sent_at, rto);
        }
    }

    /// Sends a run of data and notes it.
    fn send_run(
        &mut self,
        ctx: &mut Context<'_>,
        queue: &mut DeviceQueue,
        ip: &mut impl IpSender<P>,
        route: &Route,
        run: Run,
    ) -> Transmit {
        let Run {
            seq,
            bytes: wanted,
            mut fin,
            again,
            probe,
        } = run;
        let mss = self.mss_now();
        let mut payload = Payload::new();
        let position = self.position_of(seq);
        let slices = usize::from(route.max_slices).max(1);
        let mut bytes = self
            .send_queue
            .gather(position, wanted as usize, slices, &mut payload) as u32;
        if bytes < wanted {
            // More slices than a packet takes.
            fin = false;
            if bytes > mss {
                bytes -= bytes % mss;
                truncate(&mut payload, bytes as usize);
            }
        }
        if bytes == 0 && !fin {
            debug_assert!(false, "a run of {wanted} bytes at {seq} has no data");
            return Transmit::Idle;
        }
        let mut flags = Flags::empty();
        flags.set(Flags::FIN, fin);
        let is_last = (seq + bytes).after_or_eq(self.data_end());
        // A packet of several segments is pushed as one: the peer's device puts it together.
        flags.set(Flags::PSH, bytes > 0 && (is_last || bytes > mss));
        let is_new_data = !again && bytes > 0;
        flags.set(Flags::CWR, is_new_data && self.ecn.announces());
        let header = self.header(ctx, seq, flags);
        let mut header_bytes = [0; MAX_HEADER_BYTES];
        let header_len = header.emit(&mut header_bytes);
        let mut transport = [0; MAX_TRANSPORT_BYTES];
        transport[..header_len].copy_from_slice(&header_bytes[..header_len]);
        let mut transport_len = header_len;
        let is_inline = header_len + bytes as usize <= MAX_TRANSPORT_BYTES;
        if is_inline {
            // So small that it costs less to copy than a slot of its own.
            for part in &payload {
                let end = transport_len + part.len();
                transport[transport_len..end].copy_from_slice(part.bytes());
                transport_len = end;
            }
            payload.clear();
        }
        let result = ip.send(&IpPacket {
            src: self.tuple.local,
            dst: self.tuple.remote,
            protocol: PROTOCOL,
            traffic_class: if is_new_data { self.ecn.field() } else { 0 },
            transport: &transport[..transport_len],
            payload: &payload,
            segment_bytes: (bytes > mss).then_some(mss as u16),
            owner: if is_inline {
                Owner::NONE
            } else {
                self.id.owner()
            },
        });
        drop(payload);
        match result {
            Ok(()) => {}
            Err(error) => return self.cannot_send(ctx, error),
        }
        if !is_inline {
            self.device.sent(queue, ctx.now, bytes);
        }
        self.run_sent(
            ctx,
            Run {
                seq,
                bytes,
                fin,
                again,
                probe,
            },
            mss,
        );
        Transmit::Sent
    }

    /// Notes a run that the device has taken.
    fn run_sent(&mut self, ctx: &mut Context<'_>, run: Run, mss: u32) {
        let Run {
            seq,
            bytes,
            fin,
            again,
            probe,
        } = run;
        let len = bytes + u32::from(fin);
        let segments = u64::from(bytes.div_ceil(mss).max(1));
        self.stats.segs_out += segments;
        self.stats.bytes_sent += u64::from(bytes);
        if bytes > 0 {
            self.stats.data_segs_out += segments;
            if !again {
                self.ecn.announced(seq + bytes);
            }
        }
        let in_flight = self.retransmits.in_flight_bytes();
        let snapshot = self.delivery.on_send(ctx.now, in_flight);
        let range = Range::new(seq, seq + len);
        self.recovery.on_sent(len);
        if again {
            self.retransmits
                .mark_retransmitted(range, mss as u16, ctx.now, snapshot);
            self.note_again(ctx, run, segments);
        } else {
            ctx.counters.out_segs += segments;
            ctx.counters.orig_data_sent += segments;
            if self.retransmits.is_empty() {
                self.stalled_since = ctx.now;
            }
            self.retransmits.push(range, mss as u16, ctx.now, snapshot);
            self.recovery.frto.on_new_sent();
            self.snd.nxt = seq + len;
            self.snd_nxt_advanced();
            if bytes % mss != 0 {
                self.snd.small_end = Some(seq + bytes);
            }
            if self.snd.probe == Some(Probe::Window) {
                self.snd.probe = None;
                ctx.counters.win_probe += 1;
            }
            self.timers.persist = None;
        }
        self.pacer.sent(ctx.now, bytes, self.pacing_rate);
        self.snd.last_data_at = ctx.now;
        self.ack_policy.data_sent(ctx.now);
        // RFC 6298 §5.1; the answer to a retransmission of the first segment, or to a probe, takes a
        // round trip from now.
        let is_head_again = again && seq == self.snd.una;
        if self.timers.retransmit.is_none() || is_head_again || probe {
            arm(&mut self.timers.retransmit, ctx.now, self.rtt.rto());
        }
        if probe {
            self.note_probe(ctx, range, again);
        }
        self.plan_probe(ctx);
        self.ack_sent(ctx);
    }

    /// With nothing in flight no acknowledgment will come to try again: then a timer must, as long
    /// as something waits (RFC 9293 §3.8.6.1).
    fn watch_window(&mut self, ctx: &Context<'_>) {
        let fin_waits = self.snd.closed && self.snd.nxt.before_or_eq(self.data_end());
        let waits = self.state.can_send() && (self.notsent_bytes() > 0 || fin_waits);
        if waits
            && self.retransmits.is_empty()
            && self.timers.persist.is_none()
            && self.timers.retransmit.is_none()
            // A completion will come, or the pacing timer.
            && !self.device.is_throttled()
            && self.timers.pace.is_none()
        {
            arm(&mut self.timers.persist, ctx.now, self.rtt.rto());
        }
    }

    /// Whether [`Self::transmit`] may have something to do.
    pub(super) fn wants_output(&self) -> bool {
        if self.reset_pending || self.snd.syn_pending || self.write_space.is_due() {
            return true;
        }
        if !self.state.is_synchronized() || self.state == State::TimeWait {
            return false;
        }
        let fin_waits = self.snd.closed && self.snd.nxt.before_or_eq(self.data_end());
        self.rcv.ack_now
            || self.snd.probe.is_some()
            || self.tlp.is_due()
            || self.retransmits.pending_bytes() > 0
            || (self.state.can_send() && (self.notsent_bytes() > 0 || fin_waits))
    }
}

/// Keeps the first `bytes` bytes.
fn truncate<P: Page>(payload: &mut Payload<'_, P>, bytes: usize) {
    let mut left = bytes;
    let mut kept = 0;
    for part in payload.iter_mut() {
        if left == 0 {
            break;
        }
        *part = part.slice(0..left);
        left -= part.len();
        kept += 1;
    }
    payload.truncate(kept);
}
