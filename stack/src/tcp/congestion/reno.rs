//! Reno (RFC 5681) with appropriate byte counting (RFC 3465).

use super::{AckSample, CongestionControl, CongestionWindow};

/// Slow start doubles and congestion avoidance adds one segment per window, both counted in bytes
/// acknowledged rather than in acknowledgments.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Reno {
    /// Bytes acknowledged towards the next segment of growth.
    acked_bytes: u32,
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, window: &mut CongestionWindow, ack: AckSample) {
        let mut acked = ack.acked_bytes;
        if window.is_slow_start() {
            // RFC 3465 §2.3 would stop at L = 2 segments per acknowledgment; but a receiver that
            // acknowledges 64 KiB at once then gets slow start as slow as congestion avoidance.
            // Only bytes that were sent count, so nothing is gained by many acknowledgments.
            let room = window.ssthresh - window.cwnd;
            let grown = acked.min(room);
            window.grow(grown);
            acked -= grown;
        }
        if acked == 0 {
            return;
        }
        // RFC 3465 §2.1: a window's worth of bytes buys one segment.
        self.acked_bytes = self.acked_bytes.saturating_add(acked);
        let cwnd = window.cwnd.max(1);
        if self.acked_bytes >= cwnd {
            let windows = self.acked_bytes / cwnd;
            self.acked_bytes -= windows * cwnd;
            window.grow(windows.saturating_mul(window.mss));
        }
    }

    fn ssthresh_after_loss(&mut self, window: &CongestionWindow, in_flight_bytes: u32) -> u32 {
        self.acked_bytes = 0;
        // RFC 5681 §3.1, equation 4: half of what was in flight, which a window that the
        // application did not fill says nothing about.
        (in_flight_bytes / 2).max(window.minimum())
    }

    fn on_timeout(&mut self) {
        self.acked_bytes = 0;
    }

    fn name(&self) -> &'static str {
        "reno"
    }
}
