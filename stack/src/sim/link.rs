//! Links: rate, delay, queue, and what goes wrong on the way.

use super::{
    codel::{CoDel, CoDelConfig},
    packet::Packet,
    random::Random,
};
use crate::time::Duration;
use alloc::collections::VecDeque;

/// One direction of a link. The default is a wire without a limit of any kind.
///
/// A packet first finds room in the queue, or is dropped; then it is sent at the link's rate;
/// then loss, reordering and the like befall it, which leave all but IPv4 alone: three lost ARP
/// requests would be an unreachable peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    /// Bits a second; none: no limit.
    pub rate_bps: Option<u64>,
    /// Time from the end of transmission until the frame arrives.
    pub delay: Duration,
    /// Room before the bottleneck, in bytes: frames that find it full are lost. None (and no
    /// other limit of the queue): the NIC itself is the bottleneck, frames wait on its ring.
    pub queue_bytes: Option<u64>,
    /// The same in packets.
    pub queue_packets: Option<u32>,
    /// Packets that find more bytes waiting are marked, if they understand ECN (RFC 3168).
    pub mark_bytes: Option<u64>,
    /// The queue is kept short by CoDel (RFC 8289).
    pub codel: Option<CoDelConfig>,
    /// Large segments travel whole, as between guests of one machine; else they are cut on the
    /// way in, by the sender's NIC or by the router before this link.
    pub whole_segments: bool,
    /// At most so much more delay, evenly distributed; the order stays.
    pub jitter: Duration,
    /// What is lost behind the bottleneck.
    pub loss: Loss,
    /// What arrives late, so that others overtake it.
    pub reorder: Reorder,
    /// How many of a million packets arrive twice.
    pub duplicate_ppm: u32,
    /// Pure acknowledgments wait for the next multiple of this, as where a radio or a cable
    /// modem lets them pass in bunches.
    pub ack_compression: Duration,
}

/// How packets are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// Not at all.
    #[default]
    None,
    /// Each by itself.
    Random {
        /// How many of a million.
        ppm: u32,
    },
    /// In bursts, after Gilbert and Elliott: the link is good or bad, and loses only when bad.
    Burst {
        /// How many of a million packets turn a good link bad.
        begin_ppm: u32,
        /// How many of a million packets turn a bad link good.
        end_ppm: u32,
        /// How many of a million are lost while it is bad.
        loss_ppm: u32,
    },
}

/// Packets that arrive late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reorder {
    /// How many of a million.
    pub ppm: u32,
    /// How much later.
    pub by: Duration,
}

/// What a link has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets that went in.
    pub packets: u64,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Packets that found the queue full.
    pub queue_drops: u64,
    /// Packets that CoDel dropped.
    pub codel_drops: u64,
    /// Packets marked for congestion.
    pub marks: u64,
    /// Packets lost behind the bottleneck.
    pub lost: u64,
    /// Packets that arrived late.
    pub reordered: u64,
    /// Packets that arrived twice.
    pub duplicated: u64,
    /// Most bytes that waited.
    pub max_queue_bytes: u64,
}

/// What became of a packet that went into a pipe.
#[derive(Debug, Default)]
pub(super) struct Passage {
    /// When the link had sent it.
    pub(super) end_ns: u64,
    /// Its arrivals: none if it was lost, two if it was duplicated.
    pub(super) arrivals: heapless::Vec<(u64, Packet), 2>,
    /// When the pipe must be asked for what waits in it.
    pub(super) ready_at_ns: Option<u64>,
}

/// A link at work.
pub(super) struct Pipe {
    pub(super) link: Link,
    pub(super) counters: LinkCounters,
    random: Random,
    /// When it has sent all it was given; with CoDel, the packet it is sending.
    pub(super) idle_at_ns: u64,
    /// When those that are under way, and wait or are being sent, leave; and their bytes.
    leaving: VecDeque<(u64, u64)>,
    leaving_bytes: u64,
    last_arrival_ns: u64,
    /// Whether a link with bursts of loss is bad.
    bad: bool,
    codel: CoDel,
}

impl Pipe {
    pub(super) fn new(link: Link, random: Random) -> Self {
        Self {
            link,
            counters: LinkCounters::default(),
            random,
            idle_at_ns: 0,
            leaving: VecDeque::new(),
            leaving_bytes: 0,
            last_arrival_ns: 0,
            bad: false,
            codel: CoDel::default(),
        }
    }

    /// Whether the NIC before this link is done with a frame only when that is sent.
    pub(super) fn holds_sender(&self) -> bool {
        let Link {
            queue_bytes,
            queue_packets,
            codel,
            ..
        } = self.link;
        queue_bytes.is_none() && queue_packets.is_none() && codel.is_none()
    }

    /// Whether packets wait in it whose fate is open.
    pub(super) fn is_queued(&self) -> bool {
        !self.codel.is_empty()
    }

    /// Takes a packet in.
    pub(super) fn enter(&mut self, now_ns: u64, mut packet: Packet) -> Passage {
        self.counters.packets += 1;
        let bytes = packet.wire_bytes();
        let (waiting_bytes, waiting_packets) = self.waiting(now_ns);
        let Link {
            queue_bytes,
            queue_packets,
            mark_bytes,
            codel,
            ..
        } = self.link;
        let full = queue_bytes.is_some_and(|room| waiting_bytes + bytes > room)
            || queue_packets.is_some_and(|room| waiting_packets >= room as usize);
        if full {
            self.counters.queue_drops += 1;
            return Passage {
                end_ns: now_ns,
                ..Passage::default()
            };
        }
        if mark_bytes.is_some_and(|most| waiting_bytes > most) && packet.mark_congestion() {
            self.counters.marks += 1;
        }
        let queued = waiting_bytes + bytes;
        self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(queued);
        if codel.is_some() {
            let was_idle = self.codel.is_empty();
            self.codel.push(now_ns, packet);
            return Passage {
                end_ns: now_ns,
                ready_at_ns: was_idle.then_some(self.idle_at_ns.max(now_ns)),
                ..Passage::default()
            };
        }
        self.send(now_ns, bytes, packet)
    }

    /// Sends the next packet that waits for CoDel's word; the time it was asked for has come.
    pub(super) fn ready(&mut self, now_ns: u64) -> Passage {
        let Some(config) = self.link.codel else {
            return Passage::default();
        };
        let Some(packet) = self.codel.pop(now_ns, &config, &mut self.counters) else {
            return Passage::default();
        };
        let bytes = packet.wire_bytes();
        let mut passage = self.send(now_ns, bytes, packet);
        if !self.codel.is_empty() {
            passage.ready_at_ns = Some(passage.end_ns);
        }
        passage
    }

    /// Bytes and packets that wait or are being sent.
    fn waiting(&mut self, now_ns: u64) -> (u64, usize) {
        while let Some((_, bytes)) = self.leaving.pop_front_if(|(at, _)| *at <= now_ns) {
            self.leaving_bytes -= bytes;
        }
        let (bytes, packets) = self.codel.waiting();
        (self.leaving_bytes + bytes, self.leaving.len() + packets)
    }

    /// Sends a packet behind those before it, and lets happen to it what happens on the way.
    fn send(&mut self, now_ns: u64, bytes: u64, packet: Packet) -> Passage {
        let begin_ns = self.idle_at_ns.max(now_ns);
        let span_ns = self.link.rate_bps.map_or(0, |rate| {
            let bits = u128::from(bytes) * 8;
            (bits * 1_000_000_000 / u128::from(rate.max(1))) as u64
        });
        let end_ns = begin_ns + span_ns;
        self.idle_at_ns = end_ns;
        self.counters.bytes += bytes;
        if end_ns > now_ns {
            self.leaving.push_back((end_ns, bytes));
            self.leaving_bytes += bytes;
        }
        let mut passage = Passage {
            end_ns,
            ..Passage::default()
        };
        let mortal = packet.is_ipv4();
        if mortal && self.loses() {
            self.counters.lost += 1;
            return passage;
        }
        let Link {
            delay,
            jitter,
            reorder,
            duplicate_ppm,
            ack_compression,
            ..
        } = self.link;
        let jitter_ns = match jitter {
            Duration::ZERO => 0,
            jitter => self.random.below(nanos(jitter)),
        };
        let mut arrival_ns = end_ns + nanos(delay) + jitter_ns;
        if ack_compression > Duration::ZERO && packet.is_pure_ack() {
            arrival_ns = arrival_ns.next_multiple_of(nanos(ack_compression));
        }
        if mortal && self.random.chance(reorder.ppm) {
            self.counters.reordered += 1;
            arrival_ns += nanos(reorder.by);
        } else {
            arrival_ns = arrival_ns.max(self.last_arrival_ns);
            self.last_arrival_ns = arrival_ns;
        }
        if mortal && self.random.chance(duplicate_ppm) {
            self.counters.duplicated += 1;
            let _ = passage.arrivals.push((arrival_ns, packet.clone()));
        }
        let _ = passage.arrivals.push((arrival_ns, packet));
        passage
    }

    fn loses(&mut self) -> bool {
        match self.link.loss {
            Loss::None => false,
            Loss::Random { ppm } => self.random.chance(ppm),
            Loss::Burst {
                begin_ppm,
                end_ppm,
                loss_ppm,
            } => {
                let turn_ppm = if self.bad { end_ppm } else { begin_ppm };
                self.bad ^= self.random.chance(turn_ppm);
                self.bad && self.random.chance(loss_ppm)
            }
        }
    }
}

/// A span in nanoseconds.
pub(super) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
