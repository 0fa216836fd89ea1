//! `cargo qemu`: builds, boots, tests and measures the Paceline guest.
//!
//! The rig starts a real Xen with a Linux dom0 inside QEMU, needs no root for that, and drives
//! dom0 over a second serial port. [`mod@bench`] is the measurement, [`suite`] the test run.
//!
//! Two things make figures of a shared, noisy host comparable: [`slicing`] measures both guests in
//! turns of a second, and [`clock`] can have the machine count instructions instead of time.
#![forbid(unsafe_code)]

mod accel;
mod agent;
mod bench;
mod cli;
mod clock;
mod cpio;
mod domain;
mod elf;
mod guest;
mod initramfs;
mod iperf;
mod machine;
mod modules;
mod os_release;
mod packages;
mod plain;
mod process;
mod progress;
mod ratio;
mod report;
mod results;
mod rootfs;
mod shell;
mod slicing;
mod suite;
mod tools;
mod workspace;
mod xen_rig;

use std::process::ExitCode;

use cli::Command;

fn main() -> ExitCode {
    match dispatch() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cargo qemu: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch() -> anyhow::Result<ExitCode> {
    let command = cli::parse(lexopt::Parser::from_env())?;
    let workspace = workspace::Workspace::find()?;
    let rig = match &command {
        Command::Help(text) => {
            print!("{text}");
            return Ok(ExitCode::SUCCESS);
        }
        Command::Run(options) => Some(&options.rig),
        Command::Test(options) if options.list => None,
        Command::Test(options) => Some(&options.rig),
        Command::Shell(options) => Some(&options.rig),
        Command::Clean => None,
    };
    if let Some(rig) = rig {
        rig.check()?;
    }
    process::kill_children_on_signal()?;
    // Held until the end, however that comes.
    let _lock = workspace.lock()?;
    match command {
        Command::Help(_) => Ok(ExitCode::SUCCESS),
        Command::Run(options) => bench::run(&workspace, &options),
        Command::Test(options) => Ok(suite::run(&workspace, &options)),
        Command::Shell(options) => shell::run(&workspace, &options),
        Command::Clean => {
            workspace.clean()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
