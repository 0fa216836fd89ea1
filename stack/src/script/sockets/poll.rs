//! `poll` and `epoll`: what descriptors are ready for.

use super::{Attempt, Attempting, Descriptor, Machine, Problem, Socket, SocketState, Sockets};
use crate::{
    script::{
        ast::Expr,
        constants::{
            EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLET, EPOLLONESHOT, POLLERR, POLLHUP,
            POLLIN, POLLNVAL, POLLOUT, POLLRDHUP, POLLRDNORM, POLLWRNORM,
        },
        errno::Errno,
    },
    time::Duration,
};
use alloc::{collections::BTreeMap, format, vec::Vec};

/// An epoll instance.
#[derive(Debug, Default)]
pub(super) struct Epoll {
    watched: BTreeMap<i64, Watched>,
}

/// A descriptor that an epoll instance watches.
#[derive(Clone, Copy, Debug)]
struct Watched {
    events: i64,
    /// Edge-triggered: the events that have been told and hold since.
    told: i64,
    /// Bytes received when reading was last told.
    received: u64,
    /// One-shot: over.
    spent: bool,
}

/// Events that hold whether or not they are asked for.
const UNASKED: i64 = POLLERR | POLLHUP;

impl Sockets {
    /// The events that hold of a descriptor, and the bytes it has received.
    fn ready(&self, machine: &Machine, fd: i64) -> (i64, u64) {
        let Some(Descriptor::Socket(socket)) = self.table.get(&fd) else {
            return (POLLNVAL, 0);
        };
        socket_events(socket, machine)
    }

    pub(super) fn poll(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let timeout_ms = at.integer(2)?;
        let expr = at.argument(0)?;
        let Expr::List(list) = expr else {
            let got = super::arguments::expr_text(expr);
            return Err(Problem::syntax(at.line, "a list of pollfd", got));
        };
        let mut ready = 0;
        let mut found = Vec::new();
        for part in list {
            let Expr::Record(entries) = part else {
                let got = super::arguments::expr_text(part);
                return Err(Problem::syntax(at.line, "{fd=…, events=…}", got));
            };
            let number = |name| Attempting::entry(entries, name).map_or(Ok(0), |e| at.value(e));
            let (fd, asked) = (number("fd")?, number("events")?);
            let (holds, _) = self.ready(at.machine, fd);
            let events = holds & (asked | UNASKED | POLLNVAL);
            ready += i64::from(events != 0);
            found.push((Attempting::entry(entries, "revents"), events));
        }
        if ready == 0 && !timed_out(at, timeout_ms) {
            return Ok(Attempt::Blocks);
        }
        for (expected, events) in found {
            match expected {
                Some(expected) => at.check_integer(expected, events)?,
                None => at.check_integer(&Expr::Integer(0), events)?,
            }
        }
        Ok(Attempt::Returned(ready, None))
    }

    pub(super) fn epoll_create(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        at.integer(0)?;
        Ok(self.insert(&at.call.result, Descriptor::Epoll(Epoll::default())))
    }

    pub(super) fn epoll_ctl(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let (epfd, operation, fd) = (at.integer(0)?, at.integer(1)?, at.integer(2)?);
        let mut events = 0;
        if operation != EPOLL_CTL_DEL {
            let expr = at.argument(3)?;
            let Expr::Record(entries) = expr else {
                let got = super::arguments::expr_text(expr);
                return Err(Problem::syntax(at.line, "{events=…, fd=…}", got));
            };
            if let Some(expr) = Attempting::entry(entries, "events") {
                events = at.value(expr)?;
            }
        }
        if !self.table.contains_key(&fd) {
            return Ok(Attempt::error(Errno::EBADF));
        }
        let Some(Descriptor::Epoll(epoll)) = self.table.get_mut(&epfd) else {
            return Ok(Attempt::error(Errno::EINVAL));
        };
        let known = epoll.watched.contains_key(&fd);
        match operation {
            EPOLL_CTL_ADD if known => return Ok(Attempt::error(Errno::EEXIST)),
            EPOLL_CTL_MOD | EPOLL_CTL_DEL if !known => return Ok(Attempt::error(Errno::ENOENT)),
            EPOLL_CTL_ADD | EPOLL_CTL_MOD => {
                let watched = Watched {
                    events,
                    told: 0,
                    received: 0,
                    spent: false,
                };
                epoll.watched.insert(fd, watched);
            }
            EPOLL_CTL_DEL => {
                epoll.watched.remove(&fd);
            }
            _ => return Ok(Attempt::error(Errno::EINVAL)),
        }
        Ok(Attempt::OK)
    }

    pub(super) fn epoll_wait(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let epfd = at.integer(0)?;
        let most = at.integer(2)?;
        let timeout_ms = at.integer(3)?;
        let Some(Descriptor::Epoll(epoll)) = self.table.get(&epfd) else {
            return Ok(Attempt::error(Errno::EINVAL));
        };
        if most <= 0 {
            return Ok(Attempt::error(Errno::EINVAL));
        }
        let mut told = Vec::new();
        for (&fd, watched) in &epoll.watched {
            let (holds, received) = self.ready(at.machine, fd);
            let events = watched.news(holds, received);
            if events != 0 && (told.len() as i64) < most {
                told.push((fd, events, received));
            }
        }
        if told.is_empty() && !timed_out(at, timeout_ms) {
            return Ok(Attempt::Blocks);
        }
        if let Some(Descriptor::Epoll(epoll)) = self.table.get_mut(&epfd) {
            for &(fd, events, received) in &told {
                if let Some(watched) = epoll.watched.get_mut(&fd) {
                    watched.told |= events;
                    watched.received = received;
                    watched.spent = watched.events & EPOLLONESHOT != 0;
                }
            }
        }
        check_events(at, &told)?;
        Ok(Attempt::Returned(told.len() as i64, None))
    }

    /// Forgets of edge-triggered descriptors that they were told of what does not hold any more.
    pub(super) fn watch_edges(&mut self, machine: &Machine) {
        let mut states = Vec::new();
        for (&epfd, descriptor) in &self.table {
            if let Descriptor::Epoll(epoll) = descriptor {
                for &fd in epoll.watched.keys() {
                    states.push((epfd, fd, self.ready(machine, fd).0));
                }
            }
        }
        for (epfd, fd, holds) in states {
            if let Some(Descriptor::Epoll(epoll)) = self.table.get_mut(&epfd)
                && let Some(watched) = epoll.watched.get_mut(&fd)
            {
                watched.told &= holds;
            }
        }
    }
}

impl Watched {
    /// The events to tell of, out of those that hold.
    fn news(&self, holds: i64, received: u64) -> i64 {
        if self.spent || holds & POLLNVAL != 0 {
            return 0;
        }
        let asked = holds & (self.events | UNASKED);
        if self.events & EPOLLET == 0 {
            return asked;
        }
        let mut news = asked & !self.told;
        if received > self.received {
            news |= asked & (POLLIN | POLLRDNORM);
        }
        // What is told, is told whole.
        if news == 0 { 0 } else { asked }
    }
}

/// Compares what `epoll_wait` found with the script's one event, or list of events.
fn check_events(at: &Attempting<'_>, told: &[(i64, i64, u64)]) -> Result<(), Problem> {
    let expr = at.argument(1)?;
    let expected: &[Expr] = match expr {
        Expr::Ellipsis => return Ok(()),
        Expr::List(list) => list,
        one => core::slice::from_ref(one),
    };
    for ((fd, events, _), expected) in told.iter().zip(expected) {
        let Expr::Record(entries) = expected else {
            let got = super::arguments::expr_text(expected);
            return Err(Problem::syntax(at.line, "{events=…, fd=…}", got));
        };
        for (name, got) in [("events", events), ("fd", fd)] {
            if let Some(expected) = Attempting::entry(entries, name) {
                at.check_integer(expected, *got)?;
            }
        }
        if let Some((name, _)) = entries
            .iter()
            .find(|(name, _)| name == "u32" || name == "u64")
        {
            return Err(at.unsupported(format!("epoll data {name}")));
        }
    }
    if told.len() > expected.len() {
        let got = format!("{} events", told.len());
        let expected = format!("at most {} events", expected.len());
        return Err(Problem::unexpected(at.line, expected, got));
    }
    Ok(())
}

/// Whether a call that has `timeout_ms` is to return empty-handed; less than 0: never.
fn timed_out(at: &Attempting<'_>, timeout_ms: i64) -> bool {
    let Ok(timeout_ms) = u64::try_from(timeout_ms) else {
        return false;
    };
    at.machine.now.since(at.progress.since) >= Duration::from_millis(timeout_ms)
}

fn socket_events(socket: &Socket, machine: &Machine) -> (i64, u64) {
    let tcp = machine.stack.tcp();
    match socket.state {
        SocketState::Fresh => (POLLOUT | POLLWRNORM | POLLHUP, 0),
        SocketState::Listening(id) => {
            let ready = tcp.may_accept(id);
            (if ready { POLLIN | POLLRDNORM } else { 0 }, 0)
        }
        SocketState::Connecting(id) | SocketState::Connected(id) => {
            let readiness = tcp.readiness(id);
            let received = tcp.info(id).map_or(0, |info| info.bytes_received);
            let events = [
                (readiness.readable, POLLIN | POLLRDNORM),
                (readiness.writable, POLLOUT | POLLWRNORM),
                (readiness.peer_closed || readiness.closed, POLLRDHUP),
                (readiness.closed, POLLHUP),
                (readiness.failed && !socket.failure_told, POLLERR),
            ];
            let events = events.iter().filter(|(holds, _)| *holds);
            (events.fold(0, |all, (_, event)| all | event), received)
        }
    }
}
