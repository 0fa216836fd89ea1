//! Hosts on a switch, and the event loop that moves virtual time.

use super::{
    frame::Frame,
    nic::{NicConfig, SimDevice, SimNic},
    tasks::{Clock, Spawner, Tasks},
};
use crate::{
    net::Net,
    stack::{Config, Stack},
    time::{Duration, Instant},
};
use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};
use core::future::Future;

/// Most rounds without time passing: more means that the hosts keep each other busy for ever.
const MAX_ROUNDS: usize = 1_000_000;

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives this much later than it would: others may overtake it.
    Delay(Duration),
    /// It arrives.
    Deliver,
    /// It is lost.
    Drop,
    /// It arrives twice.
    Duplicate,
}

/// A hook on a link.
type Hook = Box<dyn FnMut(Instant, &mut Frame) -> Fate>;

/// The way from a host to the switch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    /// Bits a second; none: no limit.
    pub rate_bps: Option<u64>,
    /// Time from the end of transmission until the frame arrives.
    pub delay: Duration,
    /// Room before the bottleneck, in bytes: frames that find it full are lost. None: the NIC
    /// itself is the bottleneck, frames wait on its ring.
    pub queue_bytes: Option<u64>,
    /// Large segments travel whole, as between guests of one machine.
    pub whole_segments: bool,
}

/// A frame seen on a link.
#[derive(Clone, Debug)]
pub struct Record {
    /// When its transmission began.
    pub at: Instant,
    /// Index of the sender, in the order of [`Network::add`].
    pub from: usize,
    /// The frame.
    pub frame: Frame,
    /// Whether it was lost there.
    pub lost: bool,
}

/// A host: its stack, and the wire side of its NIC.
#[derive(Clone)]
pub struct Host {
    /// The stack.
    pub net: Net<SimDevice>,
    /// The NIC.
    pub nic: SimNic,
    /// Index in the order of [`Network::add`].
    pub id: usize,
}

struct Port {
    host: Host,
    link: Link,
    hook: Option<Hook>,
    /// When the link has sent all it was given.
    idle_at_ns: u64,
    deadline: Option<Instant>,
    more: bool,
}

/// A network in virtual time.
#[derive(Default)]
pub struct Network {
    clock: Clock,
    ports: Vec<Port>,
    /// Frames on their way, by arrival and order.
    flying: BTreeMap<(Instant, u64), (usize, Frame)>,
    order: u64,
    tasks: Tasks,
    records: Option<Vec<Record>>,
}

impl Network {
    /// No hosts, at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a host. Panics when `config` is not a valid one.
    pub fn add(&mut self, nic: NicConfig, config: &Config, link: Link) -> Host {
        let id = self.ports.len();
        let mac = match nic.mac {
            [0, 0, 0, 0, 0, 0] => [2, 0, 0, 0, (id >> 8) as u8, id as u8 + 1],
            mac => mac,
        };
        let (nic, device) = SimNic::new(NicConfig { mac, ..nic });
        let stack = Stack::new(device, config).expect("a valid configuration");
        let host = Host {
            net: Net::new(stack),
            nic,
            id,
        };
        self.ports.push(Port {
            host: host.clone(),
            link,
            hook: None,
            idle_at_ns: 0,
            deadline: None,
            more: false,
        });
        host
    }

    /// Two hosts, 192.0.2.1 and 192.0.2.2, with links alike.
    pub fn pair(nic: NicConfig, link: Link) -> (Self, Host, Host) {
        let mut network = Self::new();
        let mut add = |last: u8| {
            let config = Config {
                address: [192, 0, 2, last].into(),
                prefix: 24,
                gateway: None,
                secret: [last; 16],
            };
            network.add(nic, &config, link)
        };
        let (a, b) = (add(1), add(2));
        (network, a, b)
    }

    /// Decides what becomes of each frame that `host` sends, before it is put on the link. The
    /// frame may be changed.
    pub fn hook(&mut self, host: &Host, hook: impl FnMut(Instant, &mut Frame) -> Fate + 'static) {
        self.ports[host.id].hook = Some(Box::new(hook));
    }

    /// Changes the way from `host` to the switch.
    pub fn set_link(&mut self, host: &Host, link: Link) {
        self.ports[host.id].link = link;
    }

    /// Begins to record frames.
    pub fn record(&mut self) {
        self.records.get_or_insert_default();
    }

    /// The frames recorded so far; they are forgotten here.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.records
            .as_mut()
            .map(core::mem::take)
            .unwrap_or_default()
    }

    /// The clock, for tasks.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Runs `future` as a task whenever it is woken.
    pub fn spawn(&mut self, future: impl Future<Output = ()> + 'static) {
        self.tasks.spawner().spawn(future);
    }

    /// Starts tasks as [`Network::spawn`] does, from within tasks too.
    pub fn spawner(&self) -> Spawner {
        self.tasks.spawner()
    }

    /// Tasks that have not ended.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Puts a frame on its way to `host`, from nowhere.
    pub fn inject(&mut self, host: &Host, bytes: Vec<u8>) {
        let frame = Frame {
            bytes,
            segment_bytes: None,
        };
        self.order += 1;
        let arrival = (self.now(), self.order);
        self.flying.insert(arrival, (host.id, frame));
    }

    /// Lets `span` pass.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now() + span, || false);
    }

    /// Lets time pass until all tasks have ended, `limit` at most; whether they have.
    pub fn run_tasks(&mut self, limit: Duration) -> bool {
        let end = self.now() + limit;
        while self.tasks.len() > 0 {
            if !self.step(end) {
                return self.tasks.len() == 0;
            }
        }
        true
    }

    /// Lets time pass until `end`, or until `done` says so.
    pub fn run_until(&mut self, end: Instant, mut done: impl FnMut() -> bool) {
        while !done() {
            if !self.step(end) {
                self.clock.set(end);
                return;
            }
        }
    }

    /// Does all there is to do now, then moves on to the next event; false when that is after
    /// `end`.
    fn step(&mut self, end: Instant) -> bool {
        let mut rounds = 0;
        while self.settle() {
            rounds += 1;
            assert!(rounds < MAX_ROUNDS, "busy for ever at {}", self.now());
        }
        let port_next = |port: &Port| [port.deadline, port.host.nic.next_completion()];
        let next = self
            .ports
            .iter()
            .flat_map(port_next)
            .chain([
                self.flying.first_key_value().map(|((at, _), _)| *at),
                self.clock.next(),
            ])
            .flatten()
            .min();
        match next {
            Some(at) if at <= end => {
                self.clock.set(at.max(self.now()));
                true
            }
            _ => false,
        }
    }

    /// One round of what is to do at this moment; whether there was anything.
    fn settle(&mut self) -> bool {
        let now = self.now();
        let mut busy = false;
        while let Some(entry) = self.flying.first_entry()
            && entry.key().0 <= now
        {
            let (to, frame) = entry.remove();
            self.ports[to].host.nic.receive(&frame);
        }
        for index in 0..self.ports.len() {
            let port = &mut self.ports[index];
            let due = port.deadline.is_some_and(|deadline| deadline <= now);
            let interrupt = port.host.nic.take_interrupt(now);
            if due || interrupt || port.more || port.host.net.poll_wanted() {
                busy = true;
                let polled = port.host.net.poll(now);
                port.more = polled.more;
                port.deadline = polled.deadline;
                self.transmit(index);
            }
        }
        busy | self.tasks.run()
    }

    /// Takes what a host has published and sends it on its way.
    fn transmit(&mut self, from: usize) {
        while let Some(sent) = self.ports[from].host.nic.take() {
            let link = self.ports[from].link;
            let mut end_ns = 0;
            for frame in sent.frames(link.whole_segments) {
                end_ns = self.carry(from, link, frame);
            }
            let port = &self.ports[from];
            let sent_at = if link.queue_bytes.is_some() {
                self.now()
            } else {
                Instant::from_micros(end_ns.div_ceil(1000))
            };
            let done_at = sent_at + port.host.nic.config().completion_delay;
            port.host.nic.complete(sent, done_at);
        }
    }

    /// Sends a frame over the link of `from`; returns when its transmission ends.
    fn carry(&mut self, from: usize, link: Link, mut frame: Frame) -> u64 {
        let now = self.now();
        let now_ns = now.as_micros() * 1000;
        let port = &mut self.ports[from];
        let begin_ns = port.idle_at_ns.max(now_ns);
        let bits = frame.bytes.len() as u64 * 8;
        let span_ns = link
            .rate_bps
            .map_or(0, |rate| bits * 1_000_000_000 / rate.max(1));
        let full = link.queue_bytes.is_some_and(|room| {
            let waiting_ns = u128::from(begin_ns - now_ns);
            let rate = u128::from(link.rate_bps.unwrap_or(0));
            waiting_ns * rate / 8_000_000_000 + u128::from(bits / 8) > u128::from(room)
        });
        let fate = match &mut port.hook {
            _ if full => Fate::Drop,
            Some(hook) => hook(now, &mut frame),
            None => Fate::Deliver,
        };
        if let Some(records) = &mut self.records {
            records.push(Record {
                at: Instant::from_micros(begin_ns / 1000),
                from,
                frame: frame.clone(),
                lost: fate == Fate::Drop,
            });
        }
        if full {
            return now_ns;
        }
        let end_ns = begin_ns + span_ns;
        port.idle_at_ns = end_ns;
        let arrival = Instant::from_micros(end_ns.div_ceil(1000)) + link.delay;
        match fate {
            Fate::Drop => {}
            Fate::Deliver => self.switch(from, arrival, &frame),
            Fate::Delay(more) => self.switch(from, arrival + more, &frame),
            Fate::Duplicate => {
                self.switch(from, arrival, &frame);
                self.switch(from, arrival, &frame);
            }
        }
        end_ns
    }

    /// Sends a frame on to the host it is for, or to all others.
    fn switch(&mut self, from: usize, arrival: Instant, frame: &Frame) {
        let Some(dst) = frame.bytes.first_chunk::<6>() else {
            return;
        };
        let group = dst[0] & 1 == 1;
        for port in &self.ports {
            let id = port.host.id;
            if id != from && (group || port.host.nic.config().mac == *dst) {
                self.order += 1;
                let key = (arrival, self.order);
                self.flying.insert(key, (id, frame.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests;
