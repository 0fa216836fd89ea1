//! Two stacks run the gauntlet: a network, machines and applications drawn from bytes, and what
//! must hold whatever they are.
//!
//! Property tests and fuzzers draw the bytes. After every step of a stack [`Network::audit`]
//! looks at its connections; at the end all bytes have arrived, once and in order, and nothing is
//! left in any ring or pool.

use super::{
    CoDelConfig, CompletionTime, Cost, Host, Link, Loss, Network, NicConfig, Random, Reorder,
    SimDevice, source::Source,
};
use crate::{
    socket::{TcpListener, TcpStream},
    sysctl,
    tcp::{Config, Options},
    time::{Duration, Instant},
};
use alloc::{format, rc::Rc, string::String, vec::Vec};
use core::{
    cell::Cell,
    net::{Ipv4Addr, SocketAddr},
};
use embedded_io_async::{BufRead, Write};

/// The server's port.
const PORT: u16 = 7;
/// Longer than any run that gets on takes; retransmissions back off to two minutes.
const PATIENCE: Duration = Duration::from_hours(4);
/// TIME-WAIT, which each FIN that comes again begins anew: on a bad path that takes a while.
const AFTERMATH: Duration = Duration::from_mins(30);

impl Source<'_> {
    fn link(&mut self) -> Link {
        let mut link = Link {
            rate_bps: Some(1_000_000_000),
            delay: self.micros(16),
            ..Link::default()
        };
        if self.chance(100) {
            link.rate_bps = self.chance(200).then(|| 500_000 << self.upto(12));
        }
        match self.upto(7) {
            1 => link.queue_bytes = Some(10_000 + self.magnitude(20)),
            2 => link.queue_packets = Some(2 + self.magnitude(9) as u32),
            3 => {
                link.codel = Some(CoDelConfig {
                    target: Duration::from_micros(100 + self.magnitude(13)),
                    interval: Duration::from_micros(2000 + self.magnitude(17)),
                    ecn: self.chance(128),
                });
            }
            _ => {}
        }
        link.mark_bytes = self.chance(40).then(|| self.magnitude(17));
        link.whole_segments = self.chance(60);
        if self.chance(60) {
            link.jitter = self.micros(14);
        }
        link.loss = match self.upto(5) {
            1 | 2 => Loss::Random {
                ppm: self.upto(120_000) as u32,
            },
            3 => Loss::Burst {
                begin_ppm: self.upto(10_000) as u32,
                end_ppm: 50_000 + self.upto(900_000) as u32,
                loss_ppm: self.upto(1_000_000) as u32,
            },
            _ => Loss::None,
        };
        if self.chance(100) {
            link.reorder = Reorder {
                ppm: self.upto(300_000) as u32,
                by: self.micros(15),
            };
        }
        if self.chance(60) {
            link.duplicate_ppm = self.upto(100_000) as u32;
        }
        if self.chance(40) {
            link.ack_compression = self.micros(14);
        }
        link
    }

    fn completion(&mut self) -> CompletionTime {
        let (a, b) = (self.micros(13), self.micros(13));
        match self.upto(5) {
            1 => CompletionTime::Fixed(a),
            2 => CompletionTime::Uniform(a.min(b), a.max(b)),
            3 => CompletionTime::Mixed {
                usual: a,
                rare: b * 8,
                rare_ppm: self.upto(200_000) as u32,
            },
            4 => CompletionTime::Batched { after: a, every: b },
            _ => CompletionTime::AfterSent(a),
        }
    }

    fn nic(&mut self) -> NicConfig {
        let mut nic = if self.chance(60) {
            NicConfig::plain()
        } else {
            NicConfig::default()
        };
        nic.gro = self.chance(128);
        if self.chance(80) {
            nic.completion = self.completion();
        }
        if self.chance(60) {
            nic.backend = Cost {
                per_packet: self.micros(7),
                per_byte_ps: self.upto(100_000),
            };
        }
        if self.chance(60) {
            nic.cpu.per_packet = self.micros(6);
        }
        if self.chance(60) {
            nic.tx_slots = 19 + self.upto(300) as usize;
        }
        if self.chance(40) {
            nic.rx_frames = 8 + self.upto(300) as usize;
        }
        if self.chance(40) {
            nic.rx_coalesce = self.micros(8);
        }
        if self.chance(60) {
            nic.mtu_bytes = 576 + self.upto(8424) as u16;
        }
        nic
    }

    fn config(&mut self, config: &mut Config) {
        let control = self.pick(&["cubic", "reno"]);
        // A stack without one of them is tested with the others.
        let _ = sysctl::write(config, "net.ipv4.tcp_congestion_control", control);
        config.sack = !self.chance(60);
        config.timestamps = !self.chance(60);
        config.window_scaling = !self.chance(40);
        // Nobody gives up: this is about what must hold while they go on.
        config.rto_max = Duration::from_secs(1 + self.upto(20));
        config.retries2 = u8::MAX;
        config.orphan_retries = u8::MAX;
        config.syn_retries = u8::MAX;
        config.synack_retries = u8::MAX;
        if self.chance(100) {
            config.rcvbuf_bytes = 500 + self.magnitude(21) as u32;
        }
        if self.chance(100) {
            config.sndbuf_bytes = 500 + self.magnitude(21) as u32;
        }
    }

    fn talk(&mut self) -> Talk {
        Talk {
            bytes: self.magnitude(18) - 1,
            write_bytes: 1 + self.magnitude(16) as usize,
            pause_every: self.upto(20),
            pause: self.micros(18),
        }
    }
}

/// What one side of a connection says.
#[derive(Clone, Copy, Debug)]
struct Talk {
    bytes: u64,
    write_bytes: usize,
    /// How many writes there are between two pauses; 0: there is none.
    pause_every: u64,
    pause: Duration,
}

/// Byte `position` of stream `id`.
fn pattern(id: u64, position: u64) -> u8 {
    let mixed = (position ^ id << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// Decides from `seed` what [`run`] decides from bytes.
pub fn run_seed(seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let bytes: Vec<u8> = (0..32).flat_map(|_| random.draw().to_le_bytes()).collect();
    run(&bytes)
}

/// Runs what the bytes decide for; the error says what did not hold. What an audit finds, and
/// what the stack itself asserts, panics.
pub fn run(bytes: &[u8]) -> Result<(), String> {
    let mut source = Source::new(bytes);
    let mut network = Network::with_seed(u64::from(source.byte()));
    network.audit();
    let hosts: Vec<Host> = (1..=2)
        .map(|last| {
            let (link, nic) = (source.link(), source.nic());
            let host = network.add_host(nic, last, link);
            host.net.with(|stack| {
                let (tcp, _) = stack.tcp_and_device();
                source.config(tcp.config_mut());
            });
            host
        })
        .collect();
    let connections = 1 + source.upto(2);
    let nodelay = source.chance(128);
    let change = move |options: &mut Options| options.nodelay = nodelay;
    let [a, b] = &hosts[..] else {
        return Err(String::from("there are two hosts"));
    };
    let server = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 2), PORT));
    let listener =
        TcpListener::bind_with(&b.net, server, 4, change).map_err(|error| format!("{error}"))?;
    let talks: Vec<(Talk, Talk)> = (0..connections)
        .map(|_| (source.talk(), source.talk()))
        .collect();
    let good = Rc::new(Cell::new(0_u64));
    let clock = network.clock();
    // The first bytes on a connection say which it is: the order of arrival need not be that of
    // the calls.
    for (id, (say, hear)) in (0..).zip(talks.clone()) {
        let (net, clock, good) = (a.net.clone(), clock.clone(), Rc::clone(&good));
        network.spawn(async move {
            let Ok(mut stream) = TcpStream::connect_with(&net, None, server, change).await else {
                return;
            };
            if stream.write_all(&[id as u8]).await.is_ok() {
                side(stream, [id, id + 8], [say, hear], &clock, &good).await;
            }
        });
    }
    let spawner = network.spawner();
    let (answers, server_good, server_clock) = (talks, Rc::clone(&good), clock.clone());
    network.spawn(async move {
        for _ in 0..connections {
            let Ok((mut stream, _)) = listener.accept().await else {
                return;
            };
            let (clock, good) = (server_clock.clone(), Rc::clone(&server_good));
            let answers = answers.clone();
            spawner.spawn(async move {
                let Some(&id) = stream.fill_buf().await.ok().and_then(<[u8]>::first) else {
                    return;
                };
                stream.consume(1);
                let Some(&(hear, say)) = answers.get(usize::from(id)) else {
                    return;
                };
                let id = u64::from(id);
                side(stream, [id + 8, id], [say, hear], &clock, &good).await;
            });
        }
    });
    mishaps(&mut source, &mut network, &hosts);
    if !network.run_tasks(PATIENCE) {
        let infos = hosts.iter().map(|host| {
            host.net.with(|stack| {
                let infos: Vec<_> = stack.tcp().connections().map(|(.., info)| info).collect();
                infos
            })
        });
        return Err(format!("stuck: {:#?}", infos.collect::<Vec<_>>()));
    }
    let sides = 2 * connections;
    if good.get() != sides {
        return Err(format!("{} of {sides} sides read it all", good.get()));
    }
    network.run_for(AFTERMATH);
    for host in &hosts {
        let (pages, slots) = (host.nic.pages_in_use(), host.nic.slots_in_use());
        let connections = host.net.with(|stack| stack.tcp().count());
        if (pages, slots, connections) != (0, 0, (0, 0)) {
            return Err(format!(
                "expected nothing left on host {}, got {pages} pages, {slots} slots, \
                 {connections:?} connections and those in TIME-WAIT",
                host.id
            ));
        }
    }
    Ok(())
}

/// Changes of the machines on the way.
fn mishaps(source: &mut Source<'_>, network: &mut Network, hosts: &[Host]) {
    for host in hosts {
        let at = Instant::ZERO + source.micros(20);
        match source.upto(6) {
            1 => {
                let span = source.micros(18);
                let nic = host.nic.clone();
                network.at(at, move |network| nic.stall(network.now() + span));
            }
            2 => {
                let completion = source.completion();
                let nic = host.nic.clone();
                network.at(at, move |_| nic.set_completion(completion));
            }
            3 => {
                let (nic, again) = (host.nic.clone(), host.nic.clone());
                let until = at + source.micros(20);
                network.at(at, move |_| nic.set_link(false));
                network.at(until, move |_| again.set_link(true));
            }
            4 => {
                let (link, host) = (source.link(), host.clone());
                network.at(at, move |network| network.set_link(&host, link));
            }
            _ => {}
        }
    }
}

/// Says what there is to say and hears what there is to hear, at the same time; counts it as good
/// when all of it came.
async fn side(
    stream: TcpStream<SimDevice>,
    [own, peer]: [u64; 2],
    [say, hear]: [Talk; 2],
    clock: &super::Clock,
    good: &Cell<u64>,
) {
    let (mut reader, mut writer) = stream.into_split();
    let speak = async move {
        let mut buffer = Vec::new();
        let (mut position, mut writes) = (0, 0);
        while position < say.bytes {
            let len = (say.bytes - position).min(say.write_bytes as u64);
            buffer.clear();
            buffer.extend((position..position + len).map(|at| pattern(own, at)));
            if writer.write_all(&buffer).await.is_err() {
                return;
            }
            position += len;
            writes += 1;
            if say.pause_every > 0 && writes % say.pause_every == 0 {
                clock.sleep(say.pause).await;
            }
        }
        writer.shutdown();
    };
    let listen = async {
        let mut position = 0;
        loop {
            let Ok(bytes) = reader.fill_buf().await else {
                return false;
            };
            let len = bytes.len();
            if len == 0 {
                return position == hear.bytes;
            }
            for (&byte, at) in bytes.iter().zip(position..) {
                assert_eq!(byte, pattern(peer, at), "byte {at} of stream {peer}");
            }
            reader.consume(len);
            position += len as u64;
        }
    };
    let ((), all) = futures(speak, listen).await;
    if all {
        good.set(good.get() + 1);
    }
}

/// Runs two futures at once.
async fn futures<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
    let (mut a, mut b) = (core::pin::pin!(a), core::pin::pin!(b));
    let (mut got_a, mut got_b) = (None, None);
    core::future::poll_fn(move |cx| {
        use core::task::Poll;
        if got_a.is_none()
            && let Poll::Ready(value) = a.as_mut().poll(cx)
        {
            got_a = Some(value);
        }
        if got_b.is_none()
            && let Poll::Ready(value) = b.as_mut().poll(cx)
        {
            got_b = Some(value);
        }
        match (got_a.take(), got_b.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (a, b) => {
                (got_a, got_b) = (a, b);
                Poll::Pending
            }
        }
    })
    .await
}
