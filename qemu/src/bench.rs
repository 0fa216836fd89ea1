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
    report,
    results::{GuestRun, Results, Row, SCHEMA},
    tools,
    workspace::{Workspace, write_atomically},
    xen_rig::{self, XenRig},
};

/// One iperf3 run from dom0.
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
        time_s: options.time_s,
        dom0_ready_s: rig.dom0_ready_s,
        boots: Vec::new(),
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
    let kinds: Vec<_> = [
        options.guests.linux().then_some(Kind::Linux),
        options.guests.paceline().then_some(Kind::Paceline),
    ]
    .into_iter()
    .flatten()
    .collect();
    for kind in &kinds {
        domain::follow_console(dom0, *kind)?;
    }
    for round in 1..=options.rounds {
        for kind in &kinds {
            results
                .boots
                .push(measure_guest(dom0, options, *kind, round)?);
        }
    }
    Ok(())
}

fn measure_guest(
    dom0: &mut Agent,
    options: &RunOptions,
    guest: Kind,
    round: u32,
) -> Result<GuestRun> {
    let spec = Spec::new(guest, options.rig.memory_mib, &options.rig.cmdline);
    let name = guest.name();
    let boot = phase(&format!("{name}: boot"), || domain::boot(dom0, &spec))?;
    let mut rows = Vec::new();
    for test in tests(options.flows) {
        let label = format!("{name}: iperf3 {}", test.names.join(" and "));
        let measured = phase(&label, || measure_test(dom0, guest, &test, options.time_s));
        rows.extend(measured.map_err(|error| diagnosed(dom0, guest, &error))?);
    }
    phase(&format!("{name}: shut down"), || {
        domain::shutdown(dom0, guest)
    })?;
    Ok(GuestRun {
        guest,
        round,
        memory_mib: spec.memory_mib,
        boot,
        rows,
    })
}

/// Adds to an error what dom0 and the guest say about it, when they still can.
fn diagnosed(dom0: &mut Agent, guest: Kind, error: &anyhow::Error) -> anyhow::Error {
    match domain::diagnosis(dom0, guest) {
        Ok(text) => anyhow::anyhow!("{error:#}\nin dom0:\n{text}"),
        Err(silence) => anyhow::anyhow!("{error:#}\ndom0: {silence:#}"),
    }
}

fn measure_test(dom0: &mut Agent, guest: Kind, test: &Test, time_s: u32) -> Result<Vec<Row>> {
    let before = domain::cpu_times(dom0, guest)?;
    let measurement = domain::iperf3(dom0, &test.args, time_s)?;
    let after = domain::cpu_times(dom0, guest)?;
    let (dom0_s, guest_s) = (after.dom0_s - before.dom0_s, after.guest_s - before.guest_s);
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
    Ok(test
        .names
        .iter()
        .zip(&flows)
        .map(|(name, flow)| Row::new(name.clone(), flow, bytes, dom0_s, guest_s))
        .collect())
}
