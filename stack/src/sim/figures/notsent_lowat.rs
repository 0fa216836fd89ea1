//! What it costs to tell writers of room on acknowledgments only.

use super::{Check, Effort, Report, Row, Unit};
use crate::{
    device::{Device, Page, Slice},
    sim::{
        Host, Link, Loss, Network, NicConfig, PAGE_BYTES, Trace,
        apps::{self, Meter},
        svg::Chart,
    },
    socket::{TcpListener, TcpStream},
    tcp::CongestionAlgorithm,
    time::Duration,
};
use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use embedded_io_async::{BufRead, Write};

const RTT: Duration = Duration::from_millis(200);
/// Bits per second of the path: with the round-trip time, what 32 MB hold.
const RATE_BPS: u64 = 10_000_000_000;
const BUFFER_BYTES: u32 = 32 << 20;
const REQUEST_BYTES: usize = 10_000_000;
const ANSWER_BYTES: usize = 10_000;
const LOWAT_BYTES: u32 = 500_000;
/// What the path holds, in segments of 1448 bytes.
const PATH_SEGS: u32 = (RATE_BPS / 8 / 5 / 1448) as u32;
const PORT: u16 = 5001;
/// Pages of each host: its buffers, each segment in a page of its own.
const PAGES: usize = 1 << 16;

/// The flows: one that loss does not slow down, and what CUBIC makes of the same path and of one
/// without loss.
const FLOWS: [Flow; 3] = [
    Flow {
        congestion: CongestionAlgorithm::LossBlind(PATH_SEGS),
        loss_ppm: 10_000,
    },
    Flow {
        congestion: CongestionAlgorithm::Cubic,
        loss_ppm: 10_000,
    },
    Flow {
        congestion: CongestionAlgorithm::Cubic,
        loss_ppm: 0,
    },
];

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// No limit.
    Unlimited,
    /// The limit; writers are told whenever snd_nxt moves on.
    Limited,
    /// The limit; writers are told on acknowledgments only.
    OnAcknowledgments,
}

/// The flow that is measured.
#[derive(Clone, Copy)]
struct Flow {
    congestion: CongestionAlgorithm,
    loss_ppm: u32,
}

impl Flow {
    /// Its name in the table.
    fn name(self) -> String {
        let percent = self.loss_ppm / 10_000;
        format!("{}, {percent}% loss", self.congestion.name())
    }

    /// Whether it is what was measured on Linux: loss that does not slow the flow down.
    fn is_as_on_linux(self) -> bool {
        matches!(self.congestion, CongestionAlgorithm::LossBlind(_))
    }

    /// The least gain in thousandths, where one is expected: Linux's, in runs as long as there. In
    /// short runs the beginning counts for more, when all are slow alike.
    fn least_gain(self, quick: bool) -> Option<u64> {
        let without_loss = self.loss_ppm == 0;
        (without_loss || self.is_as_on_linux()).then_some(match (without_loss, quick) {
            (false, true) => 2500,
            _ => 4000,
        })
    }
}

/// One run: bytes the server received, and a trace of the client if that is wanted.
fn measure(way: Way, flow: Flow, seed: u64, span: Duration, traced: bool) -> (u64, Option<Trace>) {
    let Flow {
        congestion,
        loss_ppm,
    } = flow;
    let mut network = Network::with_seed(seed);
    let nic = NicConfig {
        pages: PAGES,
        ..NicConfig::default()
    };
    let path = Link {
        delay: RTT / 2,
        ..Link::default()
    };
    let forth = Link {
        rate_bps: Some(RATE_BPS),
        loss: Loss::Random { ppm: loss_ppm },
        ..path
    };
    let client = network.add_host(nic, 1, forth);
    let server = network.add_host(nic, 2, path);
    for host in [&client, &server] {
        host.net.with(|stack| {
            let config = stack.tcp_and_device().0.config_mut();
            config.max_sndbuf_bytes = BUFFER_BYTES;
            config.max_rcvbuf_bytes = BUFFER_BYTES;
            config.congestion_control = congestion;
            if way != Way::Unlimited {
                config.notsent_lowat_bytes = LOWAT_BYTES;
            }
            config.mistakes.write_space_on_ack_only = way == Way::OnAcknowledgments;
        });
    }
    let meter = answer(&mut network, &server);
    ask(&mut network, &client, &server);
    if traced {
        network.trace(&client, Duration::from_millis(5));
    }
    network.run_for(span);
    (meter.bytes(), network.take_trace(&client))
}

/// A server that reads requests and answers each.
fn answer(network: &mut Network, host: &Host) -> Meter {
    let meter = Meter::default();
    let listener =
        TcpListener::bind(&host.net, apps::address((host, PORT)), 1).expect("a free port");
    let counter = meter.clone();
    network.spawn(async move {
        let Ok((mut stream, _)) = listener.accept().await else {
            return;
        };
        let mut left = REQUEST_BYTES;
        while let Ok(bytes) = stream.fill_buf().await {
            let len = bytes.len().min(left);
            if len == 0 {
                return;
            }
            stream.consume(len);
            counter.add(len);
            left -= len;
            if left == 0 {
                left = REQUEST_BYTES;
                if stream.write_all(&[0; ANSWER_BYTES]).await.is_err() {
                    return;
                }
            }
        }
    });
    meter
}

/// A client that sends a request and waits for the answer, again and again.
fn ask(network: &mut Network, host: &Host, server: &Host) {
    let (net, server) = (host.net.clone(), apps::address((server, PORT)));
    network.spawn(async move {
        let Ok(mut stream) = TcpStream::connect(&net, server).await else {
            return;
        };
        let page = net.with(|stack| stack.device_mut().alloc_page());
        let Some(mut page) = page else { return };
        page.append(&[0x55; PAGE_BYTES]);
        loop {
            let mut left = REQUEST_BYTES;
            while left > 0 {
                let len = left.min(PAGE_BYTES);
                let slice = Slice::new(page.clone(), 0..len);
                if stream.write_slice(slice).await.is_err() {
                    return;
                }
                left -= len;
            }
            let mut left = ANSWER_BYTES;
            while left > 0 {
                let len = match stream.fill_buf().await {
                    Ok(bytes) if !bytes.is_empty() => bytes.len().min(left),
                    _ => return,
                };
                stream.consume(len);
                left -= len;
            }
        }
    });
}

/// All runs of one way together; the trace is of the first.
fn total(
    way: Way,
    flow: Flow,
    runs: u64,
    span: Duration,
    effort: &Effort<'_>,
) -> (u64, Option<Trace>) {
    let mut bytes = 0;
    let mut trace = None;
    for seed in 1..=runs {
        (effort.progress)(&format!("{way:?}, {}, run {seed}", flow.name()));
        let traced = seed == 1 && !effort.quick;
        let (received, traced) = measure(way, flow, seed, span, traced);
        bytes += received;
        trace = trace.or(traced);
    }
    (bytes, trace)
}

/// Requests of 10 MB over a long path.
pub fn run(effort: &Effort<'_>) -> Report {
    let (runs, span) = if effort.quick {
        (2, Duration::from_secs(15))
    } else {
        (10, Duration::from_secs(30))
    };
    let mut rows = Vec::new();
    let mut charts = Vec::new();
    for flow in FLOWS {
        let run = |way| total(way, flow, runs, span, effort);
        let (unlimited, _) = run(Way::Unlimited);
        let (limited, good) = run(Way::Limited);
        let (mistaken, bad) = run(Way::OnAcknowledgments);
        let thousandths = |a: u64, b: u64| a * 1000 / b.max(1);
        let row = |what: &str, bytes: u64, checks: Vec<Check>| Row {
            cells: vec![
                flow.name(),
                what.to_string(),
                Unit::Bytes.show(bytes / runs),
                Unit::Thousandths.show(thousandths(bytes, mistaken)),
            ],
            checks,
        };
        let share = Check::at_least(
            format!("told when sent against no limit ({})", flow.name()),
            thousandths(limited, unlimited),
            950,
            Unit::Thousandths,
        );
        let mut gain = Vec::new();
        if let Some(least) = flow.least_gain(effort.quick) {
            gain.push(Check::at_least(
                format!(
                    "told when sent against on acknowledgments only ({})",
                    flow.name()
                ),
                thousandths(limited, mistaken),
                least,
                Unit::Thousandths,
            ));
        }
        if flow.is_as_on_linux() {
            let mut chart = |name, title: &str, trace: Option<Trace>| {
                let chart: Option<Chart> = trace.and_then(|trace| trace.chart(title));
                charts.extend(chart.map(|chart| (name, chart)));
            };
            chart("notsent_lowat_sent", "Told when sent", good);
            chart("notsent_lowat_acked", "Told on acknowledgments only", bad);
        }
        rows.push(row("not limited", unlimited, vec![share]));
        rows.push(row("told when data is sent", limited, gain));
        rows.push(row("told on acknowledgments only", mistaken, Vec::new()));
    }
    Report {
        intro: format!("{INTRO}{runs} runs of {} s.", span.as_secs()),
        columns: vec!["flow", "writers are", "received a run", "ratio"],
        rows,
        charts,
    }
}

/// What is measured, and why by these flows.
const INTRO: &str = "\
Requests of 10 MB, answered by 10 KB, over 200 ms and 10 Gb/s, with buffers of up to 32 MB and
`TCP_NOTSENT_LOWAT` at 500000. A writer that is told of room on acknowledgments only sends what the
limit lets it and then waits for a round trip, at the beginning of every request; and in each later
round trip it gets ahead by another 500 KB at most, less while losses are repaired. Told when data
is sent, it never waits.

On Linux the gain was 4.1 with 1% loss, of a congestion control that random loss does not slow
down: what was sent is a hundred times what a loss-based one would have. `loss-blind` stands for
that: slow start that no loss ends. CUBIC at 1% loss has a window of some twenty segments, too few
to use up the limit, so there the writer does not matter; without loss it does. ";
