//! Data and FIN of the peer, the window they may fill, and when they are acknowledged
//! (RFC 9293 §3.8.6, §3.10.7.4).

use super::{
    ack_policy::{Arrival, When},
    connection::{Connection, Context, State},
    input::Payload,
    out_of_order::{Insert, Range},
    send_queue::PAGE_BYTES,
    seq::SeqNum,
    stats::Counters,
};
use crate::{
    device::{Page, RxMemory},
    ip::RxSlices,
    time::Instant,
};

/// Memory that a connection may keep received data in while the device has little: room for two
/// of the largest segments.
const MAX_SCARCE_TRUESIZE: usize = 36 * PAGE_BYTES;

impl<P: Page> Connection<P> {
    /// Takes in the payload that starts at `seq`, and the FIN behind it, if there is one.
    pub(super) fn on_data(
        &mut self,
        ctx: &mut Context<'_>,
        mut seq: SeqNum,
        payload: Payload<P>,
        mut fin: bool,
    ) {
        let Payload {
            mut slices,
            mut bytes,
            segment_bytes,
            memory,
            ecn: _,
        } = payload;
        self.ack_policy.data_received(ctx.now, self.rtt.rto());
        let segment = segment_bytes.map_or(bytes, u32::from);
        self.rcv.mss = self.rcv.mss.max(segment.min(u32::from(self.rcv.advmss)));
        let old = self.rcv.nxt.bytes_since(seq);
        if old > 0 {
            self.note_duplicate(ctx, seq, bytes);
            // Something was retransmitted: the peer waits to hear of it.
            self.rcv.ack_now = true;
            let cut = old.min(bytes);
            cut_front(&mut slices, cut);
            bytes -= cut;
            seq += cut;
        }
        let room = self.rcv.adv.bytes_since(seq);
        if bytes > room {
            cut_back(&mut slices, room);
            bytes = room;
            fin = false;
            self.rcv.ack_now = true;
        }
        if fin {
            let number = seq + bytes;
            // A FIN stays where it first was.
            self.rcv.fin = self.rcv.fin.or(Some(number));
        }
        if let Some(number) = self.rcv.fin {
            // Nothing comes after it.
            let room = number.bytes_since(seq);
            if bytes > room {
                cut_back(&mut slices, room);
                bytes = room;
            }
        }
        if bytes > 0 {
            if !self.may_keep(memory, seq, &slices) {
                self.refuse(ctx, seq);
                return;
            }
            if seq == self.rcv.nxt {
                self.take_in_order(ctx, slices, bytes);
            } else {
                self.take_out_of_order(ctx, seq, slices);
            }
        } else if fin && seq != self.rcv.nxt {
            self.rcv.ack_now = true;
        }
        if self.rcv.fin == Some(self.rcv.nxt) {
            self.on_fin();
        }
    }

    /// Whether there is memory for data. A device short of it has some for every connection, but
    /// none for what cannot be read yet.
    fn may_keep(&self, memory: RxMemory, seq: SeqNum, slices: &RxSlices<P>) -> bool {
        match memory {
            RxMemory::Plenty => true,
            RxMemory::Scarce => {
                let held = self.recv_queue.truesize() + self.out_of_order.truesize();
                seq == self.rcv.nxt && held + slices.len() * PAGE_BYTES <= MAX_SCARCE_TRUESIZE
            }
            RxMemory::Spent => false,
        }
    }

    /// Drops data for want of memory, as if it had been lost on the way. What waits behind a gap
    /// goes first, for it may (RFC 2018 §8): else it would keep the gap from being filled.
    fn refuse(&mut self, ctx: &mut Context<'_>, seq: SeqNum) {
        self.rcv.ack_now = true;
        if seq == self.rcv.nxt {
            ctx.counters.rcvq_drop += 1;
            self.prune(ctx.counters);
        } else {
            ctx.counters.ofo_drop += 1;
        }
    }

    /// Lets go of data that arrived out of order. The peer sends it again.
    pub(super) fn prune(&mut self, counters: &mut Counters) {
        if !self.out_of_order.is_empty() {
            counters.ofo_pruned += 1;
            self.out_of_order.clear();
        }
    }

    fn take_in_order(&mut self, ctx: &mut Context<'_>, slices: RxSlices<P>, bytes: u32) {
        let max_truesize = self.max_receive_truesize();
        for slice in slices {
            self.recv_queue.push(slice, max_truesize);
        }
        self.rcv.nxt += bytes;
        self.stats.bytes_received += u64::from(bytes);
        if let Some(run) = self.out_of_order.first_run() {
            let repeated = Range::new(run.start, run.end.earliest(self.rcv.nxt));
            if self.sack && ctx.config.dsack && repeated.start.before(repeated.end) {
                // RFC 2883 §4.2: what fills the gap brought again what is held behind it.
                ctx.counters.dsack_ofo_sent += 1;
                self.out_of_order.note_duplicate(repeated);
            }
            while let Some(chunk) = self.out_of_order.pop_in_order(self.rcv.nxt) {
                let len = chunk.bytes().len() as u32;
                self.rcv.nxt += len;
                self.stats.bytes_received += u64::from(len);
                self.recv_queue.push_chunk(chunk, max_truesize);
            }
            // RFC 5681 §4.2: what fills a gap is acknowledged at once.
            self.rcv.ack_now = true;
        }
        let arrival = Arrival {
            bytes,
            unacked_bytes: self.rcv.nxt.bytes_since(self.rcv.acked),
            window_bytes: self.rcv.adv.bytes_since(self.rcv.nxt),
            mss: self.rcv.mss,
        };
        let round = self.receive_buffer.last_round();
        let when = self.ack_policy.in_order(arrival, round, self.rtt.srtt_us());
        self.acknowledge(ctx.now, when);
        self.measure_window_rtt(ctx.now);
        self.wakers.wake_reader();
    }

    fn take_out_of_order(&mut self, ctx: &mut Context<'_>, seq: SeqNum, slices: RxSlices<P>) {
        self.stats.rcv_ooopack += 1;
        // What the window promised fits, whatever waits to be read.
        let promised = 2 * self.rcv.adv.bytes_since(self.rcv.nxt) as usize + PAGE_BYTES;
        let max_truesize = self
            .max_receive_truesize()
            .saturating_sub(self.recv_queue.truesize())
            .max(promised);
        let slices = slices.into_iter().filter(|slice| !slice.is_empty());
        let inserted = self.out_of_order.insert(seq, slices, max_truesize);
        let dsack = self.sack && ctx.config.dsack;
        if !dsack {
            self.out_of_order.forget_duplicate();
        }
        match inserted {
            Insert::Stored => {
                ctx.counters.ofo_queue += 1;
                self.report_gap(ctx);
            }
            Insert::Duplicate(_) => {
                ctx.counters.dsack_ofo_sent += u64::from(dsack);
                self.rcv.ack_now = true;
            }
            Insert::Full => {
                ctx.counters.ofo_drop += 1;
                self.rcv.ack_now = true;
            }
        }
    }

    /// Tells the peer of a gap: at once (RFC 5681 §4.2), but for reports that others make
    /// superfluous.
    fn report_gap(&mut self, ctx: &mut Context<'_>) {
        let rtt_us = match (self.receive_buffer.rtt_us(), self.rtt.srtt_us()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        // Without SACK the peer counts reports.
        let most = if self.sack {
            ctx.config.comp_sack_nr
        } else {
            0
        };
        let runs = self.out_of_order.runs();
        let when = self.ack_policy.out_of_order(most, runs, rtt_us);
        if when != When::Now {
            ctx.counters.ack_compressed += 1;
        }
        self.acknowledge(ctx.now, when);
    }

    /// The peer's FIN is the next number expected.
    fn on_fin(&mut self) {
        self.rcv.nxt += 1;
        self.rcv.ack_now = true;
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => {
                self.timers.linger = None;
                self.finish(State::TimeWait);
            }
            _ => {}
        }
        self.wakers.wake_reader();
    }

    /// Sees to it that data that came is acknowledged in time.
    fn acknowledge(&mut self, now: Instant, when: When) {
        match when {
            When::Now => self.rcv.ack_now = true,
            When::Within(delay) => {
                let at = now + delay;
                let timer = &mut self.timers.delayed_ack;
                *timer = Some(timer.map_or(at, |earlier| earlier.min(at)));
            }
        }
    }
}

/// Drops the first `bytes` bytes.
fn cut_front<P: Page>(slices: &mut RxSlices<P>, bytes: u32) {
    let mut left = bytes as usize;
    for slice in slices {
        let cut = left.min(slice.len());
        slice.advance(cut);
        left -= cut;
    }
}

/// Keeps the first `bytes` bytes.
fn cut_back<P: Page>(slices: &mut RxSlices<P>, bytes: u32) {
    let mut left = bytes as usize;
    for slice in slices {
        let kept = left.min(slice.len());
        slice.truncate(kept);
        left -= kept;
    }
}
