//! What a flow has in the device, and whether it may add to it: TCP Small Queues.
//!
//! A stack that keeps as much in the device as the windows allow makes everything wait behind it;
//! one that keeps too little there lets it run dry, since a completion takes its time: throughput
//! is at most limit / completion time. A paravirtual device completes late, and a limit of fixed
//! size, made for devices that do not, is then what bounds the flow. Three rules for the limit can
//! be compared, see [`TsqPolicy`].
//!
//! Bytes are credited as the device is done with each slot, not when a whole packet is done.

use super::{
    completion_time::CompletionTime,
    drain_rate::DrainRate,
    rate::{Rate, microseconds},
    starvation::Starvation,
};
use crate::{device::Completion, time::Instant};

/// How much of a second's data [`TsqPolicy::Capped`] and [`TsqPolicy::Paced`] allow: 1/1024.
const RATE_SHIFT: u32 = 10;
/// Limit by measurement before anything is measured.
const INITIAL_BYTES: u32 = 128 << 10;
/// Limit by measurement at least.
const FLOOR_BYTES: u32 = 32 << 10;
/// Packets are not made smaller than this for the sake of a short queue: each costs as much as a
/// large one.
const MIN_PACKET_BYTES: u32 = 24 << 10;
/// A device that is done this soon keeps no queue, whatever the size of packets.
const AT_ONCE_US: u32 = 20;
/// Headroom of the limit over rate × time, in hundredths.
const HEADROOM_PERCENT: u32 = 125;
/// The same while the rate still grows by as much as it is let to.
const GROWTH_PERCENT: u32 = 200;
/// The same while the queue is kept short to measure the device's own time.
const PROBE_PERCENT: u32 = 75;

/// How much of one flow may be in the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TsqPolicy {
    /// Linux's rule since 3.19: two packets or about a millisecond at the pacing rate, and never
    /// more than [`Config::limit_output_bytes`].
    ///
    /// [`Config::limit_output_bytes`]: super::Config::limit_output_bytes
    Capped,
    /// The same, but never less than `limit_output_bytes`: the limit grows with the rate.
    Paced,
    /// What the flow's rate through the device needs, at the completion time that the device
    /// shows, and a quarter more; and what a device needs that else runs dry. Never more than
    /// `limit_output_bytes`.
    #[default]
    Measured,
}

impl TsqPolicy {
    /// The name that the setting `net.ipv4.tcp_tsq_policy` has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Capped => "capped",
            Self::Paced => "paced",
            Self::Measured => "measured",
        }
    }

    /// The policy of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::Capped, Self::Paced, Self::Measured]
            .into_iter()
            .find(|policy| policy.name() == name)
    }
}

/// What is known of the device's transmit queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Payload bytes of all connections that the device is not done with.
    pub in_device_bytes: u64,
    /// How long it takes with what it is given, in microseconds, apart from the time that this
    /// waits there behind other data of ours; none before it is known.
    pub completion_time_us: Option<u32>,
    /// How often it was found to be done with something.
    pub completions: u64,
}

/// The device's transmit queue, as all flows share it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeviceQueue {
    in_device_bytes: u64,
    drain: DrainRate,
    time: CompletionTime,
    pass: Option<Pass>,
    completions: u64,
    /// Whether the loop has slept since the last.
    has_slept: bool,
    /// Whether nothing was left in it after the last, and the loop slept before: the device waited
    /// for more, not this processor for its turn.
    is_dry: bool,
    /// Flows that found less room in the ring than they could have used.
    short_flows: u32,
}

/// The completions of one moment.
#[derive(Clone, Copy, Debug)]
struct Pass {
    at: Instant,
    held_us: u32,
    bytes: u64,
}

impl DeviceQueue {
    /// What is known of it.
    pub(super) fn info(&self) -> DeviceInfo {
        DeviceInfo {
            in_device_bytes: self.in_device_bytes,
            completion_time_us: self.time.us(),
            completions: self.completions,
        }
    }

    /// The loop slept: there was nothing to do.
    pub(super) fn slept(&mut self) {
        self.has_slept = true;
    }

    /// Takes a completion in; to be called for each, before [`DeviceShare::completed`].
    pub(super) fn completed(&mut self, now: Instant, completion: Completion) {
        let Completion {
            owner: _,
            bytes,
            held,
        } = completion;
        if self.pass.is_some_and(|pass| pass.at != now) {
            self.end_pass();
        }
        self.in_device_bytes = self.in_device_bytes.saturating_sub(u64::from(bytes));
        let held_us = microseconds(held);
        self.drain
            .completed(now, bytes, held_us, self.in_device_bytes);
        let pass = self.pass.get_or_insert(Pass {
            at: now,
            held_us: 0,
            bytes: 0,
        });
        pass.held_us = pass.held_us.max(held_us);
        pass.bytes += u64::from(bytes);
    }

    /// All completions of this moment have been told.
    pub(super) fn end_pass(&mut self) {
        let Some(Pass {
            at: _,
            held_us,
            bytes,
        }) = self.pass.take()
        else {
            return;
        };
        let left_bytes = self.in_device_bytes;
        let queue_us = self.drain.rate().map_or(u32::MAX, |rate| {
            let us = (left_bytes + bytes).saturating_mul(1_000_000);
            u32::try_from(us / rate.bytes_per_second().max(1)).unwrap_or(u32::MAX)
        });
        self.completions += 1;
        self.is_dry = core::mem::take(&mut self.has_slept) && left_bytes == 0;
        self.drain.end_pass(left_bytes);
        self.time.sample(held_us, bytes, queue_us, left_bytes);
    }

    /// What each flow that could use more may have of the ring.
    fn ring_share(&self, ring_bytes: u32) -> u32 {
        ring_bytes / self.short_flows.max(1)
    }

    fn sent(&mut self, now: Instant, bytes: u32) {
        self.drain.sent(now, bytes, self.in_device_bytes);
        self.in_device_bytes += u64::from(bytes);
    }
}

/// What decides a flow's limit, apart from what was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) policy: TsqPolicy,
    /// `net.ipv4.tcp_limit_output_bytes`.
    pub(super) limit_output_bytes: u32,
    /// The pacing rate.
    pub(super) pacing_rate: Rate,
    /// Payload bytes of the packets that the flow would make.
    pub(super) packet_bytes: u32,
    /// Payload bytes of a segment.
    pub(super) mss: u32,
    /// About how many payload bytes the device's ring has room for.
    pub(super) ring_bytes: u32,
}

/// How much a flow may have in the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    /// Bytes of the flow in the device.
    pub(super) bytes: u32,
    /// Payload bytes of a packet at most, so that two fit.
    pub(super) packet_bytes: u32,
}

/// One flow's share of the device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeviceShare {
    in_device_bytes: u32,
    drain: DrainRate,
    starvation: Starvation,
    /// Whether the flow waits for completions of its own.
    is_throttled: bool,
    /// Whether the flow is one of [`DeviceQueue::short_flows`].
    is_short: bool,
    /// The limit when it was last asked for.
    limit_bytes: u32,
}

impl DeviceShare {
    /// Payload bytes given to the device that it is not done with.
    pub(super) fn in_device_bytes(&self) -> u32 {
        self.in_device_bytes
    }

    /// The limit when data was last sent, or should have been.
    pub(super) fn limit_bytes(&self) -> u32 {
        self.limit_bytes
    }

    /// Whether the flow waits for completions: one will come, and [`DeviceShare::completed`] tells
    /// that the flow must be run again.
    pub(super) fn is_throttled(&self) -> bool {
        self.is_throttled
    }

    /// How much the flow may have in the device.
    pub(super) fn limit(&mut self, queue: &DeviceQueue, demand: &Demand) -> Limit {
        self.end_pass(queue, demand.ring_bytes);
        let &Demand {
            policy,
            limit_output_bytes,
            pacing_rate,
            packet_bytes,
            mss,
            ring_bytes,
        } = demand;
        let clamp = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let by_rate = clamp(pacing_rate.bytes_per_second() >> RATE_SHIFT);
        let two_packets = packet_bytes.saturating_mul(2);
        let limit = match policy {
            TsqPolicy::Capped => Limit {
                bytes: by_rate.max(two_packets).min(limit_output_bytes),
                packet_bytes,
            },
            TsqPolicy::Paced => Limit {
                bytes: by_rate.max(two_packets).max(limit_output_bytes),
                packet_bytes,
            },
            TsqPolicy::Measured => {
                let share = queue.ring_share(ring_bytes);
                let limit = self.measured_limit(queue, packet_bytes);
                Limit {
                    bytes: limit.bytes.min(limit_output_bytes),
                    packet_bytes: limit.packet_bytes.min((share / 2).max(mss)),
                }
            }
        };
        self.limit_bytes = limit.bytes;
        Limit {
            bytes: limit.bytes,
            packet_bytes: limit.packet_bytes.min(limit.bytes / 2),
        }
    }

    /// The completions that the flow heard of have all been told.
    fn end_pass(&mut self, queue: &DeviceQueue, ring_bytes: u32) {
        self.drain.end_pass(u64::from(self.in_device_bytes));
        self.starvation.end_pass(
            self.limit_bytes.min(ring_bytes),
            self.in_device_bytes,
            queue.is_dry,
            queue.time.is_probing(),
        );
    }

    /// Rate × time with headroom, in whole packets: with part of one, it would wait for room though
    /// there is some.
    fn measured_limit(&self, queue: &DeviceQueue, packet_bytes: u32) -> Limit {
        let is_probing = queue.time.is_probing();
        let floor = if is_probing {
            0
        } else {
            self.starvation.floor_bytes()
        };
        let (Some(rate), Some(time_us)) = (self.drain.rate(), queue.time.us()) else {
            let two_packets = packet_bytes.saturating_mul(2);
            return Limit {
                bytes: two_packets.max(INITIAL_BYTES).max(floor),
                packet_bytes,
            };
        };
        let percent = if is_probing {
            PROBE_PERCENT
        } else if self.drain.is_growing() {
            GROWTH_PERCENT
        } else {
            HEADROOM_PERCENT
        };
        let needed = rate.bytes_in_us(u64::from(time_us)).min(1 << 30) as u32;
        // Three packets at the least make what is needed: fewer would leave the device idle, or
        // make it a queue, by the size of one.
        let packet_bytes = if time_us <= AT_ONCE_US {
            packet_bytes
        } else {
            packet_bytes.min((needed.max(floor) / 3).max(MIN_PACKET_BYTES))
        };
        let bytes = (u64::from(needed) * u64::from(percent) / 100) as u32;
        let packets = if is_probing {
            bytes / packet_bytes.max(1)
        } else {
            bytes
                .max(FLOOR_BYTES)
                .max(floor)
                .div_ceil(packet_bytes.max(1))
        };
        Limit {
            bytes: packets.max(2).saturating_mul(packet_bytes),
            packet_bytes,
        }
    }

    /// Whether a packet of `bytes` bytes of new data may be given to the device. If not, the flow is
    /// throttled until it hears of a completion.
    ///
    /// With nothing of the flow in the device it may: no completion would come to try again.
    pub(super) fn admit(
        &mut self,
        queue: &mut DeviceQueue,
        demand: &Demand,
        limit: Limit,
        bytes: u32,
    ) -> bool {
        let own_room = limit.bytes.saturating_sub(self.in_device_bytes);
        let ring_room = self.ring_room(queue, demand);
        self.is_throttled = self.in_device_bytes > 0 && bytes > own_room.min(ring_room);
        if bytes > ring_room {
            self.note_short(queue, true);
        } else if self.is_throttled {
            self.note_short(queue, false);
        }
        if self.is_throttled {
            self.drain.limited();
            queue.drain.limited();
        }
        !self.is_throttled
    }

    /// Room in the ring for this flow: so much that others that want more get as much as it has.
    fn ring_room(&self, queue: &DeviceQueue, demand: &Demand) -> u32 {
        match demand.policy {
            TsqPolicy::Capped | TsqPolicy::Paced => u32::MAX,
            TsqPolicy::Measured => {
                let left = u64::from(demand.ring_bytes).saturating_sub(queue.in_device_bytes);
                let share = queue.ring_share(demand.ring_bytes);
                let own = share.saturating_sub(self.in_device_bytes);
                u32::try_from(left).unwrap_or(u32::MAX).min(own)
            }
        }
    }

    fn note_short(&mut self, queue: &mut DeviceQueue, is_short: bool) {
        if is_short && !self.is_short {
            queue.short_flows += 1;
        } else if !is_short && self.is_short {
            queue.short_flows = queue.short_flows.saturating_sub(1);
        }
        self.is_short = is_short;
    }

    /// The flow has nothing more to send, or something else than the device holds it back: its part
    /// of the ring is for others. To be called before a flow is forgotten, too.
    pub(super) fn yield_ring(&mut self, queue: &mut DeviceQueue) {
        self.note_short(queue, false);
    }

    /// Counts bytes given to the device.
    pub(super) fn sent(&mut self, queue: &mut DeviceQueue, now: Instant, bytes: u32) {
        queue.sent(now, bytes);
        let before_bytes = u64::from(self.in_device_bytes);
        self.drain.sent(now, bytes, before_bytes);
        self.in_device_bytes = self.in_device_bytes.saturating_add(bytes);
    }

    /// Credits bytes that the device is done with; whether the flow waited for that and must be
    /// run. It is asked again then, not before it is throttled anew.
    pub(super) fn completed(&mut self, now: Instant, completion: Completion) -> bool {
        let Completion {
            owner: _,
            bytes,
            held,
        } = completion;
        self.in_device_bytes = self.in_device_bytes.saturating_sub(bytes);
        let left = u64::from(self.in_device_bytes);
        self.drain.completed(now, bytes, microseconds(held), left);
        let was_throttled = core::mem::take(&mut self.is_throttled);
        if was_throttled {
            self.starvation.waited();
        }
        was_throttled
    }
}

#[cfg(test)]
mod tests;
