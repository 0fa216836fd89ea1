//! One stack under a barrage: frames drawn from bytes, some of them anything, most of them nearly
//! what its connections wait for.
//!
//! As in [`super::gauntlet`], property tests and fuzzers draw the bytes. The stack must neither
//! panic nor, [`Network::audit`] looks, lose count; and when its applications are done, nothing
//! may be left in any ring, pool or table.

mod peer;
mod segment;

use super::{
    Clock, Fate, Host, Link, Network, NicConfig, SimDevice, packet::Packet, page::Part,
    source::Source,
};
use crate::{
    device::MAX_RX_SLICES,
    net::Net,
    socket::{TcpListener, TcpStream, UdpSocket},
    tcp::{Keepalive, Options},
    time::{Duration, Instant},
};
use alloc::{format, rc::Rc, string::String, vec, vec::Vec};
use core::{
    cell::RefCell,
    net::{Ipv4Addr, SocketAddr},
    pin::pin,
    task::Poll,
};
use embedded_io_async::{Read, Write};
use peer::Peer;

/// The address the frames come from.
const PEER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// The stack's.
const OURS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Where what comes is sent back, by TCP and UDP.
const ECHO_PORT: u16 = 7;
/// The peer's, to which the stack connects.
const DISCARD_PORT: u16 = 9;
/// Where data without end is sent.
const CHARGEN_PORT: u16 = 19;
/// Most frames of a run.
const MAX_FRAMES: usize = 200;
/// When the applications end, whatever they are at.
const CLOSING_TIME: Instant = Instant::from_micros(2 * 3600 * 1_000_000);
/// The longest that anything lives on: zero windows are probed for a quarter of an hour.
const AFTERMATH: Duration = Duration::from_hours(1);

/// Sends what the bytes decide for; the error says what did not hold. What an audit finds, and
/// what the stack itself asserts, panics.
pub fn run(bytes: &[u8]) -> Result<(), String> {
    let mut source = Source::new(bytes);
    let mut network = Network::new();
    network.audit();
    let mut nic = if source.chance(128) {
        NicConfig::plain()
    } else {
        NicConfig::default()
    };
    nic.gro = source.chance(128);
    if source.chance(60) {
        nic.pages = 64 + source.upto(500) as usize;
    }
    let host = network.add_host(nic, 1, Link::default());
    let peer = Rc::new(RefCell::new(Peer::default()));
    let (witness, wire) = (Rc::clone(&peer), host.nic.clone());
    let known = !source.chance(10);
    network.hook(&host, move |_, frame| {
        if let Some(reply) = witness.borrow_mut().note(&frame.bytes)
            && known
        {
            wire.deliver(Packet::from_frame(reply), Instant::ZERO);
        }
        Fate::Deliver
    });
    let clock = network.clock();
    applications(&mut network, &host.net, &clock)?;
    for _ in 0..MAX_FRAMES {
        if source.is_spent() || network.now() >= CLOSING_TIME {
            break;
        }
        mishap(&mut source, &host);
        let frames = peer.borrow_mut().frames(&mut source, network.now());
        for (bytes, segment_bytes) in frames {
            // Lost for want of a page or slot is lost on the wire.
            host.nic
                .deliver(in_pieces(&mut source, bytes, segment_bytes), network.now());
        }
        let bits = source.pick(&[0, 12, 20, 28]);
        network.run_for(source.micros(bits));
    }
    host.nic.set_link(true);
    network.run_until(CLOSING_TIME.max(network.now()) + AFTERMATH, || false);
    let (pages, slots, tasks) = (
        host.nic.pages_in_use(),
        host.nic.slots_in_use(),
        network.tasks(),
    );
    let connections = host.net.with(|stack| stack.tcp().count());
    if (pages, slots, tasks, connections) != (0, 0, 0, (0, 0)) {
        return Err(format!(
            "expected nothing left, got {pages} pages, {slots} slots, {tasks} tasks, \
             {connections:?} connections and those in TIME-WAIT"
        ));
    }
    Ok(())
}

/// The frame as it may lie in memory: the first slot ends anywhere, within a header too.
fn in_pieces(source: &mut Source<'_>, bytes: Vec<u8>, segment_bytes: Option<u16>) -> Packet {
    let first = if source.chance(100) {
        source.upto(100) as usize
    } else {
        bytes.len()
    };
    let mut front = bytes;
    let rest = front.split_off(first.min(front.len()));
    let mut payload = Vec::new();
    if !rest.is_empty() {
        let end = rest.len();
        let memory = Rc::from(rest);
        // Few enough slots for a frame.
        let step = (1 + source.magnitude(12) as usize).max(end.div_ceil(MAX_RX_SLICES - 2));
        payload.extend((0..end).step_by(step).map(|start| Part {
            memory: Rc::clone(&memory),
            start,
            end: (start + step).min(end),
        }));
    }
    Packet {
        front,
        payload,
        mss_bytes: segment_bytes,
        partial: None,
    }
}

/// What happens to the machine now and then.
fn mishap(source: &mut Source<'_>, host: &Host) {
    if !source.chance(8) {
        return;
    }
    match source.upto(2) {
        0 => host.nic.set_link(false),
        1 => host.nic.set_link(true),
        _ => {
            let until = host.net.with(|stack| stack.now()) + source.micros(22);
            host.nic.stall(until);
        }
    }
}

/// Starts servers and a client, all of which end at closing time.
fn applications(network: &mut Network, net: &Net<SimDevice>, clock: &Clock) -> Result<(), String> {
    for port in [ECHO_PORT, CHARGEN_PORT] {
        let listener = listen(net, port)?;
        let (spawner, server_clock) = (network.spawner(), clock.clone());
        network.spawn(before_closing(clock.clone(), async move {
            while let Ok((stream, _)) = listener.accept().await {
                let clock = server_clock.clone();
                match port {
                    ECHO_PORT => spawner.spawn(before_closing(clock, echo(stream))),
                    _ => spawner.spawn(before_closing(clock, generate(stream))),
                }
            }
        }));
    }
    let client_net = net.clone();
    network.spawn(before_closing(clock.clone(), async move {
        let remote = SocketAddr::from((PEER, DISCARD_PORT));
        if let Ok(stream) = TcpStream::connect(&client_net, remote).await {
            generate(stream).await;
        }
    }));
    let socket = UdpSocket::bind(net, SocketAddr::from((OURS, ECHO_PORT)))
        .map_err(|error| format!("{error}"))?;
    network.spawn(before_closing(clock.clone(), async move {
        let mut buffer = vec![0; 3000];
        loop {
            if let Ok((len, from)) = socket.recv_from(&mut buffer).await {
                let _ = socket.send_to(&buffer[..len], from).await;
            }
        }
    }));
    Ok(())
}

fn listen(net: &Net<SimDevice>, port: u16) -> Result<TcpListener<SimDevice>, String> {
    let change = |options: &mut Options| {
        options.keepalive = Some(Keepalive {
            time: Duration::from_mins(1),
            ..Keepalive::default()
        });
        options.nodelay = port == ECHO_PORT;
    };
    TcpListener::bind_with(net, SocketAddr::from((OURS, port)), 4, change)
        .map_err(|error| format!("{error}"))
}

async fn echo(mut stream: TcpStream<SimDevice>) {
    let mut buffer = vec![0; 2000];
    while let Ok(len @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..len]).await.is_err() {
            return;
        }
    }
}

async fn generate(mut stream: TcpStream<SimDevice>) {
    let line = [b'x'; 10_000];
    while stream.write_all(&line).await.is_ok() {}
}

/// Drops `future` at closing time, with all it holds.
async fn before_closing(clock: Clock, future: impl Future<Output = ()>) {
    let mut end = pin!(clock.sleep(CLOSING_TIME.since(clock.now())));
    let mut future = pin!(future);
    core::future::poll_fn(|cx| {
        if end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        future.as_mut().poll(cx)
    })
    .await;
}
