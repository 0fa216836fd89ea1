//! HyStart: requests and responses stay in slow start, bulk leaves it when the path is full.

use super::{Check, Effort, Report, Row, Unit};
use crate::{
    sim::{Host, Link, Network, NicConfig, Side, apps, svg::Chart},
    socket::{TcpListener, TcpStream},
    tcp::{Mistakes, SlowStartMode},
    time::Duration,
};
use alloc::{format, rc::Rc, string::ToString, vec, vec::Vec};
use core::cell::Cell;
use embedded_io_async::{Read, Write};

/// Bytes of a request, and of its response.
const MESSAGE_BYTES: usize = 80_000;
/// Largest packet on the short path: of 4 KiB and the headers, so that a message is 20 segments.
const SHORT_MTU_BYTES: u16 = 4096 + 52;
/// Window that Linux left slow start with, in segments.
const SPOILT_SEGS: u64 = 30;

/// Bottleneck of the long path.
const LONG_RATE_BPS: u64 = 50_000_000;
const LONG_RTT: Duration = Duration::from_millis(150);
/// What it holds in segments.
const LONG_BDP_SEGS: u64 = 619;
/// Bytes of a full frame on it.
const FRAME_BYTES: u64 = 1514;

/// Both experiments, with and without the mistakes.
pub fn run(effort: &Effort<'_>) -> Report {
    let mut report = Report {
        intro: format!(
            "Requests and responses of 80 KB over a path of 100 us never leave slow start; with \
             rounds that begin only where the window grows (Linux before 4e1fddc98d25) they do at \
             once, and the window stays where it was. A bulk transfer over 150 ms and 50 Mb/s \
             ({LONG_BDP_SEGS} segments) leaves slow start when the path is full; unpaced, and with \
             rounds that begin only above the low window (Linux before 25c1a9ca53db), too early. \
             Linux, unpaced: 632 and 516; paced, it notices at twice the path."
        ),
        columns: vec![
            "experiment",
            "TrainDetect",
            "DelayDetect",
            "window, segments",
            "got",
        ],
        ..Report::default()
    };
    requests(effort, &mut report);
    bulk(effort, &mut report);
    report
}

/// What HyStart found on a host, by nstat's counters.
#[derive(Clone, Copy, Debug)]
struct Found {
    train: u64,
    delay: u64,
    /// Windows at which it was found, in segments, summed.
    segments: u64,
}

fn found(host: &Host) -> Found {
    host.net.with(|stack| {
        let counters = stack.tcp().counters();
        Found {
            train: counters.hystart_train_detect,
            delay: counters.hystart_delay_detect,
            segments: counters.hystart_train_cwnd + counters.hystart_delay_cwnd,
        }
    })
}

fn make(host: &Host, mistakes: Mistakes, mode: SlowStartMode) {
    host.net.with(|stack| {
        let config = stack.tcp_and_device().0.config_mut();
        config.mistakes = mistakes;
        config.hystart = mode;
    });
}

/// 80 KB there and 80 KB back, again and again.
fn requests(effort: &Effort<'_>, report: &mut Report) {
    let span = Duration::from_millis(if effort.quick { 200 } else { 2000 });
    for (name, mistakes) in [
        ("requests of 80 KB", Mistakes::NONE),
        (
            "requests of 80 KB, rounds where the window grows",
            Mistakes {
                hystart_round_where_window_grows: true,
                ..Mistakes::NONE
            },
        ),
    ] {
        (effort.progress)(name);
        let link = Link {
            rate_bps: Some(25_000_000_000),
            delay: Duration::from_micros(30),
            ..Link::default()
        };
        let nic = NicConfig {
            mtu_bytes: SHORT_MTU_BYTES,
            gro: true,
            rx_coalesce: Duration::from_micros(20),
            ..NicConfig::default()
        };
        let (mut network, a, b) = Network::pair(nic, link);
        for host in [&a, &b] {
            make(host, mistakes, SlowStartMode::Classic);
        }
        let count = exchange(&mut network, &a, &b);
        network.run_for(span);
        let (client, server) = (found(&a), found(&b));
        let train = client.train + server.train;
        let least = [&a, &b].map(least_window).into_iter().min().unwrap_or(0);
        let is_good = mistakes == Mistakes::NONE;
        let checks = if is_good {
            vec![
                Check::equal(format!("{name}: TrainDetect"), train, 0, Unit::Count),
                Check::at_least(format!("{name}: cwnd"), least, SPOILT_SEGS + 1, Unit::Count),
            ]
        } else {
            vec![
                Check::at_least(format!("{name}: TrainDetect"), train, 1, Unit::Count),
                Check::at_most(format!("{name}: cwnd"), least, SPOILT_SEGS, Unit::Count),
            ]
        };
        report.rows.push(Row {
            cells: vec![
                name.to_string(),
                train.to_string(),
                (client.delay + server.delay).to_string(),
                least.to_string(),
                format!("{} exchanges", count.get()),
            ],
            checks,
        });
    }
}

/// The smaller of a host's windows, in segments.
fn least_window(host: &Host) -> u64 {
    host.net.with(|stack| {
        let windows = stack
            .tcp()
            .connections()
            .map(|(_, _, info)| u64::from(info.cwnd_bytes / info.snd_mss.max(1)));
        windows.min().unwrap_or(0)
    })
}

/// A client on `a` and a server on `b` that answers each message with one; returns the count of
/// exchanges.
fn exchange(network: &mut Network, a: &Host, b: &Host) -> Rc<Cell<u64>> {
    let server = apps::address((b, 5001));
    let listener = TcpListener::bind(&b.net, server, 1).expect("a free port");
    network.spawn(async move {
        let Ok((mut stream, _)) = listener.accept().await else {
            return;
        };
        let mut message = vec![0; MESSAGE_BYTES];
        while stream.read_exact(&mut message).await.is_ok()
            && stream.write_all(&message).await.is_ok()
        {}
    });
    let count = Rc::new(Cell::new(0));
    let (net, counter) = (a.net.clone(), Rc::clone(&count));
    network.spawn(async move {
        let Ok(mut stream) = TcpStream::connect(&net, server).await else {
            return;
        };
        let mut message = vec![0; MESSAGE_BYTES];
        while stream.write_all(&message).await.is_ok()
            && stream.read_exact(&mut message).await.is_ok()
        {
            counter.set(counter.get() + 1);
        }
    });
    count
}

/// Bulk over the long path.
fn bulk(effort: &Effort<'_>, report: &mut Report) {
    let late = Mistakes {
        hystart_round_behind_low_window: true,
        ..Mistakes::NONE
    };
    let classic = SlowStartMode::Classic;
    let good = Mistakes::NONE;
    let (off, plus_plus) = (SlowStartMode::Off, SlowStartMode::PlusPlus);
    for (name, file, mistakes, mode, pacing) in [
        ("bulk", Some("hystart"), good, classic, true),
        ("bulk, HyStart++", None, good, plus_plus, true),
        ("bulk, no HyStart", None, good, off, true),
        (
            "bulk, unpaced",
            Some("hystart-unpaced"),
            good,
            classic,
            false,
        ),
        (
            "bulk, unpaced, rounds late",
            Some("hystart-late"),
            late,
            classic,
            false,
        ),
        ("bulk, unpaced, HyStart++", None, good, plus_plus, false),
        ("bulk, unpaced, no HyStart", None, good, off, false),
    ] {
        (effort.progress)(name);
        let (found, got, chart) = transfer(name, mistakes, mode, pacing);
        let what = format!("{name}: window at the end of slow start");
        let is_good = mistakes == Mistakes::NONE;
        let checks = match mode {
            SlowStartMode::Classic if is_good => {
                vec![Check::between(what, found.segments, 560, 700, Unit::Count)]
            }
            // What comes late in a burst says nothing of a sender that makes none.
            SlowStartMode::Classic if !pacing => {
                vec![Check::between(what, found.segments, 1, 559, Unit::Count)]
            }
            _ => Vec::new(),
        };
        report.rows.push(Row {
            cells: vec![
                name.to_string(),
                found.train.to_string(),
                found.delay.to_string(),
                found.segments.to_string(),
                format!("{} in 1.5 s", Unit::Bytes.show(got)),
            ],
            checks,
        });
        if let (Some(chart), Some(file)) = (chart, file) {
            report.charts.push((file, chart));
        }
    }
}

/// A transfer over the long path; returns what was found, the bytes that arrived in 1.5 s, and a
/// plot of the window.
fn transfer(
    name: &str,
    mistakes: Mistakes,
    mode: SlowStartMode,
    pacing: bool,
) -> (Found, u64, Option<Chart>) {
    let mut network = Network::new();
    let a = network.add_host(NicConfig::default(), 1, Link::default());
    let b = network.add_host(NicConfig::default(), 2, Link::default());
    network.set_side(&b, Side::Right);
    let there = Link {
        rate_bps: Some(LONG_RATE_BPS),
        delay: LONG_RTT / 2,
        queue_bytes: Some(LONG_BDP_SEGS * FRAME_BYTES),
        ..Link::default()
    };
    let back = Link {
        delay: LONG_RTT / 2,
        ..Link::default()
    };
    network.set_middle(there, back);
    make(&a, mistakes, mode);
    network.trace(&a, Duration::from_millis(1));
    let meter = apps::sink(&mut network, &b, 5001, |options| {
        options.rcvbuf_bytes = Some(8 << 20);
    });
    apps::bulk(&mut network, &a, (&b, 5001), move |options| {
        options.pacing = pacing;
        options.sndbuf_bytes = Some(8 << 20);
    });
    network.run_for(Duration::from_millis(1500));
    let got = meter.bytes();
    network.run_for(Duration::from_millis(1500));
    let title = format!("{name}: 50 Mb/s, 150 ms");
    let chart = network.take_trace(&a).and_then(|trace| trace.chart(&title));
    (found(&a), got, chart)
}
