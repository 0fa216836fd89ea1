//! Calls that make sockets, connect and close them.

use super::{Attempt, Attempting, Current, Descriptor, Problem, Socket, SocketState, Sockets};
use crate::{
    script::{
        constants::{
            AF_INET, F_GETFD, F_GETFL, F_SETFD, F_SETFL, IPPROTO_TCP, O_NONBLOCK, O_RDWR, SHUT_RD,
            SHUT_RDWR, SHUT_WR, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM,
        },
        errno::Errno,
    },
    tcp::Options,
};
use alloc::format;
use core::{
    net::{IpAddr, SocketAddr},
    task::{Poll, Waker},
};

impl Sockets {
    pub(super) fn socket(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let family = match at.argument(0)? {
            crate::script::ast::Expr::Ellipsis => AF_INET,
            _ => at.integer(0)?,
        };
        if family != AF_INET {
            return Err(at.unsupported("IPv6"));
        }
        let kind = at.integer(1)?;
        let protocol = at.integer(2)?;
        let is_stream = kind & !(SOCK_NONBLOCK | SOCK_CLOEXEC) == SOCK_STREAM;
        if !is_stream || !matches!(protocol, 0 | IPPROTO_TCP) {
            return Err(at.unsupported("other sockets than TCP's"));
        }
        let config = at.machine.stack.tcp().config();
        let mut socket = Socket::new(Options::new(config), config.keepalive);
        socket.nonblocking = kind & SOCK_NONBLOCK != 0;
        Ok(self.insert(&at.call.result, Descriptor::Socket(socket)))
    }

    pub(super) fn bind(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let plan = &at.machine.plan;
        let wildcard = SocketAddr::new(IpAddr::V4(plan.local), plan.bind_port);
        let address = at.address(1)?.unwrap_or(wildcard);
        let is_ours = address.ip().is_unspecified() || address.ip() == wildcard.ip();
        let is_listening = |other: &Descriptor| {
            matches!(other, Descriptor::Socket(socket)
                if matches!(socket.state, SocketState::Listening(_))
                    && socket.bound.is_some_and(|b| b.port() == address.port()))
        };
        let taken = address.port() != 0 && self.table.values().any(is_listening);
        let Some(socket) = self.socket_mut(at, 0)? else {
            return Ok(Attempt::error(Errno::EBADF));
        };
        if socket.bound.is_some() || socket.state != SocketState::Fresh {
            return Ok(Attempt::error(Errno::EINVAL));
        }
        if !is_ours {
            return Ok(Attempt::error(Errno::EADDRNOTAVAIL));
        }
        if taken {
            return Ok(Attempt::error(Errno::EADDRINUSE));
        }
        socket.bound = Some(address);
        Ok(Attempt::OK)
    }

    pub(super) fn listen(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let backlog = at.integer(1)?;
        let Some(socket) = self.socket_mut(at, 0)? else {
            return Ok(Attempt::error(Errno::EBADF));
        };
        if socket.state != SocketState::Fresh {
            return Ok(Attempt::error(Errno::EINVAL));
        }
        let Some(bound) = socket.bound.filter(|bound| bound.port() != 0) else {
            return Err(at.unsupported("listening on a port of the system's choice"));
        };
        // Linux takes one more than it is told, so that 0 is 1.
        let backlog = usize::try_from(backlog).unwrap_or(0).min(4096) + 1;
        let options = socket.options.clone();
        match at.machine.tcp().listen(bound, backlog, options) {
            Ok(id) => socket.state = SocketState::Listening(id),
            Err(error) => return Ok(Attempt::error(error.into())),
        }
        at.machine.current = Current::Listening(bound.port());
        Ok(Attempt::OK)
    }

    pub(super) fn accept(
        &mut self,
        at: &mut Attempting<'_>,
        has_flags: bool,
    ) -> Result<Attempt, Problem> {
        let flags = if has_flags { at.integer(3)? } else { 0 };
        let Some(socket) = self.socket_mut(at, 0)? else {
            return Ok(Attempt::error(Errno::EBADF));
        };
        let SocketState::Listening(listener) = socket.state else {
            return Ok(Attempt::error(Errno::EINVAL));
        };
        let id = match at.machine.tcp().poll_accept(listener, Waker::noop()) {
            Poll::Ready(Ok((id, ..))) => id,
            Poll::Ready(Err(_)) => return Ok(Attempt::error(Errno::EINVAL)),
            Poll::Pending if socket.nonblocking => return Ok(Attempt::error(Errno::EAGAIN)),
            Poll::Pending => return Ok(Attempt::Blocks),
        };
        let mut accepted = Socket::new(socket.options.clone(), socket.keepalive);
        accepted.linger = socket.linger;
        accepted.state = SocketState::Connected(id);
        accepted.nonblocking = flags & SOCK_NONBLOCK != 0;
        self.latest = Some(id);
        Ok(self.insert(&at.call.result, Descriptor::Socket(accepted)))
    }

    pub(super) fn connect(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let plan = at.machine.plan;
        let wildcard = SocketAddr::new(IpAddr::V4(plan.remote), plan.connect_port);
        let remote = at.address(1)?.unwrap_or(wildcard);
        let begun = at.progress.begun;
        let Some(socket) = self.socket_mut(at, 0)? else {
            return Ok(Attempt::error(Errno::EBADF));
        };
        socket.refresh(at.machine);
        match socket.state {
            SocketState::Connected(_) if begun => return Ok(Attempt::OK),
            SocketState::Connected(_) | SocketState::Listening(_) => {
                return Ok(Attempt::error(Errno::EISCONN));
            }
            SocketState::Connecting(_) => {
                if let Some(failure) = socket.take_failure(at.machine) {
                    return Ok(Attempt::error(failure));
                }
                return Ok(if socket.failure_told {
                    Attempt::error(Errno::ECONNABORTED)
                } else if begun || !socket.nonblocking {
                    Attempt::Blocks
                } else {
                    Attempt::error(Errno::EALREADY)
                });
            }
            SocketState::Fresh => {}
        }
        if remote.ip() != wildcard.ip() {
            return Err(at.unsupported(format!("connecting to {}", remote.ip())));
        }
        let port = socket.bound.map_or(0, |bound| bound.port());
        let local = SocketAddr::new(IpAddr::V4(plan.local), port);
        let (now, options) = (at.machine.now, socket.options.clone());
        let id = match at.machine.tcp().connect(now, local, remote, options) {
            Ok(id) => id,
            Err(error) => return Ok(Attempt::error(error.into())),
        };
        socket.state = SocketState::Connecting(id);
        let blocks = !socket.nonblocking;
        self.latest = Some(id);
        let local = at.machine.stack.tcp().local_addr(id).unwrap_or(local);
        let index = at.machine.add_flow(local.port());
        at.machine.flows[index].peer_port = remote.port();
        at.machine.current = Current::Flow(index);
        Ok(if blocks {
            Attempt::Blocks
        } else {
            Attempt::error(Errno::EINPROGRESS)
        })
    }

    pub(super) fn close(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let fd = at.integer(0)?;
        if let Some(Descriptor::Socket(socket)) = self.table.get(&fd)
            && socket.linger.is_some_and(|seconds| seconds > 0)
        {
            return Err(at.unsupported("SO_LINGER with a time"));
        }
        let Some(descriptor) = self.table.remove(&fd) else {
            return Ok(Attempt::error(Errno::EBADF));
        };
        let Descriptor::Socket(socket) = descriptor else {
            return Ok(Attempt::OK);
        };
        let now = at.machine.now;
        let tcp = at.machine.tcp();
        match socket.state {
            SocketState::Listening(id) => tcp.close_listener(id),
            SocketState::Connecting(id) | SocketState::Connected(id) => {
                if socket.linger == Some(0) {
                    tcp.abort(id);
                }
                tcp.release(id, false, now);
            }
            SocketState::Fresh => {}
        }
        Ok(Attempt::OK)
    }

    pub(super) fn shutdown(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let how = at.integer(1)?;
        let Some(socket) = self.socket_mut(at, 0)? else {
            return Ok(Attempt::error(Errno::EBADF));
        };
        socket.refresh(at.machine);
        let SocketState::Connected(id) = socket.state else {
            return Ok(Attempt::error(Errno::ENOTCONN));
        };
        match how {
            SHUT_WR => {}
            SHUT_RD | SHUT_RDWR => return Err(at.unsupported("shutting reading down")),
            _ => return Ok(Attempt::error(Errno::EINVAL)),
        }
        if at.machine.stack.tcp().readiness(id).closed {
            return Ok(Attempt::error(Errno::ENOTCONN));
        }
        at.machine.tcp().shutdown(id);
        Ok(Attempt::OK)
    }

    pub(super) fn fcntl(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let command = at.integer(1)?;
        let flags = match command {
            F_SETFL => at.integer(2)?,
            F_GETFD | F_GETFL | F_SETFD => 0,
            other => return Err(at.unsupported(format!("fcntl command {other}"))),
        };
        let Some(socket) = self.socket_mut(at, 0)? else {
            return Ok(Attempt::error(Errno::EBADF));
        };
        match command {
            F_GETFL => {
                let nonblocking = if socket.nonblocking { O_NONBLOCK } else { 0 };
                return Ok(Attempt::Returned(O_RDWR | nonblocking, None));
            }
            F_SETFL => socket.nonblocking = flags & O_NONBLOCK != 0,
            _ => {}
        }
        Ok(Attempt::OK)
    }
}
