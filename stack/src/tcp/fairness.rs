//! Turns at the device: deficit round robin (Shreedhar and Varghese, 1995), so that flows get
//! the same number of bytes through, whatever the size of their packets.

/// Bytes a flow may send in a turn: the largest packet, so that each turn sends something.
const QUANTUM_BYTES: i32 = 65_536;

/// What a flow has left of its turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    /// Below zero, what it sent too much in its last.
    credit_bytes: i32,
}

impl Turn {
    /// The flow's turn has come, or goes on after the device was full.
    pub(super) fn begin(&mut self) {
        if self.credit_bytes <= 0 {
            self.credit_bytes += QUANTUM_BYTES;
        }
    }

    /// Charges a packet of `bytes`; whether the turn goes on.
    pub(super) fn charge(&mut self, bytes: u64) -> bool {
        let bytes = i32::try_from(bytes).unwrap_or(QUANTUM_BYTES);
        self.credit_bytes = self.credit_bytes.saturating_sub(bytes.min(QUANTUM_BYTES));
        self.credit_bytes > 0
    }

    /// The flow has nothing more to send: nothing is saved up for later.
    pub(super) fn end(&mut self) {
        self.credit_bytes = self.credit_bytes.min(0);
    }
}

#[cfg(test)]
mod tests;
