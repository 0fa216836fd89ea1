//! Paceline over Linux, from pairs of neighbouring slices.

use serde::Serialize;

use crate::{domain::Kind, results::GuestRun};

/// The comparison of one test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    /// The row's name.
    pub(crate) test: String,
    /// Paceline's rate over Linux's: the median of the pairs of all rounds.
    pub(crate) median: f64,
    /// How many pairs there were.
    pub(crate) pairs: usize,
    /// The median of each round's own pairs, in the rounds' order.
    pub(crate) rounds: Vec<f64>,
}

impl Ratio {
    /// The lowest of the rounds' medians.
    pub(crate) fn lowest(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The highest of the rounds' medians.
    pub(crate) fn highest(&self) -> f64 {
        self.rounds
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max)
    }
}

/// The ratios of all tests that both guests took, in the order of the rows.
pub(crate) fn ratios(runs: &[GuestRun]) -> Vec<Ratio> {
    let mut tests: Vec<&str> = Vec::new();
    for row in runs.iter().flat_map(|run| &run.rows) {
        if !tests.contains(&row.test.as_str()) {
            tests.push(&row.test);
        }
    }
    tests
        .into_iter()
        .filter_map(|test| ratio(runs, test))
        .collect()
}

fn ratio(runs: &[GuestRun], test: &str) -> Option<Ratio> {
    let ours = runs.iter().filter(|run| run.guest == Kind::Paceline);
    let rounds: Vec<Vec<f64>> = ours
        .filter_map(|ours| {
            let theirs = runs
                .iter()
                .find(|run| run.guest == Kind::Linux && run.round == ours.round)?;
            Some(pairs(&rates(ours, test), &rates(theirs, test)))
        })
        .collect();
    let all = rounds.concat();
    Some(Ratio {
        test: test.to_owned(),
        median: median(&all)?,
        pairs: all.len(),
        rounds: rounds.iter().filter_map(|pairs| median(pairs)).collect(),
    })
}

/// The rates of a guest's slices.
fn rates(run: &GuestRun, test: &str) -> Vec<f64> {
    run.rows
        .iter()
        .filter(|row| row.test == test)
        .flat_map(|row| &row.slices)
        .map(|slice| slice.mbit_per_s)
        .collect()
}

/// The nth slice of one guest ran beside the nth of the other. A slice in which nothing moved
/// compares with nothing.
fn pairs(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter()
        .zip(theirs)
        .filter(|(_, theirs)| **theirs > 0.0)
        .map(|(ours, theirs)| ours / theirs)
        .collect()
}

/// The middle of `values`, or the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests;
