//! TIME-WAIT: what must be remembered of a closed connection so that stray segments of it harm no
//! later one (RFC 9293 §3.6.1, RFC 6191).
//!
//! Entries are small, all live equally long, and are bounded in number: when there is no room, the
//! oldest goes. They never keep a new connection from being made.

use super::{
    demux::{Demux, Tuple},
    isn::Secrets,
    seq::SeqNum,
};
use crate::{
    time::{Duration, Instant},
    wire::tcp::{Flags, Header},
};
use alloc::{collections::VecDeque, vec::Vec};

/// What is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed {
    pub(super) tuple: Tuple,
    /// The next number we would send.
    pub(super) snd_nxt: SeqNum,
    /// The next number expected.
    pub(super) rcv_nxt: SeqNum,
    /// The window we gave, unscaled as it goes into a header, and in bytes.
    pub(super) window_field: u16,
    pub(super) rcv_wnd: u32,
    /// The peer's last timestamp and what to add to our clock, where timestamps are in use.
    pub(super) timestamps: Option<(u32, u32)>,
}

/// What to do about a segment for a connection in TIME-WAIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    /// Nothing.
    Ignore,
    /// Answer with an acknowledgment.
    Acknowledge(Closed),
    /// Forget the old connection; the SYN begins a new one, whose initial sequence number must
    /// come after this one.
    Accept {
        /// Where the old connection ended.
        after: SeqNum,
    },
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    closed: Option<Closed>,
    expires: Instant,
    /// Counts the uses of the slot and the restarts of its timer.
    generation: u32,
    answered: Option<Instant>,
}

/// All connections in TIME-WAIT.
#[derive(Debug)]
pub(super) struct TimeWait {
    demux: Demux,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// In order of expiry, as all last equally long: slot and generation. An entry whose
    /// generation is past is skipped.
    queue: VecDeque<(usize, u32)>,
}

/// Least time between answers to one old connection's strays.
const ANSWER_INTERVAL: Duration = Duration::from_millis(500);

impl TimeWait {
    pub(super) fn new() -> Self {
        Self {
            demux: Demux::new(),
            slots: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.demux.len()
    }

    /// When the oldest ends.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let &(slot, _) = self.queue.front()?;
        Some(self.slots[slot].expires)
    }

    /// Remembers a connection until `expires`. Returns whether an older one had to go for it.
    pub(super) fn insert(
        &mut self,
        closed: Closed,
        expires: Instant,
        max: usize,
        secrets: &Secrets,
    ) -> bool {
        self.remove(&closed.tuple, secrets);
        if max == 0 {
            return true;
        }
        let overflow = self.len() >= max;
        if overflow {
            self.drop_oldest(secrets);
        }
        let index = self.free.pop().unwrap_or(self.slots.len());
        if index == self.slots.len() {
            self.slots.push(Slot {
                closed: None,
                expires,
                generation: 0,
                answered: None,
            });
        }
        let slot = &mut self.slots[index];
        slot.closed = Some(closed);
        slot.expires = expires;
        slot.answered = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.queue.push_back((index, slot.generation));
        self.demux
            .insert(closed.tuple, secrets.table_hash(&closed.tuple), index);
        overflow
    }

    /// Whether `tuple` is in TIME-WAIT, and where it ended.
    pub(super) fn find(&mut self, tuple: &Tuple, secrets: &Secrets) -> Option<Closed> {
        if self.demux.len() == 0 {
            return None;
        }
        let index = self.demux.find(tuple, || secrets.table_hash(tuple))?;
        self.slots[index].closed
    }

    /// Forgets `tuple`.
    pub(super) fn remove(&mut self, tuple: &Tuple, secrets: &Secrets) -> bool {
        let Some(index) = self.demux.remove(tuple, secrets.table_hash(tuple)) else {
            return false;
        };
        let slot = &mut self.slots[index];
        slot.closed = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        self.trim();
        true
    }

    /// Drops queue entries whose slot has been used anew, so that the front one counts.
    fn trim(&mut self) {
        while let Some(&(index, generation)) = self.queue.front()
            && self.slots[index].generation != generation
        {
            self.queue.pop_front();
        }
        // Restarted timers leave entries behind; a peer must not make the queue grow with them.
        if self.queue.len() > 2 * self.slots.len() + 16 {
            let slots = &self.slots;
            self.queue
                .retain(|&(index, generation)| slots[index].generation == generation);
        }
    }

    fn drop_oldest(&mut self, secrets: &Secrets) {
        self.trim();
        if let Some(&(index, _)) = self.queue.front()
            && let Some(closed) = self.slots[index].closed
        {
            self.remove(&closed.tuple, secrets);
        }
    }

    /// Forgets those whose time is over.
    pub(super) fn expire(&mut self, now: Instant, secrets: &Secrets) {
        while self.deadline().is_some_and(|at| at <= now) {
            self.drop_oldest(secrets);
        }
    }

    /// Judges a segment for `tuple` (RFC 9293 §3.10.7.4, RFC 6191, RFC 1337).
    pub(super) fn receive(
        &mut self,
        tuple: &Tuple,
        header: &Header,
        payload_bytes: u32,
        now: Instant,
        expires: Instant,
        secrets: &Secrets,
    ) -> Option<Disposition> {
        let closed = self.find(tuple, secrets)?;
        let seq = SeqNum(header.seq);
        let newer_timestamp = match (closed.timestamps, header.options.timestamps) {
            (Some((recent, _)), Some(timestamps)) => {
                Some(SeqNum(timestamps.value).after(SeqNum(recent)))
            }
            _ => None,
        };
        let is_syn = header.flags.contains(Flags::SYN) && !header.flags.contains(Flags::RST);
        if is_syn && !header.flags.contains(Flags::ACK) {
            // RFC 6191 §2: a later timestamp tells a new connection, else a later sequence
            // number.
            let is_new = newer_timestamp.unwrap_or(false)
                || (newer_timestamp != Some(false) && seq.after(closed.rcv_nxt));
            if is_new {
                self.remove(tuple, secrets);
                return Some(Disposition::Accept {
                    after: closed.snd_nxt,
                });
            }
        }
        let in_window =
            seq.is_within(closed.rcv_nxt, closed.rcv_wnd.max(1)) && newer_timestamp != Some(false);
        if header.flags.contains(Flags::RST) {
            // RFC 1337 §3, fix F1: a reset does not end TIME-WAIT.
            return Some(Disposition::Ignore);
        }
        let index = self.demux.find(tuple, || secrets.table_hash(tuple))?;
        let is_fin = header.flags.contains(Flags::FIN) && seq + payload_bytes + 1 == closed.rcv_nxt;
        if is_fin {
            // RFC 9293 §3.10.7.4: the peer has not got our last acknowledgment; start over.
            let slot = &mut self.slots[index];
            slot.expires = expires;
            slot.generation = slot.generation.wrapping_add(1);
            self.queue.push_back((index, slot.generation));
            self.trim();
        } else if in_window && payload_bytes == 0 && !is_syn && !header.flags.contains(Flags::FIN) {
            return Some(Disposition::Ignore);
        }
        let slot = &mut self.slots[index];
        if slot
            .answered
            .is_some_and(|at| now.since(at) < ANSWER_INTERVAL)
        {
            return Some(Disposition::Ignore);
        }
        slot.answered = Some(now);
        Some(Disposition::Acknowledge(closed))
    }
}

#[cfg(test)]
mod tests;
