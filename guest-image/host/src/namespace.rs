//! A network namespace with Linux's TCP in it.
//!
//! The namespace has no name: it lives as long as the first process in it, and that as long as its
//! standard input, which this process holds. So whatever ends this process, nothing is left.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How long the first process may take to start or to stop, and an administrative command to end.
const START_TIME: Duration = Duration::from_secs(10);

/// What the first process says once it is ready.
pub const READY: &str = "ready";

/// A network namespace and the process that keeps it.
#[derive(Debug)]
pub struct Namespace {
    keeper: Child,
    log: Arc<Mutex<String>>,
}

impl Namespace {
    /// Makes a namespace for nothing but what is run in it later.
    pub fn new() -> io::Result<Self> {
        let script = format!("echo {READY}; exec cat >/dev/null");
        Self::start("sh", &["-c", &script])
    }

    /// Runs `program` in a new namespace. It must print [`READY`], and end when its standard input
    /// does.
    pub fn start(program: impl AsRef<OsStr>, args: &[&str]) -> io::Result<Self> {
        let mut keeper = Command::new("unshare")
            .arg("--net")
            .arg(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let log = Arc::new(Mutex::new(String::new()));
        let stderr = keeper.stderr.take().expect("it is piped");
        let kept = Arc::clone(&log);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut kept = kept.lock().expect("nobody panics with it");
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        let stdout = keeper.stdout.take().expect("it is piped");
        let namespace = Self { keeper, log };
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
                return Err(io::Error::other(format!("keeper: {other:?}\n{log}")));
            }
        }
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Gives an interface of the namespace an IPv4 address with its prefix, and brings it up.
    pub fn set_up(&self, interface: &str, address: &str) -> io::Result<()> {
        // Duplicate address detection and the like of IPv6 are of no use here.
        self.write_sysctl(&format!("net/ipv6/conf/{interface}/disable_ipv6"), "1")?;
        self.ip(&["address", "add", address, "dev", interface])?;
        self.ip(&["link", "set", interface, "up"])
    }

    /// Runs `ip`, which must succeed.
    pub fn ip(&self, args: &[&str]) -> io::Result<()> {
        self.run("ip", args, START_TIME)?.success()?;
        Ok(())
    }

    /// Whether the first process is still there.
    pub fn is_running(&mut self) -> bool {
        matches!(self.keeper.try_wait(), Ok(None))
    }

    /// What the first process has written to its standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("nobody panics with it").clone()
    }

    /// Sets one of the namespace's sysctls.
    pub fn write_sysctl(&self, path: &str, value: &str) -> io::Result<()> {
        let script = format!("echo '{value}' > /proc/sys/{path}");
        self.run("sh", &["-c", &script], START_TIME)?.success()?;
        Ok(())
    }

    /// The namespace, in the file system.
    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.keeper.id())
    }

    /// A command that will run in the namespace.
    pub fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net={}", self.path()))
            .arg(program)
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// Runs a command in the namespace for at most `limit`.
    pub fn run(&self, program: &str, args: &[&str], limit: Duration) -> io::Result<Output> {
        let child = self
            .command(program, args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Output::collect(format!("{program} {}", args.join(" ")), child, limit)
    }

    /// Runs `work` on a thread in the namespace.
    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let path = self.path();
        thread::scope(|scope| {
            scope
                .spawn(|| {
                    let namespace = File::open(path).expect("the keeper runs");
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
        drop(self.keeper.stdin.take());
        let deadline = Instant::now() + START_TIME;
        while self.is_running() {
            if Instant::now() > deadline {
                // It may have ended just now.
                let _ = self.keeper.kill();
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.keeper.wait();
    }
}

/// How a command ended.
#[derive(Debug)]
pub struct Output {
    /// What was run.
    pub command: String,
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output and standard error.
    pub text: String,
}

impl Output {
    /// Waits for `child` and kills it when its time is over.
    pub fn collect(command: String, mut child: Child, limit: Duration) -> io::Result<Self> {
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

    /// The text, or an error with it if the command has failed.
    pub fn success(self) -> io::Result<String> {
        let Self {
            command,
            status,
            text,
        } = self;
        if status.success() {
            Ok(text)
        } else {
            Err(io::Error::other(format!("{command}: {status}\n{text}")))
        }
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
