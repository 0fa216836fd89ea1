//! Hosts on a switch or two, and the event loop that moves virtual time.

use super::{
    frame::Frame,
    link::{Link, LinkCounters, Passage, Pipe},
    nic::{NicConfig, Sent, SimDevice, SimNic},
    packet::Packet,
    random::Random,
    tasks::{Clock, Spawner, Tasks},
    trace::Trace,
};
use crate::{
    net::Net,
    stack::{Config, Stack},
    time::{Duration, Instant},
};
use alloc::{boxed::Box, collections::BinaryHeap, vec::Vec};
use core::{cmp::Ordering, future::Future};

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

/// Something to do at a time.
type Call = Box<dyn FnOnce(&mut Network)>;

/// A frame seen on a link.
#[derive(Clone, Debug)]
pub struct Record {
    /// When it was handed to the link.
    pub at: Instant,
    /// Index of the sender, in the order of [`Network::add`].
    pub from: usize,
    /// The frame.
    pub frame: Frame,
    /// Whether it was lost there.
    pub lost: bool,
}

/// Which side of the router a host is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// Where hosts are put first.
    #[default]
    Left,
    /// The other one.
    Right,
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

/// Where a pipe leads from.
#[derive(Clone, Copy)]
enum Place {
    /// From the host of this index to the switch.
    Up(usize),
    /// Through the router, away from this side.
    Middle(Side),
    /// From the switch to the host of this index.
    Down(usize),
}

/// Index of the pipe from the left to the right.
const LEFT_TO_RIGHT: usize = 0;
/// Index of the pipe from the right to the left.
const RIGHT_TO_LEFT: usize = 1;

enum Happening {
    /// The backend has worked through a frame.
    Launch(usize, Sent),
    /// A packet comes out of a pipe.
    Arrive(usize, Packet),
    /// A pipe may send the next packet that waits in it.
    Ready(usize),
    /// Something to do.
    Call(Call),
}

struct Event {
    at_ns: u64,
    order: u64,
    what: Happening,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// The earliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_ns, other.order).cmp(&(self.at_ns, self.order))
    }
}

struct Port {
    host: Host,
    mac: [u8; 6],
    side: Side,
    up: usize,
    down: usize,
    hook: Option<Hook>,
    deadline: Option<Instant>,
    more: bool,
    /// When the backend has worked through all it was given.
    backend_idle_at_ns: u64,
    /// When the host has worked through all it did.
    cpu_idle_at_ns: u64,
    trace: Option<Trace>,
}

/// A network in virtual time.
///
/// Hosts hang on a switch, each by an uplink and a downlink. Where some are put on the other
/// [`Side`], a router stands between the two groups, with a link of its own in each direction:
/// the bottleneck that they share. All chance in it follows from one seed.
pub struct Network {
    clock: Clock,
    ports: Vec<Port>,
    pipes: Vec<(Place, Pipe)>,
    events: BinaryHeap<Event>,
    order: u64,
    random: Random,
    tasks: Tasks,
    records: Option<Vec<Record>>,
    audit: bool,
}

impl Default for Network {
    fn default() -> Self {
        Self::new()
    }
}

impl Network {
    /// No hosts, at time zero, with the chance of seed 1.
    pub fn new() -> Self {
        Self::with_seed(1)
    }

    /// The same with the chance of another seed.
    pub fn with_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let through = Link {
            whole_segments: true,
            ..Link::default()
        };
        let pipes = [Side::Left, Side::Right]
            .map(|side| (Place::Middle(side), Pipe::new(through, random.fork())));
        Self {
            clock: Clock::default(),
            ports: Vec::new(),
            pipes: pipes.into(),
            events: BinaryHeap::new(),
            order: 0,
            random,
            tasks: Tasks::default(),
            records: None,
            audit: false,
        }
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
        let through = Link {
            whole_segments: true,
            ..Link::default()
        };
        let up = self.pipes.len();
        let mut pipe = |place, link| {
            let pipe = Pipe::new(link, self.random.fork());
            self.pipes.push((place, pipe));
        };
        pipe(Place::Up(id), link);
        pipe(Place::Down(id), through);
        self.ports.push(Port {
            host: host.clone(),
            mac,
            side: Side::Left,
            up,
            down: up + 1,
            hook: None,
            deadline: None,
            more: false,
            backend_idle_at_ns: 0,
            cpu_idle_at_ns: 0,
            trace: None,
        });
        host
    }

    /// Adds a host with the address 192.0.2.`last`.
    pub fn add_host(&mut self, nic: NicConfig, last: u8, link: Link) -> Host {
        let config = Config {
            address: [192, 0, 2, last].into(),
            prefix: 24,
            gateway: None,
            secret: [last; 16],
        };
        self.add(nic, &config, link)
    }

    /// Two hosts, 192.0.2.1 and 192.0.2.2, with links alike.
    pub fn pair(nic: NicConfig, link: Link) -> (Self, Host, Host) {
        let mut network = Self::new();
        let (a, b) = (
            network.add_host(nic, 1, link),
            network.add_host(nic, 2, link),
        );
        (network, a, b)
    }

    /// Decides what becomes of each frame that `host` sends, before it is put on the link. The
    /// frame may be changed.
    pub fn hook(&mut self, host: &Host, hook: impl FnMut(Instant, &mut Frame) -> Fate + 'static) {
        self.ports[host.id].hook = Some(Box::new(hook));
    }

    /// Changes the way from `host` to the switch; what is under way is not concerned.
    pub fn set_link(&mut self, host: &Host, link: Link) {
        let up = self.ports[host.id].up;
        self.pipes[up].1.link = link;
    }

    /// Changes the way from the switch to `host`, which is without limits at first.
    pub fn set_downlink(&mut self, host: &Host, link: Link) {
        let down = self.ports[host.id].down;
        self.pipes[down].1.link = link;
    }

    /// Puts `host` on a side of the router.
    pub fn set_side(&mut self, host: &Host, side: Side) {
        self.ports[host.id].side = side;
    }

    /// Changes the links between the sides, which are without limits at first.
    pub fn set_middle(&mut self, left_to_right: Link, right_to_left: Link) {
        self.pipes[LEFT_TO_RIGHT].1.link = left_to_right;
        self.pipes[RIGHT_TO_LEFT].1.link = right_to_left;
    }

    /// What the way from `host` to the switch has counted.
    pub fn link_counters(&self, host: &Host) -> LinkCounters {
        self.pipes[self.ports[host.id].up].1.counters
    }

    /// What the link away from a side has counted.
    pub fn middle_counters(&self, from: Side) -> LinkCounters {
        match from {
            Side::Left => self.pipes[LEFT_TO_RIGHT].1.counters,
            Side::Right => self.pipes[RIGHT_TO_LEFT].1.counters,
        }
    }

    /// Begins to record frames, as they are put on the first link.
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

    /// Begins to trace the connections of `host`, a sample of each after every step of its stack
    /// that changed something, but no more than one in `every`.
    pub fn trace(&mut self, host: &Host, every: Duration) {
        self.ports[host.id].trace = Some(Trace::new(every));
    }

    /// What was traced on `host`.
    pub fn take_trace(&mut self, host: &Host) -> Option<Trace> {
        self.ports[host.id].trace.take()
    }

    /// Checks after every step of every stack what must hold of it, and panics when it does not.
    pub fn audit(&mut self) {
        self.audit = true;
    }

    /// The clock, for tasks.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Does something to the network at a time.
    pub fn at(&mut self, at: Instant, call: impl FnOnce(&mut Self) + 'static) {
        let at_ns = at.max(self.now()).as_micros() * 1000;
        self.push(at_ns, Happening::Call(Box::new(call)));
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
        let packet = Packet::from_frame(Frame {
            bytes,
            segment_bytes: None,
        });
        let down = self.ports[host.id].down;
        let now_ns = self.now().as_micros() * 1000;
        self.push(now_ns, Happening::Arrive(down, packet));
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
        let event = self.events.peek().map(|event| to_instant(event.at_ns));
        let next = self
            .ports
            .iter()
            .map(Port::next)
            .chain([event, self.clock.next()])
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
        let now_ns = now.as_micros() * 1000;
        let mut busy = false;
        while let Some(event) = self.events.peek()
            && event.at_ns <= now_ns
            && let Some(Event { at_ns, what, .. }) = self.events.pop()
        {
            match what {
                Happening::Launch(from, sent) => self.launch(from, at_ns, sent),
                Happening::Arrive(pipe, packet) => self.arrive(pipe, at_ns, packet),
                Happening::Ready(pipe) => {
                    let passage = self.pipes[pipe].1.ready(at_ns);
                    self.follow(pipe, at_ns, passage);
                }
                Happening::Call(call) => {
                    busy = true;
                    call(self);
                }
            }
        }
        for index in 0..self.ports.len() {
            let port = &mut self.ports[index];
            if port.cpu_idle_at_ns > now_ns || !port.take_wish(now) {
                continue;
            }
            busy = true;
            if to_instant(port.cpu_idle_at_ns) < now {
                port.host.net.with(Stack::slept);
            }
            let polled = port.host.net.poll(now);
            port.more = polled.more;
            port.deadline = polled.deadline;
            port.cpu_idle_at_ns = now_ns + port.host.nic.take_work_ns();
            if let Some(trace) = &mut port.trace {
                let stack = &port.host.net;
                stack.with(|stack| trace.sample(now, stack.tcp().connections()));
            }
            if self.audit {
                port.audit(now);
            }
            self.transmit(index, now_ns);
        }
        busy | self.tasks.run()
    }

    fn push(&mut self, at_ns: u64, what: Happening) {
        self.order += 1;
        self.events.push(Event {
            at_ns,
            order: self.order,
            what,
        });
    }

    /// Takes what a host has published and gives it to the backend.
    fn transmit(&mut self, from: usize, now_ns: u64) {
        while let Some(sent) = self.ports[from].host.nic.take() {
            let port = &mut self.ports[from];
            let work_ns = port.host.nic.config().backend.nanos(1, sent.len());
            if work_ns == 0 {
                self.launch(from, now_ns, sent);
                continue;
            }
            let done_ns = port.backend_idle_at_ns.max(now_ns) + work_ns;
            port.backend_idle_at_ns = done_ns;
            self.push(done_ns, Happening::Launch(from, sent));
        }
    }

    /// Puts a frame on the wire.
    fn launch(&mut self, from: usize, now_ns: u64, mut sent: Sent) {
        let up = self.ports[from].up;
        let packet = sent.take_packet();
        let mut end_ns = now_ns;
        if self.pipes[up].1.link.whole_segments {
            end_ns = self.put(from, now_ns, packet);
        } else {
            for packet in packet.cut() {
                end_ns = self.put(from, now_ns, packet);
            }
        }
        if !self.pipes[up].1.holds_sender() {
            end_ns = now_ns;
        }
        let nic = &self.ports[from].host.nic;
        nic.complete_in_time(sent, to_instant(end_ns));
    }

    /// Puts a packet on the uplink; returns when its transmission ends.
    fn put(&mut self, from: usize, now_ns: u64, mut packet: Packet) -> u64 {
        let port = &mut self.ports[from];
        let mut fate = Fate::Deliver;
        if let Some(hook) = &mut port.hook {
            let before = packet.to_frame();
            let mut frame = before.clone();
            fate = hook(to_instant(now_ns), &mut frame);
            if frame != before {
                packet = Packet::from_frame(frame);
            }
        }
        let up = port.up;
        let pipe = &mut self.pipes[up].1;
        let record = self.records.is_some().then(|| Record {
            at: to_instant(pipe.idle_at_ns.max(now_ns)),
            from,
            frame: packet.to_frame(),
            lost: false,
        });
        let mut passage = pipe.enter(now_ns, packet);
        match fate {
            Fate::Deliver => {}
            Fate::Drop => passage.arrivals.clear(),
            Fate::Delay(more) => {
                for (at_ns, _) in &mut passage.arrivals {
                    *at_ns += super::link::nanos(more);
                }
            }
            Fate::Duplicate => {
                if let Some(first) = passage.arrivals.first().cloned() {
                    let _ = passage.arrivals.push(first);
                }
            }
        }
        if let (Some(records), Some(record)) = (&mut self.records, record) {
            records.push(Record {
                lost: passage.arrivals.is_empty() && !pipe.is_queued(),
                ..record
            });
        }
        let end_ns = passage.end_ns;
        self.follow(up, now_ns, passage);
        end_ns
    }

    /// Puts a packet into a pipe behind the first, where it may have to be cut.
    fn pass(&mut self, pipe: usize, now_ns: u64, packet: Packet) {
        if self.pipes[pipe].1.link.whole_segments || packet.mss_bytes.is_none() {
            let passage = self.pipes[pipe].1.enter(now_ns, packet);
            self.follow(pipe, now_ns, passage);
            return;
        }
        for packet in packet.cut() {
            let passage = self.pipes[pipe].1.enter(now_ns, packet);
            self.follow(pipe, now_ns, passage);
        }
    }

    /// Sees to what comes out of a pipe, and when.
    fn follow(&mut self, pipe: usize, now_ns: u64, passage: Passage) {
        let Passage {
            end_ns: _,
            arrivals,
            ready_at_ns,
        } = passage;
        for (at_ns, packet) in arrivals {
            if at_ns <= now_ns {
                self.arrive(pipe, now_ns, packet);
            } else {
                self.push(at_ns, Happening::Arrive(pipe, packet));
            }
        }
        if let Some(at_ns) = ready_at_ns {
            self.push(at_ns, Happening::Ready(pipe));
        }
    }

    /// A packet comes out of a pipe: it goes on to the host it is for, or to all others.
    fn arrive(&mut self, pipe: usize, now_ns: u64, packet: Packet) {
        let (side, from) = match self.pipes[pipe].0 {
            Place::Down(to) => {
                let nic = &self.ports[to].host.nic;
                nic.deliver(packet, to_instant(now_ns));
                return;
            }
            Place::Up(from) => (self.ports[from].side, Some(from)),
            Place::Middle(Side::Left) => (Side::Right, None),
            Place::Middle(Side::Right) => (Side::Left, None),
        };
        let Some(&dst) = packet.front.first_chunk::<6>() else {
            return;
        };
        let group = dst[0] & 1 == 1;
        let mut across = false;
        let mut first = None;
        for index in 0..self.ports.len() {
            let port = &self.ports[index];
            if from == Some(index) || !(group || port.mac == dst) {
                continue;
            }
            if port.side != side {
                across = true;
            } else if let Some(first) = first.replace(port.down) {
                self.pass(first, now_ns, packet.clone());
            }
        }
        if let (true, Some(_)) = (across, from) {
            let middle = match side {
                Side::Left => LEFT_TO_RIGHT,
                Side::Right => RIGHT_TO_LEFT,
            };
            if let Some(first) = first.replace(middle) {
                self.pass(first, now_ns, packet.clone());
            }
        }
        if let Some(first) = first {
            self.pass(first, now_ns, packet);
        }
    }
}

impl Port {
    /// Whether the stack must be polled; forgets what was known to want it.
    fn take_wish(&self, now: Instant) -> bool {
        let due = self.deadline.is_some_and(|deadline| deadline <= now);
        let interrupt = self.host.nic.take_interrupt(now);
        due || interrupt || self.more || self.host.net.poll_wanted()
    }

    /// When the stack must be polled next.
    fn next(&self) -> Option<Instant> {
        let wanted = (self.more || self.host.net.poll_wanted()).then_some(Instant::ZERO);
        let next = [wanted, self.deadline, self.host.nic.next_interrupt()];
        let next = next.into_iter().flatten().min()?;
        Some(next.max(to_instant(self.cpu_idle_at_ns)))
    }

    /// Checks what must hold after every step.
    fn audit(&self, now: Instant) {
        let Host { net, nic, id } = &self.host;
        net.with(|stack| {
            if let Err(fault) = stack.tcp().audit(|owner| nic.bytes_held(owner)) {
                panic!("host {id} at {now}: {fault}");
            }
        });
    }
}

/// The first microsecond that is not before `ns`.
fn to_instant(ns: u64) -> Instant {
    Instant::from_micros(ns.div_ceil(1000))
}

#[cfg(test)]
mod tests;
