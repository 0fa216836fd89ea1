//! The stack: all layers over one device, and the step that moves them.

mod icmp;
mod input;
mod udp;

use crate::{
    counters::Counters,
    device::{Device, RxMemory, Slice},
    ip::{Ip, output::Output},
    siphash::siphash24,
    tcp::Tcp,
    time::{Duration, Instant},
    udp::Udp,
    wire::{arp, ethernet::Mac},
};
use core::net::Ipv4Addr;

pub use crate::ip::ConfigError;
use crate::ip::interface::Interface;

/// Most frames taken in by one [`Stack::poll`]: long enough to use the caches well, short enough
/// that timers and output are not held up.
const RX_BUDGET: usize = 64;

/// Most bytes taken in by one [`Stack::poll`]: two of the largest frames. Acknowledgments go out
/// at its end, and a sender that waits for them for as long as it takes to work through a full
/// ring stands still meanwhile.
const RX_BUDGET_BYTES: usize = 128 << 10;

/// How long after a poll a waiting UDP sender tries again if nothing happens: pages come back
/// without an event.
const SEND_RETRY_TIME: Duration = Duration::from_millis(10);

/// How a stack is set up.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Its address.
    pub address: Ipv4Addr,
    /// Length of its subnet's prefix, in bits: 1 to 32.
    pub prefix: u8,
    /// The router to all other subnets.
    pub gateway: Option<Ipv4Addr>,
    /// Random bytes that nobody else knows, new at every boot: key of sequence numbers, ports and
    /// identifications.
    pub secret: [u8; 16],
}

/// What [`Stack::poll`] leaves to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled {
    /// Frames may be waiting still, or data to be sent: poll again before going idle.
    pub more: bool,
    /// When to poll again at the latest, if nothing happens before.
    pub deadline: Option<Instant>,
}

/// A TCP/IP stack over a device.
pub struct Stack<D: Device> {
    device: D,
    ip: Ip<D::Page>,
    tcp: Tcp<D::Page>,
    udp: Udp<D::Page>,
    counters: Counters,
    now: Instant,
    poll_wanted: bool,
    /// When waiting UDP senders try again, whatever happens.
    send_retry_at: Option<Instant>,
    link_up: bool,
}

impl<D: Device> Stack<D> {
    /// A stack over `device`.
    pub fn new(device: D, config: &Config) -> Result<Self, ConfigError> {
        let &Config {
            address,
            prefix,
            gateway,
            ref secret,
        } = config;
        // Each user of the secret gets a key of its own.
        let key = |purpose: &[u8; 2]| {
            let half = |i: u8| siphash24(secret, &[purpose[0], purpose[1], i]).to_le_bytes();
            let mut key = [0; 16];
            key[..8].copy_from_slice(&half(0));
            key[8..].copy_from_slice(&half(1));
            key
        };
        Ok(Self {
            device,
            ip: Ip::new(Interface::new(address, prefix, gateway)?, key(b"ip")),
            tcp: Tcp::new(key(b"tc")),
            udp: Udp::new(siphash24(secret, b"udp")),
            counters: Counters::default(),
            now: Instant::ZERO,
            poll_wanted: true,
            send_retry_at: None,
            link_up: false,
        })
    }

    /// One step: takes back completed frames, takes in received ones up to a budget, runs timers,
    /// sends what may be sent and publishes it at once.
    pub fn poll(&mut self, now: Instant) -> Polled {
        self.now = now;
        self.poll_wanted = false;
        let mut room = self.send_retry_at.is_some_and(|at| at <= now);
        let Self { device, tcp, .. } = self;
        device.complete(now, &mut |completion| {
            room = true;
            tcp.completed(now, completion);
        });
        self.watch_link();
        let (received, more) = self.receive();
        if self.device.rx_memory() == RxMemory::Spent {
            self.tcp.prune(now);
        }
        self.run_ip();
        let (tcp, mut output) = self.tcp_and_output();
        tcp.poll(now, &mut output);
        self.device.flush(now);
        if room || received > 0 {
            self.udp.wake_senders();
        }
        self.send_retry_at = self.udp.send_waiting.then_some(now + SEND_RETRY_TIME);
        let deadlines = [self.ip.deadline(), self.tcp.deadline(), self.send_retry_at];
        Polled {
            more: more || self.tcp.has_left_off(),
            deadline: deadlines.into_iter().flatten().min(),
        }
    }

    /// The time of the last poll.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Our address.
    pub fn address(&self) -> Ipv4Addr {
        self.ip.interface.address
    }

    /// Tells that the loop had nothing to do and slept since the last poll. Without it, this
    /// processor counts as what bounds the flows that wait for the device.
    pub fn slept(&mut self) {
        self.tcp.slept();
    }

    /// Asks the loop for a poll soon: there is something to send.
    pub fn want_poll(&mut self) {
        self.poll_wanted = true;
    }

    /// Whether [`Stack::want_poll`] was called since the last poll.
    pub fn poll_wanted(&self) -> bool {
        self.poll_wanted
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device, to get pages or its events from.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// TCP.
    pub fn tcp(&self) -> &Tcp<D::Page> {
        &self.tcp
    }

    /// TCP, with the device whose pages its data lies in.
    pub fn tcp_and_device(&mut self) -> (&mut Tcp<D::Page>, &mut D) {
        (&mut self.tcp, &mut self.device)
    }

    /// What the layers below TCP have counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// All counters of the stack, under the names that `nstat` shows.
    pub fn nstat(&self) -> impl Iterator<Item = (&'static str, u64)> + use<D> {
        // TCP does not see segments with a wrong checksum; Linux counts them as errors too.
        let unseen = self.counters.tcp_in_csum_errors;
        let tcp = self.tcp.counters().iter();
        self.counters
            .iter()
            .chain(tcp.map(move |(name, value)| match name {
                "TcpInErrs" | "TcpInSegs" => (name, value + unseen),
                _ => (name, value),
            }))
    }

    /// UDP.
    pub(crate) fn udp_mut(&mut self) -> &mut Udp<D::Page> {
        &mut self.udp
    }

    /// TCP, with the way out.
    fn tcp_and_output(&mut self) -> (&mut Tcp<D::Page>, Output<'_, D>) {
        let Self {
            device,
            ip,
            tcp,
            udp: _,
            counters,
            now,
            poll_wanted: _,
            send_retry_at: _,
            link_up: _,
        } = self;
        let output = Output {
            now: *now,
            capabilities: device.capabilities(),
            device,
            ip,
            counters,
        };
        (tcp, output)
    }

    /// The way out.
    fn output(&mut self) -> Output<'_, D> {
        self.tcp_and_output().1
    }

    /// Notices that the link came up: neighbours may be others now, and must hear where we are.
    fn watch_link(&mut self) {
        let up = self.device.link_up();
        if up && !self.link_up {
            self.ip.neighbours.clear();
            self.announce();
        }
        self.link_up = up;
    }

    /// Tells all neighbours our Ethernet address (RFC 5227 §2.3).
    fn announce(&mut self) {
        let address = self.ip.interface.address;
        let announcement = arp::Packet {
            operation: arp::Operation::Request,
            sender_mac: Mac(self.device.mac()),
            sender: address,
            target_mac: Mac::default(),
            target: address,
        };
        self.output().send_arp(&announcement, Mac::BROADCAST);
    }

    /// Takes in frames up to the budget; returns how many, and whether there may be more.
    fn receive(&mut self) -> (usize, bool) {
        let mut bytes = 0;
        for received in 0..RX_BUDGET {
            if bytes >= RX_BUDGET_BYTES {
                return (received, true);
            }
            let Some(mut frame) = self.device.receive(self.now) else {
                return (received, false);
            };
            bytes += frame.slices.iter().map(Slice::len).sum::<usize>();
            self.frame(&mut frame);
        }
        (RX_BUDGET, true)
    }

    /// Runs the network layer's timers and sends what waits there.
    fn run_ip(&mut self) {
        let now = self.now;
        while let Some(request) = self.ip.neighbours.due(now) {
            self.output().send_arp_request(request);
        }
        while let Some(expired) = self.ip.reassembly.expire(now) {
            self.reassembly_expired(expired);
        }
        self.output().flush_outbox();
    }
}

#[cfg(test)]
mod tests;
