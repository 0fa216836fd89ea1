//! The command line.

use lexopt::{Arg, Parser, ValueExt};
use paceline_stack::sim::figures::bulk::Cell;
use std::path::PathBuf;

pub(crate) const HELP: &str = "\
Measures one direction of bulk transfer between Linux and Linux, Paceline and Linux, and Linux and
Paceline, over paths with delay, loss and reordering, and prints a table.

    cargo bench -p paceline-guest --bench path -- [OPTION]...

  --quick            a few paths, one round: 3 minutes
  --full             all paths, not every second one
  --rtt LIST         only these round-trip times, in milliseconds
  --loss LIST        only these shares of loss, in percent
  --reorder WHICH    only 'no' or 'yes': 5% of packets an eighth of a round trip late
  --rounds N         rounds; the table has medians (3)
  --time SECONDS     length of each turn (3 to 12, by round-trip time)
  --set NAME=VALUE   one of Paceline's settings by its sysctl's name; may be repeated
  --markdown FILE    write the table there too
  --pcap FOLDER      write there what each turn's sender sends and receives
  --counters         print what both sides have counted in each turn
  --help             this

Each path is a bottleneck of 100 Mbit/s with a queue of one bandwidth-delay product and 64 packets;
data meets loss and reordering behind it, acknowledgments delay only. Linux is iperf3 in a network
namespace of its own, Paceline a process with the guest's iperf3 server. All send frames of at most
1,500 bytes of IP: the interfaces offer no segmentation or checksum offload, and the emulator
refuses longer ones, so that loss hits the same packets of all. Needs root, /dev/net/tun, iperf3,
iproute2 and util-linux. Nothing is left behind when it is interrupted.
";

/// Round-trip times in microseconds, and which of them are for `--quick`.
const RTTS_US: [(u64, bool); 5] = [
    (100, false),
    (1000, true),
    (10_000, false),
    (50_000, true),
    (200_000, false),
];

/// Shares of loss in millionths, and the least effort that measures them.
const LOSSES_PPM: [(u32, Effort); 5] = [
    (0, Effort::Quick),
    (100, Effort::Full),
    (1000, Effort::Coarse),
    (10_000, Effort::Quick),
    (30_000, Effort::Full),
];

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Effort {
    Quick,
    Coarse,
    Full,
}

/// What to do.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) cells: Vec<Cell>,
    pub(crate) rounds: usize,
    pub(crate) seconds: Option<u64>,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) markdown: Option<PathBuf>,
    pub(crate) pcap: Option<PathBuf>,
    pub(crate) counters: bool,
}

pub(crate) enum Parsed {
    Help,
    Run(Options),
}

pub(crate) fn parse(mut parser: Parser) -> Result<Parsed, lexopt::Error> {
    let mut effort = Effort::Coarse;
    let mut rounds = None;
    let (mut rtts, mut losses, mut reorders) = (None, None, vec![false, true]);
    let mut options = Options {
        cells: Vec::new(),
        rounds: 3,
        seconds: None,
        settings: Vec::new(),
        markdown: None,
        pcap: None,
        counters: false,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("help") | Arg::Short('h') => return Ok(Parsed::Help),
            // What cargo says.
            Arg::Long("bench") => (),
            Arg::Long("quick") => effort = Effort::Quick,
            Arg::Long("full") => effort = Effort::Full,
            Arg::Long("rtt") => rtts = Some(list(&mut parser, 1000, 10_000_000)?),
            Arg::Long("loss") => losses = Some(list(&mut parser, 10_000, 1_000_000)?),
            Arg::Long("reorder") => {
                reorders = match parser.value()?.string()?.as_str() {
                    "no" => vec![false],
                    "yes" => vec![true],
                    other => return Err(format!("expected 'no' or 'yes', got '{other}'").into()),
                }
            }
            Arg::Long("rounds") => rounds = Some(at_least_one(parser.value()?.parse()?)?),
            Arg::Long("time") => options.seconds = Some(at_least_one(parser.value()?.parse()?)?),
            Arg::Long("set") => {
                let text = parser.value()?.string()?;
                let Some((name, value)) = text.split_once('=') else {
                    return Err(format!("expected NAME=VALUE, got '{text}'").into());
                };
                options.settings.push((name.into(), value.into()));
            }
            Arg::Long("markdown") => options.markdown = Some(parser.value()?.into()),
            Arg::Long("pcap") => options.pcap = Some(parser.value()?.into()),
            Arg::Long("counters") => options.counters = true,
            _ => return Err(arg.unexpected()),
        }
    }
    let rtts = rtts.unwrap_or_else(|| {
        let all = RTTS_US.iter();
        all.filter(|(_, quick)| *quick || effort > Effort::Quick)
            .map(|(rtt_us, _)| *rtt_us)
            .collect()
    });
    let losses = losses.unwrap_or_else(|| {
        let all = LOSSES_PPM.iter();
        all.filter(|(_, least)| effort >= *least)
            .map(|(loss_ppm, _)| u64::from(*loss_ppm))
            .collect()
    });
    options.rounds = rounds.unwrap_or(if effort == Effort::Quick { 1 } else { 3 });
    for &rtt_us in &rtts {
        for &loss_ppm in &losses {
            options.cells.extend(reorders.iter().map(|&reorder| Cell {
                rtt_us,
                loss_ppm: loss_ppm as u32,
                reorder,
            }));
        }
    }
    Ok(Parsed::Run(options))
}

/// A list of numbers with decimals, in the given parts of one, none over `most`.
fn list(parser: &mut Parser, parts: u32, most: u32) -> Result<Vec<u64>, lexopt::Error> {
    let text = parser.value()?.string()?;
    let number = |word: &str| {
        let value = word.trim().parse::<f64>().ok()?;
        let value = (value * f64::from(parts)).round();
        (0.0..=f64::from(most))
            .contains(&value)
            .then_some(value as u64)
    };
    let numbers = text.split(',').map(number).collect::<Option<Vec<_>>>();
    numbers.ok_or_else(|| {
        let most = most / parts;
        format!("expected numbers from 0 to {most} with commas between, got '{text}'").into()
    })
}

fn at_least_one<T: PartialOrd + From<u8>>(value: T) -> Result<T, lexopt::Error> {
    if value >= T::from(1) {
        Ok(value)
    } else {
        Err("expected at least 1".into())
    }
}
