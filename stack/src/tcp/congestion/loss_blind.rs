//! Slow start that no loss ends: for experiments in which random loss must not be what limits a
//! flow, as it does not limit one of BBR's.

use super::{AckSample, CongestionControl, CongestionEvent, CongestionWindow, SlowStartExit};

/// Widens the window by what is delivered, as long as the window is what limits the flow, up to
/// what the path holds; and never cuts it. Loss recovery still sees to it that no more is sent
/// than was delivered while it lasts.
#[derive(Clone, Debug)]
pub(super) struct LossBlind {
    path_segments: u32,
}

impl LossBlind {
    pub(super) fn new(path_segments: u32) -> Self {
        Self { path_segments }
    }
}

impl CongestionControl for LossBlind {
    fn on_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> Option<SlowStartExit> {
        if !ack.is_cwnd_limited {
            return None;
        }
        let most = self
            .path_segments
            .saturating_mul(window.mss)
            .max(window.minimum());
        // During recovery the window is not the algorithm's; the threshold is where it will end.
        let grown = if ack.is_recovering {
            &mut window.ssthresh
        } else {
            &mut window.cwnd
        };
        *grown = grown.saturating_add(ack.delivered_bytes).min(most);
        None
    }

    fn ssthresh(&mut self, window: &CongestionWindow, _: CongestionEvent) -> u32 {
        window.cwnd.max(window.minimum())
    }

    fn name(&self) -> &'static str {
        "loss-blind"
    }
}

#[cfg(test)]
mod tests;
