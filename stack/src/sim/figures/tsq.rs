//! Bytes in the device: how large they must be allowed to be, and how large they become.

use super::{Check, Effort, Report, Row, Unit};
use crate::{
    sim::{
        CompletionTime, Cost, Host, Link, Network, NicConfig, Sample, apps,
        svg::{Axis, Chart, Panel, Series, Style},
    },
    socket::{TcpListener, TcpStream},
    tcp::TsqPolicy,
    time::{Duration, Instant},
};
use alloc::{format, rc::Rc, string::String, vec, vec::Vec};
use core::cell::RefCell;
use embedded_io_async::{Read, Write};

/// What the processor can do: the line of 8.0 Gb/s.
const CPU_BPS: u64 = 8_000_000_000;
/// Completion times; 190 and 374 us are those of a guest sending to dom0 and to another guest in
/// the seed's measurements (128 KiB / 5.5 Gb/s and 128 KiB / 2.8 Gb/s).
const TIMES_US: [u64; 6] = [50, 190, 374, 1000, 2000, 4000];
/// Linux's limit then.
const LIMIT_BYTES: u32 = 128 << 10;
/// Payload of a full packet: 45 segments of 1448 bytes.
const PACKET_BYTES: u64 = 65_160;
/// Slots of a full packet: headers, 17 pieces of pages (it hardly ever begins where one does), the
/// extra of a large segment.
const PACKET_SLOTS: usize = 19;
/// Bytes of a request, and of its answer.
const REQUEST_BYTES: usize = 100;
const BULK_PORT: u16 = 5001;
const REQUEST_PORT: u16 = 5002;

/// Whose processor bounds the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// The guest's: nothing waits in the device but for its completion.
    Guest,
    /// The backend's: packets queue for it in the device, and take the longer the more there are.
    Backend,
}

/// What the slots of the ring are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ring {
    /// 256 slots of 4 KiB of payload: 16 full packets. What else takes slots has its own.
    Payload,
    /// Netfront's: 256 slots for everything, 13 full packets.
    Netfront,
}

impl Ring {
    fn packets(self) -> usize {
        match self {
            Self::Payload => 256 / 16,
            Self::Netfront => 256 / PACKET_SLOTS,
        }
    }

    fn slots(self) -> usize {
        match self {
            Self::Payload => self.packets() * PACKET_SLOTS,
            Self::Netfront => 256,
        }
    }

    fn bytes(self) -> u64 {
        self.packets() as u64 * PACKET_BYTES
    }
}

impl Bound {
    const ALL: [Self; 2] = [Self::Guest, Self::Backend];

    fn name(self) -> &'static str {
        match self {
            Self::Guest => "guest",
            Self::Backend => "backend",
        }
    }
}

/// One flow's set-up.
#[derive(Clone, Copy, Debug)]
struct Case {
    policy: TsqPolicy,
    bound: Bound,
    ring: Ring,
    time_us: u64,
}

impl Case {
    fn network(self) -> (Network, Host, Host) {
        let cost = Cost::for_rate(CPU_BPS);
        let mut nic = NicConfig {
            tx_slots: self.ring.slots(),
            completion: CompletionTime::Fixed(Duration::from_micros(self.time_us)),
            ..NicConfig::default()
        };
        match self.bound {
            Bound::Guest => nic.cpu = cost,
            Bound::Backend => nic.backend = cost,
        }
        let link = Link {
            delay: Duration::from_micros(10),
            whole_segments: true,
            ..Link::default()
        };
        let mut network = Network::new();
        let sender = network.add_host(nic, 1, link);
        let receiver = network.add_host(NicConfig::default(), 2, link);
        (network, sender, receiver)
    }

    fn start_bulk(self, network: &mut Network, sender: &Host, receiver: &Host) -> apps::Meter {
        let meter = apps::sink(network, receiver, BULK_PORT, |options| {
            options.rcvbuf_bytes = Some(8 << 20);
        });
        let policy = self.policy;
        apps::bulk(network, sender, (receiver, BULK_PORT), move |options| {
            options.sndbuf_bytes = Some(8 << 20);
            options.tsq_policy = policy;
            if policy != TsqPolicy::Measured {
                options.limit_output_bytes = LIMIT_BYTES;
            }
        });
        meter
    }

    /// Runs a fresh connection for two seconds and looks at the second of them.
    fn run(self) -> Found {
        let (mut network, sender, receiver) = self.network();
        let meter = self.start_bulk(&mut network, &sender, &receiver);
        network.run_for(Duration::from_secs(1));
        let before = meter.bytes();
        network.trace(&sender, Duration::ZERO);
        network.run_for(Duration::from_secs(1));
        let bytes_per_second = meter.bytes() - before;
        let samples = bulk_samples(&mut network, &sender);
        let most = samples.iter().map(|sample| sample.in_device).max();
        Found {
            bytes_per_second,
            most_bytes: u64::from(most.unwrap_or(0)),
            mean_bytes: mean_in_device(&samples),
        }
    }

    /// What the ring allows, if each packet takes the completion time.
    fn line_bps(self) -> u64 {
        (self.ring.bytes() * 8 * 1_000_000 / self.time_us).min(CPU_BPS)
    }
}

/// What a flow did.
#[derive(Clone, Copy, Debug)]
struct Found {
    bytes_per_second: u64,
    most_bytes: u64,
    mean_bytes: u64,
}

impl Found {
    fn bps(self) -> u64 {
        self.bytes_per_second * 8
    }
}

/// The samples of the connection that has most in the device.
fn bulk_samples(network: &mut Network, sender: &Host) -> Vec<Sample> {
    let Some(trace) = network.take_trace(sender) else {
        return Vec::new();
    };
    trace
        .connections()
        .max_by_key(|(_, _, samples)| samples.last().map_or(0, |last| last.delivered))
        .map(|(_, _, samples)| samples.to_vec())
        .unwrap_or_default()
}

/// The mean over time.
fn mean_in_device(samples: &[Sample]) -> u64 {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return 0;
    };
    let weighted = samples.windows(2).map(|pair| match pair {
        [sample, next] => u64::from(sample.in_device) * (next.at_us - sample.at_us),
        _ => 0,
    });
    weighted.sum::<u64>() / (last.at_us - first.at_us).max(1)
}

/// Throughput and queue by policy and completion time; what another flow sees of it; and how a
/// change of the completion time is followed.
pub fn run(effort: &Effort<'_>) -> Report {
    let times: &[u64] = if effort.quick {
        &[50, 190, 374, 1000, 4000]
    } else {
        &TIMES_US
    };
    let mut rows = Vec::new();
    let mut throughput = [Vec::new(), Vec::new(), Vec::new()];
    for bound in Bound::ALL {
        for &time_us in times {
            (effort.progress)(&format!("{} bound, {time_us} us", bound.name()));
            let case = Case {
                policy: TsqPolicy::Measured,
                bound,
                ring: Ring::Payload,
                time_us,
            };
            let found = [TsqPolicy::Capped, TsqPolicy::Paced, TsqPolicy::Measured]
                .map(|policy| Case { policy, ..case }.run());
            if bound == Bound::Guest {
                for (points, found) in throughput.iter_mut().zip(found) {
                    points.push((time_us, found.bps()));
                }
            }
            rows.push(row(case, found));
        }
        rows.push(latency(bound));
    }
    for time_us in [1000, 4000] {
        rows.push(netfront(time_us));
    }
    rows.push(jump(effort));
    let [capped, paced, measured] = throughput;
    let line = |time_us| {
        let case = Case {
            policy: TsqPolicy::Measured,
            bound: Bound::Guest,
            ring: Ring::Payload,
            time_us,
        };
        (time_us, case.line_bps())
    };
    Report {
        intro: String::from(
            "One flow on a NIC of 256 slots of 4 KiB that holds each for the completion time, while \
             a processor bounds it to 8.0 Gb/s: the guest's, or the backend's. Throughput and most \
             bytes in the device in the second of a connection's first two seconds. `capped` and \
             `paced` have a limit of 128 KiB. The line for `measured` is 98 % of the lesser of the \
             processor and as many full packets as the ring has room for, per completion time: 16 \
             of them or, where headers and the extras of large segments take slots too, as on \
             netfront, 13.",
        ),
        columns: vec![
            "bound", "held", "capped", "KiB", "paced", "KiB", "measured", "KiB", "line",
        ],
        rows,
        charts: vec![(
            "tsq-throughput",
            Chart {
                title: String::from("One flow by completion time, 8.0 Gb/s of processor"),
                x: Axis::new("completion time, us", 1).log(),
                panels: vec![Panel {
                    y: Axis::new("Gb/s", 1_000_000_000),
                    series: vec![
                        Series::new("capped at 128 KiB", Style::Line, capped),
                        Series::new("paced", Style::Line, paced),
                        Series::new("measured", Style::Line, measured),
                        Series::new(
                            "what the ring allows",
                            Style::Reference,
                            times.iter().copied().map(line).collect(),
                        ),
                    ],
                }],
            },
        )],
    }
}

fn row(case: Case, found: [Found; 3]) -> Row {
    let Case {
        policy: _,
        bound,
        ring: _,
        time_us,
    } = case;
    let [capped, paced, measured] = found;
    let what = |policy: &str| format!("{policy}, {} bound, {time_us} us", bound.name());
    let mut checks = Vec::new();
    for (at_us, seed_bps) in [(190, 5_500_000_000), (374, 2_800_000_000)] {
        if time_us == at_us {
            checks.push(Check::between(
                what("capped"),
                capped.bps(),
                seed_bps / 100 * 95,
                seed_bps / 100 * 105,
                Unit::BitsPerSecond,
            ));
        }
    }
    if time_us <= 1000 {
        let least = 7_900_000_000;
        checks.push(Check::at_least(
            what("paced"),
            paced.bps(),
            least,
            Unit::BitsPerSecond,
        ));
    }
    checks.push(Check::at_least(
        what("measured"),
        measured.bps(),
        case.line_bps() / 100 * 98,
        Unit::BitsPerSecond,
    ));
    let needed = measured.bytes_per_second * time_us / 1_000_000;
    checks.push(Check::at_most(
        what("measured, most in the device"),
        measured.most_bytes,
        needed * 5 / 4 + 2 * PACKET_BYTES,
        Unit::Bytes,
    ));
    if time_us == 50 && bound == Bound::Backend {
        // Where the guest is the bound nothing queues, whatever the limit.
        checks.push(Check::at_most(
            what("measured, most against capped"),
            measured.most_bytes,
            capped.most_bytes - 1,
            Unit::Bytes,
        ));
        checks.push(Check::at_most(
            what("measured, mean against capped"),
            measured.mean_bytes,
            capped.mean_bytes - 1,
            Unit::Bytes,
        ));
    }
    let mut cells = vec![String::from(bound.name()), format!("{time_us} us")];
    for found in found {
        cells.push(Unit::BitsPerSecond.show(found.bps()));
        cells.push(format!("{}", found.most_bytes >> 10));
    }
    cells.push(Unit::BitsPerSecond.show(case.line_bps()));
    Row { cells, checks }
}

/// What netfront's ring holds, where headers take slots too.
fn netfront(time_us: u64) -> Row {
    let case = Case {
        policy: TsqPolicy::Measured,
        bound: Bound::Guest,
        ring: Ring::Netfront,
        time_us,
    };
    let found = case.run();
    let mut cells = vec![String::from("netfront"), format!("{time_us} us")];
    cells.extend([const { String::new() }; 4]);
    cells.push(Unit::BitsPerSecond.show(found.bps()));
    cells.push(format!("{}", found.most_bytes >> 10));
    cells.push(Unit::BitsPerSecond.show(case.line_bps()));
    Row {
        cells,
        checks: vec![Check::at_least(
            format!("measured, netfront's ring, {time_us} us"),
            found.bps(),
            case.line_bps() / 100 * 98,
            Unit::BitsPerSecond,
        )],
    }
}

/// The longest that a small request and its answer take, alone and beside a bulk flow.
fn latency(bound: Bound) -> Row {
    let case = Case {
        policy: TsqPolicy::Measured,
        bound,
        ring: Ring::Netfront,
        time_us: 374,
    };
    let longest = |with_bulk: bool| {
        let (mut network, sender, receiver) = case.network();
        serve(&mut network, &receiver);
        if with_bulk {
            case.start_bulk(&mut network, &sender, &receiver);
            network.run_for(Duration::from_secs(1));
        }
        let times = request(&mut network, &sender, &receiver);
        network.run_for(Duration::from_secs(1));
        let times = times.borrow();
        (times.len(), times.iter().copied().max().unwrap_or(0))
    };
    let (alone_count, alone) = longest(false);
    let (count, beside) = longest(true);
    // What the ring holds at most, at the rate that the processor works it off.
    let drain_us = case.ring.bytes() * 8 * 1_000_000 / CPU_BPS;
    let what = format!(
        "100-byte request beside a bulk flow, {} bound",
        bound.name()
    );
    Row {
        cells: vec![
            String::from(bound.name()),
            String::from("request"),
            format!("alone {alone} us"),
            String::new(),
            format!("beside {beside} us"),
        ],
        checks: vec![
            Check::at_most(what.clone(), beside, alone + drain_us, Unit::Micros),
            Check::at_least(
                format!("{what}: answers"),
                count as u64,
                alone_count as u64 / 4,
                Unit::Count,
            ),
        ],
    }
}

/// A server that answers each request.
fn serve(network: &mut Network, host: &Host) {
    let listener = TcpListener::bind_with(
        &host.net,
        apps::address((host, REQUEST_PORT)),
        1,
        |options| options.nodelay = true,
    )
    .expect("a free port");
    network.spawn(async move {
        let Ok((mut stream, _)) = listener.accept().await else {
            return;
        };
        let mut buffer = [0; REQUEST_BYTES];
        while stream.read_exact(&mut buffer).await.is_ok() {
            if stream.write_all(&buffer).await.is_err() {
                return;
            }
        }
    });
}

/// A client that asks twice in a millisecond; returns the times that answers take, in
/// microseconds.
fn request(network: &mut Network, host: &Host, server: &Host) -> Rc<RefCell<Vec<u64>>> {
    let times = Rc::new(RefCell::new(Vec::new()));
    let (net, clock, address) = (
        host.net.clone(),
        network.clock(),
        apps::address((server, REQUEST_PORT)),
    );
    let found = Rc::clone(&times);
    network.spawn(async move {
        let nodelay = |options: &mut crate::tcp::Options| options.nodelay = true;
        let Ok(mut stream) = TcpStream::connect_with(&net, None, address, nodelay).await else {
            return;
        };
        let mut buffer = [0x2a; REQUEST_BYTES];
        loop {
            let begin = clock.now();
            if stream.write_all(&buffer).await.is_err()
                || stream.read_exact(&mut buffer).await.is_err()
            {
                return;
            }
            let us = clock.now().since(begin).as_micros() as u64;
            found.borrow_mut().push(us);
            clock.sleep(Duration::from_micros(487)).await;
        }
    });
    times
}

/// The completion time becomes ten times as long, and short again.
fn jump(effort: &Effort<'_>) -> Row {
    const LOW_US: u64 = 190;
    const HIGH_US: u64 = 10 * LOW_US;
    (effort.progress)("a jump of the completion time");
    let case = Case {
        policy: TsqPolicy::Measured,
        bound: Bound::Guest,
        ring: Ring::Payload,
        time_us: LOW_US,
    };
    let (mut network, sender, receiver) = case.network();
    case.start_bulk(&mut network, &sender, &receiver);
    network.run_for(Duration::from_secs(1));
    let mut follow = |from_us: u64, to_us: u64| {
        let time = Duration::from_micros(to_us);
        sender.nic.set_completion(CompletionTime::Fixed(time));
        // What was given before is still held as long as before.
        network.run_for(Duration::from_micros(from_us));
        let info = || sender.net.with(|stack| stack.tcp().device_info());
        let begin = info().completions;
        let has_followed = || {
            let known = u64::from(info().completion_time_us.unwrap_or(0));
            known.abs_diff(to_us) <= to_us / 4
        };
        let limit: Instant = network.now() + Duration::from_millis(500);
        network.run_until(limit, has_followed);
        let count = if has_followed() {
            info().completions - begin
        } else {
            u64::MAX
        };
        network.run_for(Duration::from_millis(500));
        count
    };
    let up = follow(LOW_US, HIGH_US);
    let down = follow(HIGH_US, LOW_US);
    Row {
        cells: vec![
            String::from("guest"),
            format!("{LOW_US} to {HIGH_US} us"),
            format!("after {up}"),
            String::new(),
            format!("back after {down}"),
        ],
        checks: vec![
            Check::at_most(
                "completions until a time ten times as long is known",
                up,
                10,
                Unit::Count,
            ),
            Check::at_most(
                "completions until the old time is known again",
                down,
                10,
                Unit::Count,
            ),
        ],
    }
}
