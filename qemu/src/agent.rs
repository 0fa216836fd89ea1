//! The protocol with the agent in dom0: scripts go in, output and exit codes come back.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{machine::Machine, process::last_lines};

/// What a script left.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Its exit code.
    pub(crate) code: i32,
    /// Its output, standard error included.
    pub(crate) text: String,
}

impl Reply {
    /// The output, when the script succeeded.
    pub(crate) fn success(self, what: &str) -> Result<String> {
        if self.code != 0 {
            bail!(
                "{what}: exit code {} in dom0: {}",
                self.code,
                last_lines(&self.text, 12)
            );
        }
        Ok(self.text)
    }
}

/// dom0 as seen through its agent.
#[derive(Debug)]
pub(crate) struct Agent {
    machine: Machine,
    next_id: u32,
    /// Seconds of the host allowed for each of a timeout: the machine's clock may be slower.
    patience: u32,
}

impl Agent {
    /// Waits for the agent's greeting and returns it with dom0's uptime in seconds. This timeout
    /// and those of [`Self::run`] are in seconds of the machine, of which each may take `patience`
    /// of the host.
    pub(crate) fn connect(
        mut machine: Machine,
        timeout: Duration,
        patience: u32,
    ) -> Result<(Self, f64)> {
        let timeout = timeout.saturating_mul(patience);
        let greeting = next(&mut machine, "@@ ready ", Instant::now() + timeout);
        let uptime = match greeting {
            Ok(line) => line
                .trim()
                .parse()
                .context("the agent's greeting has no uptime")?,
            Err(error) => {
                return Err(error).with_context(|| {
                    format!(
                        "dom0 did not come up in {timeout:?}\n{}",
                        machine.log_tail()
                    )
                });
            }
        };
        Ok((
            Self {
                machine,
                next_id: 0,
                patience,
            },
            uptime,
        ))
    }

    /// The machine dom0 runs on.
    pub(crate) fn machine(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// Runs a shell script in dom0.
    pub(crate) fn run(&mut self, script: &str, timeout: Duration) -> Result<Reply> {
        let timeout = timeout.saturating_mul(self.patience);
        self.next_id += 1;
        let id = self.next_id;
        self.machine
            .second
            .send(&format!("@@ run {id}\n{}\n@@ go\n", script.trim_end()))?;
        let end = Instant::now() + timeout;
        let mut text = String::new();
        loop {
            let line = next(&mut self.machine, "", end).with_context(|| {
                format!(
                    "dom0 did not finish in {timeout:?}: `{}`; output so far: {}",
                    script.trim(),
                    last_lines(&text, 12)
                )
            })?;
            if let Some(output) = line.strip_prefix("| ") {
                text.push_str(output);
                text.push('\n');
            } else if let Some(end) = line.strip_prefix("@@ end ") {
                let code = parse_end(end, id)?;
                return Ok(Reply { code, text });
            }
        }
    }
}

/// The exit code in `<id> <code> <uptime>`.
fn parse_end(text: &str, expected_id: u32) -> Result<i32> {
    let fields: Vec<_> = text.split_whitespace().collect();
    let [id, code, _uptime] = fields[..] else {
        bail!("expected `id code uptime` of the agent, got `{text}`");
    };
    if id != expected_id.to_string() {
        bail!("expected the end of job {expected_id}, got that of job {id}");
    }
    code.parse()
        .with_context(|| format!("expected an exit code, got `{code}`"))
}

/// The rest of the next line that starts with `prefix`.
fn next(machine: &mut Machine, prefix: &str, end: Instant) -> Result<String> {
    const PATIENCE: Duration = Duration::from_millis(500);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if let Some(line) = machine.second.line(left.min(PATIENCE)) {
            if let Some(rest) = line.strip_prefix(prefix) {
                return Ok(rest.to_owned());
            }
            continue;
        }
        machine.check_running()?;
        if left.is_zero() {
            bail!("no answer from dom0");
        }
    }
}

#[cfg(test)]
mod tests;
