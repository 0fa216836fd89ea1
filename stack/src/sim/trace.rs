//! What a connection's variables did over time: as CSV, and as a plot.

use super::svg::{Axis, Chart, Panel, Series, Style};
use crate::{
    tcp::Info,
    time::{Duration, Instant},
};
use alloc::{collections::BTreeMap, format, string::String, vec, vec::Vec};
use core::{fmt::Write, net::SocketAddr};

/// The variables of a connection at a time. Sizes are in bytes, times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample {
    /// The time.
    pub at_us: u64,
    /// Congestion window.
    pub cwnd: u32,
    /// Slow start threshold.
    pub ssthresh: u32,
    /// Smoothed round-trip time.
    pub srtt_us: u32,
    /// The least round-trip time.
    pub min_rtt_us: u32,
    /// Bytes sent and neither acknowledged, nor reported, nor held for lost.
    pub in_flight: u32,
    /// Bytes given to the device that it is not done with.
    pub in_device: u32,
    /// How many there may be.
    pub device_limit: u32,
    /// Bytes a second that data leaves with at most.
    pub pacing_rate: u64,
    /// Bytes written and not sent.
    pub notsent: u32,
    /// The peer's window.
    pub snd_wnd: u32,
    /// Bytes the peer has acknowledged, ever.
    pub delivered: u64,
    /// Segments sent again, ever.
    pub retrans: u64,
}

impl Sample {
    fn new(at: Instant, info: &Info) -> Self {
        let outstanding = info.unacked_bytes + info.retrans_bytes;
        Self {
            at_us: at.as_micros(),
            cwnd: info.cwnd_bytes,
            ssthresh: info.ssthresh_bytes,
            srtt_us: info.srtt_us,
            min_rtt_us: info.min_rtt_us,
            in_flight: outstanding.saturating_sub(info.sacked_bytes + info.lost_bytes),
            in_device: info.in_device_bytes,
            device_limit: info.device_limit_bytes,
            pacing_rate: info.pacing_rate,
            notsent: info.notsent_bytes,
            snd_wnd: info.snd_wnd,
            delivered: info.bytes_acked,
            retrans: info.total_retrans,
        }
    }
}

/// Samples of all connections of a host.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    every: Duration,
    /// By local and remote address.
    connections: BTreeMap<(SocketAddr, SocketAddr), Vec<Sample>>,
}

impl Trace {
    /// Nothing yet; no two samples of a connection less than `every` apart.
    pub fn new(every: Duration) -> Self {
        Self {
            every,
            connections: BTreeMap::new(),
        }
    }

    /// The traced connections, by local and remote address.
    pub fn connections(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr, &[Sample])> {
        self.connections
            .iter()
            .map(|((local, remote), samples)| (*local, *remote, &samples[..]))
    }

    pub(super) fn sample(
        &mut self,
        now: Instant,
        connections: impl Iterator<Item = (SocketAddr, SocketAddr, Info)>,
    ) {
        let every_us = self.every.as_micros() as u64;
        for (local, remote, info) in connections {
            let samples = self.connections.entry((local, remote)).or_default();
            let sample = Sample::new(now, &info);
            let due = samples.last().is_none_or(|last| {
                let same = Sample {
                    at_us: sample.at_us,
                    ..*last
                };
                sample.at_us >= last.at_us + every_us && same != sample
            });
            if due {
                samples.push(sample);
            }
        }
    }

    /// All samples as comma-separated values, with a line of headings.
    pub fn csv(&self) -> String {
        let mut out = String::from(concat!(
            "local,remote,time_us,cwnd,ssthresh,srtt_us,min_rtt_us,in_flight,",
            "in_device,device_limit,pacing_rate,notsent,snd_wnd,delivered,retrans",
            "\n"
        ));
        for (local, remote, samples) in self.connections() {
            for sample in samples {
                let Sample {
                    at_us,
                    cwnd,
                    ssthresh,
                    srtt_us,
                    min_rtt_us,
                    in_flight,
                    in_device,
                    device_limit,
                    pacing_rate,
                    notsent,
                    snd_wnd,
                    delivered,
                    retrans,
                } = sample;
                let _ = writeln!(
                    out,
                    "{local},{remote},{at_us},{cwnd},{ssthresh},{srtt_us},{min_rtt_us},\
                     {in_flight},{in_device},{device_limit},{pacing_rate},{notsent},{snd_wnd},{delivered},{retrans}"
                );
            }
        }
        out
    }

    /// The connection that delivered most, drawn.
    pub fn chart(&self, title: &str) -> Option<Chart> {
        let (local, remote, samples) = self
            .connections()
            .max_by_key(|(_, _, samples)| samples.last().map_or(0, |last| last.delivered))?;
        let points = |value: fn(&Sample) -> u64| -> Vec<(u64, u64)> {
            samples
                .iter()
                .map(|sample| (sample.at_us, value(sample)))
                .collect()
        };
        let steps = |name: &str, value| Series::new(name, Style::Steps, points(value));
        // Before the first loss there is no threshold to speak of.
        let known = |sample: &&Sample| sample.ssthresh < 1 << 30;
        let threshold = |sample: &Sample| (sample.at_us, u64::from(sample.ssthresh));
        let ssthresh = samples.iter().filter(known).map(threshold).collect();
        Some(Chart {
            title: format!("{title}: {local} to {remote}"),
            x: Axis::new("time, s", 1_000_000),
            panels: vec![
                Panel {
                    y: Axis::new("KB", 1000),
                    series: vec![
                        steps("in flight", |sample| u64::from(sample.in_flight)),
                        Series::new("ssthresh", Style::Reference, ssthresh),
                        steps("cwnd", |sample| u64::from(sample.cwnd)),
                    ],
                },
                Panel {
                    y: Axis::new("ms", 1000),
                    series: vec![
                        steps("srtt", |sample| u64::from(sample.srtt_us)),
                        steps("min RTT", |sample| u64::from(sample.min_rtt_us)),
                    ],
                },
                Panel {
                    y: Axis::new("KB", 1000),
                    series: vec![
                        steps("in device", |sample| u64::from(sample.in_device)),
                        steps("limit there", |sample| u64::from(sample.device_limit)),
                    ],
                },
                Panel {
                    y: Axis::new("Mb/s", 1_000_000),
                    series: vec![Series::new("delivered", Style::Steps, rates(samples))],
                },
                Panel {
                    y: Axis::new("segments", 1),
                    series: vec![steps("sent again", |sample| sample.retrans)],
                },
            ],
        })
    }
}

/// Bits per second delivered, over steps of a hundredth of the time.
fn rates(samples: &[Sample]) -> Vec<(u64, u64)> {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return Vec::new();
    };
    let step_us = ((last.at_us - first.at_us) / 100).max(1);
    let mut rates = Vec::new();
    let mut begin = first;
    for sample in samples {
        let span_us = sample.at_us - begin.at_us;
        if span_us >= step_us {
            let bits = (sample.delivered - begin.delivered) * 8;
            let bps = u128::from(bits) * 1_000_000 / u128::from(span_us);
            rates.push((sample.at_us, bps as u64));
            begin = sample;
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{Link, Network, NicConfig, apps};

    #[test]
    fn a_transfer_is_traced() {
        let link = Link {
            rate_bps: Some(10_000_000),
            delay: Duration::from_millis(5),
            ..Link::default()
        };
        let (mut network, a, b) = Network::pair(NicConfig::default(), link);
        network.trace(&a, Duration::ZERO);
        let _ = apps::sink(&mut network, &b, 80, |_| {});
        let _ = apps::send(&mut network, &a, (&b, 80), 1_000_000, |_| {});
        network.run_for(Duration::from_millis(500));
        let trace = network.take_trace(&a).expect("it was begun");
        let (_, remote, samples) = trace.connections().next().expect("a connection");
        assert_eq!(remote, apps::address((&b, 80)));
        assert!(samples.is_sorted_by_key(|sample| (sample.at_us, sample.delivered)));
        let last = samples.last().expect("samples");
        assert!(
            last.delivered > 400_000 && last.min_rtt_us >= 10_000,
            "{last:?}"
        );
        assert!(last.in_flight <= last.cwnd, "{last:?}");
        let csv = trace.csv();
        let columns = |line: &str| line.split(',').count();
        assert_eq!(csv.lines().count(), samples.len() + 1);
        let headings = csv.lines().next().map_or(0, columns);
        assert!(headings >= 13 && !csv.contains(' '));
        assert!(csv.lines().all(|line| columns(line) == headings));
        let rates = rates(samples);
        let most = rates.iter().map(|(_, rate)| *rate).max();
        assert!(
            (9_000_000..14_000_000).contains(&most.unwrap_or(0)),
            "{rates:?}"
        );
        assert!(trace.chart("test").is_some());
    }
}
