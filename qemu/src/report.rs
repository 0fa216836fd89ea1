//! The printed table.

use std::fmt::Write;

use crate::{
    domain::Kind,
    results::{GuestRun, Results, Row},
};

const UNKNOWN: &str = "-";

/// The report of a whole run.
pub(crate) fn render(results: &Results) -> String {
    let mut text = header(results);
    for run in &results.boots {
        text.push('\n');
        text.push_str(&guest(run, results));
    }
    let ratios = ratios(results);
    if !ratios.is_empty() {
        text.push('\n');
        text.push_str(&ratios);
    }
    text
}

fn header(results: &Results) -> String {
    let versions = &results.versions;
    let host = format!(
        "QEMU {} ({}), Xen {}, dom0 Linux {}, iperf3 {}",
        versions.qemu, results.accel, versions.xen, versions.dom0_kernel, versions.iperf3
    );
    let paceline = match (&results.paceline, results.paceline_image_bytes) {
        (Some(version), Some(bytes)) => {
            format!("Paceline {version}, image {} KiB\n", bytes.div_ceil(1_024))
        }
        _ => String::new(),
    };
    format!(
        "{host}\n{paceline}dom0 ready after {:.1} s\n",
        results.dom0_ready_s
    )
}

fn guest(run: &GuestRun, results: &Results) -> String {
    let GuestRun {
        guest,
        round,
        memory_mib,
        boot,
        rows,
    } = run;
    let mut lines =
        vec![["", "Mbit/s", "retransmits", "dom0 s/GB", "guest s/GB"].map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    let several = results
        .boots
        .iter()
        .filter(|other| other.guest == *guest)
        .count()
        > 1;
    let round = if several {
        format!(", round {round}")
    } else {
        String::new()
    };
    format!(
        "{}{round}: {memory_mib} MiB, xl create {:.2} s, first ping {:.2} s later\n{}",
        guest.name(),
        boot.create_s,
        boot.first_ping_s,
        table(&lines)
    )
}

fn cells(row: &Row) -> [String; 5] {
    let Row {
        test,
        mbit_per_s,
        retransmits,
        dom0_cpu_s_per_gb,
        guest_cpu_s_per_gb,
    } = row;
    let seconds = |value: &Option<f64>| {
        value.map_or_else(|| UNKNOWN.to_owned(), |seconds| format!("{seconds:.1}"))
    };
    [
        test.clone(),
        format!("{mbit_per_s:.0}"),
        retransmits.map_or_else(|| UNKNOWN.to_owned(), |count| count.to_string()),
        seconds(dom0_cpu_s_per_gb),
        seconds(guest_cpu_s_per_gb),
    ]
}

/// Paceline's rates over Linux's, by test, when both took part.
fn ratios(results: &Results) -> String {
    let mut tests: Vec<&str> = Vec::new();
    for row in results.boots.iter().flat_map(|run| &run.rows) {
        if !tests.contains(&row.test.as_str()) {
            tests.push(&row.test);
        }
    }
    let mut lines = vec![["", "paceline", "linux", "ratio"].map(str::to_owned)];
    for test in tests {
        let (Some(ours), Some(theirs)) = (
            results.median_mbit_per_s(Kind::Paceline, test),
            results.median_mbit_per_s(Kind::Linux, test),
        ) else {
            continue;
        };
        lines.push([
            test.to_owned(),
            format!("{ours:.0}"),
            format!("{theirs:.0}"),
            format!("{:.2}", ours / theirs),
        ]);
    }
    if lines.len() == 1 {
        return String::new();
    }
    format!("paceline / linux, medians of Mbit/s\n{}", table(&lines))
}

/// Columns as wide as their widest cell; the first is aligned left, the others right.
fn table<const N: usize>(lines: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for line in lines {
        let mut row = String::from(" ");
        for (column, (width, cell)) in widths.iter().zip(line).enumerate() {
            // Writing to a string cannot fail.
            let _ = match column {
                0 => write!(row, " {cell:<width$}"),
                _ => write!(row, "  {cell:>width$}"),
            };
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
