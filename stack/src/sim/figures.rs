//! The figures this stack is held to: experiments in virtual time that know their line.
//!
//! Each figure is a function that runs its experiment and returns rows with the checks they must
//! pass. `cargo run -p paceline-stack --example seeds --release` prints them all, `tests/seeds.rs`
//! gates them.

pub mod bulk;
mod check;
pub mod cubic;
pub mod hystart;
pub mod notsent_lowat;
pub mod tsq;

use super::svg::Chart;
use alloc::{string::String, vec::Vec};

pub use check::{Check, Unit};

/// All figures, in the order they are printed.
pub const ALL: &[Figure] = &[
    Figure {
        name: "tsq",
        title: "Bytes in the device",
        run: tsq::run,
    },
    Figure {
        name: "notsent_lowat",
        title: "TCP_NOTSENT_LOWAT: who is told when data leaves the queue",
        run: notsent_lowat::run,
    },
    Figure {
        name: "hystart",
        title: "HyStart",
        run: hystart::run,
    },
    Figure {
        name: "cubic",
        title: "CUBIC",
        run: cubic::run,
    },
    Figure {
        name: "bulk",
        title: "Bulk transfer",
        run: bulk::run,
    },
];

/// A figure that can be run.
#[derive(Clone, Copy)]
pub struct Figure {
    /// Short name, for the command line and file names.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Runs the experiment.
    pub run: fn(&Effort<'_>) -> Report,
}

/// How much work a figure may make.
#[derive(Clone, Copy)]
pub struct Effort<'a> {
    /// Less of it: fewer points or shorter runs, for the gate in `cargo test`. Every line is
    /// still checked, on the points that are left.
    pub quick: bool,
    /// Told what is being run, for the impatient.
    pub progress: &'a dyn Fn(&str),
}

/// What a figure found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was done and what is expected, in a few sentences.
    pub intro: String,
    /// Headings of the table.
    pub columns: Vec<&'static str>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Plots, each with a name for its file.
    pub charts: Vec<(&'static str, Chart)>,
}

impl Report {
    /// Checks that were not met.
    pub fn missed(&self) -> impl Iterator<Item = &Check> {
        self.rows
            .iter()
            .flat_map(|row| &row.checks)
            .filter(|check| !check.met)
    }

    /// The table, as text or as Markdown.
    pub fn table(&self, markdown: bool) -> String {
        let count = self.columns.len();
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.len()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(&row.cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut out = String::new();
        let mut line = |cells: &mut dyn Iterator<Item = &str>| {
            let start = out.len();
            let (left, between) = if markdown { ("| ", " | ") } else { ("", "  ") };
            out.push_str(left);
            for (column, cell) in cells.enumerate().take(count) {
                if column > 0 {
                    out.push_str(between);
                }
                out.push_str(cell);
                let pad = widths[column].saturating_sub(cell.chars().count());
                out.extend(core::iter::repeat_n(' ', pad));
            }
            if markdown {
                out.push_str(" |");
            }
            let end = start + out[start..].trim_end().len();
            out.truncate(end);
            out.push('\n');
        };
        line(&mut self.columns.iter().copied());
        if markdown {
            line(&mut core::iter::repeat_n("---", count));
        }
        for row in &self.rows {
            line(&mut row.cells.iter().map(String::as_str));
        }
        out
    }
}

/// A row of a figure's table.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// One for each column.
    pub cells: Vec<String>,
    /// What must hold of it.
    pub checks: Vec<Check>,
}

#[cfg(test)]
mod tests;
