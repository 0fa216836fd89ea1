//! Reno (RFC 5681) with appropriate byte counting (RFC 3465).

use super::{AckSample, CongestionControl, CongestionEvent, CongestionWindow, SlowStartExit};

/// Slow start doubles and congestion avoidance adds one segment per window, both counted in bytes
/// acknowledged rather than in acknowledgments.
#[derive(Clone, Debug, Default)]
pub(super) struct Reno {
    /// Bytes acknowledged towards the next segment of growth.
    acked_bytes: u32,
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> Option<SlowStartExit> {
        if !ack.may_grow {
            return None;
        }
        let acked = window.slow_start(ack.delivered_bytes);
        // RFC 3465 §2.1: a window's worth of bytes buys one segment.
        self.acked_bytes = self.acked_bytes.saturating_add(acked);
        let cwnd = window.cwnd.max(1);
        if acked > 0 && self.acked_bytes >= cwnd {
            let windows = self.acked_bytes / cwnd;
            self.acked_bytes -= windows * cwnd;
            window.grow(windows.saturating_mul(window.mss));
        }
        None
    }

    fn ssthresh(&mut self, window: &CongestionWindow, event: CongestionEvent) -> u32 {
        self.acked_bytes = 0;
        // RFC 5681 §3.1, equation 4; RFC 3168 §6.1.2 wants the same of a mark.
        (event.used_bytes / 2).max(window.minimum())
    }

    fn on_timeout(&mut self) {
        self.acked_bytes = 0;
    }

    fn name(&self) -> &'static str {
        "reno"
    }
}
