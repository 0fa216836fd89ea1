use super::*;
use crate::{device::Owner, time::Duration};
use alloc::{
    collections::{BTreeMap, VecDeque},
    vec,
    vec::Vec,
};
use proptest::prelude::*;

const MSS: u32 = 1448;
const PACKET: u32 = 45 * MSS;
const RING: u32 = 13 * PACKET;

fn at(us: u64) -> Instant {
    Instant::from_micros(us)
}

fn gbit(rate: u64) -> Rate {
    Rate::from_bytes_per_second(rate * 125_000_000)
}

fn demand(policy: TsqPolicy, limit_output_bytes: u32, pacing_rate: Rate) -> Demand {
    Demand {
        policy,
        limit_output_bytes,
        pacing_rate,
        packet_bytes: PACKET,
        mss: MSS,
        ring_bytes: RING,
    }
}

fn completion(bytes: u32, held_us: u64) -> Completion {
    Completion {
        owner: Owner(1),
        bytes,
        held: Duration::from_micros(held_us),
    }
}

#[test]
fn names_and_policies() {
    for policy in [TsqPolicy::Capped, TsqPolicy::Paced, TsqPolicy::Measured] {
        assert_eq!(TsqPolicy::by_name(policy.name()), Some(policy));
    }
    assert_eq!(TsqPolicy::by_name("linux"), None);
}

#[test]
fn the_two_rules_by_rate() {
    let limit = |policy, limit_output_bytes, rate| {
        let demand = demand(policy, limit_output_bytes, rate);
        DeviceShare::default()
            .limit(&DeviceQueue::default(), &demand)
            .bytes
    };
    let (capped, paced) = (TsqPolicy::Capped, TsqPolicy::Paced);
    assert_eq!(limit(capped, 131_072, gbit(1)), 122_070.max(2 * PACKET));
    assert_eq!(limit(capped, 131_072, gbit(8)), 131_072);
    assert_eq!(limit(capped, 1 << 20, gbit(8)), 976_562);
    assert_eq!(limit(paced, 131_072, gbit(1)), 131_072);
    assert_eq!(limit(paced, 131_072, gbit(8)), 976_562);
    // Before there is a rate.
    assert_eq!(limit(capped, 131_072, Rate::UNLIMITED), 131_072);
    assert_eq!(limit(paced, 131_072, Rate::UNLIMITED), u32::MAX);
}

/// One flow that always has data, and a device that takes `time` for each packet, one after the
/// other at `rate` or, where there is none, all at once.
struct Model {
    queue: DeviceQueue,
    share: DeviceShare,
    demand: Demand,
    /// Ends of transmissions, and of completions: with the packet and when it was given.
    done: BTreeMap<(Instant, u64), (u32, Instant)>,
    idle_at_ns: u64,
    /// It answers at multiples of this only.
    every_us: u64,
    now: Instant,
    given: u64,
}

impl Model {
    fn new(policy: TsqPolicy) -> Self {
        Self {
            queue: DeviceQueue::default(),
            share: DeviceShare::default(),
            demand: demand(policy, 4 << 20, gbit(10)),
            done: BTreeMap::new(),
            idle_at_ns: 0,
            every_us: 1,
            now: at(0),
            given: 0,
        }
    }

    /// Runs for `span`; returns the bytes done, and the most that was in the device.
    fn run(&mut self, span: Duration, rate: Rate, time_us: u64) -> (u64, u32) {
        let end = self.now + span;
        let (mut bytes, mut most) = (0, 0);
        loop {
            loop {
                let limit = self.share.limit(&self.queue, &self.demand);
                let packet = limit.packet_bytes / MSS * MSS;
                if !self
                    .share
                    .admit(&mut self.queue, &self.demand, limit, packet)
                {
                    break;
                }
                self.share.sent(&mut self.queue, self.now, packet);
                let now_ns = self.now.as_micros() * 1000;
                self.idle_at_ns = self.idle_at_ns.max(now_ns) + rate.ns_for(packet);
                let done_us = self.idle_at_ns.div_ceil(1000) + time_us.max(1);
                let done_at = at(done_us.next_multiple_of(self.every_us));
                self.given += 1;
                self.done.insert((done_at, self.given), (packet, self.now));
                most = most.max(self.share.in_device_bytes());
            }
            assert!(self.share.is_throttled());
            let ((now, _), _) = self.done.first_key_value().expect("one must come");
            if *now > end {
                return (bytes, most);
            }
            self.now = *now;
            self.queue.slept();
            let mut woken = false;
            while let Some(entry) = self.done.first_entry()
                && entry.key().0 == self.now
            {
                let (packet, given_at) = entry.remove();
                bytes += u64::from(packet);
                let held = self.now.since(given_at).as_micros() as u64;
                let completion = completion(packet, held);
                self.queue.completed(self.now, completion);
                woken |= self.share.completed(self.now, completion);
            }
            self.queue.end_pass();
            assert!(woken, "it was throttled");
        }
    }
}

/// A device that sends one packet after the other: its queue grows with the limit, and with it the
/// time that a packet takes. The limit must not follow.
#[test]
fn a_serial_device_is_kept_busy_with_a_short_queue() {
    for (gigabits, time_us) in [(8, 50), (8, 374), (1, 50), (1, 2000), (8, 0)] {
        let rate = gbit(gigabits);
        let mut model = Model::new(TsqPolicy::Measured);
        model.run(Duration::from_millis(100), rate, time_us);
        let (bytes, most) = model.run(Duration::from_secs(2), rate, time_us);
        let full = rate.bytes_in_us(2_000_000);
        assert!(
            bytes >= full / 100 * 98,
            "{gigabits} Gb/s, {time_us} us: {bytes} of {full}"
        );
        // A packet's own transmission is part of its time.
        let needed = rate.bytes_in_us(time_us) + u64::from(PACKET);
        let bound = needed * 5 / 4 + 2 * u64::from(PACKET);
        assert!(
            u64::from(most) <= bound,
            "{gigabits} Gb/s, {time_us} us: {most} in the device, {bound} allowed"
        );
    }
}

/// A device that takes long over each packet, but any number of them at once.
#[test]
fn a_late_device_gets_what_the_ring_holds() {
    for time_us in [1000, 4000] {
        let mut model = Model::new(TsqPolicy::Measured);
        model.run(Duration::from_millis(300), Rate::UNLIMITED, time_us);
        let (bytes, most) = model.run(Duration::from_secs(1), Rate::UNLIMITED, time_us);
        let ring = u64::from(RING) * 1_000_000 / time_us;
        assert!(bytes >= ring / 100 * 98, "{time_us} us: {bytes} of {ring}");
        assert!(most <= RING);
    }
}

/// A backend that runs when its processor's scheduler lets it, and then does all there is: what it
/// is given each time is what it does.
#[test]
fn a_device_that_sleeps_between_batches_finds_the_ring_full() {
    let mut model = Model::new(TsqPolicy::Measured);
    for every_us in [3800, 7000, 13_000, 4000] {
        model.every_us = every_us;
        model.run(Duration::from_millis(400), Rate::UNLIMITED, 0);
        let (bytes, _) = model.run(Duration::from_secs(1), Rate::UNLIMITED, 0);
        let ring = u64::from(RING) * 1_000_000 / every_us;
        assert!(bytes >= ring / 100 * 97, "{every_us} us: {bytes} of {ring}");
    }
}

#[test]
fn a_serial_device_that_slows_down_gets_a_short_queue_again() {
    let mut model = Model::new(TsqPolicy::Measured);
    model.run(Duration::from_secs(1), gbit(8), 200);
    let (_, most) = model.run(Duration::from_secs(4), gbit(1), 200);
    assert!(most <= RING);
    let (bytes, most) = model.run(Duration::from_secs(2), gbit(1), 200);
    assert!(bytes >= 245_000_000, "{bytes}");
    assert!(most <= 25_000 * 5 / 4 + 3 * PACKET, "{most} in the device");
}

/// Flows with policies and demands of all kinds, and a device that answers when it likes.
#[derive(Clone, Debug)]
enum Step {
    /// Flow, and how many bytes it would send.
    Send(usize, u32),
    /// Which packet in the device is done next, how much of it, after what time.
    Complete(usize, u32, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4usize, 1..=PACKET).prop_map(|(flow, bytes)| Step::Send(flow, bytes)),
        (any::<prop::sample::Index>(), 1..=PACKET, 0..10_000u64)
            .prop_map(|(at, bytes, us)| Step::Complete(at.index(1 << 20), bytes, us)),
    ]
}

proptest! {
    /// Whatever the order of completions: no flow waits without a completion to come, none has
    /// more than the ring's share, and the sum of all stays within the ring but for the one
    /// packet that each may always have there.
    #[test]
    fn no_wake_up_is_lost_and_the_ring_bounds_the_sum(
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let mut queue = DeviceQueue::default();
        let mut flows = [DeviceShare::default(); 4];
        let mut waiting = [false; 4];
        let mut device: Vec<(usize, u32, Instant)> = vec![];
        let mut now = at(0);
        let demand = demand(TsqPolicy::Measured, 4 << 20, gbit(10));
        for step in steps {
            match step {
                Step::Send(flow, bytes) => {
                    let share = &mut flows[flow];
                    if share.is_throttled() {
                        continue;
                    }
                    let was_empty = share.in_device_bytes() == 0;
                    let limit = share.limit(&queue, &demand);
                    let bytes = bytes.min(limit.packet_bytes);
                    let admitted = share.admit(&mut queue, &demand, limit, bytes);
                    prop_assert!(!was_empty || admitted);
                    prop_assert_eq!(share.is_throttled(), !admitted);
                    waiting[flow] = !admitted;
                    if admitted {
                        share.sent(&mut queue, now, bytes);
                        device.push((flow, bytes, now));
                        prop_assert!(was_empty || share.in_device_bytes() <= limit.bytes);
                        prop_assert!(was_empty || queue.info().in_device_bytes <= u64::from(RING));
                    }
                }
                Step::Complete(which, bytes, us) => {
                    now = now + Duration::from_micros(us);
                    if device.is_empty() {
                        continue;
                    }
                    let which = which % device.len();
                    let (flow, left, since) = device[which];
                    let bytes = bytes.min(left);
                    if bytes == left {
                        device.remove(which);
                    } else {
                        device[which].1 -= bytes;
                    }
                    let held = now.since(since).as_micros() as u64;
                    queue.completed(now, completion(bytes, held));
                    let wakes = flows[flow].completed(now, completion(bytes, held));
                    queue.end_pass();
                    prop_assert_eq!(wakes, waiting[flow]);
                    waiting[flow] = false;
                }
            }
            let sum: u64 = flows.iter().map(|it| u64::from(it.in_device_bytes())).sum();
            prop_assert_eq!(sum, queue.info().in_device_bytes);
            for (flow, share) in flows.iter().enumerate() {
                prop_assert!(!share.is_throttled() || share.in_device_bytes() > 0);
                prop_assert_eq!(share.is_throttled(), waiting[flow]);
            }
        }
        while let Some((flow, bytes, since)) = device.pop() {
            let held = now.since(since).as_micros() as u64;
            queue.completed(now, completion(bytes, held));
            flows[flow].completed(now, completion(bytes, held));
        }
        prop_assert_eq!(queue.info().in_device_bytes, 0);
        prop_assert!(flows.iter().all(|it| it.in_device_bytes() == 0 && !it.is_throttled()));
    }

    /// Flows that always have data get the same share of a full ring.
    #[test]
    fn bulk_flows_share_the_ring(count in 2..6usize, seed: u64) {
        let mut queue = DeviceQueue::default();
        let mut flows = vec![DeviceShare::default(); count];
        let mut device: VecDeque<(usize, u32, Instant)> = VecDeque::new();
        let mut done = vec![0u64; count];
        let mut demand = demand(TsqPolicy::Measured, u32::MAX, gbit(100));
        demand.packet_bytes = 8 * MSS;
        let mut now = at(0);
        let mut order: Vec<usize> = (0..count).collect();
        for round in 0..4000u64 {
            order.rotate_left((seed.rotate_left(round as u32) % count as u64) as usize);
            for &flow in &order {
                let limit = flows[flow].limit(&queue, &demand);
                // Only the ring is to decide.
                let bytes = 8 * MSS;
                let limit = Limit { bytes: u32::MAX, ..limit };
                if flows[flow].admit(&mut queue, &demand, limit, bytes) {
                    flows[flow].sent(&mut queue, now, bytes);
                    device.push_back((flow, bytes, now));
                }
            }
            now = now + Duration::from_micros(10);
            for _ in 0..1 {
                if let Some((flow, bytes, since)) = device.pop_front() {
                    let held = now.since(since).as_micros() as u64;
                    queue.completed(now, completion(bytes, held));
                    flows[flow].completed(now, completion(bytes, held));
                    done[flow] += u64::from(bytes);
                }
            }
            queue.end_pass();
        }
        let sum: u64 = done.iter().sum();
        let squares: u64 = done.iter().map(|bytes| bytes.pow(2)).sum();
        let jain_percent = sum.pow(2) / (squares / 100 * count as u64);
        prop_assert!(jain_percent >= 98, "{done:?}: {jain_percent}");
    }
}
