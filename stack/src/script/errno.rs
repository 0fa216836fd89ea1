//! Errors of system calls, by name.

use crate::tcp::{ConnectError, ListenError, ReadError, WriteError};

/// An error: its name as scripts write it, and Linux's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Errno {
    pub(super) name: &'static str,
    pub(super) number: i64,
}

macro_rules! errnos {
    ($($name:ident = $number:literal,)*) => {
        impl Errno {
            $(pub(super) const $name: Self = Self {
                name: stringify!($name),
                number: $number,
            };)*

            /// All of them.
            const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

errnos! {
    EADDRINUSE = 98,
    EADDRNOTAVAIL = 99,
    EAGAIN = 11,
    EALREADY = 114,
    EBADF = 9,
    ECONNABORTED = 103,
    ECONNREFUSED = 111,
    ECONNRESET = 104,
    EEXIST = 17,
    EHOSTUNREACH = 113,
    EINPROGRESS = 115,
    EINVAL = 22,
    EISCONN = 106,
    EMSGSIZE = 90,
    ENETUNREACH = 101,
    ENOBUFS = 105,
    ENOENT = 2,
    ENOPROTOOPT = 92,
    ENOTCONN = 107,
    EOPNOTSUPP = 95,
    EPIPE = 32,
    ETIMEDOUT = 110,
}

impl Errno {
    /// The number of an error's name.
    pub(super) fn number_of(name: &str) -> Option<i64> {
        let name = if name == "EWOULDBLOCK" {
            "EAGAIN"
        } else {
            name
        };
        let known = Self::ALL.iter().find(|errno| errno.name == name)?;
        Some(known.number)
    }
}

impl From<ConnectError> for Errno {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Aborted => Self::ECONNABORTED,
            ConnectError::AddressInUse | ConnectError::NoPortLeft => Self::EADDRNOTAVAIL,
            ConnectError::InvalidAddress(_) => Self::EINVAL,
            ConnectError::Refused => Self::ECONNREFUSED,
            ConnectError::TimedOut => Self::ETIMEDOUT,
            ConnectError::TooManyConnections => Self::ENOBUFS,
            ConnectError::Unreachable => Self::EHOSTUNREACH,
        }
    }
}

impl From<ListenError> for Errno {
    fn from(error: ListenError) -> Self {
        match error {
            ListenError::AddressInUse(_) => Self::EADDRINUSE,
            ListenError::PortZero => Self::EINVAL,
        }
    }
}

impl From<ReadError> for Errno {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Aborted => Self::ECONNABORTED,
            ReadError::Reset => Self::ECONNRESET,
            ReadError::TimedOut => Self::ETIMEDOUT,
            ReadError::Unreachable => Self::EHOSTUNREACH,
        }
    }
}

impl From<WriteError> for Errno {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Aborted => Self::ECONNABORTED,
            WriteError::Closed => Self::EPIPE,
            WriteError::Reset => Self::ECONNRESET,
            WriteError::TimedOut => Self::ETIMEDOUT,
            WriteError::Unreachable => Self::EHOSTUNREACH,
        }
    }
}
