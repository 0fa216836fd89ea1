//! What is sent again: lost data, and probes for a lost tail (RFC 8985 §7.3).

use super::{
    connection::{Connection, Context},
    out_of_order::Range,
    output::Run,
    recovery::Phase,
};
use crate::{device::Page, ip::Route};

impl<P: Page> Connection<P> {
    /// Lost data that may be sent again now.
    pub(super) fn next_retransmission(&mut self, route: &Route) -> Option<Run> {
        if self.retransmits.pending_bytes() == 0 || self.recovery.frto.holds_retransmissions() {
            return None;
        }
        let mss = self.mss_now();
        let room = self.window.cwnd.saturating_sub(self.pipe_bytes());
        let most = self
            .max_run_bytes(route, mss)
            .min((room / mss * mss).max(mss));
        let range = self.retransmits.next_pending(most)?;
        (range.len().min(mss) <= room).then(|| self.run_again(range, false))
    }

    /// A run to repeat `range`.
    fn run_again(&self, range: Range, probe: bool) -> Run {
        let Range { start, end } = range;
        let data_end = self.data_end();
        Run {
            seq: start,
            bytes: end.earliest(data_end).bytes_since(start),
            fin: end.after(data_end),
            again: true,
            probe,
        }
    }

    /// The probe for a lost tail that is due, whatever the congestion window says: a segment of new
    /// data, or the last one again (RFC 8985 §7.3).
    pub(super) fn loss_probe(&mut self) -> Option<Run> {
        if !self.tlp.is_due() {
            return None;
        }
        if self.retransmits.is_empty() {
            self.tlp.cancel();
            return None;
        }
        let window_room = (self.snd.una + self.snd.wnd).bytes_since(self.snd.nxt);
        let mss = self.mss_now();
        let bytes = self.notsent_bytes().min(window_room).min(mss);
        if bytes > 0 && self.state.can_send() {
            return Some(Run {
                seq: self.snd.nxt,
                bytes,
                fin: false,
                again: false,
                probe: true,
            });
        }
        let mut last = self.retransmits.last_segment()?;
        if last.len() > mss {
            last.start = last.end - mss;
        }
        Some(self.run_again(last, true))
    }

    /// Whether nothing but the application keeps more from being sent.
    ///
    /// Linux also asks whether the device has anything of this flow; where completions are slow it
    /// always has, long after the data has arrived. What that question is about, a queue that has
    /// yet to drain, shows in the round-trip time instead.
    pub(super) fn is_app_limited(&self) -> bool {
        let srtt_us = self.rtt.srtt_us().unwrap_or(0);
        let min_us = self.rtt.min_us().unwrap_or(0);
        self.notsent_bytes() < self.snd.mss
            && self.retransmits.pending_bytes() == 0
            && srtt_us <= min_us.saturating_add(min_us / 4)
    }

    /// Notes that `run`, of so many segments, has been sent again.
    pub(super) fn note_again(&mut self, ctx: &mut Context<'_>, run: Run, segments: u64) {
        let Run {
            bytes, fin, probe, ..
        } = run;
        self.stats.bytes_retrans += u64::from(bytes);
        self.stats.total_retrans += segments;
        ctx.counters.retrans_segs += segments;
        match self.recovery.phase() {
            _ if probe => {}
            Phase::Recovery { .. } => ctx.counters.fast_retrans += segments,
            _ => ctx.counters.slow_start_retrans += segments,
        }
        // What the device holds is what was sent last: where slots are answered late, it may be
        // sent again before that, and is (the answer says when memory is free, not when the packet
        // left).
        let held_from = self.snd.nxt - self.device.in_device_bytes();
        if (run.seq + bytes).after(held_from) {
            ctx.counters.spurious_rtx_host_queues += segments;
        }
        let stamp = self.timestamps.map(|own| own.value(ctx.now));
        self.recovery
            .undo
            .on_retransmit(bytes + u32::from(fin), stamp);
    }

    /// Notes that a probe has been sent, with `range` in it.
    pub(super) fn note_probe(&mut self, ctx: &mut Context<'_>, range: Range, again: bool) {
        ctx.counters.loss_probes += 1;
        self.tlp.on_sent(self.snd.nxt, again.then_some(range));
    }
}
