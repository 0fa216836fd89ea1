//! How much an application may write ahead of acknowledgments: the send buffer follows the
//! congestion window.

use super::{config::Config, connection::Connection};
use crate::device::Page;

/// Most bytes that wait in one connection: sequence numbers tell before from after only within
/// half their circle.
const MAX_SNDBUF_BYTES: u32 = 1 << 30;
/// Room beyond the window: the two largest packets, so that one can be made while another goes.
const HEADROOM_BYTES: u32 = 128 << 10;

/// The send buffer of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBuffer {
    /// Its size, where the application does not say.
    bytes: u32,
}

impl SendBuffer {
    /// A buffer that starts at `bytes`.
    pub(super) fn new(bytes: u32) -> Self {
        Self { bytes }
    }
}

impl<P: Page> Connection<P> {
    /// The size of the send buffer.
    pub(super) fn sndbuf_bytes(&self) -> usize {
        let bytes = self.options.sndbuf_bytes.unwrap_or(self.send_buffer.bytes);
        bytes.min(MAX_SNDBUF_BYTES) as usize
    }

    /// Lets the buffer grow with the window, up to `tcp_wmem`'s last value, while there is memory.
    ///
    /// Twice the window: one is under way, the next is written meanwhile. Data behind a loss
    /// stays until the loss is repaired, whatever the window: so twice what is outstanding, if
    /// that is more. Else a buffer full of it would starve the sender during recovery, since
    /// writers are not woken before a third of the buffer is free.
    pub(super) fn grow_sndbuf(&mut self, config: &Config) {
        if !self.receive_buffer.has_plenty() {
            return;
        }
        let outstanding = self.snd.nxt.bytes_since(self.snd.una);
        let wanted = self
            .window
            .cwnd
            .max(outstanding)
            .saturating_mul(2)
            .saturating_add(HEADROOM_BYTES)
            .min(config.max_sndbuf_bytes);
        self.send_buffer.bytes = self.send_buffer.bytes.max(wanted);
    }
}
