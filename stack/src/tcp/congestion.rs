//! Congestion control: how much may be in the network (RFC 5681), in bytes.
//!
//! The algorithm grows and cuts the window; what is lost and when recovery starts and ends is
//! decided by [`super::recovery`].

mod cube;
mod cubic;
mod hystart;
mod hystart_plus_plus;
#[cfg(any(test, feature = "sim"))]
mod loss_blind;
#[cfg(any(test, feature = "sim"))]
mod model;
mod reno;
mod slow_start;

#[cfg(any(test, feature = "sim"))]
pub(crate) use model::PeriodicLoss;
pub use slow_start::SlowStartMode;

use super::{
    config::{Config, Mistakes},
    seq::SeqNum,
};
use crate::time::Instant;
use cubic::Cubic;
#[cfg(any(test, feature = "sim"))]
use loss_blind::LossBlind;
use reno::Reno;

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

    /// Slow start: widens the window by the bytes delivered, up to the threshold, and returns
    /// those left over for congestion avoidance.
    ///
    /// RFC 3465 §2.3 would stop at two segments per acknowledgment; but a receiver that
    /// acknowledges 64 KiB at once then gets slow start as slow as congestion avoidance. Only
    /// bytes that were sent count, so nothing is gained by many acknowledgments.
    fn slow_start(&mut self, delivered_bytes: u32) -> u32 {
        let grown = delivered_bytes.min(self.ssthresh.saturating_sub(self.cwnd));
        self.grow(grown);
        delivered_bytes - grown
    }

    /// Has the threshold remember three quarters of a window about to be cut for disuse.
    pub(super) fn remember(&mut self) {
        self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
    }

    /// Widens the window.
    pub(super) fn grow(&mut self, bytes: u32) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(MAX_WINDOW_BYTES);
    }
}

/// An acknowledgment that brought news of data, as congestion control sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckSample {
    /// When it came.
    pub(super) now: Instant,
    /// Bytes to widen the window for: those newly known to have arrived, and those SACKed since
    /// the window could last be widened.
    pub(super) delivered_bytes: u32,
    /// Bytes newly known to have arrived, acknowledged or SACKed.
    pub(super) arrived_bytes: u32,
    /// Round-trip time of the latest sent of them that was sent only once: that one has not
    /// waited for a delayed acknowledgment.
    pub(super) rtt_us: Option<u32>,
    /// Smoothed round-trip time with this sample in it; 0: not known.
    pub(super) srtt_us: u32,
    /// The least round-trip time seen in minutes; 0: not known.
    pub(super) min_rtt_us: u32,
    /// First number not acknowledged, this acknowledgment counted.
    pub(super) una: SeqNum,
    /// Next number to send.
    pub(super) nxt: SeqNum,
    /// Whether departures are spread over the round trip, so that bursts do not come from here.
    pub(super) is_paced: bool,
    /// Whether the window is what limits the sender ([`super::cwnd_usage`]).
    pub(super) is_cwnd_limited: bool,
    /// Whether lost data is being repaired, and the window not the algorithm's
    /// ([`super::recovery`]).
    pub(super) is_recovering: bool,
    /// Whether it may widen the window: it acknowledges in order, the window limits the sender,
    /// and nothing is being recovered.
    pub(super) may_grow: bool,
    /// Mistakes to make for comparison.
    pub(super) mistakes: Mistakes,
}

/// What told that the path is congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A segment was found lost.
    Loss,
    /// The peer echoed a congestion mark (RFC 3168).
    Ecn,
    /// The retransmission timer ran out.
    Timeout,
}

/// The path is congested: once per window of data (RFC 5681 §4.3).
#[derive(Clone, Copy, Debug)]
pub(super) struct CongestionEvent {
    pub(super) cause: Cause,
    /// How much of the window was in use ([`super::cwnd_usage::CwndUsage::used_bytes`]): what
    /// RFC 5681 calls `FlightSize`. A window that nothing filled says nothing about the path.
    pub(super) used_bytes: u32,
}

/// Why slow start ended before anything was lost (HyStart).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlowStartExit {
    /// A round's acknowledgments stretch over the round trip: the path is full.
    AckTrain,
    /// Round trips take longer: a queue builds.
    Delay,
}

/// A congestion control algorithm. New ones implement this and join [`Algorithm`].
pub(super) trait CongestionControl {
    /// Invoked on every acknowledgment that brought news, also on those that may not widen the
    /// window: rounds are counted by them. Returns why slow start ended, if this ended it.
    fn on_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> Option<SlowStartExit>;

    /// Invoked once per congestion event, before the window is cut: returns the new slow start
    /// threshold in bytes.
    fn ssthresh(&mut self, window: &CongestionWindow, event: CongestionEvent) -> u32;

    /// Invoked when the retransmission timer made everything lost, each time, after
    /// [`Self::ssthresh`] if that was due.
    fn on_timeout(&mut self) {}

    /// Invoked when data is about to be sent with nothing in flight.
    fn on_send_after_idle(&mut self, _now: Instant) {}

    /// Its name, as the sysctl `net.ipv4.tcp_congestion_control` has it.
    fn name(&self) -> &'static str;
}

/// The algorithms there are: `net.ipv4.tcp_congestion_control`, or `TCP_CONGESTION` of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionAlgorithm {
    /// RFC 9438.
    #[default]
    Cubic,
    /// RFC 5681 with byte counting (RFC 3465).
    Reno,
    /// Slow start that no loss ends, up to a window of so many segments; for experiments.
    #[cfg(any(test, feature = "sim"))]
    LossBlind(u32),
}

impl CongestionAlgorithm {
    /// All that can be chosen by name.
    pub const ALL: [Self; 2] = [Self::Cubic, Self::Reno];

    /// Its name, as Linux has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
            #[cfg(any(test, feature = "sim"))]
            Self::LossBlind(_) => "loss-blind",
        }
    }
}

/// An algorithm with its state.
#[derive(Clone, Debug)]
enum Algorithm {
    Cubic(Cubic),
    Reno(Reno),
    #[cfg(any(test, feature = "sim"))]
    LossBlind(LossBlind),
}

/// Hands a call on to the algorithm in use.
macro_rules! dispatch {
    ($algorithm:expr, $name:ident => $call:expr) => {
        match $algorithm {
            Algorithm::Cubic($name) => $call,
            Algorithm::Reno($name) => $call,
            #[cfg(any(test, feature = "sim"))]
            Algorithm::LossBlind($name) => $call,
        }
    };
}

/// The congestion control of one connection: the algorithm, and what it was before the last
/// congestion event, should that turn out to have been none.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    algorithm: Algorithm,
    before_event: Option<Saved>,
}

/// State before a congestion event.
#[derive(Clone, Debug)]
struct Saved {
    cwnd: u32,
    ssthresh: u32,
    algorithm: Algorithm,
}

impl Congestion {
    /// One that has seen nothing yet.
    pub(super) fn new(algorithm: CongestionAlgorithm, config: &Config) -> Self {
        let algorithm = match algorithm {
            CongestionAlgorithm::Cubic => Algorithm::Cubic(Cubic::new(config.hystart)),
            CongestionAlgorithm::Reno => Algorithm::Reno(Reno::default()),
            #[cfg(any(test, feature = "sim"))]
            CongestionAlgorithm::LossBlind(segments) => {
                Algorithm::LossBlind(LossBlind::new(segments))
            }
        };
        Self {
            algorithm,
            before_event: None,
        }
    }

    /// Takes in an acknowledgment; see [`CongestionControl::on_ack`].
    pub(super) fn on_ack(
        &mut self,
        window: &mut CongestionWindow,
        ack: &AckSample,
    ) -> Option<SlowStartExit> {
        dispatch!(&mut self.algorithm, algorithm => algorithm.on_ack(window, ack))
    }

    /// The path is congested: saves the state and sets the slow start threshold. The window is
    /// the caller's to cut, at once or step by step.
    ///
    /// An echoed mark is never a mistake, so nothing is saved then (RFC 3168 §6.1.2).
    pub(super) fn on_event(&mut self, window: &mut CongestionWindow, event: CongestionEvent) {
        let Self {
            algorithm,
            before_event,
        } = self;
        *before_event = (event.cause != Cause::Ecn).then(|| Saved {
            cwnd: window.cwnd,
            ssthresh: window.ssthresh,
            algorithm: algorithm.clone(),
        });
        window.ssthresh =
            dispatch!(&mut self.algorithm, algorithm => algorithm.ssthresh(window, event));
    }

    /// The retransmission timer ran out; [`Self::on_event`] came before if that was a new event.
    pub(super) fn on_timeout(&mut self) {
        dispatch!(&mut self.algorithm, algorithm => algorithm.on_timeout());
    }

    /// Data is about to be sent with nothing in flight.
    pub(super) fn on_send_after_idle(&mut self, now: Instant) {
        dispatch!(&mut self.algorithm, algorithm => algorithm.on_send_after_idle(now));
    }

    /// The last event was none (DSACK, Eifel, F-RTO): window, threshold and all that the algorithm
    /// knew are again what they were before (RFC 9438 §4.9.2). A window that has grown larger
    /// meanwhile stays. Returns whether there was anything to restore.
    pub(super) fn undo(&mut self, window: &mut CongestionWindow) -> bool {
        let Some(Saved {
            cwnd,
            ssthresh,
            algorithm,
        }) = self.before_event.take()
        else {
            return false;
        };
        window.cwnd = window.cwnd.max(cwnd);
        window.ssthresh = window.ssthresh.max(ssthresh);
        self.algorithm = algorithm;
        true
    }

    /// The last event was a true one, or is long past: there is nothing to undo any more.
    pub(super) fn commit(&mut self) {
        self.before_event = None;
    }

    /// Its name, as the sysctl `net.ipv4.tcp_congestion_control` has it.
    pub(super) fn name(&self) -> &'static str {
        dispatch!(&self.algorithm, algorithm => algorithm.name())
    }
}

#[cfg(test)]
mod tests;
