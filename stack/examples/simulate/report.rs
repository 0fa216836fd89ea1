//! What is told of a run.

use super::{args::Scenario, scenario::Outcome};
use paceline_stack::sim::{LinkCounters, Side, Trace, figures::Unit, pcap};
use std::{fs, path::Path};

/// Prints what happened and writes the files that are wanted.
pub(crate) fn tell(scenario: &Scenario, outcome: Outcome) -> Result<(), String> {
    let Outcome {
        mut network,
        senders,
        receiver,
        meters,
        exchanges,
        took,
    } = outcome;
    let span_us = scenario.span.as_micros() as u64;
    println!("{}: {}", scenario.name, scenario.about);
    let mut total = 0;
    for (meter, index) in meters.iter().zip(0..) {
        total += meter.bytes();
        let own_us = span_us - (scenario.stagger.as_micros() as u64 * index).min(span_us - 1);
        let bps = meter.bytes() as u128 * 8_000_000 / u128::from(own_us);
        println!(
            "flow {}: {}, {} in {}",
            index + 1,
            Unit::BitsPerSecond.show(bps as u64),
            Unit::Bytes.show(meter.bytes()),
            Unit::Micros.show(own_us)
        );
    }
    if let Some(exchanges) = exchanges {
        let latencies = exchanges.latencies();
        let at = |permille| Unit::Micros.show(latencies.percentile(permille));
        println!(
            "exchanges: {}, mean {}, 50% {}, 90% {}, 99% {}, 99.9% {}, most {}",
            latencies.count(),
            Unit::Micros.show(latencies.mean()),
            at(500),
            at(900),
            at(990),
            at(999),
            Unit::Micros.show(latencies.max())
        );
    }
    for (host, index) in senders.iter().zip(1..) {
        link(
            &format!("link of sender {index}"),
            network.link_counters(host),
        );
    }
    link("link in the middle", network.middle_counters(Side::Left));
    for (host, name) in senders
        .iter()
        .zip(1..)
        .map(|(host, index)| (host, format!("sender {index}")))
    {
        counters(host, &name);
    }
    counters(&receiver, "receiver");
    let traces: Vec<Trace> = senders
        .iter()
        .filter_map(|host| network.take_trace(host))
        .collect();
    if let Some(file) = &scenario.csv {
        let mut text = String::new();
        for (trace, index) in traces.iter().zip(0..) {
            let csv = trace.csv();
            let body = csv.split_once('\n').map_or("", |(_, body)| body);
            text.push_str(if index == 0 { &csv } else { body });
        }
        write(file, text.as_bytes())?;
    }
    if let Some(file) = &scenario.svg {
        let most = traces.iter().max_by_key(|trace| {
            let last = trace
                .connections()
                .filter_map(|(.., samples)| samples.last());
            last.map(|sample| sample.delivered).max()
        });
        let chart = most.and_then(|trace| trace.chart(scenario.name));
        let chart = chart.ok_or("nothing to draw")?;
        write(file, chart.svg().as_bytes())?;
    }
    if let Some(file) = &scenario.pcap {
        let records = network.take_records();
        let frames = records
            .iter()
            .map(|record| (record.at, &record.frame.bytes[..]));
        write(file, &pcap(frames))?;
    }
    let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
    println!(
        "simulated {} in {}: {} times real time, {} of payload",
        Unit::Micros.show(span_us),
        Unit::Micros.show(took_us),
        Unit::Thousandths.show(span_us.saturating_mul(1000) / took_us),
        Unit::BitsPerSecond.show((u128::from(total) * 8_000_000 / u128::from(took_us)) as u64)
    );
    Ok(())
}

fn link(name: &str, counters: LinkCounters) {
    let LinkCounters {
        packets,
        bytes,
        queue_drops,
        codel_drops,
        marks,
        lost,
        reordered,
        duplicated,
        max_queue_bytes,
    } = counters;
    print!("{name}: {packets} packets, {}", Unit::Bytes.show(bytes));
    let rest = [
        (queue_drops, "found the queue full"),
        (codel_drops, "dropped by CoDel"),
        (marks, "marked"),
        (lost, "lost"),
        (reordered, "late"),
        (duplicated, "doubled"),
    ];
    for (count, what) in rest.into_iter().filter(|(count, _)| *count > 0) {
        print!(", {count} {what}");
    }
    println!(", longest queue {}", Unit::Bytes.show(max_queue_bytes));
}

/// The counters that tell of trouble, and the connections.
fn counters(host: &paceline_stack::sim::Host, name: &str) {
    host.net.with(|stack| {
        for (local, remote, info) in stack.tcp().connections() {
            println!(
                "{name}: {local} > {remote} {} cwnd {} ssthresh {} srtt {} min {} retrans {} \
                 in device {}",
                info.congestion_control,
                Unit::Bytes.show(info.cwnd_bytes.into()),
                Unit::Bytes.show(info.ssthresh_bytes.into()),
                Unit::Micros.show(info.srtt_us.into()),
                Unit::Micros.show(info.min_rtt_us.into()),
                info.total_retrans,
                Unit::Bytes.show(info.in_device_bytes.into()),
            );
        }
        let interesting = |name: &str| {
            name.starts_with("TcpExt") || ["TcpRetransSegs", "TcpOutRsts"].contains(&name)
        };
        let counts: Vec<String> = stack
            .nstat()
            .filter(|(name, count)| *count > 0 && interesting(name))
            .map(|(name, count)| format!("{} {count}", name.trim_start_matches("TcpExt")))
            .collect();
        println!("{name}: {}", counts.join(", "));
    });
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}
