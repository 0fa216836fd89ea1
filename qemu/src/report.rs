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
    let clock = match results.clock.note() {
        Some(note) => format!("{note}\n"),
        None => String::new(),
    };
    format!(
        "{host}\n{paceline}{clock}dom0 ready after {:.1} s of the host\n",
        results.dom0_ready_s
    )
}

fn guest(run: &GuestRun, results: &Results) -> String {
    let GuestRun {
        guest,
        round,
        memory_mib,
        boot,
        reading_cpu_s: _,
        rows,
    } = run;
    let mut lines = vec![
        ["", "Mbit/s", "retransmits", "dom0 s/GB", "guest s/GB"]
            .map(str::to_owned)
            .to_vec(),
    ];
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

fn cells(row: &Row) -> Vec<String> {
    let Row {
        test,
        mbit_per_s,
        retransmits,
        dom0_cpu_s_per_gb,
        guest_cpu_s_per_gb,
        slices: _,
    } = row;
    let seconds = |value: &Option<f64>| {
        value.map_or_else(|| UNKNOWN.to_owned(), |seconds| format!("{seconds:.1}"))
    };
    vec![
        test.clone(),
        format!("{mbit_per_s:.0}"),
        retransmits.map_or_else(|| UNKNOWN.to_owned(), |count| count.to_string()),
        seconds(dom0_cpu_s_per_gb),
        seconds(guest_cpu_s_per_gb),
    ]
}

/// Paceline over Linux, by test, when both took part.
fn ratios(results: &Results) -> String {
    let [first, ..] = &results.ratios[..] else {
        return String::new();
    };
    let rounds = first.rounds.len();
    let mut heads = vec!["", "paceline", "linux", "ratio"];
    if rounds > 1 {
        heads.extend(["lowest", "highest"]);
    }
    let mut lines = vec![heads.into_iter().map(str::to_owned).collect()];
    for ratio in &results.ratios {
        let rate = |guest| {
            results
                .median_mbit_per_s(guest, &ratio.test)
                .map_or_else(|| UNKNOWN.to_owned(), |rate| format!("{rate:.0}"))
        };
        let mut line = vec![
            ratio.test.clone(),
            rate(Kind::Paceline),
            rate(Kind::Linux),
            format!("{:.2}", ratio.median),
        ];
        if rounds > 1 {
            line.extend([ratio.lowest(), ratio.highest()].map(|ratio| format!("{ratio:.2}")));
        }
        lines.push(line);
    }
    let title = if rounds > 1 {
        format!(
            "paceline / linux: medians of {rounds} rounds' Mbit/s; ratios of slices run side by \
             side,\ntheir median, and the lowest and highest of a round's"
        )
    } else {
        "paceline / linux: Mbit/s; median ratio of slices run side by side".to_owned()
    };
    format!("{title}\n{}", table(&lines))
}

/// Columns as wide as their widest cell; the first is aligned left, the others right.
fn table(lines: &[Vec<String>]) -> String {
    let mut widths = vec![0; lines.iter().map(Vec::len).max().unwrap_or(0)];
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
