//! Calls that read and write.

use super::{Attempt, Attempting, Problem, SocketState, Sockets};
use crate::{
    device::Device,
    script::{
        ast::Expr,
        constants::{MSG_DONTWAIT, MSG_NOSIGNAL},
        errno::Errno,
        flow::{peer_byte, written_byte},
    },
};
use alloc::{format, string::String, vec, vec::Vec};
use core::task::{Poll, Waker};

impl Sockets {
    /// `read`, or `recv` with its flags at `flags`.
    pub(super) fn read(
        &mut self,
        at: &mut Attempting<'_>,
        flags: Option<usize>,
    ) -> Result<Attempt, Problem> {
        let length = at.length(2)?;
        let dont_wait = transfer_flags(at, flags)?;
        self.read_bytes(at, length, dont_wait)
    }

    pub(super) fn readv(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let length = iovec_bytes(at, at.argument(1)?)?;
        self.read_bytes(at, length, false)
    }

    pub(super) fn recvmsg(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let length = message_bytes(at)?;
        let dont_wait = transfer_flags(at, Some(2))?;
        self.read_bytes(at, length, dont_wait)
    }

    /// `write`, or `send` with its flags at `flags`.
    pub(super) fn write(
        &mut self,
        at: &mut Attempting<'_>,
        flags: Option<usize>,
    ) -> Result<Attempt, Problem> {
        let length = at.length(2)?;
        let dont_wait = transfer_flags(at, flags)?;
        self.write_bytes(at, length, dont_wait)
    }

    pub(super) fn writev(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let length = iovec_bytes(at, at.argument(1)?)?;
        self.write_bytes(at, length, false)
    }

    pub(super) fn sendmsg(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let length = message_bytes(at)?;
        let dont_wait = transfer_flags(at, Some(2))?;
        self.write_bytes(at, length, dont_wait)
    }

    fn read_bytes(
        &mut self,
        at: &mut Attempting<'_>,
        length: usize,
        dont_wait: bool,
    ) -> Result<Attempt, Problem> {
        let Some(socket) = self.socket_mut(at, 0)? else {
            return Ok(Attempt::error(Errno::EBADF));
        };
        socket.refresh(at.machine);
        let id = match socket.state {
            SocketState::Connected(id) => id,
            SocketState::Connecting(_) => {
                if let Some(failure) = socket.take_failure(at.machine) {
                    return Ok(Attempt::error(failure));
                }
                return Ok(if socket.nonblocking || dont_wait {
                    Attempt::error(Errno::EAGAIN)
                } else {
                    Attempt::Blocks
                });
            }
            _ => return Ok(Attempt::error(Errno::ENOTCONN)),
        };
        let mut data = vec![0; length];
        match at.machine.tcp().poll_read(id, Waker::noop(), &mut data) {
            Poll::Ready(Ok(len)) => {
                for byte in &data[..len] {
                    let offset = socket.read;
                    if *byte != peer_byte(offset) {
                        let expected = format!("byte {offset} of the stream as it was sent");
                        return Err(Problem::unexpected(at.line, expected, "another"));
                    }
                    socket.read = offset.wrapping_add(1);
                }
                Ok(Attempt::Returned(len as i64, None))
            }
            Poll::Ready(Err(_)) if socket.failure_told => Ok(Attempt::OK),
            Poll::Ready(Err(error)) => {
                socket.failure_told = true;
                Ok(Attempt::error(error.into()))
            }
            Poll::Pending if socket.nonblocking || dont_wait => Ok(Attempt::error(Errno::EAGAIN)),
            Poll::Pending => Ok(Attempt::Blocks),
        }
    }

    fn write_bytes(
        &mut self,
        at: &mut Attempting<'_>,
        length: usize,
        dont_wait: bool,
    ) -> Result<Attempt, Problem> {
        let Some(socket) = self.socket_mut(at, 0)? else {
            return Ok(Attempt::error(Errno::EBADF));
        };
        socket.refresh(at.machine);
        let nonblocking = socket.nonblocking || dont_wait;
        let id = match socket.state {
            SocketState::Connected(id) => id,
            SocketState::Connecting(_) => {
                if let Some(failure) = socket.take_failure(at.machine) {
                    return Ok(Attempt::error(failure));
                }
                return Ok(if nonblocking {
                    Attempt::error(Errno::EAGAIN)
                } else {
                    Attempt::Blocks
                });
            }
            _ => return Ok(Attempt::error(Errno::EPIPE)),
        };
        loop {
            let left = length - at.progress.written;
            let start = socket.written;
            let data: Vec<u8> = (0..left as u32)
                .map(|i| written_byte(start.wrapping_add(i)))
                .collect();
            let (tcp, device) = at.machine.stack.tcp_and_device();
            let alloc = &mut || device.alloc_page();
            let done = at.progress.written;
            match tcp.poll_write(id, Waker::noop(), &data, alloc) {
                Poll::Ready(Ok(len)) => {
                    socket.written = start.wrapping_add(len as u32);
                    at.progress.written += len;
                    if at.progress.written == length {
                        return Ok(Attempt::Returned(length as i64, None));
                    }
                }
                Poll::Ready(Err(_)) | Poll::Pending if done > 0 && nonblocking => {
                    return Ok(Attempt::Returned(done as i64, None));
                }
                Poll::Ready(Err(_)) if done > 0 => {
                    return Ok(Attempt::Returned(done as i64, None));
                }
                Poll::Ready(Err(_)) if socket.failure_told => {
                    return Ok(Attempt::error(Errno::EPIPE));
                }
                Poll::Ready(Err(error)) => {
                    let errno = Errno::from(error);
                    socket.failure_told |= errno != Errno::EPIPE;
                    return Ok(Attempt::error(errno));
                }
                Poll::Pending if nonblocking => return Ok(Attempt::error(Errno::EAGAIN)),
                Poll::Pending => return Ok(Attempt::Blocks),
            }
        }
    }
}

/// Whether the flags at `index` say not to wait; others than known are not supported.
fn transfer_flags(at: &Attempting<'_>, index: Option<usize>) -> Result<bool, Problem> {
    let Some(index) = index else {
        return Ok(false);
    };
    let flags = at.integer(index)?;
    if flags & !(MSG_DONTWAIT | MSG_NOSIGNAL) != 0 {
        let text = super::arguments::expr_text(at.argument(index)?);
        return Err(at.unsupported(format!("flags {text} of {}", at.call.name)));
    }
    Ok(flags & MSG_DONTWAIT != 0)
}

/// The bytes of `[{..., 100}, {..., 200}]`.
fn iovec_bytes(at: &Attempting<'_>, expr: &Expr) -> Result<usize, Problem> {
    let wrong = || {
        let got = super::arguments::expr_text(expr);
        Problem::syntax(at.line, "a list of {..., length}", got)
    };
    let Expr::List(list) = expr else {
        return Err(wrong());
    };
    let mut total: i64 = 0;
    for part in list {
        let Expr::Record(entries) = part else {
            return Err(wrong());
        };
        let [_, (_, length)] = &entries[..] else {
            return Err(wrong());
        };
        total = total.saturating_add(at.checked_length(at.value(length)?)? as i64);
    }
    at.checked_length(total)
}

/// The bytes of a `msghdr` at the second argument.
fn message_bytes(at: &Attempting<'_>) -> Result<usize, Problem> {
    let expr = at.argument(1)?;
    let Expr::Record(entries) = expr else {
        let got = super::arguments::expr_text(expr);
        return Err(Problem::syntax(at.line, "a msghdr", got));
    };
    let entry = |name: &str| Attempting::entry(entries, name);
    if let Some(Expr::List(control)) = entry("msg_control")
        && !control.is_empty()
    {
        return Err(at.unsupported("control messages"));
    }
    match entry("msg_iov") {
        Some(iov) => iovec_bytes(at, iov),
        None => Err(Problem::syntax(at.line, "msg_iov", String::from("none"))),
    }
}
