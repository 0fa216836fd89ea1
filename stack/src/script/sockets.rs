//! The application: file descriptors, and what system calls do to the sockets behind them.

mod arguments;
mod poll;
mod setup;
mod sockopt;
mod transfer;

use super::{
    Problem,
    ast::{Call, Expr},
    constants::IPPROTO_TCP,
    device::ScriptDevice,
    errno::Errno,
    flow::Flow,
    options::Plan,
};
use crate::{
    stack::Stack,
    tcp::{ConnectionId, Info, Keepalive, ListenerId, Options, Tcp},
    time::Instant,
};
use alloc::{collections::BTreeMap, format, vec::Vec};
use core::{net::SocketAddr, task::Waker};

pub(super) use arguments::{describe, expr_text};
use poll::Epoll;

/// The machine that the calls run on.
pub(super) struct Machine {
    pub(super) plan: Plan,
    pub(super) stack: Stack<ScriptDevice>,
    pub(super) now: Instant,
    pub(super) flows: Vec<Flow>,
    /// Where packets without ports belong.
    pub(super) current: Current,
}

/// Where packets without ports belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Current {
    /// To a flow.
    Flow(usize),
    /// A SYN to this port begins one.
    Listening(u16),
    /// To none yet.
    Nothing,
}

impl Machine {
    pub(super) fn tcp(&mut self) -> &mut Tcp<crate::sim::SimPage> {
        self.stack.tcp_and_device().0
    }

    /// Begins a flow to `local_port`; returns its index.
    pub(super) fn add_flow(&mut self, local_port: u16) -> usize {
        let index = self.flows.len();
        self.flows.push(Flow::new(index, local_port));
        index
    }
}

/// What came of trying a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// It waits for something.
    Blocks,
    /// It returned a value, or -1 and an error.
    Returned(i64, Option<Errno>),
}

impl Attempt {
    const OK: Self = Self::Returned(0, None);

    fn error(errno: Errno) -> Self {
        Self::Returned(-1, Some(errno))
    }
}

/// How far a call has got that did not return at the first attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// When it began.
    pub(super) since: Instant,
    /// Bytes written.
    written: usize,
    /// Whether there has been an attempt.
    begun: bool,
}

impl Progress {
    pub(super) fn new(since: Instant) -> Self {
        Self {
            since,
            written: 0,
            begun: false,
        }
    }

    /// Whether an attempt since `before` has moved anything.
    pub(super) fn differs(&self, before: &Self) -> bool {
        self.written != before.written
    }
}

#[derive(Debug)]
enum Descriptor {
    Epoll(Epoll),
    Socket(Socket),
}

/// A TCP socket.
#[derive(Debug)]
struct Socket {
    nonblocking: bool,
    bound: Option<SocketAddr>,
    options: Options,
    /// Times for when keepalive is on.
    keepalive: Keepalive,
    /// `SO_LINGER`, when on: seconds.
    linger: Option<i64>,
    state: SocketState,
    /// Whether the application has heard why the connection failed.
    failure_told: bool,
    /// Bytes read so far.
    read: u32,
    /// Bytes written so far.
    written: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketState {
    Fresh,
    Listening(ListenerId),
    Connecting(ConnectionId),
    Connected(ConnectionId),
}

/// All file descriptors.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    table: BTreeMap<i64, Descriptor>,
    /// The connection that was accepted or begun last.
    latest: Option<ConnectionId>,
}

/// One attempt at a call.
struct Attempting<'a> {
    machine: &'a mut Machine,
    line: u32,
    call: &'a Call,
    progress: &'a mut Progress,
}

impl Sockets {
    /// Tries a call. It is tried again, with the same `progress`, whenever the stack has run, as
    /// long as it blocks.
    pub(super) fn attempt(
        &mut self,
        machine: &mut Machine,
        line: u32,
        call: &Call,
        progress: &mut Progress,
    ) -> Result<Attempt, Problem> {
        let mut attempting = Attempting {
            machine,
            line,
            call,
            progress,
        };
        let attempt = self.dispatch(&mut attempting)?;
        attempting.progress.begun = true;
        Ok(attempt)
    }

    fn dispatch(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        match at.call.name.as_str() {
            "accept" => self.accept(at, false),
            "accept4" => self.accept(at, true),
            "bind" => self.bind(at),
            "close" => self.close(at),
            "connect" => self.connect(at),
            "epoll_create" | "epoll_create1" => self.epoll_create(at),
            "epoll_ctl" => self.epoll_ctl(at),
            "epoll_wait" => self.epoll_wait(at),
            "fcntl" => self.fcntl(at),
            "getsockopt" => self.getsockopt(at),
            "listen" => self.listen(at),
            "poll" => self.poll(at),
            "read" => self.read(at, None),
            "readv" => self.readv(at),
            "recv" | "recvfrom" => self.read(at, Some(3)),
            "recvmsg" => self.recvmsg(at),
            "send" | "sendto" => self.write(at, Some(3)),
            "sendmsg" => self.sendmsg(at),
            "setsockopt" => self.setsockopt(at),
            "shutdown" => self.shutdown(at),
            "socket" => self.socket(at),
            "write" => self.write(at, None),
            "writev" => self.writev(at),
            name => Err(at.unsupported(format!("system call {name}"))),
        }
    }

    /// What the latest connection tells of itself.
    pub(super) fn latest_info(&self, machine: &Machine) -> Option<Info> {
        machine.stack.tcp().info(self.latest?)
    }

    /// Notes what edge-triggered watchers must hear of, after the stack has run.
    pub(super) fn watch(&mut self, machine: &mut Machine) {
        self.watch_edges(machine);
    }

    /// Puts a descriptor under the number that the script expects, or else the lowest free one.
    fn insert(&mut self, wanted: &Expr, descriptor: Descriptor) -> Attempt {
        let free = |fd: &i64| !self.table.contains_key(fd);
        let fd = match wanted {
            Expr::Integer(fd) if *fd >= 0 && free(fd) => *fd,
            _ => (3..i64::MAX).find(free).unwrap_or(i64::MAX),
        };
        self.table.insert(fd, descriptor);
        Attempt::Returned(fd, None)
    }

    fn socket_mut(
        &mut self,
        at: &Attempting<'_>,
        index: usize,
    ) -> Result<Option<&mut Socket>, Problem> {
        let fd = at.integer(index)?;
        Ok(match self.table.get_mut(&fd) {
            Some(Descriptor::Socket(socket)) => Some(socket),
            _ => None,
        })
    }
}

impl Socket {
    fn new(options: Options, keepalive: Keepalive) -> Self {
        Self {
            nonblocking: false,
            bound: None,
            options,
            keepalive,
            linger: None,
            state: SocketState::Fresh,
            failure_told: false,
            read: 0,
            written: 0,
        }
    }

    /// The connection, established or not.
    fn connection(&self) -> Option<ConnectionId> {
        match self.state {
            SocketState::Connected(id) | SocketState::Connecting(id) => Some(id),
            SocketState::Fresh | SocketState::Listening(_) => None,
        }
    }

    /// Why the connection failed, if it has; whether or not that has been told.
    fn failure(&self, machine: &mut Machine) -> Option<Errno> {
        use core::task::Poll;
        let waker = Waker::noop();
        match self.state {
            SocketState::Connecting(id) => match machine.tcp().poll_connected(id, waker) {
                Poll::Ready(Err(error)) => Some(error.into()),
                _ => None,
            },
            SocketState::Connected(id) => {
                match machine.tcp().poll_write(id, waker, &[], &mut || None) {
                    Poll::Ready(Err(error)) if Errno::from(error) != Errno::EPIPE => {
                        Some(error.into())
                    }
                    _ => None,
                }
            }
            SocketState::Fresh | SocketState::Listening(_) => None,
        }
    }

    /// The failure, to be told once.
    fn take_failure(&mut self, machine: &mut Machine) -> Option<Errno> {
        if self.failure_told {
            return None;
        }
        let failure = self.failure(machine)?;
        self.failure_told = true;
        Some(failure)
    }

    /// Sees whether a connection that was begun is there.
    fn refresh(&mut self, machine: &mut Machine) {
        use core::task::Poll;
        if let SocketState::Connecting(id) = self.state
            && let Poll::Ready(Ok(())) = machine.tcp().poll_connected(id, Waker::noop())
        {
            self.state = SocketState::Connected(id);
        }
    }

    /// Changes a setting, of the connection too if there is one.
    fn change(&mut self, machine: &mut Machine, change: impl Fn(&mut Options)) {
        change(&mut self.options);
        if let Some(id) = self.connection() {
            let now = machine.now;
            machine.tcp().set_options(id, now, change);
        }
    }

    fn is_tcp_level(level: i64) -> bool {
        level == IPPROTO_TCP
    }
}
