//! Hosts, flows and clients of a scenario, and their run.

use super::{args::Scenario, report};
use paceline_stack::{
    sim::{
        Host, Link, Network, Side,
        apps::{self, Dialogue, Exchanges, Meter},
    },
    sysctl,
    time::{Duration, Instant},
};
use std::time::Instant as WallClock;

/// Port of the first bulk server; each flow has its own.
const BULK_PORT: u16 = 5001;
/// Port of the server for requests.
const DIALOGUE_PORT: u16 = 12_865;

/// What a run leaves behind.
pub(crate) struct Outcome {
    pub(crate) network: Network,
    pub(crate) senders: Vec<Host>,
    pub(crate) receiver: Host,
    /// Of each flow.
    pub(crate) meters: Vec<Meter>,
    pub(crate) exchanges: Option<Exchanges>,
    pub(crate) took: std::time::Duration,
}

/// Runs a scenario: senders on the left, the receiver on the right, the bottleneck between them.
/// Each flow has a host of its own, so that nothing but the bottleneck is shared.
pub(crate) fn run(scenario: &Scenario) -> Result<(), String> {
    let mut network = Network::with_seed(scenario.seed);
    let hosts = scenario.flows.max(1);
    let alone = hosts == 1;
    let wire = Link {
        whole_segments: true,
        ..Link::default()
    };
    let back = Link {
        delay: scenario.rtt / 2,
        ack_compression: scenario.path.ack_compression,
        whole_segments: true,
        ..Link::default()
    };
    let there = Link {
        delay: scenario.rtt.saturating_sub(scenario.rtt / 2),
        ack_compression: Duration::ZERO,
        ..scenario.path
    };
    // A single sender's NIC is the bottleneck itself where there is no queue before that.
    let (up, middle) = if alone { (there, wire) } else { (wire, there) };
    let senders: Vec<Host> = (0..hosts)
        .map(|index| network.add_host(scenario.nic, index as u8 + 2, up))
        .collect();
    let receiver = network.add_host(scenario.nic, 1, back);
    network.set_side(&receiver, Side::Right);
    network.set_middle(middle, wire);
    for (host, index) in senders.iter().zip(0..) {
        set(host, scenario, index)?;
    }
    if scenario.csv.is_some() || scenario.svg.is_some() {
        for host in &senders {
            network.trace(host, scenario.every);
        }
    }
    if scenario.pcap.is_some() {
        network.record();
    }
    let (sndbuf, rcvbuf) = (scenario.sndbuf, scenario.rcvbuf);
    let mut meters = Vec::new();
    for (host, index) in senders.iter().take(scenario.flows).zip(0..) {
        let port = BULK_PORT + index;
        meters.push(apps::sink(&mut network, &receiver, port, |options| {
            options.rcvbuf_bytes = rcvbuf;
        }));
        let (host, receiver) = (host.clone(), receiver.clone());
        let on_off = scenario.on_off;
        let begin = Instant::ZERO + scenario.stagger * u32::from(index);
        network.at(begin, move |network| {
            let change = move |options: &mut paceline_stack::tcp::Options| {
                options.sndbuf_bytes = sndbuf;
            };
            let server = (&receiver, port);
            match on_off {
                Some((burst, off)) => apps::on_off(network, &host, server, burst, off, change),
                None => apps::bulk(network, &host, server, change),
            }
        });
    }
    let exchanges = scenario.dialogue.map(|(request_bytes, response_bytes)| {
        let dialogue = Dialogue {
            request_bytes,
            response_bytes,
            think: scenario.think,
            count: None,
            parallel: scenario.parallel,
        };
        // The server sends where the bulk does: that is the way with the bottleneck.
        let server = (&senders[0], DIALOGUE_PORT);
        dialogue.serve(&mut network, server, |options| options.nodelay = true);
        dialogue.ask(&mut network, &receiver, server, |options| {
            options.nodelay = true;
        })
    });
    let start = WallClock::now();
    network.run_for(scenario.span);
    report::tell(
        scenario,
        Outcome {
            network,
            senders,
            receiver,
            meters,
            exchanges,
            took: start.elapsed(),
        },
    )
}

/// Sets what the scenario says of the sender of this index.
fn set(host: &Host, scenario: &Scenario, index: usize) -> Result<(), String> {
    let control = match scenario.controls.len() {
        0 => None,
        count => Some((
            String::from("net.ipv4.tcp_congestion_control"),
            scenario.controls[index % count].clone(),
        )),
    };
    host.net.with(|stack| {
        let (tcp, _) = stack.tcp_and_device();
        for (name, value) in scenario.settings.iter().chain(&control) {
            sysctl::write(tcp.config_mut(), name, value).map_err(|error| error.to_string())?;
        }
        Ok(())
    })
}
