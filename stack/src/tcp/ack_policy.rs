//! When received data is acknowledged: at once, or after a delay (RFC 9293 §3.8.6.3, RFC 5681
//! §4.2), how much more than two segments one acknowledgment may cover when the device puts
//! segments together, and how many reports of a gap are left out (SACK compression).
//!
//! What decides is kept here; the acknowledgment itself is sent by output, once per burst.

use crate::time::{Duration, Instant};

/// Acknowledgments sent at once when a peer starts or has been idle, so that its slow start is
/// not held up; as many as Linux sends.
const QUICK_ACKS: u8 = 16;
/// The longest delay while both sides talk in turns: the answer will take the acknowledgment
/// along.
const MAX_INTERACTIVE_DELAY: Duration = Duration::from_millis(200);
/// The longest delay ever (RFC 9293 §3.8.6.3).
const MAX_DELAY: Duration = Duration::from_millis(500);
/// Reports of a gap that are sent at once: what the peer needs to believe in a loss (RFC 5681
/// §3.2).
const PROMPT_REPORTS: u8 = 3;
/// Separate runs behind gaps from which on every report is sent at once: an option holds few
/// runs, so one left out may never be told.
const MAX_COMPRESSED_RUNS: usize = 2;
/// The longest that a report is left out for.
const MAX_COMPRESSION: Duration = Duration::from_millis(1);

/// Most bytes that one acknowledgment covers: three of the largest segments a device puts
/// together. More would hardly save anything.
const MAX_STRETCH_BYTES: u32 = 3 << 16;
/// The stretch grows by this much ...
const STRETCH_STEP_BYTES: u32 = 1 << 16;
/// ... each time so many acknowledgments in a row did not keep the peer waiting.
const SMOOTH_ACKS: u8 = 16;

/// Data that came in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Its bytes: a segment's, or several's that the device put together.
    pub(super) bytes: u32,
    /// Bytes that are not acknowledged, these among them.
    pub(super) unacked_bytes: u32,
    /// What is left to the peer of the window it knows.
    pub(super) window_bytes: u32,
    /// A full segment's payload.
    pub(super) mss: u32,
}

/// What a receiver knows of a round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// How long it takes, in microseconds.
    pub(super) rtt_us: u32,
    /// Bytes that were read in the last one.
    pub(super) bytes: u32,
}

/// When an acknowledgment goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// At the end of this burst.
    Now,
    /// After this long, if nothing takes it along before.
    Within(Duration),
}

/// A connection's habits of acknowledging.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckPolicy {
    /// How many more acknowledgments go at once.
    quick: u8,
    /// How long an acknowledgment waits for company; follows the spacing of segments.
    ato: Duration,
    min_ato: Duration,
    /// Whether the application answers what comes, so that quick acknowledgments are wasted.
    interactive: bool,
    /// When data last came.
    last_data_at: Option<Instant>,
    /// Bytes that one acknowledgment may cover.
    stretch_bytes: u32,
    /// Whether what is not acknowledged waits for more, up to the stretch.
    stretching: bool,
    /// Stretched acknowledgments in a row that went before their delay had ended.
    smooth: u8,
    /// Reports of the present gap sent at once.
    prompt: u8,
    /// Reports left out since the last acknowledgment.
    compressed: u8,
}

impl AckPolicy {
    /// Habits of a connection without a past, that delays by `min_ato` at least.
    pub(super) fn new(min_ato: Duration) -> Self {
        Self {
            quick: 0,
            ato: min_ato,
            min_ato,
            interactive: false,
            last_data_at: None,
            stretch_bytes: MAX_STRETCH_BYTES,
            stretching: false,
            smooth: 0,
            prompt: 0,
            compressed: 0,
        }
    }

    /// The peer may be in slow start: it wants to hear of each segment.
    pub(super) fn quicken(&mut self) {
        self.quick = QUICK_ACKS;
        self.interactive = false;
        self.ato = self.min_ato;
    }

    /// Data came, in order or not.
    pub(super) fn data_received(&mut self, now: Instant, rto: Duration) {
        match self.last_data_at.replace(now) {
            None => self.quicken(),
            Some(last) => {
                let gap = now.since(last);
                if gap <= self.min_ato / 2 {
                    self.ato = self.ato / 2 + self.min_ato / 2;
                } else if gap < self.ato {
                    self.ato = (self.ato / 2 + gap).min(rto);
                } else if gap > rto {
                    // After an idle time the peer starts slowly again (RFC 5681 §4.1).
                    self.quicken();
                }
            }
        }
    }

    /// Data goes out. When that follows data that came, the application answers.
    pub(super) fn data_sent(&mut self, now: Instant) {
        self.interactive |= self
            .last_data_at
            .is_some_and(|last| now.since(last) < self.ato);
    }

    /// What to do about data in order; `round` is the last round trip, as far as it is known.
    ///
    /// More than a segment is acknowledged at once, counted in bytes. But where a device puts
    /// segments together, or a backend never takes them apart, that would be an acknowledgment
    /// for every 64 KiB, and each costs the other end an interrupt and a turn of its TCP. One
    /// then covers several, as long as a round trip still has two or more: the peer's window
    /// goes on sliding, and its loss recovery sees enough (RFC 3449 §5.2.1 on what thinned
    /// acknowledgments do).
    pub(super) fn in_order(
        &mut self,
        arrival: Arrival,
        round: Option<Round>,
        srtt_us: Option<u32>,
    ) -> When {
        let Arrival {
            bytes: _,
            unacked_bytes,
            window_bytes: _,
            mss,
        } = arrival;
        self.prompt = 0;
        self.compressed = 0;
        if self.quick > 0 && !self.interactive {
            return When::Now;
        }
        if unacked_bytes <= mss {
            return When::Within(self.delay(srtt_us));
        }
        let Some((most, rtt_us)) = self.stretch(arrival, round) else {
            return When::Now;
        };
        if unacked_bytes < most {
            self.stretching = true;
            // A peer that is not waiting has sent twice as much by then.
            let round_trip = Duration::from_micros(rtt_us.into());
            return When::Within(round_trip.min(self.min_ato));
        }
        self.smooth += 1;
        if self.smooth >= SMOOTH_ACKS {
            self.smooth = 0;
            self.stretch_bytes = MAX_STRETCH_BYTES.min(self.stretch_bytes + STRETCH_STEP_BYTES);
        }
        When::Now
    }

    /// How many bytes the next acknowledgment may cover, with the round-trip time in
    /// microseconds; none: no more than usual.
    fn stretch(&self, arrival: Arrival, round: Option<Round>) -> Option<(u32, u32)> {
        let Round { rtt_us, bytes } = round?;
        let most = self
            .stretch_bytes
            .min(bytes / 2)
            .min(arrival.window_bytes / 4);
        (arrival.bytes > 2 * arrival.mss).then_some((most, rtt_us))
    }

    /// How long an acknowledgment waits now: no longer than a round trip, unless that is shorter
    /// than the least delay.
    fn delay(&self, srtt_us: Option<u32>) -> Duration {
        let most = if self.interactive {
            MAX_INTERACTIVE_DELAY
        } else {
            MAX_DELAY
        };
        let round_trip = srtt_us.map_or(most, |us| Duration::from_micros(us.into()));
        let most = most.min(round_trip.max(self.min_ato));
        self.ato.min(most)
    }

    /// What to do about data that came behind a gap, with `runs` separate runs held, when
    /// `most` reports may be left out in a row.
    ///
    /// The first reports of a gap make the peer act; of the rest one per part of a round trip is
    /// enough, as each tells all that those before it told.
    pub(super) fn out_of_order(&mut self, most: u8, runs: usize, rtt_us: Option<u32>) -> When {
        if runs > MAX_COMPRESSED_RUNS {
            return When::Now;
        }
        if self.prompt < PROMPT_REPORTS {
            self.prompt += 1;
            return When::Now;
        }
        if self.compressed >= most {
            return When::Now;
        }
        self.compressed += 1;
        let third = rtt_us.map_or(MAX_COMPRESSION, |us| Duration::from_micros(us.into()) / 3);
        When::Within(third.min(MAX_COMPRESSION))
    }

    /// The delay ran out. True when it was an acknowledgment's, not a report's.
    pub(super) fn delay_ended(&mut self, rto: Duration) -> bool {
        if self.compressed > 0 {
            return false;
        }
        if self.stretching {
            // The peer sent less than the stretch, and may have waited to be told to go on.
            self.smooth = 0;
            self.stretch_bytes /= 2;
            return true;
        }
        if self.interactive {
            // No answer came: the application does not talk in turns any more.
            self.interactive = false;
            self.ato = self.min_ato;
        } else {
            self.ato = (self.ato * 2).min(rto);
        }
        true
    }

    /// An acknowledgment went out, alone or with data; `news` tells whether it acknowledged
    /// anything.
    pub(super) fn sent(&mut self, news: bool) {
        self.quick = self.quick.saturating_sub(u8::from(news));
        self.compressed = 0;
        self.stretching = false;
    }

    /// `tcpi_ato`: the delay as it has adapted.
    pub(super) fn ato(&self) -> Duration {
        self.ato
    }

    /// When data last came.
    pub(super) fn last_data_at(&self) -> Option<Instant> {
        self.last_data_at
    }
}

#[cfg(test)]
mod tests;
