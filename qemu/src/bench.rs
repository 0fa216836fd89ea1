//! `cargo qemu run`: the measurement.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::{
    agent::Agent,
    cli::RunOptions,
    domain::{self, Kind, Spec},
    guest,
    iperf::Measurement,
    progress::phase,
    ratio, report,
    results::{GuestRun, Results, Row, SCHEMA, Slice},
    slicing::Slicing,
    tools,
    workspace::{Workspace, write_atomically},
    xen_rig::{self, XenRig},
};

/// What iperf3 is run for, from dom0.
#[derive(Clone, Debug)]
struct Test {
    /// The row's name, and that of the second row with both directions.
    names: Vec<String>,
    /// The client's arguments besides address and time.
    args: String,
}

fn tests(flows: u32) -> Vec<Test> {
    let one = |name: &str, args: &str| Test {
        names: vec![name.to_owned()],
        args: args.to_owned(),
    };
    vec![
        one("dom0 → guest", ""),
        one("guest → dom0", "-R"),
        one(
            &format!("dom0 → guest, {flows} flows"),
            &format!("-P {flows}"),
        ),
        one(
            &format!("guest → dom0, {flows} flows"),
            &format!("-P {flows} -R"),
        ),
        Test {
            names: vec![
                "both ways: dom0 → guest".to_owned(),
                "both ways: guest → dom0".to_owned(),
            ],
            args: "--bidir".to_owned(),
        },
    ]
}

/// Runs the command.
pub(crate) fn run(workspace: &Workspace, options: &RunOptions) -> Result<ExitCode> {
    tools::ensure(&[tools::MACHINE])?;
    let image = options
        .guests
        .paceline()
        .then(|| guest::build(workspace))
        .transpose()?;
    let files = xen_rig::prepare(workspace, &options.rig, options.guests, image.as_ref())?;
    let mut rig = XenRig::boot(workspace, &options.rig, &files)?;
    let mut results = Results {
        schema: SCHEMA,
        versions: rig.versions.clone(),
        paceline: image.as_ref().map(|image| image.version.clone()),
        paceline_image_bytes: image.as_ref().map(|image| image.bytes.len()),
        accel: rig.accel.name(),
        clock: rig.accel.clock(),
        time_s: options.time_s,
        dom0_ready_s: rig.dom0_ready_s,
        boots: Vec::new(),
        ratios: Vec::new(),
    };
    measure(&mut rig.dom0, options, &mut results).map_err(|error| rig.explain(error))?;
    let json = serde_json::to_vec_pretty(&results)?;
    let file = workspace.rig()?.join("results.json");
    write_atomically(&file, &json)?;
    println!(
        "\n{}\nresults: {}",
        report::render(&results),
        file.display()
    );
    Ok(ExitCode::SUCCESS)
}

fn measure(dom0: &mut Agent, options: &RunOptions, results: &mut Results) -> Result<()> {
    let kinds = options.guests.kinds();
    for kind in &kinds {
        domain::follow_console(dom0, *kind)?;
    }
    for round in 1..=options.rounds {
        results
            .boots
            .extend(measure_round(dom0, options, &kinds, round)?);
    }
    results.ratios = ratio::ratios(&results.boots);
    Ok(())
}

/// Boots the guests, so that all of them live, and measures them by turns.
fn measure_round(
    dom0: &mut Agent,
    options: &RunOptions,
    kinds: &[Kind],
    round: u32,
) -> Result<Vec<GuestRun>> {
    let mut runs = Vec::new();
    for kind in kinds {
        let spec = Spec::new(*kind, options.rig.memory_mib, &options.rig.cmdline);
        let label = format!("{}: boot", kind.name());
        runs.push(GuestRun {
            guest: *kind,
            round,
            memory_mib: spec.memory_mib,
            boot: phase(&label, || domain::boot(dom0, &spec))?,
            reading_cpu_s: 0.0,
            rows: Vec::new(),
        });
    }
    let reading_cpu_s = domain::reading_cost(dom0)?;
    for run in &mut runs {
        run.reading_cpu_s = reading_cpu_s;
    }
    let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
    let names = names.join(", ");
    let slicing = Slicing::new(kinds, options.time_s, round);
    for test in tests(options.flows) {
        let label = format!("{names}: iperf3 {}", test.names.join(" and "));
        phase(&label, || measure_test(dom0, &test, &slicing, &mut runs))?;
    }
    for kind in kinds {
        phase(&format!("{}: shut down", kind.name()), || {
            domain::shutdown(dom0, *kind)
        })?;
    }
    Ok(runs)
}

/// Adds the rows of `test` to each guest's.
fn measure_test(
    dom0: &mut Agent,
    test: &Test,
    slicing: &Slicing,
    runs: &mut [GuestRun],
) -> Result<()> {
    // By guest and row.
    let mut slices = vec![vec![Vec::new(); test.names.len()]; runs.len()];
    for (turn, guest) in slicing.turns.iter().enumerate() {
        let measured = measure_slice(dom0, *guest, test, slicing.slice_s, turn)
            .map_err(|error| diagnosed(dom0, *guest, &error))?;
        let own = runs
            .iter()
            .zip(&mut slices)
            .filter(|(run, _)| run.guest == *guest);
        for (run, rows) in own {
            for (row, slice) in rows.iter_mut().zip(&measured) {
                row.push(slice.without_reading(run.reading_cpu_s));
            }
        }
    }
    for (run, rows) in runs.iter_mut().zip(slices) {
        let rows = test.names.iter().cloned().zip(rows);
        run.rows
            .extend(rows.map(|(name, slices)| Row::new(name, slices)));
    }
    Ok(())
}

/// Adds to an error what dom0 and the guest say about it, when they still can.
fn diagnosed(dom0: &mut Agent, guest: Kind, error: &anyhow::Error) -> anyhow::Error {
    let name = guest.name();
    match domain::diagnosis(dom0, guest) {
        Ok(text) => anyhow::anyhow!("{name}: {error:#}\nin dom0:\n{text}"),
        Err(silence) => anyhow::anyhow!("{name}: {error:#}\ndom0: {silence:#}"),
    }
}

/// One iperf3 run: a slice for each of the test's rows.
fn measure_slice(
    dom0: &mut Agent,
    guest: Kind,
    test: &Test,
    time_s: u32,
    turn: usize,
) -> Result<Vec<Slice>> {
    let (measurement, cost) = domain::iperf3(dom0, guest, &test.args, time_s)?;
    let Measurement { forward, backward } = measurement;
    let bytes = forward.bytes + backward.map_or(0, |flow| flow.bytes);
    let flows: Vec<_> = [Some(forward), backward].into_iter().flatten().collect();
    if flows.len() != test.names.len() {
        bail!(
            "expected {} directions of iperf3, got {}",
            test.names.len(),
            flows.len()
        );
    }
    Ok(flows
        .iter()
        .map(|flow| Slice::new(turn, flow, bytes, cost))
        .collect())
}
