//! Steps that need no guest.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::{Action, Outcome, Step};
use crate::{process::last_lines, workspace::Workspace};

const FAILURE_LINES: usize = 60;

pub(super) fn steps() -> Vec<Step> {
    vec![Step {
        name: "host: cargo test".to_owned(),
        action: Action::Host(cargo_test),
    }]
}

fn cargo_test(workspace: &Workspace) -> Result<Outcome> {
    cargo(workspace, &["test", "--workspace", "--no-fail-fast"])
}

/// Runs cargo's tests and adds up their counts.
fn cargo(workspace: &Workspace, args: &[&str]) -> Result<Outcome> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .current_dir(workspace.root())
        .env("CARGO_TARGET_DIR", workspace.target())
        .args(args)
        .stdin(Stdio::null())
        .output()
        .context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let (passed, failed) = counts(&text);
    if !output.status.success() {
        println!("{}", last_lines(&text, FAILURE_LINES));
        if failed == 0 {
            let messages = String::from_utf8_lossy(&output.stderr);
            bail!(
                "cargo {}: {}",
                args.join(" "),
                last_lines(&messages, FAILURE_LINES)
            );
        }
    }
    Ok(Outcome::Counted { passed, failed })
}

/// The sums over all `test result:` lines.
fn counts(text: &str) -> (u32, u32) {
    let count = |line: &str, word: &str| -> u32 {
        line.split([';', '.'])
            .filter_map(|part| part.trim().strip_suffix(word))
            .find_map(|number| number.trim().parse().ok())
            .unwrap_or(0)
    };
    text.lines()
        .filter(|line| line.starts_with("test result:"))
        .fold((0, 0), |(passed, failed), line| {
            (
                passed + count(line, "passed"),
                failed + count(line, "failed"),
            )
        })
}

#[cfg(test)]
mod tests;
