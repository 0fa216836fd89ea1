//! What an acknowledgment, or the lack of one, says about losses: what is lost, what was only
//! late, and where recovery begins and ends (RFC 8985, RFC 6675, RFC 6582, RFC 5682, RFC 3522).

use super::{
    congestion::Cause,
    connection::{Connection, Context},
    frto::{FrtoAck, FrtoVerdict},
    out_of_order::Range,
    rack::Patience,
    recovery::{Episode, Flight, Phase},
    retransmit_queue::Judgment,
    sent::Delivered,
    seq::SeqNum,
    timers::{Timers, arm},
    tlp::{Tlp, TlpVerdict},
};
use crate::{device::Page, time::Duration};

/// What an acknowledgment brought.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    pub(super) delivered: Delivered,
    /// snd_una moved on.
    pub(super) advanced: bool,
    /// SACK blocks reported something new.
    pub(super) newly_sacked: bool,
    /// Something arrived twice.
    pub(super) duplicate: Option<Range>,
    /// It is a duplicate acknowledgment (RFC 5681 §2).
    pub(super) is_dup_ack: bool,
    /// The timestamp it echoes.
    pub(super) echo: Option<u32>,
    /// It echoes a congestion mark.
    pub(super) is_marked: bool,
    /// The flight before it.
    pub(super) flight: Flight,
    /// Bytes it says have left the network (`DeliveredData` of RFC 9937 §6).
    pub(super) delivered_bytes: u32,
}

/// Least time to wait for a peer that seems to have thrown away what it had reported.
const RENEGING_WAIT: Duration = Duration::from_millis(10);

impl<P: Page> Connection<P> {
    /// Draws the conclusions of an acknowledgment.
    pub(super) fn learn(&mut self, ctx: &mut Context<'_>, news: &News) {
        let una = self.snd.una;
        let was_open = self.recovery.phase() == Phase::Open;
        if news.advanced {
            self.recovery.on_advance(una);
            self.rack.on_advance(una);
            if self.recovery.undo.on_advance(una) {
                self.congestion.commit();
            }
            if self.retransmits.is_head_sacked() {
                self.suspect_reneging(ctx);
            }
        }
        self.follow_rack(ctx, news);
        self.answer_probe(ctx, news);
        let was = self.recovery.phase();
        self.settle_phase(ctx, news);
        if news.is_marked {
            self.heed_mark(news.flight);
        }
        let before = self.retransmits.lost_bytes();
        if self.sack {
            self.find_losses(ctx);
        } else if news.is_dup_ack {
            let dup_thresh = u32::from(ctx.config.reordering);
            self.recovery
                .on_dup_ack(&mut self.retransmits, una, self.snd.mss, dup_thresh);
        } else if news.advanced && was == self.recovery.phase() && self.is_in_fast_recovery() {
            // RFC 6582 §3.2, step 3: a partial acknowledgment means that the next segment is lost
            // too.
            self.retransmits.mark_head_lost(self.snd.mss);
        }
        let is_lost = self.retransmits.lost_bytes() > before;
        self.enter_recovery(ctx, news.flight);
        if news.delivered_bytes > 0 || is_lost {
            let is_safe = news.advanced && !is_lost;
            let pipe = self.pipe_bytes();
            let (recovery, window) = (&mut self.recovery, &mut self.window);
            recovery.proportion(window, news.delivered_bytes, pipe, is_safe);
        }
        if was_open && self.recovery.phase() != Phase::Open {
            self.ecn.on_reduction();
        }
    }

    fn is_in_fast_recovery(&self) -> bool {
        matches!(self.recovery.phase(), Phase::Recovery { .. })
    }

    /// The peer holds what comes next, by its own reports, and does not acknowledge it. Perhaps the
    /// acknowledgment is only late: nothing is done before a short timeout (RFC 2018 §8).
    fn suspect_reneging(&mut self, ctx: &Context<'_>) {
        let half = Duration::from_micros(u64::from(self.rtt.srtt_us().unwrap_or(0) / 2));
        let soon = ctx.now + half.max(RENEGING_WAIT);
        self.timers.retransmit = Some(self.timers.retransmit.map_or(soon, |at| at.min(soon)));
    }

    /// Tells RACK what arrived, and what arrived twice.
    fn follow_rack(&mut self, ctx: &mut Context<'_>, news: &News) {
        let min_rtt = Duration::from_micros(u64::from(self.rtt.min_us().unwrap_or(0)));
        let timestamps = self.timestamps;
        let echo = news.echo.filter(|_| news.advanced);
        let reordered = self.rack.on_delivered(
            &news.delivered,
            self.snd.una,
            min_rtt,
            ctx.now,
            |sent| match (timestamps, echo) {
                (Some(own), Some(echo)) if echo != 0 => {
                    SeqNum(echo).before(SeqNum(own.value(sent.time)))
                }
                _ => false,
            },
        );
        ctx.counters.sack_reorder += u64::from(reordered);
        if let Some(range) = news.duplicate
            && !self.tlp.is_probe(range)
        {
            self.rack.on_duplicate(self.snd.nxt);
        }
    }

    /// What the acknowledgment says about a loss probe.
    fn answer_probe(&mut self, ctx: &mut Context<'_>, news: &News) {
        let is_bare_dup_ack = news.is_dup_ack && !news.newly_sacked && news.duplicate.is_none();
        let verdict = self
            .tlp
            .on_ack(self.snd.una, news.duplicate, is_bare_dup_ack);
        if verdict == TlpVerdict::Repaired {
            ctx.counters.loss_probe_recovery += 1;
            let episode = self.episode(news.flight);
            self.recovery.reduce(
                &self.retransmits,
                &mut self.window,
                &mut self.congestion,
                Cause::Loss,
                episode,
            );
        }
        if self.retransmits.is_empty() {
            self.tlp.cancel();
        }
    }

    /// The path marked our data (RFC 3168 §6.1.2): the window comes down once a window of data,
    /// and what an earlier reduction took is not given back.
    fn heed_mark(&mut self, flight: Flight) {
        self.congestion.commit();
        let episode = self.episode(flight);
        self.recovery.reduce(
            &self.retransmits,
            &mut self.window,
            &mut self.congestion,
            Cause::Ecn,
            episode,
        );
    }

    fn episode(&self, flight: Flight) -> Episode {
        Episode {
            una: self.snd.una,
            nxt: self.snd.nxt,
            used_bytes: self
                .usage
                .used_bytes(&self.window, flight.outstanding_bytes),
            flight,
        }
    }

    /// Whether what was done about losses was right, and whether it is over.
    fn settle_phase(&mut self, ctx: &mut Context<'_>, news: &News) {
        let is_explained = self.recovery.undo.is_explained_by_duplicates();
        let is_original = news.advanced && self.recovery.undo.is_original(news.echo);
        let una = self.snd.una;
        match self.recovery.phase() {
            Phase::Reducing { high } => {
                if una.after_or_eq(high) {
                    self.finish_recovery();
                }
            }
            Phase::Recovery { high } if una.after_or_eq(high) => {
                if is_explained || is_original {
                    ctx.counters.full_undo += 1;
                    self.undo(false);
                } else {
                    self.finish_recovery();
                }
            }
            Phase::Open | Phase::Recovery { .. } if is_explained => {
                ctx.counters.dsack_undo += 1;
                self.undo(false);
            }
            Phase::Recovery { .. } if is_original => {
                // This gap was filled by what had been held for lost.
                ctx.counters.ts_reorder += 1;
                self.rack.on_spurious();
                if self.retransmits.retransmitted_bytes() == 0 {
                    ctx.counters.partial_undo += 1;
                    self.undo(true);
                }
            }
            Phase::Open | Phase::Recovery { .. } => {}
            Phase::Loss { high } => self.settle_timeout(ctx, news, high),
        }
    }

    /// The same while recovering from a timeout that came when snd_nxt was `high`.
    fn settle_timeout(&mut self, ctx: &mut Context<'_>, news: &News, high: SeqNum) {
        let recovered = self.snd.una.after_or_eq(high);
        let undo = &self.recovery.undo;
        if news.advanced && (undo.is_original(news.echo) || undo.is_explained_by_duplicates()) {
            ctx.counters.loss_undo += 1;
            self.undo(true);
            return;
        }
        let verdict = self.recovery.frto.on_ack(FrtoAck {
            advanced: news.advanced,
            recovered,
            original_arrived: news
                .delivered
                .lowest_original
                .is_some_and(|lowest| lowest.before(high)),
            is_dup: !news.advanced && (news.newly_sacked || news.is_dup_ack),
        });
        if verdict == FrtoVerdict::Spurious {
            ctx.counters.spurious_rtos += 1;
            ctx.counters.loss_undo += 1;
            self.undo(true);
        } else if recovered {
            self.finish_recovery();
        }
    }

    fn finish_recovery(&mut self) {
        let (nxt, sack) = (self.snd.nxt, self.sack);
        if self.recovery.is_recovering() {
            self.rack.on_recovered();
        }
        self.recovery
            .finish(&self.retransmits, &mut self.window, nxt, sack);
    }

    /// Nothing had been lost: all is as before. With `unmark`, what is still held for lost is not
    /// any more.
    fn undo(&mut self, unmark: bool) {
        self.congestion.undo(&mut self.window);
        self.ecn.withdraw();
        self.recovery.on_undone();
        self.rack.on_undone();
        self.timeouts = 0;
        if unmark {
            self.retransmits.unmark_lost();
        }
    }

    /// RACK: holds for lost what was sent before what has arrived, and waits for the rest.
    fn find_losses(&mut self, ctx: &mut Context<'_>) {
        self.timers.reorder = None;
        let Some(reference) = self.rack.latest() else {
            return;
        };
        let us = |us: Option<u32>| Duration::from_micros(u64::from(us.unwrap_or(0)));
        let patience = self.rack.patience(Patience {
            min_rtt: us(self.rtt.min_us()),
            srtt: us(self.rtt.srtt_us()),
            sacked_segments: self.retransmits.sacked_segments(),
            dup_thresh: u32::from(ctx.config.reordering),
            is_recovering: self.recovery.is_recovering(),
        });
        let Judgment {
            lost_again_bytes,
            suspect_since,
            ..
        } = self.retransmits.judge(reference, patience, ctx.now);
        ctx.counters.lost_retransmit += u64::from(lost_again_bytes.div_ceil(self.snd.mss.max(1)));
        self.timers.reorder = suspect_since.map(|sent| sent + patience);
    }

    /// Begins fast recovery, if anything is lost and it has not begun.
    fn enter_recovery(&mut self, ctx: &mut Context<'_>, flight: Flight) {
        let episode = self.episode(flight);
        let entered = self.recovery.on_loss(
            &self.retransmits,
            &mut self.window,
            &mut self.congestion,
            episode,
        );
        if entered && self.sack {
            ctx.counters.sack_recovery += 1;
        } else if entered {
            ctx.counters.reno_recovery += 1;
        }
    }

    /// The patience with a suspect is over (RFC 8985 §6.2, step 5).
    pub(super) fn on_reorder_timer(&mut self, ctx: &mut Context<'_>) {
        let flight = Flight::of(&self.retransmits);
        let before = self.retransmits.lost_bytes();
        self.find_losses(ctx);
        if self.retransmits.lost_bytes() == before {
            return;
        }
        self.enter_recovery(ctx, flight);
        let pipe = self.pipe_bytes();
        self.recovery.proportion(&mut self.window, 0, pipe, false);
    }

    /// Plans a loss probe for when no acknowledgment comes (RFC 8985 §7.2).
    pub(super) fn plan_probe(&mut self, ctx: &Context<'_>) {
        let may_probe = self.sack
            && ctx.config.tail_loss_probe
            && self.tlp.may_probe()
            && !matches!(self.recovery.phase(), Phase::Loss { .. })
            && !self.retransmits.is_empty();
        if !may_probe {
            self.timers.probe = None;
            return;
        }
        let srtt = self
            .rtt
            .srtt_us()
            .map(|us| Duration::from_micros(u64::from(us)));
        let is_lone = self.retransmits.outstanding_bytes() <= self.snd.mss;
        arm(&mut self.timers.probe, ctx.now, Tlp::timeout(srtt, is_lone));
        // Where the other timer would be first, the probe goes in its place (RFC 8985 §7.2).
        if let (Some(probe), Some(retransmit)) = (&mut self.timers.probe, self.timers.retransmit) {
            *probe = (*probe).min(retransmit);
        }
    }

    /// Runs the timers of loss detection that have run out.
    pub(super) fn on_loss_timers(&mut self, ctx: &mut Context<'_>) {
        if Timers::take(&mut self.timers.reorder, ctx.now) {
            self.on_reorder_timer(ctx);
        }
        if Timers::take(&mut self.timers.probe, ctx.now)
            && !self.retransmits.is_empty()
            && self.snd.wnd > 0
        {
            self.tlp.on_timer();
            // Its answer takes a round trip.
            arm(&mut self.timers.retransmit, ctx.now, self.rtt.rto());
        }
    }

    /// The retransmission timer ran out: what is lost now (RFC 8985 §6.3), and from what window.
    pub(super) fn lose_by_timeout(&mut self, ctx: &mut Context<'_>) {
        let flight = Flight::of(&self.retransmits);
        let episode = self.episode(flight);
        let reneged = self
            .retransmits
            .mark_lost_on_timeout(self.rack.rtt(), ctx.now);
        ctx.counters.sack_reneging += u64::from(reneged);
        self.tlp.clear();
        self.timers.probe = None;
        self.timers.reorder = None;
        self.recovery.on_timeout(
            &self.retransmits,
            &mut self.window,
            &mut self.congestion,
            episode,
            ctx.config.frto,
        );
        self.ecn.on_reduction();
    }
}
