//! Paceline as a host at the end of a path.

use crate::lab::{BUFFERS, OURS};
use paceline_guest::executor::{Executor, Timers};
use paceline_guest::iperf3;
use paceline_host::{Mode, Nic, priority};
use paceline_stack::net::Net;
use paceline_stack::stack::{Config, Stack};
use paceline_stack::sysctl;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

/// The thread's real-time priority, and that of Linux's iperf3 here.
pub(crate) const PRIORITY: u8 = 10;

/// The stack with the guest's server, in a thread.
pub(crate) struct Ours {
    stop: UnixStream,
    thread: JoinHandle<io::Result<Counters>>,
}

/// What a stack has counted: all that is not zero.
pub(crate) type Counters = Vec<(&'static str, u64)>;

impl Ours {
    /// Starts it on `wire`; returns once it can be connected to.
    pub(crate) fn start(wire: OwnedFd, settings: &[(String, String)]) -> io::Result<Self> {
        let settings = settings.to_vec();
        let (stop, stopped) = UnixStream::pair()?;
        let (sender, ready) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("paceline".into())
            .spawn(move || {
                // As with the path: who may not have that measures without.
                let _ = priority::raise_thread(PRIORITY);
                run(wire, &settings, &stopped, || {
                    // Nobody waits when that thread has ended.
                    let _ = sender.send(());
                })
            })?;
        let ours = Self { stop, thread };
        match ready.recv() {
            Ok(()) => Ok(ours),
            Err(_) => Err(ours
                .stop()
                .err()
                .unwrap_or_else(|| io::Error::other("it ended"))),
        }
    }

    /// Ends it.
    pub(crate) fn stop(self) -> io::Result<Counters> {
        let Self { stop, thread } = self;
        drop(stop);
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn run(
    wire: OwnedFd,
    settings: &[(String, String)],
    stop: &UnixStream,
    ready: impl FnOnce(),
) -> io::Result<Counters> {
    let config = Config {
        address: OURS,
        prefix: 24,
        gateway: None,
        secret: [0x5a; 16],
    };
    let mut stack = Stack::new(Nic::on(wire, Mode::Plain), &config).map_err(io::Error::other)?;
    let tcp = stack.tcp_and_device().0.config_mut();
    for (name, value) in BUFFERS {
        sysctl::write(tcp, name, value).map_err(io::Error::other)?;
    }
    for (name, value) in settings {
        sysctl::write(tcp, name, value).map_err(io::Error::other)?;
    }
    let net = Net::new(stack);
    let (mut executor, timers) = (Executor::new(), Timers::new());
    executor
        .spawner()
        .spawn(iperf3::run(net.clone(), timers.clone()));
    paceline_host::run(&net, &mut executor, &timers, stop.as_fd(), ready)?;
    Ok(net.with(|stack| stack.nstat().filter(|(_, value)| *value > 0).collect()))
}
