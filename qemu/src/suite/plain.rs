//! Steps under plain QEMU, the same on each machine model.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, bail};

use super::{Action, Step};
use crate::{
    cli::RigOptions,
    plain::{IP, Model, Plain, STATUS_CRASH, STATUS_OFF},
    workspace::Workspace,
};

const BOOT_TIMEOUT: Duration = Duration::from_secs(30);
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// What the guest says when its servers listen.
const READY: &str = "paceline ready";

pub(super) fn steps() -> Vec<Step> {
    type Work = fn(&mut Bench<'_>) -> Result<()>;
    let works: [(&str, Work); 10] = [
        ("boot to a console that names its NIC", boots),
        ("iperf3 through a forwarded port, both ways", iperf3),
        ("poweroff", poweroff),
        ("panic gives a report and a crash status", panic),
        ("page fault gives a report and a crash status", fault),
        ("a full stack faults on its guard page", stack_overflow),
        ("code cannot be written", write_to_code),
        ("data cannot be executed", execute_data),
        ("a bad ip= is refused", bad_ip),
        ("an unknown word is reported", unknown_word),
    ];
    [Model::Q35, Model::Microvm]
        .into_iter()
        .flat_map(|model| works.map(|(what, work)| (model, what, work)))
        .map(|(model, what, work)| Step {
            name: format!("{}: {what}", model.name()),
            action: Action::Plain(model, work),
        })
        .collect()
}

/// Boots one guest a step.
pub(super) struct Bench<'a> {
    rig: PathBuf,
    options: &'a RigOptions,
    model: Model,
    image: &'a Path,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        workspace: &Workspace,
        options: &'a RigOptions,
        model: Model,
        image: &'a Path,
    ) -> Result<Self> {
        Ok(Self {
            rig: workspace.rig()?,
            options,
            model,
            image,
        })
    }

    fn boot(&self, cmdline: &str) -> Result<Plain> {
        Plain::boot(
            &self.rig,
            self.options.accel,
            self.model,
            self.image,
            cmdline,
        )
    }

    fn ready(&self) -> Result<Plain> {
        let mut guest = self.boot(IP)?;
        guest.expect(READY, BOOT_TIMEOUT)?;
        Ok(guest)
    }
}

fn boots(bench: &mut Bench<'_>) -> Result<()> {
    let guest = bench.ready()?;
    let console = guest.console();
    if !console.contains("virtio-net") {
        bail!("expected the console to name a virtio-net NIC, it says:\n{console}");
    }
    Ok(())
}

fn iperf3(bench: &mut Bench<'_>) -> Result<()> {
    const TIME_S: u32 = 2;
    let mut guest = bench.ready()?;
    for args in [&[][..], &["-R"]] {
        let forward = guest.iperf3(args, TIME_S)?.forward;
        if forward.bytes == 0 {
            bail!("iperf3 {args:?} moved no bytes");
        }
    }
    guest.type_line("poweroff")?;
    guest.expect_end(STATUS_OFF, END_TIMEOUT)
}

fn poweroff(bench: &mut Bench<'_>) -> Result<()> {
    let mut guest = bench.ready()?;
    guest.type_line("poweroff")?;
    guest.expect_end(STATUS_OFF, END_TIMEOUT)
}

fn panic(bench: &mut Bench<'_>) -> Result<()> {
    crash(bench, "crash panic", "panicked at")
}

fn fault(bench: &mut Bench<'_>) -> Result<()> {
    crash(bench, "crash fault", "page fault")
}

fn stack_overflow(bench: &mut Bench<'_>) -> Result<()> {
    crash(bench, "crash stack", "double fault")
}

fn write_to_code(bench: &mut Bench<'_>) -> Result<()> {
    crash(bench, "crash write", "write to a read-only page")
}

fn execute_data(bench: &mut Bench<'_>) -> Result<()> {
    crash(bench, "crash execute", "jump to a page without code")
}

fn crash(bench: &Bench<'_>, line: &str, reason: &str) -> Result<()> {
    let mut guest = bench.ready()?;
    guest.type_line(line)?;
    for text in [reason, "rip ", "return addresses"] {
        guest.expect(text, END_TIMEOUT)?;
    }
    guest.expect_end(STATUS_CRASH, END_TIMEOUT)
}

fn bad_ip(bench: &mut Bench<'_>) -> Result<()> {
    let mut guest = bench.boot("ip=10.0.2.300::10.0.2.2:255.255.255.0")?;
    guest.expect(
        "'ip=10.0.2.300::10.0.2.2:255.255.255.0': expected",
        BOOT_TIMEOUT,
    )?;
    guest.expect_end(STATUS_CRASH, END_TIMEOUT)
}

fn unknown_word(bench: &mut Bench<'_>) -> Result<()> {
    let mut guest = bench.boot(&format!("{IP} nosuchword=1"))?;
    guest.expect("'nosuchword=1' is unknown", BOOT_TIMEOUT)?;
    guest.expect(READY, BOOT_TIMEOUT)?;
    Ok(())
}
