//! Whether an application may write, and when one that waits is told: the send buffer's room and
//! `TCP_NOTSENT_LOWAT`.
//!
//! Bytes not yet sent are the only ones whose order and content the application could still
//! change, so a limit on them keeps what it writes fresh. But the limit also has the application
//! refill the queue at the very moment it runs dry: whatever moves snd_nxt on must look whether
//! the writer is to be told. [`Connection::snd_nxt_advanced`] is that place; the look itself is
//! taken once, at the end of a burst.

use super::{
    connection::{Connection, Context},
    send_queue::PAGE_BYTES,
};
use crate::device::Page;

/// What has happened since it was last looked whether a writer may go on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WriteSpace {
    /// Data left the queue for the network.
    advanced: bool,
    /// An acknowledgment came.
    acked: bool,
    /// A writer was turned away for want of room, and none has written since.
    turned_away: bool,
}

impl WriteSpace {
    /// Whether [`Connection::look_for_writers`] has something to look at.
    pub(super) fn is_due(self) -> bool {
        self.advanced || self.acked
    }

    /// Whether the application has more to write than it could.
    pub(super) fn is_wanted(self) -> bool {
        self.turned_away
    }
}

impl<P: Page> Connection<P> {
    /// Bytes the application may write now.
    ///
    /// None once as many bytes wait to be sent as `TCP_NOTSENT_LOWAT` says; up to there, and a
    /// full segment at least, so that a low limit does not make small segments.
    pub(super) fn send_room(&self) -> usize {
        let notsent = self.notsent_bytes();
        let lowat = self.options.notsent_lowat_bytes;
        if notsent >= lowat {
            return 0;
        }
        let unlimited = self.sndbuf_room();
        let most = (lowat - notsent).max(self.snd.mss);
        unlimited.min(most as usize)
    }

    /// The buffer's own room.
    fn sndbuf_room(&self) -> usize {
        let sndbuf = self.sndbuf_bytes();
        if self.send_queue.truesize() >= 2 * sndbuf.max(PAGE_BYTES) {
            return 0;
        }
        sndbuf.saturating_sub(self.send_queue.len())
    }

    /// Whether there is room enough for a waiting writer to be worth waking (Linux's rules): a
    /// third of the buffer is free, and less than half of the bytes allowed wait to be sent.
    pub(super) fn is_writable(&self) -> bool {
        let notsent = u64::from(self.notsent_bytes());
        let few_wait = 2 * notsent < u64::from(self.options.notsent_lowat_bytes);
        few_wait && self.sndbuf_room() * 3 >= self.sndbuf_bytes()
    }

    /// To be called whenever snd_nxt has moved on, by whatever was sent: new data, a loss or
    /// window probe.
    pub(super) fn snd_nxt_advanced(&mut self) {
        self.write_space.advanced |= self.wakers.write.is_some();
    }

    /// To be called when an acknowledgment has been taken in.
    pub(super) fn ack_taken_in(&mut self, ctx: &Context<'_>) {
        self.grow_sndbuf(ctx.config);
        self.write_space.acked |= self.wakers.write.is_some();
    }

    /// A writer found no room.
    pub(super) fn writer_turned_away(&mut self) {
        self.write_space.turned_away = true;
    }

    /// Bytes have been written.
    pub(super) fn send_queue_refilled(&mut self) {
        self.write_space.turned_away = false;
    }

    /// At the end of a burst: wakes the writer if there is room for it now, or if it waits for
    /// everything to be acknowledged and that is so.
    pub(super) fn look_for_writers(&mut self, ctx: &Context<'_>) {
        let WriteSpace {
            advanced,
            acked,
            turned_away: _,
        } = self.write_space;
        self.write_space.advanced = false;
        self.write_space.acked = false;
        let advanced = advanced && !ctx.config.mistakes().write_space_on_ack_only;
        if advanced || acked {
            self.wake_writer_if_room();
        }
    }

    /// The same, whatever has happened.
    pub(super) fn wake_writer_if_room(&mut self) {
        if self.is_writable() || self.send_queue.len() == 0 {
            self.wakers.wake_writer();
        }
    }
}
