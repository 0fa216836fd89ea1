//! How large a packet to make for the device to segment, and whether a small one should wait to
//! become large.

use super::rate::Rate;

/// A packet lasts about 1/1024 s at the flow's rate: Linux's `sk_pacing_shift`.
const PACKET_SHIFT: u32 = 10;
/// Least segments in a packet, as Linux's `net.ipv4.tcp_min_tso_segs`.
const MIN_SEGS: u32 = 2;
/// Each 512 us of round-trip time halve what a short path gets on top
/// (`net.ipv4.tcp_tso_rtt_log`).
const RTT_SHIFT: u32 = 9;
/// A packet may wait if the window lets less than this part of itself through
/// (`net.ipv4.tcp_tso_win_divisor`).
const WINDOW_PART: u32 = 3;
/// Longest that a packet waits for an acknowledgment to enlarge it.
const MAX_WAIT_US: u32 = 1000;

/// Payload bytes of a packet: about a millisecond at `rate`, so that slow flows make no long
/// bursts, and more on short paths, where bursts do no harm. Whole segments of `mss`; two of them
/// at least, `max_bytes` at most.
pub(super) fn autosize(rate: Rate, min_rtt_us: Option<u32>, mss: u32, max_bytes: u32) -> u32 {
    let by_rate = u32::try_from(rate.bytes_per_second() >> PACKET_SHIFT).unwrap_or(u32::MAX);
    let by_rtt = min_rtt_us.map_or(0, |us| max_bytes.checked_shr(us >> RTT_SHIFT).unwrap_or(0));
    let mss = mss.max(1);
    let bytes = by_rate.saturating_add(by_rtt).min(max_bytes);
    (bytes / mss * mss)
        .max(mss.saturating_mul(MIN_SEGS))
        .min((max_bytes / mss * mss).max(mss))
}

/// What decides whether a packet waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deferral {
    /// Payload bytes that the windows let through now; more waits to be sent.
    pub(super) bytes: u32,
    /// Payload bytes of a full packet.
    pub(super) full_bytes: u32,
    /// The lesser of congestion window and peer's window.
    pub(super) window_bytes: u32,
    /// Bytes in flight.
    pub(super) in_flight_bytes: u32,
    /// Payload bytes of a segment.
    pub(super) mss: u32,
    /// Time since data was last sent.
    pub(super) since_last_sent_us: u32,
    /// Time since the oldest data in flight was sent.
    pub(super) oldest_age_us: u32,
    /// Smoothed round-trip time.
    pub(super) srtt_us: Option<u32>,
}

impl Deferral {
    /// Whether the packet waits until the acknowledgments on their way make a larger one of it: a
    /// packet costs the same whatever its size.
    ///
    /// It does only while the flow is sending and an acknowledgment is about to come: one that the
    /// peer does not delay, and soon.
    pub(super) fn pays(self) -> bool {
        let Self {
            bytes,
            full_bytes,
            window_bytes,
            in_flight_bytes,
            mss,
            since_last_sent_us,
            oldest_age_us,
            srtt_us,
        } = self;
        let srtt_us = srtt_us.unwrap_or(0);
        let ack_in_us = srtt_us.saturating_sub(oldest_age_us);
        bytes < full_bytes
            && bytes < window_bytes / WINDOW_PART
            && in_flight_bytes >= mss.saturating_mul(4)
            && since_last_sent_us <= MAX_WAIT_US
            && ack_in_us <= (srtt_us / 2).min(MAX_WAIT_US)
    }
}

#[cfg(test)]
mod tests;
