//! Steps that need no guest.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::{Action, Outcome, Step};
use crate::{process::last_lines, workspace::Workspace};

/// Lines of cargo's own messages that are shown when it fails.
const FAILURE_LINES: usize = 60;
/// Lines that are shown of what a failed test wrote.
const TEST_LINES: usize = 30;

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
        let messages = String::from_utf8_lossy(&output.stderr);
        print!("{}", failures(&text));
        // A test that ends its process leaves no result; cargo names the binary.
        for line in messages.lines().filter(|line| line.starts_with("error")) {
            println!("{line}");
        }
        if failed == 0 {
            bail!(
                "cargo {}: {}",
                args.join(" "),
                last_lines(&messages, FAILURE_LINES)
            );
        }
    }
    Ok(Outcome::Counted { passed, failed })
}

/// What failed tests wrote, the first lines of each, and then all their names.
fn failures(text: &str) -> String {
    let mut shown = String::new();
    let mut names = Vec::new();
    // Lines left of the test whose output this is; none: it is no test's.
    let mut left = None;
    for line in text.lines() {
        if let Some(name) = failed_name(line) {
            names.push(name);
        } else if line.starts_with("---- ") {
            left = Some(TEST_LINES);
        } else if line.starts_with("failures:") || line.starts_with("test result:") {
            left = None;
        }
        match &mut left {
            Some(0) | None => continue,
            Some(left) => *left -= 1,
        }
        shown.push_str(line);
        shown.push('\n');
    }
    for name in names {
        shown.extend(["FAILED ", name, "\n"]);
    }
    shown
}

/// The name in the line that tells of a failed test, as in `test tcp::prr::tests::a ... FAILED`.
fn failed_name(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
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
