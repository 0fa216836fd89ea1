//! A connection as a script numbers it, and how its numbers become those on the wire.
//!
//! Scripts count sequence numbers from the SYN's: a SYN carries the number the script gives it,
//! every other segment counts from there. Timestamps of the stack count from the first that the
//! script has seen.

use alloc::vec::Vec;

/// The first peer's initial sequence number: so shortly before the wrap that most scripts cross it.
const FIRST_PEER_ISN: u32 = u32::MAX - 1_000;

/// The first of the peer's ports.
const FIRST_PEER_PORT: u16 = 50_000;

/// Timestamps of the stack, as the script and as the wire have them.
#[derive(Clone, Debug, Default)]
struct TimestampMap {
    /// Those seen, script's and wire's.
    seen: Vec<(u32, u32)>,
}

/// Most timestamps remembered of one flow; the first is kept for ever.
const MAX_TIMESTAMPS: usize = 4096;

/// One connection.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) local_port: u16,
    pub(super) peer_port: u16,
    /// The stack's initial sequence number on the wire; zero before its SYN.
    local_isn: u32,
    /// The same in the script.
    script_local_isn: u32,
    /// The peer's initial sequence number on the wire.
    peer_isn: u32,
    /// The same in the script.
    script_peer_isn: u32,
    timestamps: TimestampMap,
    /// Whether the stack has sent a SYN.
    has_syn: bool,
    /// Whether the script has seen it.
    script_has_syn: bool,
    /// Whether the peer has sent a SYN.
    peer_has_syn: bool,
}

impl Flow {
    /// The `index`th flow, to `local_port`.
    pub(super) fn new(index: usize, local_port: u16) -> Self {
        Self {
            local_port,
            peer_port: FIRST_PEER_PORT.wrapping_add(index as u16),
            local_isn: 0,
            script_local_isn: 0,
            peer_isn: FIRST_PEER_ISN.wrapping_sub(0x0100_0000_u32.wrapping_mul(index as u32)),
            script_peer_isn: 0,
            timestamps: TimestampMap::default(),
            has_syn: false,
            script_has_syn: false,
            peer_has_syn: false,
        }
    }

    /// The stack sent a SYN with this number.
    pub(super) fn learn_local_isn(&mut self, isn: u32) {
        if !self.has_syn || self.local_isn != isn {
            self.timestamps = TimestampMap::default();
            self.script_has_syn = false;
        }
        self.local_isn = isn;
        self.has_syn = true;
    }

    /// The script expects the stack's SYN with this number.
    pub(super) fn script_syn(&mut self, isn: u32) {
        if !self.script_has_syn {
            self.script_local_isn = isn;
            self.script_has_syn = true;
        }
    }

    /// The script has the peer send a SYN with this number: the first one says how the peer's
    /// numbers are counted.
    pub(super) fn peer_syn(&mut self, isn: u32) {
        if !self.peer_has_syn {
            self.script_peer_isn = isn;
            self.peer_has_syn = true;
        }
    }

    /// The stack acknowledged a SYN, the one with this number on the wire: it counts from now on.
    pub(super) fn peer_syn_taken(&mut self, isn: u32) {
        let script = self.peer_to_script(isn, true);
        self.peer_isn = isn;
        self.script_peer_isn = script;
    }

    fn local_shift(&self, syn: bool) -> u32 {
        let script = if syn { self.script_local_isn } else { 0 };
        self.local_isn.wrapping_sub(script)
    }

    fn peer_shift(&self, syn: bool) -> u32 {
        let script = if syn { self.script_peer_isn } else { 0 };
        self.peer_isn.wrapping_sub(script)
    }

    /// A number of the stack's, from the script to the wire.
    pub(super) fn local_to_wire(&self, seq: u32, syn: bool) -> u32 {
        seq.wrapping_add(self.local_shift(syn))
    }

    /// A number of the stack's, from the wire to the script.
    pub(super) fn local_to_script(&self, seq: u32, syn: bool) -> u32 {
        seq.wrapping_sub(self.local_shift(syn))
    }

    /// A number of the peer's, from the script to the wire.
    pub(super) fn peer_to_wire(&self, seq: u32, syn: bool) -> u32 {
        seq.wrapping_add(self.peer_shift(syn))
    }

    /// A number of the peer's, from the wire to the script.
    pub(super) fn peer_to_script(&self, seq: u32, syn: bool) -> u32 {
        seq.wrapping_sub(self.peer_shift(syn))
    }

    /// Where in the stack's stream a number on the wire stands.
    pub(super) fn local_offset(&self, seq: u32) -> u32 {
        seq.wrapping_sub(self.local_isn).wrapping_sub(1)
    }

    /// Where in the peer's stream a number on the wire stands.
    pub(super) fn peer_offset(&self, seq: u32) -> u32 {
        seq.wrapping_sub(self.peer_isn).wrapping_sub(1)
    }

    /// As [`Flow::note_timestamp`], for the first only.
    pub(super) fn note_first_timestamp(&mut self, script: u32, wire: u32) {
        if self.timestamps.seen.is_empty() {
            self.note_timestamp(script, wire);
        }
    }

    /// The script expects the stack's timestamp `script` where the wire has `wire`.
    pub(super) fn note_timestamp(&mut self, script: u32, wire: u32) {
        let seen = &mut self.timestamps.seen;
        if seen.len() >= MAX_TIMESTAMPS {
            seen.remove(1);
        }
        seen.push((script, wire));
    }

    /// A timestamp of the stack's, from the wire to the script; none before the first.
    pub(super) fn timestamp_to_script(&self, wire: u32) -> Option<u32> {
        let &(first_script, first_wire) = self.timestamps.seen.first()?;
        Some(wire.wrapping_sub(first_wire).wrapping_add(first_script))
    }

    /// An echo of a timestamp, from the script to the wire: of the latest that the script gave
    /// this value, or, of one it never gave, counted from the first.
    pub(super) fn echo_to_wire(&self, script: u32) -> u32 {
        let seen = &self.timestamps.seen;
        if let Some((_, wire)) = seen.iter().rev().find(|(known, _)| *known == script) {
            return *wire;
        }
        match seen.first() {
            Some(&(first_script, first_wire)) => {
                script.wrapping_sub(first_script).wrapping_add(first_wire)
            }
            None => script,
        }
    }
}

/// The byte at `offset` of the stream that the application writes.
pub(super) fn written_byte(offset: u32) -> u8 {
    (offset ^ offset >> 8 ^ offset >> 16) as u8 ^ 0x5a
}

/// The byte at `offset` of the stream that the peer sends.
pub(super) fn peer_byte(offset: u32) -> u8 {
    (offset.wrapping_mul(7) ^ offset >> 8 ^ offset >> 16) as u8
}

#[cfg(test)]
mod tests;
