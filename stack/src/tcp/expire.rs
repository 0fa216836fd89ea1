//! What happens when a connection's timer runs out.

use super::{
    connection::{Connection, Context, Failure, Probe, State},
    timers::{Timers, arm},
};
use crate::device::Page;

impl<P: Page> Connection<P> {
    /// Runs the timers that have run out.
    pub(super) fn on_timer(&mut self, ctx: &mut Context<'_>) {
        let now = ctx.now;
        // What it held is looked at whenever the connection is.
        Timers::take(&mut self.timers.pace, now);
        if Timers::take(&mut self.timers.delayed_ack, now) {
            ctx.counters.delayed_acks += u64::from(self.ack_policy.delay_ended(self.rtt.rto()));
            self.rcv.ack_now = true;
        }
        self.on_loss_timers(ctx);
        if Timers::take(&mut self.timers.retransmit, now) {
            if self.state.is_synchronized() {
                self.on_retransmission_timeout(ctx);
            } else {
                self.on_handshake_timeout(ctx);
            }
        }
        if Timers::take(&mut self.timers.persist, now) {
            self.on_persist(ctx);
        }
        if Timers::take(&mut self.timers.keepalive, now) {
            self.on_keepalive(ctx);
        }
        if Timers::take(&mut self.timers.linger, now) {
            // The peer never closed, and nobody waits for what it might still send.
            ctx.counters.abort_on_linger += 1;
            self.finish(State::Closed);
        }
    }

    /// The SYN, or SYN and ACK, was not answered.
    fn on_handshake_timeout(&mut self, ctx: &mut Context<'_>) {
        let retries = match self.state {
            State::SynSent => ctx.config.syn_retries,
            _ => ctx.config.synack_retries,
        };
        if self.timeouts >= retries || self.is_out_of_patience(ctx) {
            ctx.counters.attempt_fails += 1;
            self.fail(Failure::TimedOut);
            return;
        }
        self.timeouts += 1;
        ctx.counters.timeouts += 1;
        self.rtt.back_off();
        self.snd.syn_pending = true;
        arm(&mut self.timers.retransmit, ctx.now, self.rtt.rto());
    }

    /// RFC 6298 §5.4 to §5.7.
    fn on_retransmission_timeout(&mut self, ctx: &mut Context<'_>) {
        if self.retransmits.is_empty() {
            return;
        }
        if self.timeouts >= ctx.config.retries2
            || self.is_out_of_patience(ctx)
            || self.is_forsaken(ctx)
        {
            ctx.counters.abort_on_timeout += 1;
            self.abort(Failure::TimedOut);
            return;
        }
        ctx.counters.timeouts += 1;
        self.timeouts += 1;
        self.lose_by_timeout(ctx);
        self.rtt.back_off();
        arm(&mut self.timers.retransmit, ctx.now, self.rtt.rto());
    }

    /// Whether the application's own limit is over (RFC 5482).
    fn is_out_of_patience(&self, ctx: &Context<'_>) -> bool {
        self.options
            .user_timeout
            .is_some_and(|limit| ctx.now.since(self.stalled_since) >= limit)
    }

    /// Whether nobody holds the connection any more and its peer has taken nothing for as many
    /// timeouts as such a one is worth. Answers to probes do not count: with them, a peer could
    /// have us keep what was sent to it for ever.
    fn is_forsaken(&self, ctx: &Context<'_>) -> bool {
        !self.held && self.listener.is_none() && self.rtt.backoff() >= ctx.config.orphan_retries
    }

    /// The window is still closed, or too small (RFC 9293 §3.8.6.1). A peer that answers may keep
    /// it so for ever; one that does not is given up as for a retransmission.
    fn on_persist(&mut self, ctx: &mut Context<'_>) {
        if self.timeouts >= ctx.config.retries2 || self.is_forsaken(ctx) {
            ctx.counters.abort_on_timeout += 1;
            self.abort(Failure::TimedOut);
            return;
        }
        self.timeouts += 1;
        self.rtt.back_off();
        self.snd.probe = Some(Probe::Window);
        arm(&mut self.timers.persist, ctx.now, self.rtt.rto());
    }

    /// RFC 9293 §3.8.4.
    fn on_keepalive(&mut self, ctx: &mut Context<'_>) {
        let Some(keepalive) = self.options.keepalive else {
            return;
        };
        let idle = ctx.now.since(self.rcv.last_at);
        if idle < keepalive.time {
            self.timers.keepalive = Some(self.rcv.last_at + keepalive.time);
            return;
        }
        if !self.retransmits.is_empty() || self.timers.persist.is_some() {
            // Those timers find out.
            arm(&mut self.timers.keepalive, ctx.now, keepalive.time);
            return;
        }
        if self.keepalive_probes >= keepalive.probes {
            ctx.counters.abort_on_timeout += 1;
            self.abort(Failure::TimedOut);
            return;
        }
        self.keepalive_probes += 1;
        self.snd.probe = Some(Probe::Keepalive);
        arm(&mut self.timers.keepalive, ctx.now, keepalive.interval);
    }
}
