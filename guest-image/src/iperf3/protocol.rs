//! What travels on the control connection: cookies, states, framed messages.
//!
//! iperf3 has no specification; this follows what stock clients of versions 3.12 to 3.21 send and
//! accept.

use super::net::{Network, Stream, StreamError, with_timeout};
use alloc::vec::Vec;
use core::fmt;
use core::future::poll_fn;
use paceline_stack::time::Duration;

/// Bytes of a [`Cookie`] on the wire: 36 characters and a NUL.
pub(crate) const COOKIE_BYTES: usize = 37;

/// What names a test: the first bytes of its control connection and of each data connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cookie([u8; COOKIE_BYTES]);

impl Cookie {
    /// None unless printable ASCII with a NUL behind it, which keeps out whoever speaks another
    /// protocol.
    pub(crate) fn parse(bytes: [u8; COOKIE_BYTES]) -> Option<Self> {
        let (terminator, characters) = bytes.split_last()?;
        let valid = *terminator == 0 && characters.iter().all(u8::is_ascii_graphic);
        valid.then_some(Self(bytes))
    }
}

/// Where a test stands: one signed byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub(crate) enum State {
    TestStart = 1,
    TestRunning = 2,
    TestEnd = 4,
    ParamExchange = 9,
    CreateStreams = 10,
    ServerTerminate = 11,
    ClientTerminate = 12,
    ExchangeResults = 13,
    DisplayResults = 14,
    IperfStart = 15,
    IperfDone = 16,
    AccessDenied = -1,
    ServerError = -2,
}

impl State {
    /// The state that `wire` stands for.
    pub(crate) fn from_wire(wire: u8) -> Option<Self> {
        Some(match wire as i8 {
            1 => Self::TestStart,
            2 => Self::TestRunning,
            4 => Self::TestEnd,
            9 => Self::ParamExchange,
            10 => Self::CreateStreams,
            11 => Self::ServerTerminate,
            12 => Self::ClientTerminate,
            13 => Self::ExchangeResults,
            14 => Self::DisplayResults,
            15 => Self::IperfStart,
            16 => Self::IperfDone,
            -1 => Self::AccessDenied,
            -2 => Self::ServerError,
            _ => return None,
        })
    }

    /// The byte that stands for it.
    pub(crate) const fn to_wire(self) -> u8 {
        self as i8 as u8
    }
}

/// iperf3's own error numbers (`i_errno`), from which the client makes its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum ErrorCode {
    Duration = 5,
    StreamCount = 6,
    BlockSize = 7,
    Mss = 10,
    Omit = 12,
    Unimplemented = 13,
    NoSctp = 18,
    CtrlRead = 108,
    Message = 110,
    RecvParams = 114,
    RecvResults = 117,
    BufferSize = 141,
    StreamAccept = 204,
    StreamWrite = 205,
    StreamRead = 206,
}

/// Why the control connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlError {
    /// The client closed it.
    Closed,
    /// It failed.
    Stream(StreamError),
    /// Nothing came for this long.
    TimedOut(Duration),
    /// A message was announced with more bytes than allowed.
    TooLong { got: u32, max: usize },
    /// A byte that stands for no state.
    UnknownState(u8),
    /// A state out of turn.
    Unexpected { got: State, expected: State },
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Closed => f.write_str("the client has unexpectedly closed the connection"),
            Self::Stream(error) => write!(f, "control connection: {error}"),
            Self::TimedOut(after) => {
                write!(f, "nothing from the client for {} s", after.as_secs())
            }
            Self::TooLong { got, max } => {
                write!(f, "message of {got} bytes, expected at most {max}")
            }
            Self::UnknownState(byte) => write!(f, "unknown state {}", byte as i8),
            Self::Unexpected { got, expected } => {
                write!(f, "state {got:?}, expected {expected:?}")
            }
        }
    }
}

impl From<StreamError> for ControlError {
    fn from(error: StreamError) -> Self {
        Self::Stream(error)
    }
}

/// A control connection past its cookie. Every operation ends within `patience`, but for
/// [`Control::next_state`].
pub(crate) struct Control<'n, N: Network> {
    net: &'n N,
    stream: N::Stream,
    patience: Duration,
}

impl<'n, N: Network> Control<'n, N> {
    /// Wraps `stream`.
    pub(crate) fn new(net: &'n N, stream: N::Stream, patience: Duration) -> Self {
        Self {
            net,
            stream,
            patience,
        }
    }

    /// Sends `state`.
    pub(crate) async fn send_state(&mut self, state: State) -> Result<(), ControlError> {
        self.send(&[state.to_wire()]).await
    }

    /// Waits for the client's next state, however long it takes. Cancelling it loses nothing.
    pub(crate) async fn next_state(&mut self) -> Result<State, ControlError> {
        let mut byte = [0];
        read_exact(&mut self.stream, &mut byte).await?;
        State::from_wire(byte[0]).ok_or(ControlError::UnknownState(byte[0]))
    }

    /// Waits for `state`.
    pub(crate) async fn expect_state(&mut self, expected: State) -> Result<(), ControlError> {
        let net = self.net;
        let patience = self.patience;
        let got = with_timeout(net, patience, self.next_state())
            .await
            .unwrap_or(Err(ControlError::TimedOut(patience)))?;
        if got == expected {
            Ok(())
        } else {
            Err(ControlError::Unexpected { got, expected })
        }
    }

    /// Sends `json` behind its length.
    pub(crate) async fn send_message(&mut self, json: &[u8]) -> Result<(), ControlError> {
        // Our results are bounded by the stream count, far below 4 GiB.
        let len = json.len() as u32;
        self.send(&len.to_be_bytes()).await?;
        self.send(json).await
    }

    /// Reads a message of at most `max` bytes.
    pub(crate) async fn read_message(&mut self, max: usize) -> Result<Vec<u8>, ControlError> {
        let Self {
            net,
            stream,
            patience,
        } = self;
        with_timeout(*net, *patience, async {
            let mut len = [0; 4];
            read_exact(stream, &mut len).await?;
            let got = u32::from_be_bytes(len);
            let Some(len) = usize::try_from(got).ok().filter(|len| *len <= max) else {
                return Err(ControlError::TooLong { got, max });
            };
            let mut message = alloc::vec![0; len];
            read_exact(stream, &mut message).await?;
            Ok(message)
        })
        .await
        .unwrap_or(Err(ControlError::TimedOut(*patience)))
    }

    /// Tells the client why the test ends.
    pub(crate) async fn send_error(&mut self, code: ErrorCode) -> Result<(), ControlError> {
        let mut message = [0; 9];
        message[0] = State::ServerError.to_wire();
        message[1..5].copy_from_slice(&(code as i32).to_be_bytes());
        self.send(&message).await
    }

    /// The connection itself, to be closed.
    pub(crate) fn into_stream(self) -> N::Stream {
        self.stream
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), ControlError> {
        let Self {
            net,
            stream,
            patience,
        } = self;
        with_timeout(*net, *patience, write_all(stream, bytes))
            .await
            .unwrap_or(Err(ControlError::TimedOut(*patience)))
    }
}

/// Fills `buf`.
pub(crate) async fn read_exact<S: Stream>(
    stream: &mut S,
    mut buf: &mut [u8],
) -> Result<(), ControlError> {
    while !buf.is_empty() {
        let len = poll_fn(|cx| stream.poll_read(cx, buf)).await?;
        if len == 0 {
            return Err(ControlError::Closed);
        }
        buf = buf.get_mut(len..).unwrap_or_default();
    }
    Ok(())
}

/// Queues all of `bytes`.
pub(crate) async fn write_all<S: Stream>(
    stream: &mut S,
    mut bytes: &[u8],
) -> Result<(), ControlError> {
    while !bytes.is_empty() {
        let len = poll_fn(|cx| stream.poll_write(cx, bytes)).await?;
        if len == 0 {
            return Err(ControlError::Closed);
        }
        bytes = bytes.get(len..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
