//! Host programs the rig needs, installed with apt where it may.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{
    machine::QEMU,
    process::{checked, find, last_lines},
    progress::phase,
};

/// A program and the Debian package it comes in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Tool {
    program: &'static str,
    package: &'static str,
}

/// The machine emulator.
pub(crate) const MACHINE: Tool = Tool {
    program: QEMU,
    package: "qemu-system-x86",
};
/// The measuring client, for boots under plain QEMU; inside dom0 the rig brings its own.
pub(crate) const CLIENT: Tool = Tool {
    program: "iperf3",
    package: "iperf3",
};

/// The bare-metal target the guest is built for.
pub(crate) const TARGET: &str = "x86_64-unknown-none";

/// What can be done about missing packages.
#[derive(Debug, Eq, PartialEq)]
enum Plan {
    /// Nothing is missing.
    Nothing,
    /// Run apt-get, with the words before it.
    Apt {
        prefix: &'static [&'static str],
        packages: Vec<&'static str>,
    },
    /// The user must do it; the text says how.
    Ask(String),
}

fn plan(missing: &[Tool], root: bool, sudo: bool, apt: bool) -> Plan {
    if missing.is_empty() {
        return Plan::Nothing;
    }
    let packages: Vec<_> = missing.iter().map(|tool| tool.package).collect();
    match (apt, root, sudo) {
        (true, true, _) => Plan::Apt {
            prefix: &[],
            packages,
        },
        (true, false, true) => Plan::Apt {
            prefix: &["sudo", "-n"],
            packages,
        },
        (true, false, false) => Plan::Ask(by_hand(&packages)),
        (false, ..) => {
            let programs: Vec<_> = missing.iter().map(|tool| tool.program).collect();
            Plan::Ask(format!(
                "not in PATH: {}; install them",
                programs.join(", ")
            ))
        }
    }
}

fn by_hand(packages: &[&str]) -> String {
    format!(
        "needs packages that only root can install; run:\n  \
         sudo apt-get update && sudo apt-get install --yes --no-install-recommends {}",
        packages.join(" ")
    )
}

/// Makes sure that `tools` are there.
pub(crate) fn ensure(tools: &[Tool]) -> Result<()> {
    let missing: Vec<_> = tools
        .iter()
        .copied()
        .filter(|tool| find(&[tool.program]).is_none())
        .collect();
    let sudo = !missing.is_empty() && sudo_without_password();
    match plan(&missing, is_root()?, sudo, find(&["apt-get"]).is_some()) {
        Plan::Nothing => Ok(()),
        Plan::Ask(how) => bail!("{how}"),
        Plan::Apt { prefix, packages } => {
            phase(&format!("apt: install {}", packages.join(" ")), || {
                install(prefix, &packages).with_context(|| by_hand(&packages))
            })
        }
    }
}

fn install(prefix: &[&str], packages: &[&str]) -> Result<()> {
    let run = |words: &[&str]| {
        let mut all = prefix.to_vec();
        all.extend(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        all.extend(words);
        checked(Command::new(all[0]).args(&all[1..]))
    };
    let mut words = vec![
        "install",
        "--yes",
        "-qq",
        "--no-install-recommends",
        "-o",
        "Acquire::Retries=3",
    ];
    words.extend(packages);
    // Stale or absent lists are the usual reason for a failure: bring them up to date once.
    if run(&words).is_err() {
        if let Err(error) = run(&["update", "-qq"]) {
            eprintln!("apt-get update: {}", last_lines(&format!("{error:#}"), 3));
        }
        run(&words)?;
    }
    Ok(())
}

/// Whether this process is root's.
pub(crate) fn is_root() -> Result<bool> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let uid = status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .and_then(|ids| ids.split_whitespace().nth(1))
        .context("no Uid line in /proc/self/status")?;
    Ok(uid == "0")
}

fn sudo_without_password() -> bool {
    find(&["sudo"]).is_some() && checked(Command::new("sudo").args(["-n", "true"])).is_ok()
}

/// QEMU's version as `(major, text)`.
pub(crate) fn qemu_version() -> Result<(u32, String)> {
    let text = checked(Command::new(QEMU).arg("--version"))?;
    parse_qemu_version(&String::from_utf8_lossy(&text))
}

fn parse_qemu_version(text: &str) -> Result<(u32, String)> {
    let version = text
        .split_whitespace()
        .skip_while(|word| *word != "version")
        .nth(1)
        .with_context(|| format!("expected `QEMU emulator version …`, got `{text}`"))?;
    let major = version.split('.').next().unwrap_or_default();
    let major = major
        .parse()
        .with_context(|| format!("unexpected QEMU version `{version}`"))?;
    Ok((major, version.to_owned()))
}

/// Adds the bare-metal target to the toolchain when rustup is there and it is missing.
pub(crate) fn ensure_target() -> Result<()> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let folder =
        checked(Command::new(&rustc).args(["--print", "target-libdir", "--target", TARGET]))?;
    let folder = String::from_utf8_lossy(&folder);
    if std::path::Path::new(folder.trim()).is_dir() {
        return Ok(());
    }
    if find(&["rustup"]).is_none() {
        bail!("the Rust toolchain lacks the target {TARGET} and rustup is not in PATH: add it");
    }
    phase(&format!("rustup: target {TARGET}"), || {
        checked(Command::new("rustup").args(["target", "add", TARGET]))
            .with_context(|| format!("run: rustup target add {TARGET}"))?;
        Ok(())
    })
}

#[cfg(test)]
mod tests;
