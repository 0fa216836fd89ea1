//! What operations on sockets fail with.

use super::connection::Failure;
use core::{fmt, net::SocketAddr};
use embedded_io_async::ErrorKind;

/// Why a listener could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenError {
    /// Another listener takes connections there.
    AddressInUse(SocketAddr),
    /// The port is 0.
    PortZero,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddressInUse(address) => write!(f, "{address} is in use by another listener"),
            Self::PortZero => f.write_str("expected a port from 1 to 65535, got 0"),
        }
    }
}

/// Why no connection was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcceptError {
    /// The listener has been closed.
    Closed,
}

impl fmt::Display for AcceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("listener is closed"),
        }
    }
}

/// Why no connection was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// It was aborted meanwhile.
    Aborted,
    /// A connection of these addresses and ports exists.
    AddressInUse,
    /// The remote address or port cannot be connected to.
    InvalidAddress(SocketAddr),
    /// All local ports have connections to that peer.
    NoPortLeft,
    /// The peer refused it.
    Refused,
    /// The peer did not answer.
    TimedOut,
    /// There are as many connections as are allowed.
    TooManyConnections,
    /// No way leads to the peer.
    Unreachable,
}

impl From<Failure> for ConnectError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Aborted => Self::Aborted,
            Failure::Refused | Failure::Reset => Self::Refused,
            Failure::TimedOut => Self::TimedOut,
            Failure::Unreachable => Self::Unreachable,
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aborted => f.write_str("connection aborted"),
            Self::AddressInUse => f.write_str("a connection of these addresses and ports exists"),
            Self::InvalidAddress(address) => {
                write!(
                    f,
                    "expected the address and port of one host, got {address}"
                )
            }
            Self::NoPortLeft => f.write_str("all local ports are in use"),
            Self::Refused => f.write_str("connection refused"),
            Self::TimedOut => f.write_str("peer does not answer"),
            Self::TooManyConnections => f.write_str("too many connections"),
            Self::Unreachable => f.write_str("peer unreachable"),
        }
    }
}

/// Why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The connection was aborted here.
    Aborted,
    /// The peer reset the connection.
    Reset,
    /// The peer did not answer in time.
    TimedOut,
    /// The peer became unreachable.
    Unreachable,
}

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Aborted => Self::Aborted,
            Failure::Refused | Failure::Reset => Self::Reset,
            Failure::TimedOut => Self::TimedOut,
            Failure::Unreachable => Self::Unreachable,
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aborted => "connection aborted",
            Self::Reset => "connection reset by peer",
            Self::TimedOut => "connection timed out",
            Self::Unreachable => "peer unreachable",
        })
    }
}

/// Why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The connection was aborted here.
    Aborted,
    /// The sending side has been closed.
    Closed,
    /// The peer reset the connection.
    Reset,
    /// The peer did not answer in time.
    TimedOut,
    /// The peer became unreachable.
    Unreachable,
}

impl From<Failure> for WriteError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Aborted => Self::Aborted,
            Failure::Refused | Failure::Reset => Self::Reset,
            Failure::TimedOut => Self::TimedOut,
            Failure::Unreachable => Self::Unreachable,
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aborted => "connection aborted",
            Self::Closed => "sending side is closed",
            Self::Reset => "connection reset by peer",
            Self::TimedOut => "connection timed out",
            Self::Unreachable => "peer unreachable",
        })
    }
}

impl embedded_io_async::Error for ReadError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Aborted => ErrorKind::ConnectionAborted,
            Self::Reset => ErrorKind::ConnectionReset,
            Self::TimedOut => ErrorKind::TimedOut,
            Self::Unreachable => ErrorKind::Other,
        }
    }
}

impl embedded_io_async::Error for WriteError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Aborted => ErrorKind::ConnectionAborted,
            Self::Closed => ErrorKind::BrokenPipe,
            Self::Reset => ErrorKind::ConnectionReset,
            Self::TimedOut => ErrorKind::TimedOut,
            Self::Unreachable => ErrorKind::Other,
        }
    }
}

impl core::error::Error for ListenError {}
impl core::error::Error for AcceptError {}
impl core::error::Error for ConnectError {}
impl core::error::Error for ReadError {}
impl core::error::Error for WriteError {}
