//! Bulk throughput over paths of all kinds.

use super::{Check, Effort, Report, Row, Unit};
use crate::{
    sim::{Link, Network, NicConfig, apps},
    time::Duration,
};
use alloc::{format, string::ToString, vec, vec::Vec};

/// Bits per second of the path.
const RATE_BPS: u64 = 1_000_000_000;
/// What of it is left for payload with segments of 1448 bytes in frames of 1514.
const PAYLOAD_SHARE: (u64, u64) = (1448, 1514);

/// A clean path: the wire is full.
pub fn run(effort: &Effort<'_>) -> Report {
    let millis: &[u64] = if effort.quick { &[1] } else { &[1, 10] };
    let rows: Vec<Row> = millis
        .iter()
        .map(|&rtt_ms| {
            (effort.progress)(&format!("{rtt_ms} ms"));
            let link = Link {
                rate_bps: Some(RATE_BPS),
                delay: Duration::from_millis(rtt_ms) / 2,
                ..Link::default()
            };
            let (mut network, a, b) = Network::pair(NicConfig::default(), link);
            let meter = apps::sink(&mut network, &b, 5001, |_| {});
            apps::bulk(&mut network, &a, (&b, 5001), |options| {
                options.sndbuf_bytes = Some(4 << 20);
            });
            network.run_for(Duration::from_millis(500));
            let before = meter.bytes();
            network.run_for(Duration::from_millis(500));
            let bps = (meter.bytes() - before) * 8 * 2;
            let wire_bps = RATE_BPS / PAYLOAD_SHARE.1 * PAYLOAD_SHARE.0;
            Row {
                cells: vec![
                    format!("{rtt_ms} ms"),
                    Unit::BitsPerSecond.show(wire_bps),
                    Unit::BitsPerSecond.show(bps),
                ],
                checks: vec![Check::at_least(
                    format!("throughput at {rtt_ms} ms"),
                    bps,
                    wire_bps / 100 * 99,
                    Unit::BitsPerSecond,
                )],
            }
        })
        .collect();
    Report {
        intro: "One flow over a clean path of 1 Gb/s: the wire is full.".to_string(),
        columns: vec!["RTT", "wire", "throughput"],
        rows,
        charts: Vec::new(),
    }
}
