//! Real-time priority, by `chrt` of util-linux.

use std::io;
use std::process::{Command, Stdio};

/// Gives the calling thread a real-time priority (SCHED_FIFO), 1 to 99. That takes a privilege
/// which root may lack in a container.
pub fn raise_thread(priority: u8) -> io::Result<()> {
    let thread = rustix::thread::gettid().to_string();
    run(&["--fifo", "--pid", &priority.to_string(), &thread])
}

/// Whether [`command`] works here.
pub fn can_raise() -> bool {
    run(&["--fifo", "1", "true"]).is_ok()
}

/// What to put before a command so that it runs with a real-time priority.
pub fn command(priority: u8) -> [String; 3] {
    ["chrt", "--fifo", &priority.to_string()].map(String::from)
}

fn run(args: &[&str]) -> io::Result<()> {
    let status = Command::new("chrt")
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        let args = args.join(" ");
        Err(io::Error::other(format!("chrt {args}: {status}")))
    }
}
