//! What `iperf3 --json` reports, reduced to what the table shows.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// One direction of a finished run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Flow {
    /// Bytes the receiver got.
    pub(crate) bytes: u64,
    /// Seconds the receiver received.
    pub(crate) seconds: f64,
    /// Rate at the receiver.
    pub(crate) mbit_per_s: f64,
    /// The sender's retransmitted segments, when it knows them.
    pub(crate) retransmits: Option<i64>,
}

/// A finished run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measurement {
    /// The client's only direction, or its sending one with `--bidir`.
    pub(crate) forward: Flow,
    /// The other direction with `--bidir`.
    pub(crate) backward: Option<Flow>,
}

#[derive(Debug, Deserialize)]
struct Document {
    error: Option<String>,
    #[serde(default)]
    end: End,
}

#[derive(Debug, Default, Deserialize)]
struct End {
    #[serde(rename = "sum_sent")]
    sent: Option<Sum>,
    #[serde(rename = "sum_received")]
    received: Option<Sum>,
    #[serde(rename = "sum_sent_bidir_reverse")]
    reverse_sent: Option<Sum>,
    #[serde(rename = "sum_received_bidir_reverse")]
    reverse_received: Option<Sum>,
}

#[derive(Debug, Deserialize)]
struct Sum {
    bytes: u64,
    seconds: f64,
    bits_per_second: f64,
    retransmits: Option<i64>,
}

/// Reads the client's report. A run that iperf3 calls failed is an error with its words.
pub(crate) fn parse(json: &str) -> Result<Measurement> {
    let document: Document = serde_json::from_str(json)
        .with_context(|| format!("expected iperf3's JSON report, got `{}`", excerpt(json)))?;
    if let Some(error) = document.error {
        bail!("iperf3: {error}");
    }
    let End {
        sent,
        received,
        reverse_sent,
        reverse_received,
    } = document.end;
    let forward = flow(sent, received)?.context("iperf3's report has no sums")?;
    let backward = flow(reverse_sent, reverse_received)?;
    Ok(Measurement { forward, backward })
}

fn flow(sent: Option<Sum>, received: Option<Sum>) -> Result<Option<Flow>> {
    match (sent, received) {
        (Some(sent), Some(received)) => Ok(Some(Flow {
            bytes: received.bytes,
            seconds: received.seconds,
            mbit_per_s: received.bits_per_second / 1e6,
            // -1 stands for unknown.
            retransmits: sent.retransmits.filter(|count| *count >= 0),
        })),
        (None, None) => Ok(None),
        _ => bail!("iperf3's report has the sums of one side only"),
    }
}

fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    text.chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests;
