//! Child processes that do not outlive the rig.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// Children to kill when the rig is told to stop.
static CHILDREN: Mutex<Vec<Arc<Mutex<Child>>>> = Mutex::new(Vec::new());

/// What a shell reports for a command that ended by SIGINT.
const EXIT_INTERRUPTED: i32 = 130;
const POLL: Duration = Duration::from_millis(20);

/// A child that is killed and reaped when dropped.
#[derive(Debug)]
pub(crate) struct Guarded(Arc<Mutex<Child>>);

impl Guarded {
    /// Starts `command`.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let child = Arc::new(Mutex::new(child));
        CHILDREN
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(&child));
        Ok(Self(child))
    }

    /// The exit status, when the child has ended.
    pub(crate) fn status(&self) -> Result<Option<ExitStatus>> {
        Ok(self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .try_wait()?)
    }

    /// Waits for the child's end, at most `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) -> Result<Option<ExitStatus>> {
        let end = Instant::now() + timeout;
        loop {
            let status = self.status()?;
            if status.is_some() || Instant::now() >= end {
                return Ok(status);
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        kill(&self.0);
        CHILDREN
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|child| !Arc::ptr_eq(child, &self.0));
    }
}

fn kill(child: &Mutex<Child>) {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    // An error means that it has ended already, which is what is wanted.
    let _ = child.kill();
    let _ = child.wait();
}

/// Makes SIGINT, SIGTERM and SIGHUP end the children first and the rig after them.
pub(crate) fn kill_children_on_signal() -> Result<()> {
    ctrlc::set_handler(|| {
        for child in CHILDREN
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            kill(child);
        }
        std::process::exit(EXIT_INTERRUPTED);
    })
    .context("cannot install the signal handler")
}

/// A command that its parent's death kills as well, where `setpriv` (util-linux) is there.
pub(crate) fn dies_with_parent(program: &str) -> Command {
    if find(&["setpriv"]).is_none() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

/// The first of `names` that is in PATH or one of the folders for administrators' programs.
pub(crate) fn find(names: &[&str]) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .collect();
    names.iter().find_map(|name| {
        folders
            .iter()
            .map(|folder| folder.join(name))
            .find(|file| file.is_file())
    })
}

/// Runs a command to its end and returns its standard output; its failure is an error with the
/// end of what it wrote.
pub(crate) fn output<S: AsRef<OsStr>>(program: &Path, args: &[S]) -> Result<Vec<u8>> {
    checked(Command::new(program).args(args))
}

/// Like [`output`] for a prepared command.
pub(crate) fn checked(command: &mut Command) -> Result<Vec<u8>> {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !status.success() {
        bail!(
            "{} ended with {status}: {}",
            command.get_program().display(),
            last_lines(&String::from_utf8_lossy(&stderr), 8)
        );
    }
    Ok(stdout)
}

/// The last `count` lines of `text`.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
