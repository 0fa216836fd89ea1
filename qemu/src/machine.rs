//! A running QEMU with its serial ports.

use std::{
    fs::File,
    io::{Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::process::{Guarded, dies_with_parent, last_lines};

/// QEMU's program.
pub(crate) const QEMU: &str = "qemu-system-x86_64";
const LOG_LINES: usize = 40;

/// A running QEMU. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Machine {
    qemu: Guarded,
    /// The first serial port, a copy of which goes to the log.
    pub(crate) console: Channel,
    /// The second serial port, on machines that have one.
    pub(crate) second: Channel,
    log: PathBuf,
}

/// How many serial ports the machine has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SerialPorts {
    /// The console.
    One,
    /// The console and one for the rig.
    Two,
}

impl Machine {
    /// Starts QEMU with `args`; what the first serial port says goes to `log` as well.
    ///
    /// The ports are socket pairs that QEMU inherits as its standard input and output, so there
    /// is no name that could be left behind or clash.
    pub(crate) fn start(args: &[String], ports: SerialPorts, log: &Path) -> Result<Self> {
        let (second, second_far) = UnixStream::pair()?;
        let (console, console_far) = UnixStream::pair()?;
        let messages = log.with_extension("qemu.log");
        let mut command = dies_with_parent(QEMU);
        command
            .args(args)
            .args(["-display", "none", "-monitor", "none", "-no-reboot"])
            .args([
                "-chardev",
                "socket,id=console,fd=1",
                "-serial",
                "chardev:console",
            ])
            .stdin(Stdio::from(OwnedFd::from(second_far)))
            .stdout(Stdio::from(OwnedFd::from(console_far)))
            .stderr(File::create(&messages)?);
        if ports == SerialPorts::Two {
            command.args([
                "-chardev",
                "socket,id=second,fd=0",
                "-serial",
                "chardev:second",
            ]);
        }
        let qemu = Guarded::spawn(&mut command)?;
        // The command holds QEMU's ends of the sockets open.
        drop(command);
        let copy = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        Ok(Self {
            qemu,
            console: Channel::start(console, Some(copy))?,
            second: Channel::start(second, None)?,
            log: log.to_path_buf(),
        })
    }

    /// The exit status when QEMU has ended, after waiting at most `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) -> Result<Option<ExitStatus>> {
        self.qemu.wait(timeout)
    }

    /// Fails when QEMU has ended.
    pub(crate) fn check_running(&self) -> Result<()> {
        if let Some(status) = self.qemu.status()? {
            let messages = self.log.with_extension("qemu.log");
            let text = std::fs::read_to_string(messages).unwrap_or_default();
            bail!("QEMU ended with {status}: {}", last_lines(&text, 5));
        }
        Ok(())
    }

    /// The last lines of the console.
    pub(crate) fn log_tail(&self) -> String {
        let text = self.console.text();
        format!(
            "{}\n(whole log: {})",
            last_lines(&text, LOG_LINES),
            self.log.display()
        )
    }
}

#[derive(Debug, Default)]
struct Received {
    bytes: Vec<u8>,
    closed: bool,
}

/// One serial port: a thread collects what arrives.
#[derive(Debug)]
pub(crate) struct Channel {
    stream: UnixStream,
    received: Arc<(Mutex<Received>, Condvar)>,
    /// Where the next search starts.
    cursor: usize,
}

impl Channel {
    fn start(stream: UnixStream, mut copy: Option<File>) -> Result<Self> {
        let received = Arc::new((Mutex::new(Received::default()), Condvar::new()));
        let mut reader = stream.try_clone()?;
        let shared = Arc::clone(&received);
        std::thread::spawn(move || {
            let (lock, arrived) = &*shared;
            let mut buffer = [0; 4_096];
            loop {
                let len = reader.read(&mut buffer).unwrap_or(0);
                let mut received = lock.lock().unwrap_or_else(PoisonError::into_inner);
                if len == 0 {
                    received.closed = true;
                    arrived.notify_all();
                    return;
                }
                received.bytes.extend_from_slice(&buffer[..len]);
                arrived.notify_all();
                drop(received);
                if let Some(file) = &mut copy {
                    // A full disk costs the log, not the run.
                    let _ = file.write_all(&buffer[..len]);
                }
            }
        });
        Ok(Self {
            stream,
            received,
            cursor: 0,
        })
    }

    /// Sends `text`.
    pub(crate) fn send(&mut self, text: &str) -> Result<()> {
        self.stream
            .write_all(text.as_bytes())
            .context("the guest's serial port is closed")
    }

    /// Everything received so far.
    pub(crate) fn text(&self) -> String {
        let received = self
            .received
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&received.bytes).replace('\r', "")
    }

    /// What was received from byte `start` on, as it came.
    pub(crate) fn bytes_from(&self, start: usize) -> Vec<u8> {
        let received = self
            .received
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        received.bytes.get(start..).unwrap_or_default().to_vec()
    }

    /// A stream to the port for a user at a terminal.
    pub(crate) fn raw(&self) -> Result<UnixStream> {
        Ok(self.stream.try_clone()?)
    }

    /// Waits for `needle` in what has not been searched yet and returns the text up to its line's
    /// end; `None` when `timeout` passes or the port closes first.
    pub(crate) fn wait_for(&mut self, needle: &str, timeout: Duration) -> Option<String> {
        self.wait_until(timeout, |fresh| {
            let at = find(fresh, needle.as_bytes())?;
            let rest = &fresh[at..];
            let line_end = rest.iter().position(|byte| *byte == b'\n')?;
            Some(at + line_end + 1)
        })
    }

    /// Waits for the next whole line.
    pub(crate) fn line(&mut self, timeout: Duration) -> Option<String> {
        self.wait_until(timeout, |fresh| {
            Some(fresh.iter().position(|byte| *byte == b'\n')? + 1)
        })
        .map(|line| line.trim_end_matches('\n').to_owned())
    }

    fn wait_until(
        &mut self,
        timeout: Duration,
        length: impl Fn(&[u8]) -> Option<usize>,
    ) -> Option<String> {
        let end = Instant::now() + timeout;
        let (lock, arrived) = &*self.received;
        let mut received = lock.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let fresh = &received.bytes[self.cursor..];
            if let Some(len) = length(fresh) {
                self.cursor += len;
                return Some(String::from_utf8_lossy(&fresh[..len]).replace('\r', ""));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || received.closed {
                return None;
            }
            received = arrived
                .wait_timeout(received, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

#[cfg(test)]
mod tests;
