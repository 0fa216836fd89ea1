//! Throughput over paths that lose and reorder, against what congestion control allows.

use super::*;
use crate::sim::{Fate, Frame, apps};

const RATE_BPS: u64 = 1_000_000_000;
/// Payload of a segment with timestamps.
const SEGMENT_BYTES: u64 = 1448;

/// A path to run a flow over.
#[derive(Clone, Copy, Debug)]
struct Path {
    rtt: Duration,
    /// Of a hundred thousand data segments, so many are lost.
    loss: u64,
    /// Of a hundred, so many are late by up to half a round trip.
    late: u64,
}

/// Loses and delays data segments by a generator of random numbers.
fn disturb(path: Path, seed: u64) -> impl FnMut(Instant, &mut Frame) -> Fate {
    let mut state = seed;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    move |_, frame| {
        if frame.bytes.get(23) != Some(&6) || frame.bytes.len() < 200 {
            return Fate::Deliver;
        }
        if random(100_000) < path.loss {
            return Fate::Drop;
        }
        if random(100) < path.late {
            let half_us = path.rtt.as_micros() as u64 / 2;
            return Fate::Delay(Duration::from_micros(random(half_us.max(1))));
        }
        Fate::Deliver
    }
}

/// Bits per second that a flow delivers, and the sender's counters.
fn throughput(path: Path, both_ways: bool, seconds: u64) -> (u64, crate::tcp::Counters) {
    let link = Link {
        rate_bps: Some(RATE_BPS),
        delay: path.rtt / 2,
        ..Link::default()
    };
    let (mut network, a, b) = Network::pair(NicConfig::default(), link);
    for (host, seed) in [(&a, 12_345), (&b, 54_321)] {
        host.net.with(|stack| {
            let config = stack.tcp_and_device().0.config_mut();
            config.rcvbuf_bytes = 32 << 20;
            config.sndbuf_bytes = 32 << 20;
        });
        network.hook(host, disturb(path, seed));
    }
    let meter = apps::sink(&mut network, &b, 5001, |_| {});
    apps::bulk(&mut network, &a, (&b, 5001), |_| {});
    let other = apps::sink(&mut network, &a, 5002, |_| {});
    if both_ways {
        apps::bulk(&mut network, &b, (&a, 5002), |_| {});
    }
    network.run_for(Duration::from_secs(1));
    let before = meter.bytes();
    let before_other = other.bytes();
    network.run_for(Duration::from_secs(seconds));
    let mut bps = (meter.bytes() - before) * 8 / seconds;
    if both_ways {
        bps = bps.min((other.bytes() - before_other) * 8 / seconds);
    }
    let counters = a.net.with(|stack| stack.tcp().counters().clone());
    (bps, counters)
}

fn integer_sqrt(value: u128) -> u128 {
    let mut root = value;
    let mut next = value / 2 + 1;
    while next < root {
        root = next;
        next = u128::midpoint(root, value / root);
    }
    root
}

/// What Reno gets at this loss rate (RFC 3649 §2: 1.2 / √p segments a round trip), or the wire.
fn allowed_bps(path: Path) -> u64 {
    let wire = RATE_BPS * SEGMENT_BYTES / (SEGMENT_BYTES + 66);
    if path.loss == 0 {
        return wire;
    }
    // 1.2 / √(loss / 100000), in thousandths.
    let window_milli = integer_sqrt(1_440_000 * 100_000 / u128::from(path.loss));
    let bits = u128::from(SEGMENT_BYTES * 8);
    let formula = window_milli * bits * 1_000_000 / 1000 / path.rtt.as_micros().max(1);
    wire.min(formula as u64)
}

/// The flow must reach so many hundredths of what is allowed.
fn assert_reaches(hundredths: u64, paths: &[Path], both_ways: bool, seconds: u64) {
    let mut low = vec![];
    for &path in paths {
        let (bps, counters) = throughput(path, both_ways, seconds);
        let allowed = allowed_bps(path);
        let counted: Vec<_> = counters.iter().filter(|&(_, count)| count > 0).collect();
        let report = std::format!(
            "{path:?}: {} of {} kb/s, {counted:?}",
            bps / 1000,
            allowed / 1000
        );
        std::println!("{report}");
        if bps < allowed / 100 * hundredths {
            low.push(report);
        }
    }
    assert!(low.is_empty(), "{low:#?}");
}

fn grid(rtts_us: &[u64], losses: &[u64], lates: &[u64]) -> Vec<Path> {
    let mut paths = vec![];
    for &rtt_us in rtts_us {
        for &loss in losses {
            for &late in lates {
                paths.push(Path {
                    rtt: Duration::from_micros(rtt_us),
                    loss,
                    late,
                });
            }
        }
    }
    paths
}

#[test]
fn a_lan_that_loses() {
    assert_reaches(60, &grid(&[1000], &[100, 1000, 3000], &[0]), false, 3);
}

#[test]
fn a_lan_that_loses_and_reorders() {
    assert_reaches(60, &grid(&[1000], &[0, 100, 1000, 3000], &[5]), false, 3);
}

#[test]
fn a_long_path_that_loses_and_reorders() {
    assert_reaches(60, &grid(&[10_000], &[1000, 3000], &[0, 5]), false, 20);
}

#[test]
fn both_ways_at_once() {
    assert_reaches(60, &grid(&[1000], &[1000, 3000], &[0, 5]), true, 5);
}

#[test]
fn a_very_short_path() {
    assert_reaches(30, &grid(&[100], &[0, 100, 1000, 3000], &[0, 5]), false, 3);
}
