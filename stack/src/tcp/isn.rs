//! Initial sequence numbers and local ports that an outsider cannot guess (RFC 6528 §3, RFC 6056
//! §3.3.3).

use super::{demux::Tuple, seq::SeqNum};
use crate::{siphash::siphash24, time::Instant};

/// First ephemeral port (Linux's `ip_local_port_range`; IANA's range is part of it).
const FIRST_EPHEMERAL_PORT: u16 = 32_768;
/// How many ephemeral ports there are.
pub(super) const EPHEMERAL_PORTS: u16 = 60_999 - FIRST_EPHEMERAL_PORT + 1;
/// Microseconds to a tick of the sequence clock, which RFC 9293 §3.4.1 sets at about four.
const CLOCK_US: u64 = 4;

/// The keyed functions.
#[derive(Clone, Debug)]
pub(super) struct Secrets {
    key: [u8; 16],
    /// Distinguishes connections that ask for a port at the same time.
    ports_used: u16,
}

/// What a hash is for: no output serves two purposes.
#[derive(Clone, Copy)]
enum Purpose {
    Isn = 1,
    Port = 2,
    Timestamp = 3,
    Table = 4,
}

impl Secrets {
    pub(super) fn new(key: [u8; 16]) -> Self {
        Self { key, ports_used: 0 }
    }

    /// The initial sequence number for a connection that starts now.
    pub(super) fn initial_sequence(&self, tuple: &Tuple, now: Instant) -> SeqNum {
        let clock = (now.as_micros() / CLOCK_US) as u32;
        SeqNum((self.hash(Purpose::Isn, tuple) as u32).wrapping_add(clock))
    }

    /// What to add to the timestamp clock on a connection (RFC 7323 §5.4).
    pub(super) fn timestamp_offset(&self, tuple: &Tuple) -> u32 {
        self.hash(Purpose::Timestamp, tuple) as u32
    }

    /// The hash of a connection in the table.
    pub(super) fn table_hash(&self, tuple: &Tuple) -> u64 {
        self.hash(Purpose::Table, tuple)
    }

    /// The ports to try for a connection to `remote`, in order; `tuple`'s own port is not looked
    /// at.
    pub(super) fn ephemeral_ports(&mut self, tuple: &Tuple) -> impl Iterator<Item = u16> + use<> {
        let anyone = Tuple {
            local_port: 0,
            ..*tuple
        };
        self.ports_used = self.ports_used.wrapping_add(1);
        let start =
            (self.hash(Purpose::Port, &anyone) as u32).wrapping_add(u32::from(self.ports_used));
        (0..u32::from(EPHEMERAL_PORTS)).map(move |step| {
            let index = start.wrapping_add(step) % u32::from(EPHEMERAL_PORTS);
            FIRST_EPHEMERAL_PORT + index as u16
        })
    }

    fn hash(&self, purpose: Purpose, tuple: &Tuple) -> u64 {
        let mut bytes = [0; 40];
        let len = tuple.write(&mut bytes);
        bytes[len] = purpose as u8;
        siphash24(&self.key, &bytes[..=len])
    }
}

#[cfg(test)]
mod tests;
