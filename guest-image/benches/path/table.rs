//! What is printed.

use crate::lab::{Pairing, Turn};
use paceline_stack::sim::figures::bulk::Cell;
use std::collections::BTreeMap;
use std::fmt::Write;

/// No cell is to be under this share of Linux.
const LEAST: f64 = 0.9;

/// A cell's measurements.
pub(crate) struct Row {
    pub(crate) cell: Cell,
    pub(crate) flows: u64,
    /// Each round's turns.
    pub(crate) rounds: Vec<BTreeMap<Pairing, Turn>>,
}

/// All of them.
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
}

/// What a cell is called.
pub(crate) fn name(cell: Cell) -> String {
    let [rtt, loss, reorder] = cell.name();
    format!("{rtt}, {loss} loss, {reorder} reordering")
}

impl Row {
    /// The median over the rounds, in Mbit/s.
    fn mbps(&self, pairing: Pairing) -> f64 {
        median(self.rounds.iter().map(|turns| turns[&pairing].mbps))
    }

    /// Each round's ratio to Linux alone.
    fn ratios(&self, pairing: Pairing) -> impl Iterator<Item = f64> {
        self.rounds
            .iter()
            .map(move |turns| turns[&pairing].mbps / turns[&Pairing::LinuxToLinux].mbps)
    }

    fn ratio(&self, pairing: Pairing) -> f64 {
        median(self.ratios(pairing))
    }

    /// The median ratio, with the lowest and the highest.
    fn ratio_text(&self, pairing: Pairing) -> String {
        let least = self.ratios(pairing).fold(f64::INFINITY, f64::min);
        let most = self.ratios(pairing).fold(0.0, f64::max);
        format!("{:.2} ({least:.2} to {most:.2})", self.ratio(pairing))
    }

    fn cells(&self) -> [String; 9] {
        let [rtt, loss, reorder] = self.cell.name();
        let mbps = |pairing| format!("{:.2}", self.mbps(pairing));
        [
            rtt,
            loss,
            reorder,
            self.flows.to_string(),
            mbps(Pairing::LinuxToLinux),
            mbps(Pairing::OursToLinux),
            self.ratio_text(Pairing::OursToLinux),
            mbps(Pairing::LinuxToOurs),
            self.ratio_text(Pairing::LinuxToOurs),
        ]
    }
}

const HEADINGS: [&str; 9] = [
    "RTT",
    "loss",
    "late",
    "flows",
    "Linux to Linux, Mbit/s",
    "Paceline to Linux, Mbit/s",
    "ratio",
    "Linux to Paceline, Mbit/s",
    "ratio",
];

impl Table {
    /// For a terminal.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let short = [
            "RTT",
            "loss",
            "late",
            "flows",
            "Linux",
            "ours>Linux",
            "ratio",
            "Linux>ours",
            "ratio",
        ];
        for cells in [short.map(String::from)]
            .into_iter()
            .chain(self.rows.iter().map(Row::cells))
        {
            let [
                rtt,
                loss,
                late,
                flows,
                linux,
                from,
                from_ratio,
                to,
                to_ratio,
            ] = cells;
            // Nothing fails here, nor below.
            let _ = writeln!(
                text,
                "{rtt:>7} {loss:>6} {late:>4} {flows:>5} {linux:>8} {from:>10} {from_ratio:>21} {to:>10} \
                 {to_ratio:>21}"
            );
        }
        let _ = write!(text, "\n{}", self.summary());
        text
    }

    /// For a page.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from(INTRO);
        let _ = writeln!(text, "\n| {} |", HEADINGS.join(" | "));
        let _ = writeln!(text, "|{}", "---|".repeat(HEADINGS.len()));
        for row in &self.rows {
            let _ = writeln!(text, "| {} |", row.cells().join(" | "));
        }
        let _ = write!(text, "\n{}", self.summary());
        text
    }

    /// The lowest ratio, and how many reach what.
    fn summary(&self) -> String {
        let mut text = String::new();
        for pairing in [Pairing::OursToLinux, Pairing::LinuxToOurs] {
            let ratio = |row: &Row| row.ratio(pairing);
            let lowest = self
                .rows
                .iter()
                .min_by(|a, b| ratio(a).total_cmp(&ratio(b)));
            let Some(lowest) = lowest else {
                continue;
            };
            let count = |least: f64| self.rows.iter().filter(|row| ratio(row) >= least).count();
            let _ = writeln!(
                text,
                "{}: of {} paths, {} reach Linux's rate and {} reach {LEAST} of it; the lowest ratio is \
                 {:.2} ({}).",
                pairing.name(),
                self.rows.len(),
                count(1.0),
                count(LEAST),
                ratio(lowest),
                name(lowest.cell),
            );
        }
        text
    }
}

const INTRO: &str = "\
# Beside Linux's TCP over emulated paths

Written by `cargo bench -p paceline-guest --bench path -- --markdown FILE` (root; `--help` tells what a
path is and what else it takes). Bulk transfer in one direction, by turns over paths with the same seed,
frames of 1,500 bytes and equal buffers at all ends. Both sides run CUBIC as they do by default: Linux
without pacing, Paceline with. Each turn begins with a new connection, so that slow start is in it.
Figures are medians of the rounds; ratios are medians of each round's ratio, with the lowest and the
highest. Where several flows are measured, loss keeps one far below the path's rate, and they are added
up. Late: how many packets arrive an eighth of a round trip late.
";

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}
