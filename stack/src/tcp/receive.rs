//! Data and FIN of the peer, the window they may fill, and when they are acknowledged
//! (RFC 9293 §3.8.6, §3.10.7.4).

use super::{
    connection::{Connection, Context, State},
    input::Payload,
    out_of_order::Insert,
    send_queue::PAGE_BYTES,
    seq::{SeqNum, UnscaledWindow},
    stats::Counters,
    timers::arm,
};
use crate::{
    device::{Page, RxMemory},
    ip::RxSlices,
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
        } = payload;
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
        let max_truesize = 2 * self.options.rcvbuf_bytes as usize;
        for slice in slices {
            self.recv_queue.push(slice, max_truesize);
        }
        self.rcv.nxt += bytes;
        self.stats.bytes_received += u64::from(bytes);
        if !self.out_of_order.is_empty() {
            while let Some(slice) = self.out_of_order.pop_in_order(self.rcv.nxt) {
                let len = slice.len() as u32;
                self.rcv.nxt += len;
                self.stats.bytes_received += u64::from(len);
                self.recv_queue.push(slice, max_truesize);
            }
            // RFC 5681 §4.2: what fills a gap is acknowledged at once.
            self.rcv.ack_now = true;
        }
        self.schedule_ack(ctx);
        self.wakers.wake_reader();
    }

    fn take_out_of_order(&mut self, ctx: &mut Context<'_>, seq: SeqNum, slices: RxSlices<P>) {
        // RFC 5681 §4.2: at once, so that the peer learns of the gap.
        self.rcv.ack_now = true;
        self.stats.rcv_ooopack += 1;
        let max_truesize =
            (2 * self.options.rcvbuf_bytes as usize).saturating_sub(self.recv_queue.truesize());
        let slices = slices.into_iter().filter(|slice| !slice.is_empty());
        match self.out_of_order.insert(seq, slices, max_truesize) {
            Insert::Stored => ctx.counters.ofo_queue += 1,
            Insert::Duplicate(_) => ctx.counters.dsack_ofo_sent += 1,
            Insert::Full => ctx.counters.ofo_drop += 1,
        }
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

    /// Decides when new data is acknowledged (RFC 9293 §3.8.6.3): at the latest at every second
    /// full segment, counted in bytes, because a segment may be 64 KiB that the device put
    /// together; and in bursts, because output runs after a burst of input.
    fn schedule_ack(&mut self, ctx: &Context<'_>) {
        let unacked = self.rcv.nxt.bytes_since(self.rcv.acked);
        if self.rcv.quick_acks > 0 {
            self.rcv.quick_acks -= 1;
            self.rcv.ack_now = true;
        } else if unacked >= 2 * self.rcv.mss {
            self.rcv.ack_now = true;
        } else if self.timers.delayed_ack.is_none() {
            arm(
                &mut self.timers.delayed_ack,
                ctx.now,
                ctx.config.delayed_ack,
            );
        }
    }

    /// The window to tell the peer now: the header's field, and the right edge it stands for.
    ///
    /// The edge never moves left (RFC 9293 §3.8.6); it moves right only by steps that are worth
    /// a segment (§3.8.6.2.2).
    pub(super) fn window_to_tell(&self) -> (UnscaledWindow, SeqNum) {
        let grown = self.window_growth();
        let step = self.window_step();
        let edge = if grown >= step {
            self.rcv.adv + grown
        } else {
            self.rcv.adv
        };
        let scale = self.rcv.wscale;
        let bytes = edge.bytes_since(self.rcv.nxt);
        let mut field = scale.compress(bytes);
        // Rounding down must not take back what was given.
        let given = self.rcv.adv.bytes_since(self.rcv.nxt);
        if scale.expand(field) < given {
            field = scale.compress(given.saturating_add(scale.granularity() - 1));
        }
        let edge = self.rcv.nxt + scale.expand(field);
        (field, edge.latest(self.rcv.adv))
    }

    /// How far the right edge could move.
    fn window_growth(&self) -> u32 {
        let free = (self.options.rcvbuf_bytes as usize).saturating_sub(self.recv_queue.len());
        let most = self.rcv.wscale.expand(UnscaledWindow(u16::MAX));
        let edge = self.rcv.nxt + (free as u32).min(most);
        edge.bytes_since(self.rcv.adv)
    }

    /// The least step by which the edge moves: two segments, or half the buffer if that is less.
    fn window_step(&self) -> u32 {
        (2 * self.rcv.mss)
            .min(self.options.rcvbuf_bytes / 2)
            .max(self.rcv.wscale.granularity())
    }

    /// Whether the peer must be told of a wider window though nothing else is to be said: when
    /// the edge can move by a step and the peer has less than half the buffer left, or by a
    /// quarter of the buffer whatever it has. So a peer never waits for a window that is there,
    /// and a reader that takes a page at a time does not cost an acknowledgment a page.
    pub(super) fn wants_window_update(&self) -> bool {
        if !self.state.can_receive() {
            return false;
        }
        let growth = self.window_growth();
        let rcvbuf = self.options.rcvbuf_bytes;
        let left = self.rcv.adv.bytes_since(self.rcv.nxt);
        growth >= self.window_step() && (left < rcvbuf / 2 || growth >= rcvbuf / 4)
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
