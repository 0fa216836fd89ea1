//! Socket options.

use super::{Attempt, Attempting, Machine, Problem, Socket, SocketState, Sockets};
use crate::{
    script::{
        ast::Expr,
        constants::{
            SO_ERROR, SO_KEEPALIVE, SO_LINGER, SO_MAX_PACING_RATE, SO_RCVBUF, SO_REUSEADDR,
            SO_SNDBUF, SO_TYPE, SOCK_STREAM, SOL_SOCKET, TCP_CONGESTION, TCP_INFO, TCP_KEEPCNT,
            TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_MAXSEG, TCP_NODELAY, TCP_NOTSENT_LOWAT,
            TCP_USER_TIMEOUT,
        },
        errno::Errno,
        options::Flavor,
    },
    tcp::{CongestionAlgorithm, Options, Rate},
    time::Duration,
};
use alloc::format;

impl Sockets {
    pub(super) fn setsockopt(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let (level, name) = (at.integer(1)?, at.integer(2)?);
        if level == SOL_SOCKET && name == SO_LINGER {
            return self.set_linger(at);
        }
        if Socket::is_tcp_level(level) && name == TCP_CONGESTION {
            return self.set_congestion_control(at);
        }
        let value = at.boxed_integer(3)?;
        let unknown = unknown(at, "setsockopt");
        let Some(socket) = self.socket_mut(at, 0)? else {
            return Ok(Attempt::error(Errno::EBADF));
        };
        if let SocketState::Listening(_) = socket.state
            && (level, name) != (SOL_SOCKET, SO_REUSEADDR)
        {
            return Err(at.unsupported("options of a listening socket"));
        }
        let machine = &mut *at.machine;
        match set(socket, machine, (level, name), value) {
            Some(attempt) => Ok(attempt),
            None => Err(unknown?),
        }
    }

    /// `SO_LINGER`, given as `{onoff=…, linger=…}`.
    fn set_linger(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let expr = at.argument(3)?;
        let Expr::Record(entries) = expr else {
            let got = super::arguments::expr_text(expr);
            return Err(Problem::syntax(at.line, "{onoff=…, linger=…}", got));
        };
        let number = |name| Attempting::entry(entries, name).map_or(Ok(0), |e| at.value(e));
        let (on, seconds) = (number("onoff")?, number("linger")?);
        let Some(socket) = self.socket_mut(at, 0)? else {
            return Ok(Attempt::error(Errno::EBADF));
        };
        socket.linger = (on != 0).then_some(seconds);
        Ok(Attempt::OK)
    }

    /// `TCP_CONGESTION`, given by name.
    fn set_congestion_control(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let expr = at.argument(3)?;
        let Expr::Text(text) = expr else {
            let got = super::arguments::expr_text(expr);
            return Err(Problem::syntax(at.line, "the name in quotes", got));
        };
        let mut all = CongestionAlgorithm::ALL.into_iter();
        let Some(algorithm) = all.find(|algorithm| algorithm.name() == text) else {
            return Ok(Attempt::error(Errno::ENOENT));
        };
        let Some(socket) = self.socket_mut(at, 0)? else {
            return Ok(Attempt::error(Errno::EBADF));
        };
        if socket.state != SocketState::Fresh {
            return Err(at.unsupported("TCP_CONGESTION once there is a connection"));
        }
        socket.options.congestion_control = algorithm;
        Ok(Attempt::OK)
    }

    /// The name of `TCP_CONGESTION`.
    fn check_congestion_control(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let expected = at.argument(3)?;
        let Some(socket) = self.socket_mut(at, 0)? else {
            return Ok(Attempt::error(Errno::EBADF));
        };
        let got = socket.options.congestion_control.name();
        match expected {
            Expr::Ellipsis => Ok(Attempt::OK),
            Expr::Text(text) if text == got => Ok(Attempt::OK),
            other => {
                let expected = super::arguments::expr_text(other);
                Err(Problem::unexpected(at.line, expected, got))
            }
        }
    }

    pub(super) fn getsockopt(&mut self, at: &mut Attempting<'_>) -> Result<Attempt, Problem> {
        let (level, name) = (at.integer(1)?, at.integer(2)?);
        if Socket::is_tcp_level(level) && name == TCP_CONGESTION {
            return self.check_congestion_control(at);
        }
        let flavor = at.machine.plan.flavor;
        let unknown = unknown(at, "getsockopt");
        let Some(socket) = self.socket_mut(at, 0)? else {
            return Ok(Attempt::error(Errno::EBADF));
        };
        let got = get(socket, at.machine, (level, name));
        let Some(got) = got else {
            return Err(unknown?);
        };
        let expected = at.argument(3)?;
        let is_info = Socket::is_tcp_level(level) && name == TCP_INFO;
        // How large a buffer is made of the size asked for is each system's own choice.
        let is_foreign_buffer =
            flavor != Flavor::Own && level == SOL_SOCKET && matches!(name, SO_RCVBUF | SO_SNDBUF);
        if is_foreign_buffer {
            at.check_integer(&Expr::Ellipsis, got)?;
        } else if !is_info {
            at.check_integer(expected, got)?;
        } else if *expected != Expr::Ellipsis {
            return Err(at.unsupported("tcp_info outside of code blocks"));
        }
        Ok(Attempt::OK)
    }
}

/// The problem that an option is not known, by the name that the script gives it.
fn unknown(at: &Attempting<'_>, call: &str) -> Result<Problem, Problem> {
    let name = super::arguments::expr_text(at.argument(2)?);
    Ok(at.unsupported(format!("{name} of {call}")))
}

/// Sets an option; none: it is not known.
fn set(
    socket: &mut Socket,
    machine: &mut Machine,
    (level, name): (i64, i64),
    value: i64,
) -> Option<Attempt> {
    let bytes = u32::try_from(value.clamp(1, 1 << 30)).unwrap_or(1);
    let on = value != 0;
    if level == SOL_SOCKET {
        match name {
            SO_REUSEADDR => {}
            SO_SNDBUF => socket.change(machine, |options| options.sndbuf_bytes = Some(bytes)),
            SO_RCVBUF => socket.change(machine, |options| options.rcvbuf_bytes = Some(bytes)),
            SO_KEEPALIVE => {
                let keepalive = on.then_some(socket.keepalive);
                socket.change(machine, |options| options.keepalive = keepalive);
            }
            SO_MAX_PACING_RATE => {
                // As in Linux, who asks for a rate is paced; all ones is none.
                let rate = match u32::try_from(value) {
                    Ok(bytes) if bytes < u32::MAX => Rate::from_bytes_per_second(bytes.into()),
                    _ => Rate::UNLIMITED,
                };
                socket.change(machine, |options| {
                    options.max_pacing_rate = rate;
                    options.pacing = true;
                });
            }
            _ => return None,
        }
        return Some(Attempt::OK);
    }
    if !Socket::is_tcp_level(level) {
        return None;
    }
    match name {
        TCP_NOTSENT_LOWAT => {
            // 0 means what the system's setting says.
            let bytes = match u32::try_from(value) {
                Ok(0) => machine.stack.tcp().config().notsent_lowat_bytes,
                Ok(bytes) => bytes,
                Err(_) => return Some(Attempt::error(Errno::EINVAL)),
            };
            socket.change(machine, |options| options.notsent_lowat_bytes = bytes);
        }
        TCP_NODELAY => socket.change(machine, |options| options.nodelay = on),
        TCP_MAXSEG => {
            let Ok(mss) = u16::try_from(value) else {
                return Some(Attempt::error(Errno::EINVAL));
            };
            let mss = (mss > 0).then_some(mss);
            socket.change(machine, |options| options.max_segment_bytes = mss);
        }
        TCP_USER_TIMEOUT => {
            let Ok(ms) = u64::try_from(value) else {
                return Some(Attempt::error(Errno::EINVAL));
            };
            let timeout = (ms > 0).then(|| Duration::from_millis(ms));
            socket.change(machine, |options| options.user_timeout = timeout);
        }
        TCP_KEEPIDLE | TCP_KEEPINTVL | TCP_KEEPCNT => {
            if !(1..=32_767).contains(&value) || (name == TCP_KEEPCNT && value > 127) {
                return Some(Attempt::error(Errno::EINVAL));
            }
            let span = Duration::from_secs(value.unsigned_abs());
            match name {
                TCP_KEEPIDLE => socket.keepalive.time = span,
                TCP_KEEPINTVL => socket.keepalive.interval = span,
                _ => socket.keepalive.probes = value as u8,
            }
            let keepalive = socket.keepalive;
            socket.change(machine, |options: &mut Options| {
                options.keepalive = options.keepalive.map(|_| keepalive);
            });
        }
        _ => return None,
    }
    Some(Attempt::OK)
}

/// An option's value; none: it is not known.
fn get(socket: &mut Socket, machine: &mut Machine, (level, name): (i64, i64)) -> Option<i64> {
    let options = &socket.options;
    if level == SOL_SOCKET {
        return Some(match name {
            SO_ERROR => socket.take_failure(machine).map_or(0, |errno| errno.number),
            SO_KEEPALIVE => i64::from(options.keepalive.is_some()),
            SO_RCVBUF | SO_SNDBUF => {
                let config = machine.stack.tcp().config();
                let info = socket
                    .connection()
                    .and_then(|id| machine.stack.tcp().info(id));
                let (asked, now, initial) = if name == SO_RCVBUF {
                    let now = info.map(|info| info.rcvbuf_bytes);
                    (options.rcvbuf_bytes, now, config.rcvbuf_bytes)
                } else {
                    let now = info.map(|info| info.sndbuf_bytes);
                    (options.sndbuf_bytes, now, config.sndbuf_bytes)
                };
                i64::from(asked.or(now).unwrap_or(initial))
            }
            SO_MAX_PACING_RATE => {
                let rate = options.max_pacing_rate.bytes_per_second();
                i64::from(u32::try_from(rate).unwrap_or(u32::MAX))
            }
            SO_TYPE => SOCK_STREAM,
            SO_REUSEADDR => 1,
            _ => return None,
        });
    }
    if !Socket::is_tcp_level(level) {
        return None;
    }
    let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    Some(match name {
        TCP_NODELAY => i64::from(options.nodelay),
        TCP_MAXSEG => {
            let info = socket
                .connection()
                .and_then(|id| machine.stack.tcp().info(id));
            match (info, options.max_segment_bytes) {
                (Some(info), _) => i64::from(info.snd_mss),
                (None, Some(mss)) => i64::from(mss),
                (None, None) => 536,
            }
        }
        TCP_KEEPIDLE => seconds(socket.keepalive.time),
        TCP_KEEPINTVL => seconds(socket.keepalive.interval),
        TCP_KEEPCNT => i64::from(socket.keepalive.probes),
        TCP_NOTSENT_LOWAT => i64::from(options.notsent_lowat_bytes),
        TCP_USER_TIMEOUT => options.user_timeout.map_or(0, |timeout| {
            i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX)
        }),
        TCP_INFO => 0,
        _ => return None,
    })
}
