//! What can go wrong with a request.

use crate::xen::errno::Errno;
use alloc::string::String;
use core::fmt;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The value is not what the key is supposed to hold.
    BadValue {
        /// What was expected.
        expected: &'static str,
        /// What was there, cut when long.
        found: String,
    },
    /// The connection was replaced while the request was on its way.
    Disconnected,
    /// xenstored broke the protocol; the connection must be set up anew.
    Protocol(ProtocolError),
    /// xenstored refused.
    Refused(Errno),
    /// xenstored does not offer to reconnect.
    ReconnectUnsupported,
    /// The request does not fit a message.
    TooLong {
        /// Bytes of the request's payload.
        bytes: usize,
    },
    /// Too many requests wait for a reply.
    TooManyRequests,
    /// The wait ended because the caller wanted it to, as of [`super::Xenstore::fail_all`].
    TimedOut,
}

impl Error {
    /// Whether another domain's change made a transaction fail.
    pub fn is_conflict(&self) -> bool {
        *self == Self::Refused(Errno::EAGAIN)
    }

    /// Whether the path does not exist.
    pub fn is_absent(&self) -> bool {
        *self == Self::Refused(Errno::ENOENT)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadValue { expected, found } => {
                write!(f, "xenstore: expected {expected}, found {found:?}")
            }
            Self::Disconnected => write!(f, "xenstore: the connection was replaced"),
            Self::Protocol(error) => write!(f, "xenstore: {error}"),
            Self::Refused(errno) => write!(f, "xenstore: refused with {errno}"),
            Self::ReconnectUnsupported => write!(f, "xenstore: no reconnection offered"),
            Self::TooLong { bytes } => write!(
                f,
                "xenstore: a request of {bytes} bytes exceeds {}",
                super::wire::MAX_PAYLOAD_BYTES
            ),
            Self::TooManyRequests => write!(f, "xenstore: too many requests under way"),
            Self::TimedOut => write!(f, "xenstore: timed out"),
        }
    }
}

impl core::error::Error for Error {}

impl From<ProtocolError> for Error {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

/// How xenstored broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A reply's type is not its request's.
    BadReplyType {
        /// The request's type.
        expected: u32,
        /// The reply's type.
        found: u32,
    },
    /// A payload is not of the form that its type demands.
    BadPayload {
        /// The message's type.
        kind: u32,
    },
    /// A message is longer than the protocol allows.
    Oversize {
        /// The length its header says, in bytes.
        bytes: u32,
    },
    /// A ring index is farther from its counterpart than the ring is long.
    RingIndex {
        /// The index's name.
        name: &'static str,
        /// The value the other side wrote.
        theirs: u32,
        /// Our index.
        ours: u32,
    },
    /// xenstored set the error field of the ring (`XENSTORE_ERROR_*`).
    Reported(u32),
    /// A reply to a request that was not made.
    UnknownRequest {
        /// The identifier in the reply.
        req_id: u32,
    },
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadReplyType { expected, found } => {
                write!(f, "expected a reply of type {expected}, got {found}")
            }
            Self::BadPayload { kind } => write!(f, "malformed payload in a message of type {kind}"),
            Self::Oversize { bytes } => write!(
                f,
                "a message of {bytes} bytes, at most {} are allowed",
                super::wire::MAX_PAYLOAD_BYTES
            ),
            Self::RingIndex { name, theirs, ours } => write!(
                f,
                "{name} is {theirs}, more than a ring away from our {ours}"
            ),
            Self::Reported(code) => write!(f, "xenstored reports ring error {code}"),
            Self::UnknownRequest { req_id } => write!(f, "a reply to unknown request {req_id}"),
        }
    }
}

impl core::error::Error for ProtocolError {}
