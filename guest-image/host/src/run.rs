//! The guest's loop, on Linux.

use crate::nic::Nic;
use paceline_guest::executor::{Executor, Timers};
use paceline_stack::device::Device;
use paceline_stack::net::Net;
use paceline_stack::stack::Stack;
use paceline_stack::time::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::BorrowedFd;

/// Runs the stack and the tasks until `stop` becomes readable or its other end is closed. Calls
/// `ready` once tasks that are there by now have had their first turn.
pub fn run(
    net: &Net<Nic>,
    executor: &mut Executor,
    timers: &Timers,
    stop: BorrowedFd<'_>,
    ready: impl FnOnce(),
) -> io::Result<()> {
    let started = std::time::Instant::now();
    let now = || Instant::from_micros(started.elapsed().as_micros() as u64);
    net.poll(now());
    executor.run();
    ready();
    loop {
        let at = now();
        let polled = net.poll(at);
        timers.advance(at);
        let more = executor.run() || net.poll_wanted() || polled.more;
        if more || net.with(|stack| stack.device_mut().arm()) {
            continue;
        }
        let deadlines = [polled.deadline, timers.next_deadline()];
        let deadline = deadlines.into_iter().flatten().min();
        let timeout = deadline.map(|deadline| deadline.since(now()));
        if rest(net, timeout, stop)? {
            return Ok(());
        }
        net.with(Stack::slept);
    }
}

/// Waits until there is something to do; true when that is to stop.
fn rest(net: &Net<Nic>, timeout: Option<Duration>, stop: BorrowedFd<'_>) -> io::Result<bool> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    });
    net.with(|stack| {
        let (wire, flags) = stack.device_mut().wire();
        let mut fds = [
            PollFd::from_borrowed_fd(wire, flags),
            PollFd::from_borrowed_fd(stop, PollFlags::IN),
        ];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(!fds[1].revents().is_empty()),
            Err(error) => Err(error.into()),
        }
    })
}
