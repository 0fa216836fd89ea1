//! CUBIC against what RFC 9438 says of it.

use super::{Check, Effort, Report, Row, Unit};
use crate::{
    sim::{
        Fate, Frame, Host, Link, Network, NicConfig, Side, apps,
        svg::{Axis, Chart, Panel, Series, Style},
    },
    tcp::{CongestionAlgorithm, PeriodicLoss},
    time::Duration,
};
use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

/// A row of RFC 9438's tables 1 and 2: the round-trip time, one loss in so many segments, and the
/// average windows of Reno and of CUBIC with C = 0.4, in segments.
struct Entry(u64, u64, u64, u64);

/// RFC 9438 §5.1, tables 1 and 2.
const TABLES: [Entry; 14] = [
    Entry(100, 100, 12, 12),
    Entry(100, 1_000, 38, 38),
    Entry(100, 10_000, 120, 187),
    Entry(100, 100_000, 379, 1_054),
    Entry(100, 1_000_000, 1_200, 5_926),
    Entry(100, 10_000_000, 3_795, 33_325),
    Entry(100, 100_000_000, 12_000, 187_400),
    Entry(10, 100, 12, 12),
    Entry(10, 1_000, 38, 38),
    Entry(10, 10_000, 120, 120),
    Entry(10, 100_000, 379, 379),
    Entry(10, 1_000_000, 1_200, 1_200),
    Entry(10, 10_000_000, 3_795, 5_926),
    Entry(10, 100_000_000, 12_000, 33_325),
];

/// Payload of a full segment.
const SEGMENT_BYTES: u64 = 1448;

/// The tables, by the algorithm alone and by whole stacks; two flows on one path.
pub fn run(effort: &Effort<'_>) -> Report {
    let mut report = Report {
        intro: "Average windows against RFC 9438's tables 1 and 2 (C = 0.4): of the algorithm by \
                itself (\"model\"), and of two stacks that transfer in bulk over a path of that \
                loss rate (\"stack\"). Then two flows at one bottleneck: CUBIC gives way to CUBIC, \
                and takes of Reno what the RFC's response functions say."
            .to_string(),
        columns: vec!["path", "measure", "expected", "got"],
        ..Report::default()
    };
    for entry in &TABLES {
        table(effort, entry, &mut report.rows);
    }
    converge(effort, &mut report);
    against_reno(effort, &mut report.rows);
    report
}

/// One row of the tables.
fn table(effort: &Effort<'_>, entry: &Entry, rows: &mut Vec<Row>) {
    let &Entry(rtt_ms, per_loss, reno, cubic) = entry;
    let rtt = Duration::from_millis(rtt_ms);
    let path = format!("{rtt_ms} ms, 1 in {per_loss} lost");
    let mut measure = |name: &str, expected: u64, got: u64, percent: u64| {
        let expected = expected * 1000;
        rows.push(Row {
            cells: vec![
                path.clone(),
                name.to_string(),
                Unit::Thousandths.show(expected),
                Unit::Thousandths.show(got),
            ],
            checks: vec![Check::between(
                format!("{name}, {path}"),
                got,
                expected / 100 * (100 - percent),
                expected / 100 * (100 + percent),
                Unit::Thousandths,
            )],
        });
    };
    let model = PeriodicLoss {
        rtt,
        segments_per_loss: per_loss,
    };
    let losses = if effort.quick { 60 } else { 300 };
    let got = model.average_window(CongestionAlgorithm::Cubic, losses);
    measure("model, CUBIC", cubic, got, 10);
    let got = model.average_window(CongestionAlgorithm::Reno, losses);
    measure("model, Reno", reno, got, 10);
    let most = if effort.quick { 1_000 } else { 10_000 };
    if per_loss <= most {
        (effort.progress)(&path);
        let got = by_stacks(rtt, per_loss, 60);
        // The RFC's model repairs a loss in no time; a stack spends a round trip of the eight or
        // so between two losses of a hundredth on it, with whole segments and less window.
        measure("stack, CUBIC", cubic, got, 20);
    }
}

/// Whether a frame carries TCP data.
fn has_data(frame: &Frame) -> bool {
    const HEADERS_BYTES: usize = 14 + 20 + 32;
    frame.bytes.get(23) == Some(&6) && frame.bytes.len() > HEADERS_BYTES
}

/// The average window of a bulk transfer that loses one in `per_loss` segments, over `losses`
/// losses, in thousandths of a segment.
fn by_stacks(rtt: Duration, per_loss: u64, losses: u64) -> u64 {
    let link = Link {
        delay: rtt / 2,
        ..Link::default()
    };
    // No segmentation offload, so that a frame is a segment.
    let (mut network, a, b) = Network::pair(NicConfig::plain(), link);
    let mut segments = 0;
    network.hook(&a, move |_, frame| {
        segments += u64::from(has_data(frame));
        if segments == per_loss {
            segments = 0;
            return Fate::Drop;
        }
        Fate::Deliver
    });
    let meter = bulk(&mut network, &a, &b, 5001, CongestionAlgorithm::Cubic);
    // The first third brings it there.
    let warm = losses / 3 * per_loss * SEGMENT_BYTES;
    let whole = losses * per_loss * SEGMENT_BYTES;
    let (mut sum, mut samples) = (0, 0);
    // An hour at most.
    for _ in 0..Duration::from_hours(1).as_micros() * 8 / rtt.as_micros() {
        network.run_for(rtt / 8);
        let bytes = meter.bytes();
        if bytes >= whole {
            break;
        }
        if bytes >= warm {
            sum += window_bytes(&a);
            samples += 1;
        }
    }
    sum * 1000 / SEGMENT_BYTES / samples.max(1)
}

/// The window of a host's first connection.
fn window_bytes(host: &Host) -> u64 {
    host.net.with(|stack| {
        let first = stack.tcp().connections().next();
        first.map_or(0, |(_, _, info)| u64::from(info.cwnd_bytes))
    })
}

/// A bulk transfer from `from` to `to`, with buffers that do not limit it.
fn bulk(
    network: &mut Network,
    from: &Host,
    to: &Host,
    port: u16,
    algorithm: CongestionAlgorithm,
) -> apps::Meter {
    let meter = apps::sink(network, to, port, |options| {
        options.rcvbuf_bytes = Some(16 << 20);
    });
    apps::bulk(network, from, (to, port), move |options| {
        options.sndbuf_bytes = Some(16 << 20);
        options.congestion_control = algorithm;
    });
    meter
}

/// A path that two flows share.
struct Shared {
    rate_bps: u64,
    rtt: Duration,
    /// When the second flow begins.
    second_at: Duration,
    algorithms: [CongestionAlgorithm; 2],
}

impl Shared {
    /// Runs both flows for so many seconds after the second began. The queue holds what the path
    /// holds.
    fn run(&self, seconds: u64) -> Outcome {
        let &Self {
            rate_bps,
            rtt,
            second_at,
            algorithms,
        } = self;
        let mut network = Network::new();
        let access = Link::default();
        let hosts: Vec<Host> = (1..=4)
            .map(|last| network.add_host(NicConfig::default(), last, access))
            .collect();
        for host in &hosts[2..] {
            network.set_side(host, Side::Right);
        }
        let way = Link {
            rate_bps: Some(rate_bps),
            delay: rtt / 2,
            queue_bytes: Some(rate_bps / 8 * rtt.as_micros() as u64 / 1_000_000),
            ..Link::default()
        };
        network.set_middle(way, way);
        let first = bulk(&mut network, &hosts[0], &hosts[2], 5001, algorithms[0]);
        network.run_for(second_at);
        let second = bulk(&mut network, &hosts[1], &hosts[3], 5001, algorithms[1]);
        let losses = || {
            [&hosts[0], &hosts[1]].map(|host| {
                host.net.with(|stack| {
                    let counters = stack.tcp().counters();
                    counters.sack_recovery + counters.loss_probe_recovery + counters.timeouts
                })
            })
        };
        let mut shares = Vec::new();
        let mut early = [0, 0];
        for at in 0..seconds {
            if at == seconds / 2 {
                early = losses();
            }
            let before = [first.bytes(), second.bytes()];
            network.run_for(Duration::from_secs(1));
            shares.push([first.bytes() - before[0], second.bytes() - before[1]]);
        }
        let late = losses();
        let losses = [late[0] - early[0], late[1] - early[1]];
        let srtt_us = [&hosts[0], &hosts[1]].map(|host| {
            host.net.with(|stack| {
                let first = stack.tcp().connections().next();
                first.map_or(0, |(_, _, info)| u64::from(info.srtt_us))
            })
        });
        Outcome {
            shares,
            losses,
            srtt_us,
        }
    }
}

/// What became of two flows.
struct Outcome {
    /// Bytes that they got in each second.
    shares: Vec<[u64; 2]>,
    /// How often they found losses, in the second half of the time.
    losses: [u64; 2],
    /// Their round-trip times at the end, queue and all.
    srtt_us: [u64; 2],
}

impl Outcome {
    /// Bytes that they got in the second half of the time, when the beginning is forgotten.
    fn late(&self) -> [u64; 2] {
        sums(&self.shares[self.shares.len() / 2..])
    }

    /// The ratio of their windows that RFC 9438's response functions say of a CUBIC flow and a
    /// Reno flow that have these losses, in thousandths.
    fn predicted_ratio(&self) -> u64 {
        let total = self.late();
        let per_loss = [0, 1].map(|flow| total[flow] / SEGMENT_BYTES / self.losses[flow].max(1));
        let rtt_us = self.srtt_us[0].midpoint(self.srtt_us[1]);
        cubic_window(rtt_us, per_loss[0]) * 1000 / reno_window(per_loss[1]).max(1)
    }
}

/// RFC 9438 §5.1: Reno's average window, √(3/2p), in thousandths of a segment.
fn reno_window(per_loss: u64) -> u64 {
    (u128::from(per_loss) * 1_500_000).isqrt() as u64
}

/// RFC 9438 §5.1: CUBIC's, 1.054 · (RTT / p)^(3/4), and no less than Reno's (§4.3).
fn cubic_window(rtt_us: u64, per_loss: u64) -> u64 {
    let seconds_e3 = u128::from(rtt_us / 100) * u128::from(per_loss) / 10;
    let fourth_power = seconds_e3.pow(3) * 1_234; // 1.054⁴ = 1.234; (10⁻³)³ · 10⁻³ · (10³)⁴ = 1
    let window = fourth_power.isqrt().isqrt() as u64;
    window.max(reno_window(per_loss))
}

fn sums(shares: &[[u64; 2]]) -> [u64; 2] {
    shares
        .iter()
        .fold([0, 0], |sum, share| [sum[0] + share[0], sum[1] + share[1]])
}

/// Jain's index of two shares, in thousandths.
fn jain([a, b]: [u64; 2]) -> u64 {
    let (a, b) = (u128::from(a), u128::from(b));
    let squares = 2 * (a * a + b * b);
    ((a + b) * (a + b) * 1000 / squares.max(1)) as u64
}

/// A second CUBIC flow gets its part within a minute.
fn converge(effort: &Effort<'_>, report: &mut Report) {
    let paths: &[(u64, u64)] = if effort.quick {
        &[(10, 40)]
    } else {
        &[(10, 40), (100, 20), (100, 100)]
    };
    for &(mbps, rtt_ms) in paths {
        let path = format!("{mbps} Mb/s, {rtt_ms} ms, two CUBIC flows");
        (effort.progress)(&path);
        let shares = Shared {
            rate_bps: mbps * 1_000_000,
            rtt: Duration::from_millis(rtt_ms),
            second_at: Duration::from_secs(10),
            algorithms: [CongestionAlgorithm::Cubic; 2],
        }
        .run(60)
        .shares;
        let index = jain(sums(&shares[40..]));
        report.rows.push(Row {
            cells: vec![
                path.clone(),
                "Jain's index, 40 to 60 s".to_string(),
                "at least 0.950".to_string(),
                Unit::Thousandths.show(index),
            ],
            checks: vec![Check::at_least(path.clone(), index, 950, Unit::Thousandths)],
        });
        if report.charts.is_empty() {
            report.charts.push(("cubic-converge", chart(path, &shares)));
        }
    }
}

fn chart(title: String, shares: &[[u64; 2]]) -> Chart {
    let series = |flow: usize, name: &str| {
        let points = (1..).zip(shares);
        let points = points.map(|(second, share)| (second, share[flow] * 8));
        Series::new(name, Style::Line, points.collect())
    };
    Chart {
        title,
        x: Axis::new("time since the second flow began, s", 1),
        panels: vec![Panel {
            y: Axis::new("throughput, Mb/s", 1_000_000),
            series: vec![series(0, "first"), series(1, "second")],
        }],
    }
}

/// A CUBIC flow beside a Reno one gets what the response functions say of the losses they meet
/// (RFC 9438 §5.1): its equal where the path is in CUBIC's Reno-friendly region, and far more where
/// Reno cannot fill it.
fn against_reno(effort: &Effort<'_>, rows: &mut Vec<Row>) {
    let all = [(20, 20, true), (50, 10, true), (100, 100, false)];
    let paths = if effort.quick { &all[..1] } else { &all[..] };
    for &(mbps, rtt_ms, is_friendly) in paths {
        let path = format!("{mbps} Mb/s, {rtt_ms} ms, CUBIC and Reno");
        (effort.progress)(&path);
        let outcome = Shared {
            rate_bps: mbps * 1_000_000,
            rtt: Duration::from_millis(rtt_ms),
            second_at: Duration::ZERO,
            algorithms: [CongestionAlgorithm::Cubic, CongestionAlgorithm::Reno],
        }
        .run(if effort.quick { 60 } else { 300 });
        let [cubic, reno] = outcome.late();
        let ratio = cubic * 1000 / reno.max(1);
        let predicted = outcome.predicted_ratio();
        // Beyond, a dozen losses in the time measured are a small sample for a function of their
        // number.
        let (least, most) = if is_friendly { (60, 140) } else { (50, 200) };
        let mut checks = vec![Check::between(
            format!("{path}: ratio by the response functions"),
            ratio,
            predicted * least / 100,
            predicted * most / 100,
            Unit::Thousandths,
        )];
        if is_friendly {
            let what = format!("{path}: equals");
            checks.push(Check::between(what, ratio, 667, 1_500, Unit::Thousandths));
        }
        rows.push(Row {
            cells: vec![
                path,
                "CUBIC / Reno".to_string(),
                Unit::Thousandths.show(predicted),
                Unit::Thousandths.show(ratio),
            ],
            checks,
        });
    }
}

#[cfg(test)]
mod tests;
