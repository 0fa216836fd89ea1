//! A path between two hosts, in real time.
//!
//! A thread reads frames from two descriptors, TAP interfaces or sockets, and writes each to the
//! other one when its time has come. What happens on the way is decided by the simulator's own
//! links, so that there is one model of a path for virtual and for real time. What the operating
//! system adds is told: how late frames were.

use crate::priority;
use paceline_stack::sim::{Link, LinkCounters, OneWay};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// Largest frame: 1,500 bytes of IP behind an Ethernet header. Larger ones were not cut into
/// segments, and would share one fate.
const MAX_FRAME_BYTES: usize = 1514;

/// Room for any frame that Linux makes.
const BUFFER_BYTES: usize = 1 << 17;

/// Frames taken from one side before the other has its turn.
const BURST: usize = 64;

/// How long the thread rests at most: it then looks whether it is to stop.
const MAX_REST_NS: u64 = 20_000_000;

/// What counts as late.
const LATE_NS: u64 = 1_000_000;

/// The thread's real-time priority, above that of the ends: who waits for a frame must not wait
/// for a compiler.
const PRIORITY: u8 = 20;

/// Room in a socket for frames, as the kernel counts it: some thousand of them.
const SOCKET_BYTES: usize = 16 << 20;

/// A socket for a [`crate::Nic`] and its other end for an [`Emulator`].
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    for socket in [&ours, &theirs] {
        sockopt::set_socket_send_buffer_size_force(socket, SOCKET_BYTES)?;
    }
    Ok((ours, theirs))
}

/// How much later frames arrived than they should have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Frames that arrived.
    pub frames: u64,
    /// Those over a millisecond late.
    pub late: u64,
    /// The latest, in nanoseconds.
    pub worst_ns: u64,
}

/// What an emulator has seen.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// From the first end to the second, and back.
    pub links: [LinkCounters; 2],
    /// Both ways together.
    pub lateness: Lateness,
    /// If it was asked for: all frames as the first end sent and received them, with nanoseconds.
    pub capture: Vec<(u64, Vec<u8>)>,
}

/// A path at work.
#[derive(Debug)]
pub struct Emulator {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Report>>,
}

impl Emulator {
    /// Joins two descriptors that do not block. `links` lead from the first to the second and
    /// back; what goes wrong on them follows from `seed`.
    pub fn start(
        ends: [OwnedFd; 2],
        links: [Link; 2],
        seed: u64,
        capture: bool,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("path".into())
            .spawn(move || Path::new(&ends, &links, seed, capture).run(&stopped))?;
        Ok(Self { stop, thread })
    }

    /// Ends it. An error is one that it has met on its way.
    pub fn stop(self) -> io::Result<Report> {
        let Self { stop, thread } = self;
        stop.store(true, Ordering::Relaxed);
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// One direction: where frames come from, and where they go.
struct Direction<'a> {
    from: &'a OwnedFd,
    to: &'a OwnedFd,
    way: OneWay,
    /// A frame that its receiver had no room for, yet.
    held: Option<Vec<u8>>,
}

struct Path<'a> {
    directions: [Direction<'a>; 2],
    started: Instant,
    lateness: Lateness,
    capture: Option<Vec<(u64, Vec<u8>)>>,
    /// What is read into.
    buffer: Vec<u8>,
}

impl<'a> Path<'a> {
    fn new(ends: &'a [OwnedFd; 2], links: &[Link; 2], seed: u64, capture: bool) -> Self {
        let [first, second] = ends;
        let [there, back] = *links;
        let direction = |from, to, link, seed| Direction {
            from,
            to,
            way: OneWay::new(link, seed),
            held: None,
        };
        Self {
            directions: [
                direction(first, second, there, seed),
                direction(second, first, back, !seed),
            ],
            started: Instant::now(),
            lateness: Lateness::default(),
            capture: capture.then(Vec::new),
            buffer: vec![0; BUFFER_BYTES],
        }
    }

    fn run(mut self, stop: &AtomicBool) -> io::Result<Report> {
        // A sleep is as long as it was meant to be, or nearly so. Who may not have that measures
        // with what is told of lateness.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let _ = priority::raise_thread(PRIORITY);
        while !stop.load(Ordering::Relaxed) {
            for index in 0..2 {
                self.deliver(index)?;
                self.take(index)?;
            }
            self.rest()?;
        }
        let Self {
            directions,
            started: _,
            lateness,
            capture,
            buffer: _,
        } = self;
        Ok(Report {
            links: directions.map(|direction| direction.way.counters()),
            lateness,
            capture: capture.unwrap_or_default(),
        })
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Writes what has arrived.
    fn deliver(&mut self, index: usize) -> io::Result<()> {
        loop {
            let now_ns = self.now_ns();
            let Direction { to, way, held, .. } = &mut self.directions[index];
            let frame = match held.take() {
                Some(frame) => frame,
                None => match way.leave(now_ns) {
                    Some((due_ns, frame)) => {
                        let late_ns = now_ns - due_ns;
                        self.lateness.frames += 1;
                        self.lateness.late += u64::from(late_ns > LATE_NS);
                        self.lateness.worst_ns = self.lateness.worst_ns.max(late_ns);
                        frame
                    }
                    None => return Ok(()),
                },
            };
            match write(to, &frame) {
                Ok(_) => {
                    if let Some(capture) = self.capture.as_mut().filter(|_| index == 1) {
                        capture.push((now_ns, frame));
                    }
                }
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => {
                    *held = Some(frame);
                    return Ok(());
                }
                // The interface is down, or whoever read from the socket is gone.
                Err(Errno::IO | Errno::PIPE | Errno::CONNRESET) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads what was sent.
    fn take(&mut self, index: usize) -> io::Result<()> {
        for _ in 0..BURST {
            let len = match read(self.directions[index].from, &mut self.buffer[..]) {
                Ok(0) | Err(Errno::AGAIN | Errno::INTR | Errno::IO | Errno::CONNRESET) => break,
                Ok(len) => len,
                Err(error) => return Err(error.into()),
            };
            if len > MAX_FRAME_BYTES {
                return Err(io::Error::other(format!(
                    "expected frames of at most {MAX_FRAME_BYTES} bytes, got one of {len}"
                )));
            }
            let frame = self.buffer[..len].to_vec();
            let now_ns = self.now_ns();
            if let Some(capture) = self.capture.as_mut().filter(|_| index == 0) {
                capture.push((now_ns, frame.clone()));
            }
            self.directions[index].way.enter(now_ns, frame);
        }
        Ok(())
    }

    /// Waits for a frame to come or to be due.
    fn rest(&self) -> io::Result<()> {
        let now_ns = self.now_ns();
        let mut rest_ns = MAX_REST_NS;
        let mut waits = [PollFlags::IN; 2];
        for (index, direction) in self.directions.iter().enumerate() {
            if direction.held.is_some() {
                waits[1 - index] |= PollFlags::OUT;
            } else if let Some(next_ns) = direction.way.next_ns() {
                rest_ns = rest_ns.min(next_ns.saturating_sub(now_ns));
            }
        }
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: rest_ns as i64,
        };
        let [first, second] = &self.directions;
        let mut fds = [
            PollFd::from_borrowed_fd(first.from.as_fd(), waits[0]),
            PollFd::from_borrowed_fd(second.from.as_fd(), waits[1]),
        ];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests;
