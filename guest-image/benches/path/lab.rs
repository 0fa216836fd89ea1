//! Hosts, and what is measured between them.

use crate::options::Options;
use crate::ours::{self, Ours};
use crate::table;
use paceline_guest::iperf3::PORT;
use paceline_host::{Emulator, Namespace, Output, Report, priority, socket_pair, tap};
use paceline_stack::sim::{figures::bulk::Cell, pcap};
use paceline_stack::time::Instant;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Paceline's address, in the /24 of all.
pub(crate) const OURS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);
/// Linux's addresses.
const LINUX: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];
/// Their interfaces.
const INTERFACE: &str = "path0";

/// Buffers of both: room for any window here.
pub(crate) const BUFFERS: [(&str, &str); 2] = [
    ("net.ipv4.tcp_rmem", "4096 262144 33554432"),
    ("net.ipv4.tcp_wmem", "4096 262144 16777216"),
];

/// No memory of earlier turns.
const NO_METRICS: (&str, &str) = ("net.ipv4.tcp_no_metrics_save", "1");

/// How long a path lasts when its hosts are done, beside two round trips.
const LINGER: Duration = Duration::from_millis(50);

/// What a turn may take beside its time.
const OVERTIME: Duration = Duration::from_secs(30);

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pairing {
    LinuxToLinux,
    OursToLinux,
    LinuxToOurs,
}

impl Pairing {
    pub(crate) const ALL: [Self; 3] = [Self::LinuxToLinux, Self::OursToLinux, Self::LinuxToOurs];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::LinuxToLinux => "Linux to Linux",
            Self::OursToLinux => "ours to Linux",
            Self::LinuxToOurs => "Linux to ours",
        }
    }
}

/// What a turn gave.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// Payload received, in Mbit/s.
    pub(crate) mbps: f64,
    /// Segments that the sender has sent again.
    pub(crate) retransmits: u64,
    pub(crate) report: Report,
}

impl Turn {
    /// What happened on the way.
    pub(crate) fn details(&self) -> String {
        let [there, _] = self.report.links;
        let lateness = self.report.lateness;
        format!(
            "{} sent again, {} lost, {} dropped, {} overtaken; of {} frames {} were over 1 ms late, \
             one {:.1} ms",
            self.retransmits,
            there.lost,
            there.queue_drops,
            there.reordered,
            lateness.frames,
            lateness.late,
            Duration::from_nanos(lateness.worst_ns).as_secs_f64() * 1e3,
        )
    }
}

/// A Linux host: a namespace with an interface.
struct Linux {
    namespace: Namespace,
    /// The other end of its interface, which lives as long as this.
    wire: OwnedFd,
    /// Whether commands may have a real-time priority.
    raises: bool,
}

impl Linux {
    fn new(address: Ipv4Addr, raises: bool) -> io::Result<Self> {
        let namespace = Namespace::new()?;
        let interface = namespace.enter(|| tap(INTERFACE, false))?;
        let wire = interface.as_fd().try_clone_to_owned()?;
        namespace.set_up(INTERFACE, &format!("{address}/24"))?;
        // Whatever is dropped is dropped by the path's own queue.
        namespace.ip(&["link", "set", INTERFACE, "txqueuelen", "10000"])?;
        for (name, value) in BUFFERS.iter().chain([&NO_METRICS]) {
            namespace.write_sysctl(&name.replace('.', "/"), value)?;
        }
        Ok(Self {
            namespace,
            wire,
            raises,
        })
    }

    /// A command that ends with this process, at the priority of all ends if that can be had.
    fn command(&self, args: &[&str]) -> Command {
        let mut words = vec!["setpriv", "--pdeathsig", "KILL"];
        let raised = priority::command(ours::PRIORITY);
        if self.raises {
            words.extend(raised.iter().map(String::as_str));
        }
        words.extend(args);
        self.namespace.command(words[0], &words[1..])
    }

    /// What its stack has counted so far, under nstat's names.
    fn counters(&self) -> io::Result<BTreeMap<String, i64>> {
        self.namespace.enter(|| {
            let mut counters = BTreeMap::new();
            for file in ["snmp", "netstat"] {
                let text = std::fs::read_to_string(format!("/proc/thread-self/net/{file}"))?;
                let lines: Vec<&str> = text.lines().collect();
                // A line with names and one with values, both behind the layer's name.
                for pair in lines.chunks_exact(2) {
                    let mut words = pair[0].split_whitespace().zip(pair[1].split_whitespace());
                    let layer = words.next().map_or("", |(layer, _)| layer);
                    counters.extend(words.filter_map(|(name, value)| {
                        let name = format!("{}{name}", layer.trim_end_matches(':'));
                        Some((name, value.parse().ok()?))
                    }));
                }
            }
            Ok(counters)
        })
    }
}

/// An iperf3 server of Linux, for one test.
struct Server(Child);

impl Server {
    /// Starts it; returns once it listens.
    fn start(host: &Linux) -> io::Result<Self> {
        let child = host
            .command(&["iperf3", "-4", "-s"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let server = Self(child);
        let listens = format!(":{PORT:04X} 00000000:0000 0A ");
        for _ in 0..OVERTIME.as_millis() {
            let sockets = || std::fs::read_to_string("/proc/thread-self/net/tcp");
            if host.namespace.enter(sockets)?.contains(&listens) {
                return Ok(server);
            }
            thread::sleep(Duration::from_millis(1));
        }
        Err(io::Error::other("iperf3 does not listen"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two Linux hosts.
pub(crate) struct Lab {
    linux: [Linux; 2],
}

impl Lab {
    pub(crate) fn new(options: &Options) -> io::Result<Self> {
        if let Some(folder) = &options.pcap {
            std::fs::create_dir_all(folder)?;
        }
        let raises = priority::can_raise();
        if !raises {
            eprintln!("path: without real-time priority: other programs will be felt");
        }
        let [first, second] = LINUX;
        Ok(Self {
            linux: [Linux::new(first, raises)?, Linux::new(second, raises)?],
        })
    }

    /// Sends over a cell's path, the same in the same round.
    pub(crate) fn turn(
        &self,
        options: &Options,
        pairing: Pairing,
        cell: Cell,
        round: usize,
        seconds: u64,
        flows: u64,
    ) -> io::Result<Turn> {
        let [first, second] = &self.linux;
        let client = first.wire.try_clone()?;
        let mut iperf3 = None;
        let (ours, server) = match pairing {
            Pairing::LinuxToLinux => {
                iperf3 = Some(Server::start(second)?);
                (None, second.wire.try_clone()?)
            }
            Pairing::OursToLinux | Pairing::LinuxToOurs => {
                let (nic, wire) = socket_pair()?;
                (Some(Ours::start(nic, &options.settings)?), wire)
            }
        };
        let (ends, to, direction): (_, _, &[&str]) = match pairing {
            Pairing::LinuxToLinux => ([client, server], LINUX[1], &[]),
            Pairing::OursToLinux => ([server, client], OURS, &["-R"]),
            Pairing::LinuxToOurs => ([client, server], OURS, &[]),
        };
        let (there, back) = cell.links();
        let seed = cell.rtt_us << 32 | u64::from(cell.loss_ppm) << 8 | round as u64;
        let emulator = Emulator::start(ends, [there, back], seed, options.pcap.is_some())?;
        let [first, second] = &self.linux;
        let before = [first.counters()?, second.counters()?];
        let result = self.transfer(&to.to_string(), direction, seconds, flows);
        // Whatever came out, all is taken down; last the path, so that nobody keeps sending.
        drop(iperf3);
        thread::sleep(Duration::from_micros(2 * cell.rtt_us) + LINGER);
        let report = emulator.stop();
        let counters = ours.map(Ours::stop).transpose()?;
        let report = report?;
        if options.counters {
            for (linux, before) in self.linux.iter().zip(&before) {
                let after = linux.counters()?;
                let change = |name: &String, after: i64| {
                    let before = before.get(name).copied().unwrap_or(0);
                    (after != before).then(|| (name.clone(), after - before))
                };
                print_counters(
                    "Linux",
                    after
                        .iter()
                        .filter_map(|(name, value)| change(name, *value)),
                );
            }
            print_counters("ours", counters.into_iter().flatten());
        }
        if let Some(folder) = &options.pcap {
            let name = format!("{}, {}, {round}.pcap", table::name(cell), pairing.name());
            let frames = report
                .capture
                .iter()
                .map(|(at_ns, bytes)| (Instant::from_micros(at_ns / 1000), bytes.as_slice()));
            std::fs::write(folder.join(name.replace([' ', ','], "_")), pcap(frames))?;
        }
        let (bytes, retransmits) = result?;
        Ok(Turn {
            mbps: mbps(bytes, seconds),
            retransmits,
            report: Report {
                capture: Vec::new(),
                ..report
            },
        })
    }

    /// Bytes received, and segments sent again.
    ///
    /// Whichever end the client is, the receiver counts what comes in the given time from the first
    /// byte that can come.
    fn transfer(
        &self,
        to: &str,
        direction: &[&str],
        seconds: u64,
        flows: u64,
    ) -> io::Result<(u64, u64)> {
        let (time, flows) = (seconds.to_string(), flows.to_string());
        let fixed = [
            "iperf3",
            "-c",
            to,
            "-t",
            &time,
            "-P",
            &flows,
            "--json",
            "--connect-timeout",
            "9000",
            // Linux's default may be another; and in a namespace it is a setting that is refused.
            "-C",
            "cubic",
        ];
        let mut command = self.linux[0].command(&[&fixed, direction].concat());
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let limit = Duration::from_secs(seconds) + OVERTIME;
        let text = Output::collect(format!("iperf3 -c {to}"), child, limit)?.text;
        let json: Value = serde_json::from_str(&text)
            .map_err(|error| io::Error::other(format!("iperf3: {error}: {text}")))?;
        if let Some(error) = json["error"].as_str() {
            return Err(io::Error::other(format!("iperf3: {error}")));
        }
        let number = |pointer: &str| {
            let number = json.pointer(pointer).and_then(Value::as_u64);
            number.ok_or_else(|| io::Error::other(format!("iperf3: no {pointer} in {text}")))
        };
        Ok((
            number("/end/sum_received/bytes")?,
            number("/end/sum_sent/retransmits")?,
        ))
    }
}

/// Mbit/s, to the thousandth.
fn mbps(bytes: u64, seconds: u64) -> f64 {
    let kbps = bytes * 8 / 1000 / seconds;
    f64::from(u32::try_from(kbps).unwrap_or(u32::MAX)) / 1e3
}

/// Prints the counters of TCP.
fn print_counters<N: Display>(host: &str, counters: impl Iterator<Item = (N, impl Display)>) {
    eprintln!("  {host}");
    for (name, value) in counters {
        eprintln!("    {name} {value}");
    }
}
