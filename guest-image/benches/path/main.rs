//! Paceline's TCP beside Linux's over emulated paths.
//!
//! `cargo bench -p paceline-guest --bench path -- --help` says what it does and takes.

mod lab;
mod options;
mod ours;
mod table;

use lab::{Lab, Pairing, Turn};
use options::{HELP, Options, Parsed};
use paceline_stack::sim::figures::bulk::{Cell, RATE_BPS};
use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;
use std::time::Duration;
use table::{Row, Table};

/// How often a turn that has failed is tried.
const TRIES: usize = 3;

fn main() -> ExitCode {
    let options = match options::parse(lexopt::Parser::from_env()) {
        Ok(Parsed::Run(options)) => options,
        Ok(Parsed::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("path: {error}; see --help");
            return ExitCode::from(2);
        }
    };
    if let Some(reason) = paceline_host::missing(&["chrt", "setpriv"]) {
        eprintln!("path: {reason}");
        return ExitCode::FAILURE;
    }
    match run(&options) {
        Ok(table) => {
            print!("{}", table.text());
            if let Some(path) = &options.markdown
                && let Err(error) = std::fs::write(path, table.markdown())
            {
                eprintln!("path: {}: {error}", path.display());
                return ExitCode::FAILURE;
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("path: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures all cells.
fn run(options: &Options) -> io::Result<Table> {
    let mut estimate = options.cells.iter().map(|cell| span(options, *cell)).sum();
    eprintln!(
        "{} paths, {} rounds of {} turns: about {} minutes",
        options.cells.len(),
        options.rounds,
        Pairing::ALL.len(),
        minutes(estimate),
    );
    let lab = Lab::new(options)?;
    let mut rows = Vec::new();
    for (index, &cell) in options.cells.iter().enumerate() {
        eprintln!(
            "[{}/{}] {} (about {} minutes left)",
            index + 1,
            options.cells.len(),
            table::name(cell),
            minutes(estimate),
        );
        estimate -= span(options, cell).min(estimate);
        rows.push(measure(options, &lab, cell)?);
    }
    Ok(Table { rows })
}

/// Measures one cell: in each round every pairing has a turn, over a path with the same seed.
fn measure(options: &Options, lab: &Lab, cell: Cell) -> io::Result<Row> {
    let (seconds, flows) = (seconds(options, cell), flows(cell));
    let mut rounds = Vec::new();
    for round in 0..options.rounds {
        let mut order = Pairing::ALL;
        order.rotate_left(round % Pairing::ALL.len());
        let mut turns = BTreeMap::new();
        for pairing in order {
            let turn = try_turn(|| lab.turn(options, pairing, cell, round, seconds, flows))?;
            eprintln!(
                "  {:<14} {:8.2} Mbit/s, {}",
                pairing.name(),
                turn.mbps,
                turn.details()
            );
            turns.insert(pairing, turn);
        }
        rounds.push(turns);
    }
    Ok(Row {
        cell,
        flows,
        rounds,
    })
}

/// A turn, tried again if it fails: where much is lost, a client may give up before it begins.
fn try_turn(turn: impl Fn() -> io::Result<Turn>) -> io::Result<Turn> {
    let mut tries = 1;
    loop {
        match turn() {
            Err(error) if tries < TRIES => eprintln!("  again: {error}"),
            result => return result,
        }
        tries += 1;
    }
}

/// Seconds that data flows in a turn: some tens of round trips at least.
fn seconds(options: &Options, cell: Cell) -> u64 {
    options.seconds.unwrap_or(match cell.rtt_us {
        0..=10_000 => 3,
        10_001..=50_000 => 6,
        _ => 12,
    })
}

/// Flows at a time. Where loss keeps one far below the path's rate, several see more losses in the
/// same time, and are still not in each other's way.
fn flows(cell: Cell) -> u64 {
    let (allowed_bps, _) = cell.allowed();
    (RATE_BPS / 3 / allowed_bps).clamp(1, 16)
}

/// About how long a cell takes.
fn span(options: &Options, cell: Cell) -> Duration {
    // Handshakes and iperf3's own messages take some round trips.
    let turn = Duration::from_secs(seconds(options, cell))
        + Duration::from_micros(10 * cell.rtt_us)
        + Duration::from_millis(200);
    let turns = options.rounds * Pairing::ALL.len();
    turn * u32::try_from(turns).unwrap_or(u32::MAX)
}

fn minutes(span: Duration) -> u64 {
    span.as_secs().div_ceil(60)
}
