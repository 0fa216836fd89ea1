//! `cargo qemu shell`: dom0's console in the user's terminal.

use std::{
    io::{IsTerminal, Read, Write},
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use anyhow::{Result, bail};

use crate::{
    cli::ShellOptions,
    domain::{self, Spec},
    guest,
    progress::phase,
    tools,
    workspace::Workspace,
    xen_rig::{self, XenRig},
};

const PREFIX: u8 = 0x01;
const POLL: Duration = Duration::from_millis(100);

/// Runs the command.
pub(crate) fn run(workspace: &Workspace, options: &ShellOptions) -> Result<ExitCode> {
    if !std::io::stdin().is_terminal() {
        bail!("cargo qemu shell needs a terminal as its standard input");
    }
    tools::ensure(&[tools::MACHINE])?;
    let image = options
        .guests
        .paceline()
        .then(|| guest::build(workspace))
        .transpose()?;
    let files = xen_rig::prepare(workspace, &options.rig, options.guests, image.as_ref())?;
    let mut rig = XenRig::boot(workspace, &options.rig, &files)?;
    for kind in options.guests.kinds() {
        let spec = Spec::new(kind, options.rig.memory_mib, &options.rig.cmdline);
        let (name, address) = (kind.name(), kind.address());
        phase(&format!("{name}: create"), || {
            domain::create(&mut rig.dom0, &spec)
        })
        .map_err(|error| rig.explain(error))?;
        println!(
            "{name} is running at {address}; its console: xl console {name} (Ctrl-] leaves it)"
        );
    }
    println!("Ctrl-A x ends QEMU.");
    let saved = stty(&["-g"])?;
    stty(&["raw", "-echo"])?;
    let result = relay(&mut rig);
    stty(&[saved.trim()])?;
    println!();
    result?;
    Ok(ExitCode::SUCCESS)
}

fn stty(args: &[&str]) -> Result<String> {
    let output = Command::new("stty")
        .args(args)
        .stdin(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        bail!(
            "stty {}: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Copies keys to the console and the console's output to the terminal until the user leaves or
/// QEMU ends.
fn relay(rig: &mut XenRig) -> Result<()> {
    let machine = rig.dom0.machine();
    let mut keys_to = machine.console.raw()?;
    let (left, user_left) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut keys = std::io::stdin().lock();
        let mut escape = Escape::default();
        let mut key = [0];
        while keys.read_exact(&mut key).is_ok() {
            match escape.key(key[0]) {
                Key::Leave => break,
                Key::Held => {}
                Key::Send(byte) => {
                    if keys_to.write_all(&[byte]).is_err() {
                        break;
                    }
                }
            }
        }
        // The receiver is gone when QEMU has ended first.
        let _ = left.send(());
    });
    // Start with a fresh prompt.
    machine.console.send("\n")?;
    let mut shown = machine.console.bytes_from(0).len();
    let mut terminal = std::io::stdout();
    loop {
        let fresh = machine.console.bytes_from(shown);
        if !fresh.is_empty() {
            terminal.write_all(&fresh)?;
            terminal.flush()?;
            shown += fresh.len();
        }
        if user_left.recv_timeout(POLL).is_ok() || machine.check_running().is_err() {
            return Ok(());
        }
    }
}

/// QEMU's own way out: Ctrl-A, then x. Ctrl-A twice sends one.
#[derive(Debug, Default)]
struct Escape {
    prefixed: bool,
}

#[derive(Debug, Eq, PartialEq)]
enum Key {
    Held,
    Leave,
    Send(u8),
}

impl Escape {
    fn key(&mut self, byte: u8) -> Key {
        match (std::mem::take(&mut self.prefixed), byte) {
            (true, b'x') => Key::Leave,
            (false, PREFIX) => {
                self.prefixed = true;
                Key::Held
            }
            (_, byte) => Key::Send(byte),
        }
    }
}

#[cfg(test)]
mod tests;
