//! The figures keep their lines, on fewer points than `--example seeds` runs.

use paceline_stack::sim::figures::{ALL, Effort};

/// Runs one figure; a missed line is told with what was expected and what came.
fn gate(name: &str) {
    let figure = ALL
        .iter()
        .find(|figure| figure.name == name)
        .expect("it is in the list");
    let effort = Effort {
        quick: true,
        progress: &|_| {},
    };
    let report = (figure.run)(&effort);
    let missed: Vec<_> = report.missed().collect();
    assert!(missed.is_empty(), "{missed:#?}\n{}", report.table(false));
    let checks = report.rows.iter().map(|row| row.checks.len());
    assert!(checks.sum::<usize>() > 0, "a figure without a line");
}

#[test]
fn tsq() {
    gate("tsq");
}

#[test]
fn notsent_lowat() {
    gate("notsent_lowat");
}

#[test]
fn hystart() {
    gate("hystart");
}

#[test]
fn cubic() {
    gate("cubic");
}

#[test]
fn bulk() {
    gate("bulk");
}

/// Nobody can add a figure and forget it here.
#[test]
fn all_are_gated() {
    let gated = ["tsq", "notsent_lowat", "hystart", "cubic", "bulk"];
    let names: Vec<_> = ALL.iter().map(|figure| figure.name).collect();
    assert_eq!(names, gated);
}
