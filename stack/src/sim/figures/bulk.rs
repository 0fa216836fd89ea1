//! Bulk throughput over paths of all kinds, beside what loss allows.

use super::{Check, Effort, Report, Row, Unit};
use crate::{
    sim::{
        Link, Loss, Network, NicConfig, Reorder, apps,
        svg::{Axis, Chart, Panel, Series, Style},
    },
    time::Duration,
};
use alloc::{format, string::String, vec, vec::Vec};

/// Bits per second of the bottleneck.
pub const RATE_BPS: u64 = 100_000_000;
/// Payload bytes of a full segment with timestamps.
const MSS: u64 = 1448;
/// Bytes of its frame.
const FRAME_BYTES: u64 = 1514;
/// Time of a full frame on the bottleneck.
const FRAME_US: u64 = FRAME_BYTES * 8 * 1_000_000 / RATE_BPS;
/// Packets of the queue beside one bandwidth-delay product.
const QUEUE_PACKETS: u64 = 64;
/// How many of a million packets arrive late, where some do.
const REORDER_PPM: u32 = 50_000;
/// Round-trip times of the table, in microseconds.
const RTTS_US: [u64; 5] = [100, 1000, 10_000, 50_000, 200_000];
/// Its shares of loss, in millionths.
const LOSSES_PPM: [u32; 5] = [0, 100, 1000, 10_000, 30_000];
/// The least share of what is allowed that a cell must reach, in thousandths: with loss, and
/// without.
const LEAST: (u64, u64) = (900, 990);

/// A path to send over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Round-trip time without queues, in microseconds.
    pub rtt_us: u64,
    /// How many of a million packets are lost.
    pub loss_ppm: u32,
    /// Whether some arrive late: an eighth of a round trip, but two packets at least.
    pub reorder: bool,
}

/// What limits a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// CUBIC's response to loss (RFC 9438 §5.1).
    Cubic,
    /// Its Reno-friendly region's (RFC 9438 §4.3; equation 1 of §5.1 with its constants).
    Reno,
    /// The bottleneck's rate.
    Wire,
}

/// What a cell gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Payload bits per second.
    pub bps: u64,
    /// Segments sent again, and of a thousand sent.
    pub retrans: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl Cell {
    /// The table's cells, or a few of them, in order.
    pub fn all(quick: bool) -> Vec<Self> {
        let rtts: &[u64] = if quick { &[100, 1000] } else { &RTTS_US };
        let losses: &[u32] = if quick { &[0, 1000] } else { &LOSSES_PPM };
        let mut cells = Vec::new();
        for &rtt_us in rtts {
            for &loss_ppm in losses {
                cells.extend([false, true].map(|reorder| Self {
                    rtt_us,
                    loss_ppm,
                    reorder,
                }));
            }
        }
        cells
    }

    /// How it is named in the table.
    pub fn name(&self) -> [String; 3] {
        let Self {
            rtt_us,
            loss_ppm,
            reorder,
        } = *self;
        let decimal = |value: u64, unit: u64| {
            let text = format!("{}.{:04}", value / unit, value % unit * 10_000 / unit);
            String::from(text.trim_end_matches('0').trim_end_matches('.'))
        };
        [
            format!("{} ms", decimal(rtt_us, 1000)),
            format!("{}%", decimal(u64::from(loss_ppm), 10_000)),
            String::from(if reorder { "5%" } else { "no" }),
        ]
    }

    /// The most payload bits per second that the path and its loss allow.
    ///
    /// RFC 9438 §5.1 gives the average window, in segments, for losses that are evenly spaced:
    /// `(C (3 + b) / (4 (1 - b)))^(1/4) RTT^(3/4) / p^(3/4)` for CUBIC with `C` 0.4 and `b` 0.7,
    /// and `sqrt(3/2) / sqrt(p)` for Reno, whose pace the Reno-friendly region keeps. The larger
    /// holds. Their RTT is the path's and what the window itself adds to it: a window leaves in
    /// bursts of about half of it, which wait for each other at the bottleneck. Buffers follow
    /// the window and limit nothing here; time in recovery and timeouts, of which the formula
    /// knows nothing and which weigh the more the more is lost, are not taken off.
    pub fn allowed(&self) -> (u64, Limit) {
        let wire_bps = RATE_BPS / FRAME_BYTES * MSS;
        let p = u128::from(self.loss_ppm);
        if p == 0 {
            return (wire_bps, Limit::Wire);
        }
        let frame_us = u128::from(FRAME_US);
        let base_us = u128::from(self.rtt_us) + frame_us;
        // Windows in thousandths of a segment: 0.4 * 3.7 / 1.2 = 37 / 30.
        let cubic = (base_us.pow(3) * 37 * 1_000_000_000_000 / (30 * p.pow(3)))
            .isqrt()
            .isqrt();
        let reno = (1_500_000 * 1_000_000 / p).isqrt();
        let (window, limit) = if cubic > reno {
            (cubic, Limit::Cubic)
        } else {
            (reno, Limit::Reno)
        };
        let rtt_us = base_us + window * frame_us / 2000;
        let bps = (window * u128::from(MSS) * 8 * 1000 / rtt_us) as u64;
        // What is lost behind the bottleneck was sent, and is no goodput.
        let arriving_ppm = 1_000_000 - u64::from(self.loss_ppm);
        let arrives = |bps: u64| bps / 1000 * arriving_ppm / 1000;
        if bps < wire_bps {
            (arrives(bps), limit)
        } else {
            (arrives(wire_bps), Limit::Wire)
        }
    }

    /// Packets that a measurement should see where loss limits it: enough for their average.
    fn packets(&self) -> u64 {
        match self.loss_ppm {
            0..=100 => 600_000,
            101..=1000 => 150_000,
            _ => 30_000,
        }
    }

    /// Whether it is soon measured, even without optimization.
    pub fn is_quick(&self) -> bool {
        let (allowed_bps, _) = self.allowed();
        let (settle, measure) = self.spans();
        let us = (settle + measure).as_micros() as u64;
        allowed_bps / (MSS * 8) * us / 1_000_000 < 60_000
    }

    /// Time to settle and time to measure.
    fn spans(&self) -> (Duration, Duration) {
        let (allowed_bps, _) = self.allowed();
        // Until a window that overflowed the queue has grown back, and again.
        let least = match self.rtt_us {
            0..=10_000 => Duration::from_secs(4),
            rtt_us => Duration::from_micros(200 * rtt_us),
        };
        if self.loss_ppm == 0 {
            return (least, least);
        }
        let packets = self.packets();
        let us = packets * MSS * 8 * 1_000_000 / allowed_bps;
        let wire_us = 10_000_000;
        let measure = match self.allowed() {
            (_, Limit::Wire) => Duration::from_micros(us.min(wire_us)),
            _ => Duration::from_micros(us),
        };
        (least, measure.max(least))
    }

    /// The two directions of its path: data meets the bottleneck, loss and reordering,
    /// acknowledgments the delay only.
    pub fn links(&self) -> (Link, Link) {
        let delay = Duration::from_micros(self.rtt_us) / 2;
        let queue_bytes = RATE_BPS / 8 * self.rtt_us / 1_000_000 + QUEUE_PACKETS * FRAME_BYTES;
        let late_us = (self.rtt_us / 8).max(2 * FRAME_US);
        let there = Link {
            rate_bps: Some(RATE_BPS),
            delay,
            queue_bytes: Some(queue_bytes),
            loss: Loss::Random { ppm: self.loss_ppm },
            reorder: Reorder {
                ppm: if self.reorder { REORDER_PPM } else { 0 },
                by: Duration::from_micros(late_us),
            },
            ..Link::default()
        };
        let back = Link {
            delay,
            whole_segments: true,
            ..Link::default()
        };
        (there, back)
    }

    /// Sends over it.
    pub fn measure(&self) -> Measured {
        let (there, back) = self.links();
        let nic = NicConfig {
            gro: true,
            rx_frames: 4096,
            pages: 65_536,
            ..NicConfig::default()
        };
        let mut network = Network::with_seed(self.rtt_us + u64::from(self.loss_ppm));
        let a = network.add_host(nic, 1, there);
        let b = network.add_host(nic, 2, back);
        let meter = apps::sink(&mut network, &b, 5001, |_| {});
        apps::bulk(&mut network, &a, (&b, 5001), |_| {});
        let (settle, measure) = self.spans();
        network.run_for(settle);
        let before = meter.bytes();
        network.run_for(measure);
        let bits = u128::from(meter.bytes() - before) * 8;
        let (retrans, timeouts) = a.net.with(|stack| {
            let counters = stack.tcp().counters();
            (counters.retrans_segs, counters.timeouts)
        });
        Measured {
            bps: (bits * 1_000_000 / measure.as_micros()) as u64,
            retrans,
            timeouts,
        }
    }

    /// Its row of the table.
    pub fn row(&self, measured: &Measured) -> Row {
        let &Measured {
            bps,
            retrans,
            timeouts,
        } = measured;
        let (allowed_bps, limit) = self.allowed();
        let share = bps * 1000 / allowed_bps;
        let [rtt, loss, reorder] = self.name();
        let what = format!("{rtt}, {loss} loss, {reorder} reordering: share of what is allowed");
        let least = if self.loss_ppm > 0 { LEAST.0 } else { LEAST.1 };
        Row {
            cells: vec![
                rtt,
                loss,
                reorder,
                Unit::BitsPerSecond.show(allowed_bps),
                String::from(match limit {
                    Limit::Cubic => "CUBIC",
                    Limit::Reno => "Reno",
                    Limit::Wire => "wire",
                }),
                Unit::BitsPerSecond.show(bps),
                Unit::Thousandths.show(share),
                Unit::Count.show(retrans),
                Unit::Count.show(timeouts),
            ],
            checks: vec![Check::at_least(what, share, least, Unit::Thousandths)],
        }
    }
}

/// Headings of the table.
pub const COLUMNS: [&str; 9] = [
    "RTT", "loss", "late", "allowed", "by", "got", "share", "retrans", "timeouts",
];

/// Runs the table.
pub fn run(effort: &Effort<'_>) -> Report {
    let mut rows = Vec::new();
    let mut measured = Vec::new();
    for cell in Cell::all(effort.quick) {
        (effort.progress)(&cell.name().join(", "));
        let got = cell.measure();
        rows.push(cell.row(&got));
        measured.push((cell, got));
    }
    Report {
        intro: String::from(
            "One flow over a bottleneck of 100 Mb/s with a queue of one bandwidth-delay product \
             and 64 packets, with the default congestion control and buffers that follow the \
             window. Allowed is the wire, or the average window of RFC 9438 §5.1 for CUBIC and for \
             its Reno-friendly region, if that is less, over the path's round trip and half the time \
             that the window takes on the wire, less what is lost. Loss is random and behind the queue; late \
             packets arrive an eighth of a round trip late. Measured once the start is over.",
        ),
        columns: COLUMNS.to_vec(),
        rows,
        charts: vec![("bulk", chart(&measured))],
    }
}

/// Throughput over loss, a panel for each round-trip time.
fn chart(measured: &[(Cell, Measured)]) -> Chart {
    let panels = measured
        .chunk_by(|(a, _), (b, _)| a.rtt_us == b.rtt_us)
        .map(|group| {
            // No loss is drawn as a tenth of the least there is.
            let x = |cell: &Cell| u64::from(cell.loss_ppm).max(10);
            let points = |reorder: bool| {
                let group = group.iter().filter(|(cell, _)| cell.reorder == reorder);
                group.map(|(cell, got)| (x(cell), got.bps)).collect()
            };
            let allowed = group.iter().filter(|(cell, _)| !cell.reorder);
            let allowed = allowed
                .map(|(cell, _)| (x(cell), cell.allowed().0))
                .collect();
            let [rtt, ..] = group[0].0.name();
            Panel {
                y: Axis::new(format!("Mb/s, {rtt}"), 1_000_000).log(),
                series: vec![
                    Series::new("allowed", Style::Reference, allowed),
                    Series::new("got", Style::Marked, points(false)),
                    Series::new("5% late", Style::Marked, points(true)),
                ],
            }
        });
    Chart {
        title: String::from("Bulk throughput over loss (left: none)"),
        x: Axis::new("packets lost of a million", 1).log(),
        panels: panels.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_is_what_the_rfc_says() {
        let cell = |rtt_us, loss_ppm| Cell {
            rtt_us,
            loss_ppm,
            reorder: false,
        };
        // RFC 9438, table 1: 5,051 segments for 100 ms and a loss rate of 1e-6; over the wire's
        // rate here. Table 2, for Reno: 38.7 segments at 1e-3.
        assert_eq!(cell(100_000, 1).allowed().1, Limit::Wire);
        let (bps, limit) = cell(10_000, 1000).allowed();
        assert_eq!(limit, Limit::Reno);
        let sent = bps * 1000 / 999;
        let window = sent * (10_000 + FRAME_US + 38_730 * FRAME_US / 2000) / 1000 / (MSS * 8);
        assert!((38_600..38_800).contains(&window), "{window}");
        // 1.2333^(1/4) (0.2 / 1e-3)^(3/4) = 56.0 segments.
        let (bps, limit) = cell(200_000, 1000).allowed();
        assert_eq!(limit, Limit::Cubic);
        let sent = bps * 1000 / 999;
        let window = sent * (200_000 + FRAME_US + 56_000 * FRAME_US / 2000) / 1000 / (MSS * 8);
        assert!((55_800..56_300).contains(&window), "{window}");
        assert_eq!(cell(100, 0).allowed().1, Limit::Wire);
        assert_eq!(Cell::all(false).len(), 50);
        assert_eq!(cell(100, 100).name(), ["0.1 ms", "0.01%", "no"]);
    }
}
