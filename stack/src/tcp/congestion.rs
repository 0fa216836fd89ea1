//! Congestion control: how much may be in the network (RFC 5681), in bytes.
//!
//! The algorithm grows and cuts the window; what is lost and when recovery starts and ends is
//! decided by [`super::recovery`].

mod reno;

pub(super) use reno::Reno;

/// Segments of the initial window (RFC 6928 §2).
const INITIAL_WINDOW_SEGS: u32 = 10;
/// Least congestion window, outside of a timeout (RFC 5681 §3.1, equation 4).
const MIN_WINDOW_SEGS: u32 = 2;
/// No window, scaled or not, is larger.
const MAX_WINDOW_BYTES: u32 = 1 << 30;

/// The variables that all algorithms share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CongestionWindow {
    /// The congestion window in bytes.
    pub(super) cwnd: u32,
    /// Below it slow start, from it on congestion avoidance; in bytes.
    pub(super) ssthresh: u32,
    /// Payload bytes of a full segment.
    pub(super) mss: u32,
}

impl CongestionWindow {
    pub(super) fn new(mss: u32) -> Self {
        let mut window = Self {
            cwnd: 0,
            ssthresh: MAX_WINDOW_BYTES,
            mss,
        };
        window.cwnd = window.initial();
        window
    }

    /// The initial window: ten segments. RFC 6928 §2 would stop at 14,600 bytes; Linux does not,
    /// and jumbo frames would start with two.
    pub(super) fn initial(&self) -> u32 {
        self.mss.saturating_mul(INITIAL_WINDOW_SEGS)
    }

    /// The least window loss may leave.
    pub(super) fn minimum(&self) -> u32 {
        self.mss.saturating_mul(MIN_WINDOW_SEGS)
    }

    pub(super) fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Widens the window.
    pub(super) fn grow(&mut self, bytes: u32) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(MAX_WINDOW_BYTES);
    }
}

/// An acknowledgment of new data, as congestion control sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckSample {
    /// Bytes newly delivered.
    pub(super) acked_bytes: u32,
}

/// A congestion control algorithm. New ones implement this and join [`Algorithm`].
pub(super) trait CongestionControl {
    /// Invoked when data is acknowledged while nothing is lost, or while recovering from a
    /// timeout, and the window was what limited the sender.
    fn on_ack(&mut self, window: &mut CongestionWindow, ack: AckSample);

    /// Invoked once per loss event: returns the new slow start threshold in bytes.
    fn ssthresh_after_loss(&mut self, window: &CongestionWindow, in_flight_bytes: u32) -> u32;

    /// Invoked when the retransmission timer made everything lost.
    fn on_timeout(&mut self);

    /// Its name, as the sysctl `net.ipv4.tcp_congestion_control` has it.
    fn name(&self) -> &'static str;
}

/// The algorithms there are.
#[derive(Clone, Debug)]
pub(super) enum Algorithm {
    /// RFC 5681 with byte counting.
    Reno(Reno),
}

impl CongestionControl for Algorithm {
    fn on_ack(&mut self, window: &mut CongestionWindow, ack: AckSample) {
        match self {
            Self::Reno(reno) => reno.on_ack(window, ack),
        }
    }

    fn ssthresh_after_loss(&mut self, window: &CongestionWindow, in_flight_bytes: u32) -> u32 {
        match self {
            Self::Reno(reno) => reno.ssthresh_after_loss(window, in_flight_bytes),
        }
    }

    fn on_timeout(&mut self) {
        match self {
            Self::Reno(reno) => reno.on_timeout(),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Reno(reno) => reno.name(),
        }
    }
}

#[cfg(test)]
mod tests;
