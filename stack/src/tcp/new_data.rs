//! Which new data may go now: as the peer's window, the congestion window, the pacing rate, the
//! device and the application's wishes let it.

use super::{
    connection::{Connection, Context, Probe},
    device_share::{Demand, DeviceQueue},
    output::Run,
    pacing::{Pacer, Ratios},
    rate::{Rate, microseconds},
    recovery::Phase,
    tso::{self, Deferral},
};
use crate::{
    device::Page,
    ip::{MAX_TRANSPORT_BYTES, Route},
    time::Instant,
    wire::tcp::MAX_HEADER_BYTES,
};

/// Why no new data may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// The congestion window is full.
    CongestionWindow,
    /// Enough of the connection is in the device.
    Device,
    /// There is none, or Nagle's rule or the peer's window holds it.
    Other,
    /// Its time to leave has not come.
    Pacing,
}

impl<P: Page> Connection<P> {
    /// New data that may be sent now, or what holds it.
    pub(super) fn next_new(
        &mut self,
        ctx: &mut Context<'_>,
        queue: &mut DeviceQueue,
        route: &Route,
    ) -> Result<Run, Held> {
        if !self.state.can_send() {
            return Err(Held::Other);
        }
        let waiting = self.notsent_bytes();
        let fin_waits = self.snd.closed && self.snd.nxt.before_or_eq(self.data_end());
        if waiting == 0 && !fin_waits {
            return Err(Held::Other);
        }
        if self.device.is_throttled() {
            return Err(Held::Device);
        }
        if self.retransmits.is_empty() {
            self.pacer.rested(ctx.now, self.window.initial());
        }
        self.timers.pace = self.held_by_pacing(ctx.now);
        if self.timers.pace.is_some() {
            ctx.counters.pacing_held += 1;
            return Err(Held::Pacing);
        }
        self.restart_after_idle(ctx);
        let mss = self.mss_now();
        let pipe = self.pipe_bytes();
        let demand = self.demand(ctx, route, mss, pipe);
        let limit = self.device.limit(queue, &demand);
        let most = if self.ecn.announces() {
            mss
        } else {
            (limit.packet_bytes / mss * mss).max(mss)
        };
        let window_room = (self.snd.una + self.snd.wnd).bytes_since(self.snd.nxt);
        let cwnd_room = self.window.cwnd.saturating_sub(pipe);
        let mut bytes = waiting.min(window_room).min(cwnd_room).min(most);
        let all = bytes == waiting;
        let fin = fin_waits && all && window_room > bytes;
        if !(fin && bytes == 0) {
            let tail = bytes % mss;
            if tail > 0 && !self.may_send_tail(bytes, tail, all, fin, window_room) {
                bytes -= tail;
            }
            if bytes == 0 {
                return Err(if cwnd_room < mss.min(waiting) && cwnd_room < window_room {
                    Held::CongestionWindow
                } else {
                    Held::Other
                });
            }
            if !all && self.should_wait_for_more(ctx.now, bytes, most, pipe) {
                ctx.counters.tso_deferred += 1;
                return Err(if cwnd_room <= window_room {
                    Held::CongestionWindow
                } else {
                    Held::Other
                });
            }
            // What is copied into a header's slot takes no page there, and is not counted: small
            // writes never wait for a completion.
            let is_inline = bytes as usize + MAX_HEADER_BYTES <= MAX_TRANSPORT_BYTES;
            if !is_inline && !self.device.admit(queue, &demand, limit, bytes) {
                ctx.counters.device_throttled += 1;
                return Err(Held::Device);
            }
        }
        Ok(Run {
            seq: self.snd.nxt,
            bytes,
            fin: fin && bytes == waiting,
            again: false,
            probe: false,
        })
    }

    /// What decides how much the connection may have in the device, by what is known now. Sets the
    /// pacing rate.
    fn demand(&mut self, ctx: &Context<'_>, route: &Route, mss: u32, pipe: u32) -> Demand {
        let ratios = Ratios {
            ss_percent: u32::from(ctx.config.pacing_ss_ratio),
            ca_percent: u32::from(ctx.config.pacing_ca_ratio),
        };
        self.pacing_rate = ratios
            .rate(&self.window, pipe, self.rtt.srtt_us())
            .min(self.options.max_pacing_rate);
        let max_bytes = self.max_run_bytes(route, mss);
        Demand {
            policy: self.options.tsq_policy,
            limit_output_bytes: self.options.limit_output_bytes,
            pacing_rate: self.pacing_rate,
            packet_bytes: tso::autosize(self.pacing_rate, self.rtt.min_us(), mss, max_bytes),
            mss,
            ring_bytes: route.ring_bytes,
        }
    }

    /// Until when pacing holds data back, if it does.
    fn held_by_pacing(&mut self, now: Instant) -> Option<Instant> {
        let is_wanted = self.options.pacing || self.options.max_pacing_rate < Rate::UNLIMITED;
        is_wanted.then(|| self.pacer.holds_until(now)).flatten()
    }

    /// Whether the connection's data leaves spread over the round trip.
    pub(super) fn is_paced(&self) -> bool {
        self.options.pacing && Pacer::spaces(self.rtt.srtt_us())
    }

    /// Whether the part of a run that fills no segment may go (RFC 9293 §3.7.4, §3.8.6.2.1).
    fn may_send_tail(&self, bytes: u32, tail: u32, all: bool, fin: bool, window_room: u32) -> bool {
        if all {
            // Nagle's rule, in Minshall's variant: hold a small segment only while another small
            // one is on its way, so that the end of a large write does not wait for its middle.
            let small_outstanding = self
                .snd
                .small_end
                .is_some_and(|end| end.after(self.snd.una));
            return fin || self.options.nodelay || !small_outstanding;
        }
        // More waits: a part goes only if the peer's window will hardly ever let more through,
        // or when the probe timer says so.
        let is_cut_by_window = window_room == bytes && tail == bytes;
        is_cut_by_window && (bytes >= self.snd.max_wnd / 2 || self.snd.probe == Some(Probe::Window))
    }

    /// Whether a small packet waits until the acknowledgments on their way let a large one
    /// through.
    fn should_wait_for_more(&self, now: Instant, bytes: u32, most: u32, pipe: u32) -> bool {
        // With a gap reported, more data draws more reports (RFC 3042).
        if self.recovery.phase() != Phase::Open
            || self.retransmits.sacked_bytes() > 0
            || self.recovery.dup_acks() > 0
        {
            return false;
        }
        let oldest = self.retransmits.iter().next();
        let deferral = Deferral {
            bytes,
            full_bytes: most,
            window_bytes: self.window.cwnd.min(self.snd.wnd),
            in_flight_bytes: pipe,
            mss: self.snd.mss,
            since_last_sent_us: microseconds(now.since(self.snd.last_data_at)),
            oldest_age_us: oldest.map_or(0, |sent| microseconds(now.since(sent.time))),
            srtt_us: self.rtt.srtt_us(),
        };
        deferral.pays()
    }
}
