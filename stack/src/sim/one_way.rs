//! One direction of a path by itself, for who has frames and a clock of their own.

use super::{
    link::{Link, LinkCounters, Passage, Pipe},
    packet::Packet,
    random::Random,
};
use alloc::{collections::BinaryHeap, vec::Vec};
use core::cmp::Ordering;

/// A [`Link`] with what is under way on it.
///
/// It is moved by its owner, who tells it the time: in a test a number, in an emulator a clock.
/// Times are nanoseconds since the owner's beginning, and do not go backwards.
pub struct OneWay {
    pipe: Pipe,
    under_way: BinaryHeap<Arrival>,
    /// Arrivals so far: of those at one time, the first to go in is the first to come out.
    order: u64,
    /// When the pipe is to be asked for what waits in it.
    ready_at_ns: Option<u64>,
}

/// A frame that will arrive.
struct Arrival {
    at_ns: u64,
    order: u64,
    packet: Packet,
}

impl Ord for Arrival {
    /// The earliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_ns, other.order).cmp(&(self.at_ns, self.order))
    }
}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Arrival {}

impl OneWay {
    /// A link with nothing on it. What goes wrong on it follows from `seed`: frame for frame, the
    /// same seed has the same fate in store.
    pub fn new(link: Link, seed: u64) -> Self {
        Self {
            pipe: Pipe::new(link, Random::new(seed)),
            under_way: BinaryHeap::new(),
            order: 0,
            ready_at_ns: None,
        }
    }

    /// Takes in an Ethernet frame, complete with its checksums.
    pub fn enter(&mut self, now_ns: u64, frame: Vec<u8>) {
        self.advance(now_ns);
        let packet = Packet {
            front: frame,
            payload: Vec::new(),
            mss_bytes: None,
            partial: None,
        };
        let passage = self.pipe.enter(now_ns, packet);
        self.follow(passage);
    }

    /// The next frame that has arrived by now, and when it was due.
    pub fn leave(&mut self, now_ns: u64) -> Option<(u64, Vec<u8>)> {
        self.advance(now_ns);
        let next = self.under_way.peek()?;
        if next.at_ns > now_ns {
            return None;
        }
        let Arrival { at_ns, packet, .. } = self.under_way.pop()?;
        Some((at_ns, packet.front))
    }

    /// When [`OneWay::leave`] is to be called next; none: not before a frame goes in.
    pub fn next_ns(&self) -> Option<u64> {
        let arrival_ns = self.under_way.peek().map(|arrival| arrival.at_ns);
        [arrival_ns, self.ready_at_ns].into_iter().flatten().min()
    }

    /// What it has counted.
    pub fn counters(&self) -> LinkCounters {
        self.pipe.counters
    }

    /// Sends what has waited in the pipe until now.
    fn advance(&mut self, now_ns: u64) {
        while let Some(at_ns) = self.ready_at_ns.take_if(|at_ns| *at_ns <= now_ns) {
            let passage = self.pipe.ready(at_ns);
            self.follow(passage);
        }
    }

    fn follow(&mut self, passage: Passage) {
        let Passage {
            end_ns: _,
            arrivals,
            ready_at_ns,
        } = passage;
        for (at_ns, packet) in arrivals {
            let order = self.order;
            self.order += 1;
            self.under_way.push(Arrival {
                at_ns,
                order,
                packet,
            });
        }
        self.ready_at_ns = self.ready_at_ns.or(ready_at_ns);
    }
}

impl core::fmt::Debug for OneWay {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("OneWay")
            .field("under_way", &self.under_way.len())
            .field("next_ns", &self.next_ns())
            .field("counters", &self.pipe.counters)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
