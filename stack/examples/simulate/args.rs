//! The command line.

use paceline_stack::{
    sim::{CoDelConfig, CompletionTime, Cost, Link, Loss, NicConfig, Reorder},
    time::Duration,
};
use std::{fmt::Write as _, path::PathBuf};

/// What is run.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// The bottleneck, in the direction of the data.
    pub(crate) path: Link,
    pub(crate) rtt: Duration,
    pub(crate) nic: NicConfig,
    pub(crate) flows: usize,
    /// Time from the start of one flow to the start of the next.
    pub(crate) stagger: Duration,
    /// Bytes of request and response of a client beside the flows.
    pub(crate) dialogue: Option<(u64, u64)>,
    pub(crate) think: Duration,
    pub(crate) parallel: usize,
    /// Bytes of a burst and the pause after it, instead of bulk.
    pub(crate) on_off: Option<(u64, Duration)>,
    /// Fixed buffers; none: they follow what is needed.
    pub(crate) sndbuf: Option<u32>,
    pub(crate) rcvbuf: Option<u32>,
    pub(crate) span: Duration,
    pub(crate) seed: u64,
    /// Congestion control of the flows, in turn.
    pub(crate) controls: Vec<String>,
    /// Settings of the senders.
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) csv: Option<PathBuf>,
    pub(crate) svg: Option<PathBuf>,
    pub(crate) pcap: Option<PathBuf>,
    /// Least time between two samples of the trace.
    pub(crate) every: Duration,
}

/// All scenarios, by what they start from.
fn scenarios() -> Vec<Scenario> {
    let ms = Duration::from_millis;
    let base = Scenario {
        name: "bulk",
        about: "one flow over 1 Gb/s and 10 ms, a queue of one BDP",
        path: Link {
            rate_bps: Some(1_000_000_000),
            queue_bytes: Some(1_250_000),
            ..Link::default()
        },
        rtt: ms(10),
        nic: NicConfig {
            gro: true,
            rx_frames: 1024,
            pages: 65_536,
            ..NicConfig::default()
        },
        flows: 1,
        stagger: Duration::ZERO,
        dialogue: None,
        think: Duration::ZERO,
        parallel: 1,
        on_off: None,
        sndbuf: None,
        rcvbuf: None,
        span: Duration::from_secs(10),
        seed: 1,
        controls: Vec::new(),
        settings: Vec::new(),
        csv: None,
        svg: None,
        pcap: None,
        every: Duration::ZERO,
    };
    let of = |name, about, change: &dyn Fn(&mut Scenario)| {
        let mut scenario = base.clone();
        scenario.name = name;
        scenario.about = about;
        change(&mut scenario);
        scenario
    };
    vec![
        base.clone(),
        of(
            "fast",
            "8 Gb/s and 200 us, packets kept whole: the simulator's own speed",
            &|s| {
                s.path.rate_bps = Some(8_000_000_000);
                s.path.queue_bytes = Some(1 << 20);
                s.path.whole_segments = true;
                s.rtt = Duration::from_micros(200);
            },
        ),
        of(
            "xen",
            "a backend that does 8 Gb/s and lets go of slots after 374 us",
            &|s| {
                s.path.rate_bps = None;
                s.path.queue_bytes = None;
                s.path.whole_segments = true;
                s.rtt = Duration::from_micros(100);
                s.nic.backend = Cost::for_rate(8_000_000_000);
                s.nic.completion = CompletionTime::Fixed(Duration::from_micros(374));
                s.span = Duration::from_secs(2);
            },
        ),
        of("wan", "50 Mb/s and 150 ms, a queue of one BDP", &|s| {
            s.path.rate_bps = Some(50_000_000);
            s.path.queue_bytes = Some(937_500);
            s.rtt = ms(150);
        }),
        of("lossy", "100 Mb/s and 50 ms, 0.1% lost at random", &|s| {
            s.path.rate_bps = Some(100_000_000);
            s.path.queue_bytes = Some(625_000);
            s.path.loss = Loss::Random { ppm: 1000 };
            s.rtt = ms(50);
        }),
        of("burst", "the same, lost in bursts of ten", &|s| {
            s.path.rate_bps = Some(100_000_000);
            s.path.queue_bytes = Some(625_000);
            s.path.loss = Loss::Burst {
                begin_ppm: 100,
                end_ppm: 100_000,
                loss_ppm: 1_000_000,
            };
            s.rtt = ms(50);
        }),
        of("reorder", "100 Mb/s and 50 ms, 5% arrive 5 ms late", &|s| {
            s.path.rate_bps = Some(100_000_000);
            s.path.queue_bytes = Some(625_000);
            s.path.reorder = Reorder {
                ppm: 50_000,
                by: ms(5),
            };
            s.rtt = ms(50);
        }),
        of(
            "bloat",
            "20 Mb/s and 40 ms with a queue of 2 MB, a client of 100 bytes beside bulk",
            &|s| {
                s.path.rate_bps = Some(20_000_000);
                s.path.queue_bytes = Some(2_000_000);
                s.rtt = ms(40);
                s.dialogue = Some((100, 100));
                s.think = ms(10);
            },
        ),
        of("codel", "the same with CoDel", &|s| {
            s.path.rate_bps = Some(20_000_000);
            s.path.queue_bytes = Some(2_000_000);
            s.path.codel = Some(CoDelConfig::default());
            s.rtt = ms(40);
            s.dialogue = Some((100, 100));
            s.think = ms(10);
        }),
        of(
            "fair",
            "two flows, 5 s apart, share 100 Mb/s and 20 ms",
            &|s| {
                s.path.rate_bps = Some(100_000_000);
                s.path.queue_bytes = Some(250_000);
                s.rtt = ms(20);
                s.flows = 2;
                s.stagger = Duration::from_secs(5);
                s.span = Duration::from_mins(1);
            },
        ),
        of(
            "rr",
            "requests of 100 bytes, responses of 80 KB, 100 us",
            &|s| {
                s.path.rate_bps = Some(10_000_000_000);
                s.rtt = Duration::from_micros(100);
                s.flows = 0;
                s.dialogue = Some((100, 80_000));
                s.span = Duration::from_secs(1);
            },
        ),
        of(
            "onoff",
            "bursts of 1 MB with 200 ms between, 100 Mb/s, 20 ms",
            &|s| {
                s.path.rate_bps = Some(100_000_000);
                s.path.queue_bytes = Some(250_000);
                s.rtt = ms(20);
                s.on_off = Some((1_000_000, ms(200)));
            },
        ),
    ]
}

pub(crate) fn help() -> String {
    let mut text = String::from(
        "Runs a scenario in virtual time and tells what happened.\n\n\
         usage: cargo run -p paceline-stack --example simulate --features sim --release -- \
         SCENARIO [OPTION VALUE]...\n\nScenarios:\n",
    );
    for Scenario { name, about, .. } in scenarios() {
        let _ = writeln!(text, "  {name:10} {about}");
    }
    text.push_str(
        "
Options change what the scenario says. Times have ns, us, ms or s behind them, rates and sizes k, M
or G (powers of 1000) or Ki, Mi or Gi, shares %.

  --rate RATE           bits a second of the bottleneck; 0: no limit
  --rtt TIME            round-trip time without queues
  --queue SIZE          bytes before the bottleneck; with p behind it, packets; 0: the NIC's ring
  --codel TARGET        CoDel with this target (interval: twenty times that)
  --ecn                 ECN: CoDel marks, and so does a plain queue that is half full
  --loss SHARE          lost at random
  --burst COUNT         loss comes in bursts of this length on average
  --reorder SHARE       arrive late
  --late TIME           how late
  --duplicate SHARE     arrive twice
  --jitter TIME         more delay, at random
  --ack-compression TIME  pure acknowledgments pass at multiples of this
  --whole               no wire cuts large segments: quick, but they are lost whole
  --no-gro              the receiving NIC joins nothing
  --no-offload          NICs without any offload
  --completion TIME     slots come back so long after they were published
  --backend RATE        what the backend of each NIC can do
  --cpu TIME            what each frame costs the hosts
  --mtu BYTES           largest IP packet
  --flows N             bulk flows
  --stagger TIME        between their starts
  --rr REQUEST:RESPONSE a client that asks and waits, beside the flows
  --think TIME          its pause between
  --parallel N          its connections
  --on-off SIZE:TIME    bursts and pauses instead of bulk
  --sndbuf SIZE         fixed, instead of following what is needed
  --rcvbuf SIZE
  --cc NAME[,NAME]...   congestion control of the flows, in turn
  --set NAME=VALUE      a sysctl of the senders
  --seconds N           how long (a decimal number)
  --seed N              what all chance follows from
  --csv FILE            the senders' trace: one line for each change of a connection
  --svg FILE            its plot, of the connection that delivered most
  --pcap FILE           all frames as they left the hosts
  --every TIME          no more samples than one in this
  --help                this text
",
    );
    text
}

/// The scenario to run; none: help is wanted.
pub(crate) fn parse(arguments: &[String]) -> Result<Option<Scenario>, String> {
    let mut arguments = arguments.iter();
    let name = match arguments.next().map(String::as_str) {
        None | Some("--help" | "-h") => return Ok(None),
        Some(name) => name,
    };
    let Some(mut s) = scenarios().into_iter().find(|s| s.name == name) else {
        let names: Vec<_> = scenarios().iter().map(|s| s.name).collect();
        return Err(format!(
            "no scenario {name}; there are {}",
            names.join(", ")
        ));
    };
    let mut loss_ppm = None;
    let mut burst = None;
    let mut ecn = false;
    while let Some(option) = arguments.next() {
        let mut value = || {
            let value = arguments.next().map(String::as_str);
            value.ok_or(format!("{option} wants a value"))
        };
        match option.as_str() {
            "--help" | "-h" => return Ok(None),
            "--rate" => s.path.rate_bps = some(size(value()?)?),
            "--rtt" => s.rtt = time(value()?)?,
            "--queue" => {
                let text = value()?;
                (s.path.queue_bytes, s.path.queue_packets) = match text.strip_suffix('p') {
                    Some(packets) => (None, Some(number(packets)? as u32)),
                    None => (some(size(text)?), None),
                };
            }
            "--codel" => {
                let target = time(value()?)?;
                s.path.codel = Some(CoDelConfig {
                    target,
                    interval: target * 20,
                    ecn: false,
                });
            }
            "--ecn" => ecn = true,
            "--loss" => loss_ppm = Some(share(value()?)?),
            "--burst" => burst = Some(number(value()?)? as u32),
            "--reorder" => s.path.reorder.ppm = share(value()?)?,
            "--late" => s.path.reorder.by = time(value()?)?,
            "--duplicate" => s.path.duplicate_ppm = share(value()?)?,
            "--jitter" => s.path.jitter = time(value()?)?,
            "--ack-compression" => s.path.ack_compression = time(value()?)?,
            "--whole" => s.path.whole_segments = true,
            "--no-gro" => s.nic.gro = false,
            "--no-offload" => {
                s.nic = NicConfig {
                    gro: false,
                    max_tso_bytes: 0,
                    tx_checksum: false,
                    rx_checksum: false,
                    ..s.nic
                }
            }
            "--completion" => s.nic.completion = CompletionTime::Fixed(time(value()?)?),
            "--backend" => s.nic.backend = Cost::for_rate(size(value()?)?.max(1)),
            "--cpu" => s.nic.cpu.per_packet = time(value()?)?,
            "--mtu" => s.nic.mtu_bytes = number(value()?)? as u16,
            "--flows" => s.flows = number(value()?)? as usize,
            "--stagger" => s.stagger = time(value()?)?,
            "--rr" => {
                let (request, response) = pair(value()?)?;
                s.dialogue = Some((size(request)?, size(response)?));
            }
            "--think" => s.think = time(value()?)?,
            "--parallel" => s.parallel = number(value()?)? as usize,
            "--on-off" => {
                let (burst, pause) = pair(value()?)?;
                s.on_off = Some((size(burst)?, time(pause)?));
            }
            "--sndbuf" => s.sndbuf = Some(size(value()?)? as u32),
            "--rcvbuf" => s.rcvbuf = Some(size(value()?)? as u32),
            "--cc" => s.controls = value()?.split(',').map(String::from).collect(),
            "--set" => {
                let text = value()?;
                let (name, value) = text
                    .split_once('=')
                    .ok_or(format!("expected NAME=VALUE, got {text}"))?;
                s.settings.push((name.into(), value.into()));
            }
            "--seconds" => s.span = time(&format!("{}s", value()?))?,
            "--seed" => s.seed = number(value()?)?,
            "--csv" => s.csv = Some(value()?.into()),
            "--svg" => s.svg = Some(value()?.into()),
            "--pcap" => s.pcap = Some(value()?.into()),
            "--every" => s.every = time(value()?)?,
            other => return Err(format!("unknown option {other}")),
        }
    }
    if let Some(ppm) = loss_ppm {
        s.path.loss = Loss::Random { ppm };
    }
    if let (Some(length), Loss::Random { ppm }) = (burst, s.path.loss) {
        let length = length.max(1);
        s.path.loss = Loss::Burst {
            begin_ppm: ppm / length,
            end_ppm: 1_000_000 / length,
            loss_ppm: 1_000_000,
        };
    }
    if ecn {
        match &mut s.path.codel {
            Some(codel) => codel.ecn = true,
            None => s.path.mark_bytes = s.path.queue_bytes.map(|bytes| bytes / 2),
        }
        s.settings.push(("net.ipv4.tcp_ecn".into(), "1".into()));
    }
    Ok(Some(s))
}

fn some(value: u64) -> Option<u64> {
    (value > 0).then_some(value)
}

fn pair(text: &str) -> Result<(&str, &str), String> {
    text.split_once(':')
        .ok_or(format!("expected two values with : between, got {text}"))
}

fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("expected a whole number, got {text}"))
}

/// A decimal number with one of `units` behind it, in the unit that is 1.
fn scaled(text: &str, units: &[(&str, f64)], expected: &str) -> Result<f64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic() || c == '%');
    let unit = &text[digits.len()..];
    let scale = units.iter().find(|(name, _)| *name == unit);
    match (digits.parse::<f64>(), scale) {
        (Ok(value), Some((_, scale))) if value >= 0.0 => Ok(value * scale),
        _ => Err(format!("expected {expected}, got {text}")),
    }
}

fn size(text: &str) -> Result<u64, String> {
    let units = [
        ("", 1.0),
        ("k", 1e3),
        ("K", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("Ki", 1024.0),
        ("Mi", 1024.0 * 1024.0),
        ("Gi", 1024.0 * 1024.0 * 1024.0),
    ];
    Ok(scaled(
        text,
        &units,
        "a number with k, M, G, Ki, Mi or Gi behind it",
    )?
    .round() as u64)
}

fn time(text: &str) -> Result<Duration, String> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let nanos = scaled(text, &units, "a time with ns, us, ms or s behind it")?;
    Ok(Duration::from_nanos(nanos.round() as u64))
}

/// A share in parts of a million.
fn share(text: &str) -> Result<u32, String> {
    let ppm = scaled(text, &[("%", 1e4), ("ppm", 1.0)], "a share in % or ppm")?;
    if ppm > 1e6 {
        return Err(format!("expected 100% at most, got {text}"));
    }
    Ok(ppm.round() as u32)
}
