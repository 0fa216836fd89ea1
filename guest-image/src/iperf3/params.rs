//! What the client wants tested.

use super::json::{Flag, Int};
use super::net::Options;
use super::protocol::ErrorCode;
use alloc::string::String;
use core::fmt;
use paceline_stack::time::Duration;
use serde::Deserialize;

/// Longest parameters accepted, in bytes; as the stock server.
pub(crate) const MAX_PARAMS_BYTES: usize = 8 << 10;

/// Most streams in one direction; as the stock server.
pub(crate) const MAX_STREAMS: u16 = 128;

const MAX_BLOCK_BYTES: u64 = 1 << 20;
const MAX_BUFFER_BYTES: u64 = 512 << 20;
const MAX_DURATION: u64 = 86_400;
const MAX_OMIT: u64 = 60;
const MIN_MSS_BYTES: u64 = 88;
const MAX_MSS_BYTES: u64 = 9 << 10;
const DEFAULT_BLOCK_BYTES: u64 = 128 << 10;

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The client.
    Forward,
    /// The server (`-R`).
    Reverse,
    /// Both (`--bidir`).
    Both,
}

/// A test, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Params {
    pub(crate) direction: Direction,
    /// Streams in each direction: at least one, at most [`MAX_STREAMS`].
    pub(crate) streams: u16,
    /// Time at the start that does not count.
    pub(crate) omit: Duration,
    /// How long the client means to run the test; none when bytes or blocks decide.
    pub(crate) duration: Option<Duration>,
    /// Bytes to send on all streams together; none when time decides.
    pub(crate) limit_bytes: Option<u64>,
    /// Bytes of one write.
    pub(crate) block_bytes: usize,
    /// Most bits a second that a stream sends.
    pub(crate) rate_bps: Option<u64>,
    pub(crate) mss_bytes: Option<u16>,
    pub(crate) buffer_bytes: Option<usize>,
    pub(crate) nodelay: bool,
    pub(crate) congestion: Option<String>,
    /// Whether the client wants this side's report (`--get-server-output`).
    pub(crate) server_output: bool,
}

impl Params {
    /// Reads and checks what a client sent.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, ParamsError> {
        let Wire {
            udp,
            sctp,
            omit,
            time,
            num,
            blockcount,
            mss,
            nodelay,
            parallel,
            reverse,
            bidirectional,
            window,
            len,
            bandwidth,
            fqrate,
            congestion,
            get_server_output,
        } = serde_json::from_slice(json).map_err(ParamsError::Json)?;

        if udp.0 {
            return Err(ParamsError::Udp);
        }
        if sctp.0 {
            return Err(ParamsError::Sctp);
        }
        let streams = in_range("parallel", parallel, 1, 1, MAX_STREAMS as u64)? as u16;
        let omit = in_range("omit", omit, 0, 0, MAX_OMIT)?;
        let time = in_range("time", time, 0, 0, MAX_DURATION)?;
        let block_bytes = in_range("len", len, DEFAULT_BLOCK_BYTES, 1, MAX_BLOCK_BYTES)?;
        let mss_bytes = match in_range("MSS", mss, 0, 0, MAX_MSS_BYTES)? {
            0 => None,
            small if small < MIN_MSS_BYTES => Some(MIN_MSS_BYTES as u16),
            mss => Some(mss as u16),
        };
        let buffer_bytes = match in_range("window", window, 0, 0, MAX_BUFFER_BYTES)? {
            0 => None,
            bytes => Some(bytes as usize),
        };
        let limit_bytes = match (num.unsigned(), blockcount.unsigned()) {
            (0, 0) => None,
            (0, blocks) => Some(blocks.saturating_mul(block_bytes)),
            (bytes, _) => Some(bytes),
        };
        let rate_bps = [bandwidth, fqrate]
            .into_iter()
            .map(Int::unsigned)
            .filter(|rate| *rate > 0)
            .min();

        Ok(Self {
            direction: match (bidirectional.0, reverse.0) {
                (true, _) => Direction::Both,
                (false, true) => Direction::Reverse,
                (false, false) => Direction::Forward,
            },
            streams,
            omit: Duration::from_secs(omit),
            duration: (time > 0).then(|| Duration::from_secs(time)),
            limit_bytes,
            block_bytes: block_bytes as usize,
            rate_bps,
            mss_bytes,
            buffer_bytes,
            nodelay: nodelay.0,
            congestion: congestion.filter(|name| !name.is_empty()),
            server_output: get_server_output.0,
        })
    }

    /// How many data connections the client will open.
    pub(crate) fn connections(&self) -> usize {
        let streams = usize::from(self.streams);
        match self.direction {
            Direction::Forward | Direction::Reverse => streams,
            Direction::Both => 2 * streams,
        }
    }

    /// Whether this side sends on the data connection accepted `index`-th, from 0: a bidirectional
    /// client opens the connections it sends on first.
    pub(crate) fn sends(&self, index: usize) -> bool {
        match self.direction {
            Direction::Forward => false,
            Direction::Reverse => true,
            Direction::Both => index >= usize::from(self.streams),
        }
    }

    /// The settings of every data connection.
    pub(crate) fn options(&self) -> Options<'_> {
        Options {
            mss_bytes: self.mss_bytes,
            buffer_bytes: self.buffer_bytes,
            nodelay: self.nodelay,
            congestion: self.congestion.as_deref(),
        }
    }
}

/// Why a test is refused.
#[derive(Debug)]
pub(crate) enum ParamsError {
    /// Not JSON, or not of the expected shape.
    Json(serde_json::Error),
    /// A UDP test.
    Udp,
    /// An SCTP test.
    Sctp,
    /// A number too small or too large.
    Range {
        name: &'static str,
        got: i64,
        min: u64,
        max: u64,
    },
}

impl ParamsError {
    /// What to tell the client.
    pub(crate) fn code(&self) -> ErrorCode {
        match self {
            Self::Json(_) => ErrorCode::RecvParams,
            Self::Udp => ErrorCode::Unimplemented,
            Self::Sctp => ErrorCode::NoSctp,
            Self::Range { name, .. } => match *name {
                "parallel" => ErrorCode::StreamCount,
                "omit" => ErrorCode::Omit,
                "time" => ErrorCode::Duration,
                "len" => ErrorCode::BlockSize,
                "MSS" => ErrorCode::Mss,
                "window" => ErrorCode::BufferSize,
                _ => ErrorCode::RecvParams,
            },
        }
    }
}

impl fmt::Display for ParamsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "bad parameters: {error}"),
            Self::Udp => f.write_str("UDP tests are not supported, only TCP"),
            Self::Sctp => f.write_str("SCTP tests are not supported, only TCP"),
            Self::Range {
                name,
                got,
                min,
                max,
            } => write!(f, "{name} is {got}, expected {min} to {max}"),
        }
    }
}

/// The parameters as they travel; unknown ones are ignored, as the stock server does.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    udp: Flag,
    sctp: Flag,
    omit: Int,
    time: Int,
    num: Int,
    blockcount: Int,
    #[serde(rename = "MSS")]
    mss: Int,
    nodelay: Flag,
    parallel: Int,
    reverse: Flag,
    bidirectional: Flag,
    window: Int,
    len: Int,
    bandwidth: Int,
    fqrate: Int,
    congestion: Option<String>,
    get_server_output: Flag,
}

/// `got`, with 0 standing for `default`, checked against `min` and `max`.
fn in_range(
    name: &'static str,
    Int(got): Int,
    default: u64,
    min: u64,
    max: u64,
) -> Result<u64, ParamsError> {
    if got == 0 {
        return Ok(default);
    }
    u64::try_from(got)
        .ok()
        .filter(|value| (min..=max).contains(value))
        .ok_or(ParamsError::Range {
            name,
            got,
            min,
            max,
        })
}

#[cfg(test)]
mod tests;
