//! A network namespace with Linux's TCP on one side of a TAP interface and ours on the other.
//!
//! The namespace has no name: it lives as long as the endpoint's process, and that as long as its
//! standard input, which this process holds. So whatever ends this process, nothing is left.

use crate::device::Mode;
use crate::endpoint::{ADDRESS, INTERFACE, READY};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Linux's address.
const LINUX: &str = "10.77.0.1/24";

/// How long the endpoint may take to start, or to stop.
const START_TIME: Duration = Duration::from_secs(10);

/// The endpoint's process and its namespace.
pub(crate) struct Namespace {
    endpoint: Child,
    log: Arc<Mutex<String>>,
}

impl Namespace {
    /// Starts the endpoint in a new namespace.
    pub(crate) fn start(mode: Mode) -> io::Result<Self> {
        let mut endpoint = Command::new("unshare")
            .arg("--net")
            .arg(std::env::current_exe()?)
            .arg("endpoint")
            .arg(mode.name())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let log = Arc::new(Mutex::new(String::new()));
        let stderr = endpoint.stderr.take().expect("it is piped");
        let kept = Arc::clone(&log);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut kept = kept.lock().expect("nobody panics with it");
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        let stdout = endpoint.stdout.take().expect("it is piped");
        let namespace = Self { endpoint, log };
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // The receiver may have given up.
                let _ = sender.send(line);
            }
        });
        match receiver.recv_timeout(START_TIME) {
            Ok(line) if line == READY => {}
            other => {
                let log = namespace.log();
                return Err(io::Error::other(format!("endpoint: {other:?}\n{log}")));
            }
        }
        for args in [
            vec!["link", "set", "lo", "up"],
            vec!["address", "add", LINUX, "dev", INTERFACE],
            vec!["link", "set", INTERFACE, "up"],
        ] {
            let output = namespace.run("ip", &args, START_TIME)?;
            output.expect_success();
        }
        // Duplicate address detection and the like of IPv6 are of no use here.
        namespace.write_sysctl("net/ipv6/conf/tap0/disable_ipv6", "1")?;
        Ok(namespace)
    }

    /// Whether the endpoint is still there.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.endpoint.try_wait(), Ok(None))
    }

    /// What the endpoint has logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("nobody panics with it").clone()
    }

    /// Sets one of the namespace's sysctls.
    pub(crate) fn write_sysctl(&self, path: &str, value: &str) -> io::Result<()> {
        let script = format!("echo {value} > /proc/sys/{path}");
        self.run("sh", &["-c", &script], START_TIME)?
            .expect_success();
        Ok(())
    }

    /// A command that will run in the namespace.
    pub(crate) fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/proc/{}/ns/net", self.endpoint.id()))
            .arg(program)
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// Runs a command in the namespace for at most `limit`.
    pub(crate) fn run(&self, program: &str, args: &[&str], limit: Duration) -> io::Result<Output> {
        let child = self
            .command(program, args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Output::collect(format!("{program} {}", args.join(" ")), child, limit)
    }

    /// Runs `work` on a thread in the namespace.
    pub(crate) fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let path = format!("/proc/{}/ns/net", self.endpoint.id());
        thread::scope(|scope| {
            scope
                .spawn(|| {
                    let namespace = File::open(path).expect("the endpoint runs");
                    rustix::thread::move_into_link_name_space(
                        std::os::fd::AsFd::as_fd(&namespace),
                        Some(rustix::thread::LinkNameSpaceType::Network),
                    )
                    .expect("root may enter");
                    work()
                })
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.endpoint.stdin.take());
        let deadline = Instant::now() + START_TIME;
        while self.is_running() {
            if Instant::now() > deadline {
                // It may have ended just now.
                let _ = self.endpoint.kill();
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.endpoint.wait();
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) command: String,
    pub(crate) status: ExitStatus,
    /// Standard output and standard error.
    pub(crate) text: String,
}

impl Output {
    /// Waits for `child` and kills it when its time is over.
    pub(crate) fn collect(command: String, mut child: Child, limit: Duration) -> io::Result<Self> {
        let stdout = child.stdout.take().map(read_all);
        let stderr = child.stderr.take().map(read_all);
        let deadline = Instant::now() + limit;
        let mut killed = false;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if !killed && Instant::now() > deadline {
                child.kill()?;
                killed = true;
            }
            thread::sleep(Duration::from_millis(5));
        };
        let mut text = String::new();
        for reader in [stdout, stderr].into_iter().flatten() {
            text += &reader.join().unwrap_or_default();
        }
        if killed {
            text = format!("{text}\nkilled: it took over {} s", limit.as_secs());
        }
        Ok(Self {
            command,
            status,
            text,
        })
    }

    /// The output of a command that must succeed.
    pub(crate) fn expect_success(self) -> String {
        let Self {
            command,
            status,
            text,
        } = self;
        assert!(status.success(), "{command}: {status}\n{text}");
        text
    }
}

fn read_all(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is what there is.
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Where the endpoint is.
pub(crate) fn address() -> String {
    ADDRESS.to_string()
}
