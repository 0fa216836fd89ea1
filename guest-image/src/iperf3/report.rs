//! The server's own report, line by line on the log, in the shape of stock iperf3's.

use super::net::Stream;
use super::params::Direction;
use super::results::StreamTotals;
use super::stream::{DataStream, Interval};
use super::units::{Amount, Rate, Seconds};
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::fmt::Write;
use paceline_stack::time::Duration;

/// Longest report kept for the client, in bytes.
const MAX_KEPT_BYTES: usize = 64 << 10;

const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -";

/// Where a test's lines go.
#[derive(Debug)]
pub(crate) struct Report {
    bidirectional: bool,
    /// The lines so far, where the client asked for them.
    kept: Option<String>,
}

impl Report {
    /// The report of a test; `keep` when the client wants it.
    pub(crate) fn new(direction: Direction, keep: bool) -> Self {
        Self {
            bidirectional: direction == Direction::Both,
            kept: keep.then(String::new),
        }
    }

    /// The lines so far, where the client asked for them.
    pub(crate) fn kept(&self) -> Option<&str> {
        self.kept.as_deref()
    }

    /// Who is connected to whom, and the head of the table.
    pub(crate) fn streams<S: Stream>(&mut self, streams: &[DataStream<S>]) {
        for stream in streams {
            let (local, peer) = {
                let socket = stream.socket().borrow();
                (socket.local_addr(), socket.peer_addr())
            };
            self.line(format_args!(
                "[{:3}] local {} port {} connected to {} port {}",
                stream.id(),
                local.ip(),
                local.port(),
                peer.ip(),
                peer.port(),
            ));
        }
        self.head(streams.iter().any(DataStream::sends), true);
    }

    /// A second's lines: one a stream, and their sum.
    pub(crate) fn interval<S: Stream>(
        &mut self,
        streams: &[DataStream<S>],
        (from, to): (Duration, Duration),
        omitted: bool,
    ) {
        let note = if omitted { "(omitted)" } else { "" };
        for sends in [false, true] {
            let mut sum = Interval::default();
            let mut count = 0;
            for stream in streams.iter().filter(|stream| stream.sends() == sends) {
                let interval = stream.take_interval();
                sum.bytes += interval.bytes;
                sum.retransmits += interval.retransmits;
                count += 1;
                self.row(&Row {
                    id: Some(stream.id()),
                    sends,
                    span: (from, to),
                    bytes: interval.bytes,
                    retransmits: sends.then_some(interval.retransmits),
                    cwnd_bytes: sends.then_some(interval.cwnd_bytes),
                    note,
                });
            }
            if count > 1 {
                self.row(&Row {
                    id: None,
                    sends,
                    span: (from, to),
                    bytes: sum.bytes,
                    retransmits: sends.then_some(sum.retransmits),
                    cwnd_bytes: None,
                    note,
                });
            }
        }
        if streams.len() > 1 {
            self.line(format_args!("{RULE}"));
        }
    }

    /// The totals.
    pub(crate) fn totals(&mut self, totals: &[StreamTotals], elapsed: Duration) {
        let span = (Duration::ZERO, elapsed);
        if totals.len() <= 1 {
            self.line(format_args!("{RULE}"));
        }
        self.head(
            totals.iter().any(|total| total.retransmits.is_some()),
            false,
        );
        for sends in [false, true] {
            let note = if sends { "sender" } else { "receiver" };
            let own = || {
                totals
                    .iter()
                    .filter(|total| total.retransmits.is_some() == sends)
            };
            for total in own() {
                self.row(&Row {
                    id: Some(total.id),
                    sends,
                    span,
                    bytes: total.bytes,
                    retransmits: total.retransmits,
                    cwnd_bytes: None,
                    note,
                });
            }
            if own().count() > 1 {
                self.row(&Row {
                    id: None,
                    sends,
                    span,
                    bytes: own().map(|total| total.bytes).sum(),
                    retransmits: own().map(|total| total.retransmits).sum(),
                    cwnd_bytes: None,
                    note,
                });
            }
        }
    }

    /// One line.
    pub(crate) fn line(&mut self, line: fmt::Arguments<'_>) {
        log::info!(target: "iperf3", "{line}");
        if let Some(kept) = &mut self.kept
            && kept.len() < MAX_KEPT_BYTES
        {
            // Writing to a string cannot fail.
            let _ = writeln!(kept, "{line}");
        }
    }

    fn head(&mut self, sends: bool, cwnd: bool) {
        let role = if self.bidirectional { "[Role]" } else { "" };
        let retransmits = match (sends, cwnd) {
            (false, _) => "",
            (true, false) => "         Retr",
            (true, true) => "         Retr  Cwnd",
        };
        self.line(format_args!(
            "[ ID]{role} Interval           Transfer     Bitrate{retransmits}"
        ));
    }

    fn row(&mut self, row: &Row) {
        let &Row {
            id,
            sends,
            span: (from, to),
            bytes,
            retransmits,
            cwnd_bytes,
            note,
        } = row;
        let role = match (self.bidirectional, sends) {
            (false, _) => "",
            (true, false) => "[RX-S]",
            (true, true) => "[TX-S]",
        };
        let id = id.map_or_else(|| "SUM".into(), |id| format!("{id:3}"));
        let retransmits = retransmits.map_or_else(String::new, |count| format!("  {count:3}"));
        let cwnd = cwnd_bytes.map_or_else(String::new, |bytes| format!("   {}", Amount(bytes)));
        let rate = Rate {
            bytes,
            span: to.saturating_sub(from),
        };
        let note = match note {
            "" => String::new(),
            note => format!("{:17}{note}", ""),
        };
        self.line(format_args!(
            "[{id}]{role} {:>6}-{:<6} sec  {}  {rate}{retransmits}{cwnd}{note}",
            Seconds(from),
            Seconds(to),
            Amount(bytes),
        ));
    }
}

/// A line of the table.
struct Row {
    /// The stream; none for the sum.
    id: Option<u32>,
    sends: bool,
    span: (Duration, Duration),
    bytes: u64,
    retransmits: Option<u64>,
    cwnd_bytes: Option<u64>,
    note: &'static str,
}
