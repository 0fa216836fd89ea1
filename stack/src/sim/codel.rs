//! A queue kept short by controlled delay (RFC 8289).

use super::{
    link::{LinkCounters, nanos},
    packet::Packet,
};
use crate::time::Duration;
use alloc::collections::VecDeque;

/// How CoDel is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// Time in the queue that is good enough.
    pub target: Duration,
    /// How long it may be more before packets are dropped: a long round-trip time.
    pub interval: Duration,
    /// Packets that understand ECN are marked instead.
    pub ecn: bool,
}

impl Default for CoDelConfig {
    /// As RFC 8289 §4.2 and §4.3 recommend.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: false,
        }
    }
}

/// The queue and its state.
#[derive(Default)]
pub(super) struct CoDel {
    queue: VecDeque<(u64, Packet)>,
    bytes: u64,
    /// When packets will have stayed too long for a whole interval.
    first_above_ns: Option<u64>,
    dropping: bool,
    drop_next_ns: u64,
    count: u32,
    last_count: u32,
}

impl CoDel {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes and packets that wait.
    pub(super) fn waiting(&self) -> (u64, usize) {
        (self.bytes, self.queue.len())
    }

    pub(super) fn push(&mut self, now_ns: u64, packet: Packet) {
        self.bytes += packet.wire_bytes();
        self.queue.push_back((now_ns, packet));
    }

    /// The next packet to send (RFC 8289 §5.5), once those are dropped or marked that must be.
    pub(super) fn pop(
        &mut self,
        now_ns: u64,
        config: &CoDelConfig,
        counters: &mut LinkCounters,
    ) -> Option<Packet> {
        let interval_ns = nanos(config.interval);
        let (mut packet, mut too_long) = self.take(now_ns, config)?;
        if self.dropping {
            if !too_long {
                self.dropping = false;
            }
            while self.dropping && now_ns >= self.drop_next_ns {
                self.count += 1;
                if config.ecn && packet.mark_congestion() {
                    counters.marks += 1;
                    self.drop_next_ns += self.spacing_ns(interval_ns);
                    return Some(packet);
                }
                counters.codel_drops += 1;
                let Some(next) = self.take(now_ns, config) else {
                    self.dropping = false;
                    return None;
                };
                (packet, too_long) = next;
                if too_long {
                    self.drop_next_ns += self.spacing_ns(interval_ns);
                } else {
                    self.dropping = false;
                }
            }
            return Some(packet);
        }
        if !too_long {
            return Some(packet);
        }
        let marked = config.ecn && packet.mark_congestion();
        if marked {
            counters.marks += 1;
        } else {
            counters.codel_drops += 1;
            // What comes next is sent in any case.
            packet = self.take(now_ns, config)?.0;
        }
        self.dropping = true;
        // Where the last time of dropping ended not long ago, its rate is taken up again.
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now_ns.saturating_sub(self.drop_next_ns) < 16 * interval_ns;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next_ns = now_ns + self.spacing_ns(interval_ns);
        self.last_count = self.count;
        Some(packet)
    }

    /// Takes a packet out, and tells whether packets have stayed too long for too long.
    fn take(&mut self, now_ns: u64, config: &CoDelConfig) -> Option<(Packet, bool)> {
        let Some((since_ns, packet)) = self.queue.pop_front() else {
            self.first_above_ns = None;
            return None;
        };
        let size = packet.wire_bytes();
        self.bytes -= size;
        let short = now_ns - since_ns < nanos(config.target);
        if short || self.bytes <= size {
            self.first_above_ns = None;
            return Some((packet, false));
        }
        let above_ns = *self
            .first_above_ns
            .get_or_insert(now_ns + nanos(config.interval));
        Some((packet, now_ns >= above_ns))
    }

    /// Time to the next drop: the interval over the square root of the count.
    fn spacing_ns(&self, interval_ns: u64) -> u64 {
        // The root with 16 bits behind the point.
        let root = (u64::from(self.count.max(1)) << 32).isqrt();
        ((u128::from(interval_ns) << 16) / u128::from(root)) as u64
    }
}
