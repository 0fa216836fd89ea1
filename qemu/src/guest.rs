//! Building Paceline's image.

use std::{path::PathBuf, process::Command};

use anyhow::{Context, Result, bail};

use crate::{
    elf,
    progress::phase,
    tools::{self, TARGET},
    workspace::{Workspace, read, write_atomically},
};

const PROFILE: &str = "guest";

/// A built image.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    /// The stripped file, the one that is booted.
    pub(crate) path: PathBuf,
    /// Its content.
    pub(crate) bytes: Vec<u8>,
    /// The version in the crate's manifest and the commit.
    pub(crate) version: String,
}

/// Builds the image; the file with symbols stays where cargo put it.
pub(crate) fn build(workspace: &Workspace) -> Result<Image> {
    tools::ensure_target()?;
    phase("guest: build", || {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .current_dir(workspace.root())
            .env("CARGO_TARGET_DIR", workspace.target())
            .args([
                "build",
                "--quiet",
                "--package",
                "paceline-guest",
                "--features",
                "image",
            ])
            .args(["--target", TARGET, "--profile", PROFILE])
            .status()
            .context("cannot start cargo")?;
        if !status.success() {
            bail!("the guest does not build: cargo ended with {status}");
        }
        let built = workspace
            .target()
            .join(TARGET)
            .join(PROFILE)
            .join("paceline");
        let bytes = elf::strip(&read(&built)?)?;
        let path = workspace.rig()?.join("paceline");
        write_atomically(&path, &bytes)?;
        Ok(Image {
            path,
            bytes,
            version: version(workspace),
        })
    })
}

fn version(workspace: &Workspace) -> String {
    let commit = Command::new("git")
        .current_dir(workspace.root())
        .args(["describe", "--always", "--dirty"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match commit {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    }
}
