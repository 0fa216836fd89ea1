//! What both sides counted, exchanged at the end of a test.

use super::json::Int;
use alloc::vec::Vec;
use paceline_stack::time::Duration;
use serde::{Deserialize, Serialize};

/// Longest results accepted of a client with `streams` data connections, in bytes. A stock client
/// sends about 150 bytes a stream.
pub(crate) const fn max_results_bytes(streams: usize) -> usize {
    (16 << 10) + streams * (1 << 10)
}

/// Shares of the wall-clock time that the processor worked, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuShare {
    /// Time not idle.
    pub(crate) busy: Duration,
    /// Time passed.
    pub(crate) wall: Duration,
}

impl CpuShare {
    fn percent(self) -> f64 {
        if self.wall.is_zero() {
            return 0.0;
        }
        100.0 * self.busy.div_duration_f64(self.wall)
    }
}

/// One stream's totals, of the time that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamTotals {
    /// The stream's number: 1, 3, 4, 5, ...
    pub(crate) id: u32,
    /// Bytes sent or received.
    pub(crate) bytes: u64,
    /// Segments sent again; none of a receiver.
    pub(crate) retransmits: Option<u64>,
}

/// This side's results, as JSON.
pub(crate) fn encode(
    cpu: CpuShare,
    congestion: Option<&str>,
    elapsed: Duration,
    totals: &[StreamTotals],
    server_output: Option<&str>,
) -> Vec<u8> {
    let busy = cpu.percent();
    let end_time = elapsed.as_secs_f64();
    let sends = totals.iter().any(|stream| stream.retransmits.is_some());
    let results = WireResults {
        cpu_util_total: busy,
        // A unikernel has no user mode.
        cpu_util_user: 0.0,
        cpu_util_system: busy,
        sender_has_retransmits: if sends { 1 } else { -1 },
        congestion_used: congestion,
        server_output_text: server_output,
        streams: totals
            .iter()
            .map(|stream| WireStream {
                id: stream.id,
                bytes: stream.bytes,
                retransmits: stream
                    .retransmits
                    .map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX)),
                jitter: 0,
                errors: 0,
                packets: 0,
                start_time: 0,
                end_time,
            })
            .collect(),
    };
    // Nothing here can fail: the keys are strings and the writer is a vector.
    serde_json::to_vec(&results).unwrap_or_default()
}

/// Reads a client's results.
pub(crate) fn decode(json: &[u8]) -> Result<PeerResults, serde_json::Error> {
    serde_json::from_slice(json)
}

/// What of a client's results this side uses.
#[derive(Debug, Deserialize)]
pub(crate) struct PeerResults {
    /// Its streams.
    pub(crate) streams: Vec<PeerStream>,
}

/// One stream, as the client counted it.
#[derive(Debug, Deserialize)]
pub(crate) struct PeerStream {
    /// The stream's number.
    pub(crate) id: Int,
    /// Bytes sent or received.
    pub(crate) bytes: Int,
    /// Segments sent again, or -1.
    pub(crate) retransmits: Int,
}

#[derive(Serialize)]
struct WireResults<'a> {
    cpu_util_total: f64,
    cpu_util_user: f64,
    cpu_util_system: f64,
    sender_has_retransmits: i8,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion_used: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_output_text: Option<&'a str>,
    streams: Vec<WireStream>,
}

#[derive(Serialize)]
struct WireStream {
    id: u32,
    bytes: u64,
    retransmits: i64,
    jitter: u8,
    errors: u8,
    packets: u8,
    start_time: u8,
    end_time: f64,
}

#[cfg(test)]
mod tests;
