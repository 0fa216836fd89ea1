//! A congestion window by itself, on a path that loses every n-th segment: the model that RFC 9438
//! §5 and RFC 5681's formulas are about. Losses are repaired in no time, and there is no queue.

use super::{
    AckSample, Cause, Congestion, CongestionAlgorithm, CongestionEvent, CongestionWindow, Mistakes,
};
use crate::{
    tcp::{Config, seq::SeqNum},
    time::{Duration, Instant},
};

const MSS: u32 = 1000;
/// Acknowledgments in a round trip, at most: a window of a hundred thousand segments makes no
/// difference to one acknowledgment in a thousand.
const MAX_ACKS: u32 = 128;

/// An acknowledgment of `delivered_bytes` that may widen the window, and says nothing of time.
pub(super) fn ack(delivered_bytes: u32) -> AckSample {
    AckSample {
        now: Instant::ZERO,
        delivered_bytes,
        arrived_bytes: delivered_bytes,
        rtt_us: None,
        srtt_us: 0,
        min_rtt_us: 0,
        una: SeqNum(0),
        nxt: SeqNum(0),
        is_paced: false,
        is_cwnd_limited: true,
        is_recovering: false,
        may_grow: true,
        mistakes: Mistakes::NONE,
    }
}

/// A path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeriodicLoss {
    /// Its round-trip time.
    pub(crate) rtt: Duration,
    /// Segments from one loss to the next.
    pub(crate) segments_per_loss: u64,
}

impl PeriodicLoss {
    /// The window that `algorithm` has on average, in thousandths of a segment, over `losses`
    /// losses. The first third of them brings it there and does not count.
    pub(crate) fn average_window(self, algorithm: CongestionAlgorithm, losses: u32) -> u64 {
        let Self {
            rtt,
            segments_per_loss,
        } = self;
        let mut congestion = Congestion::new(algorithm, &Config::default());
        let mut window = CongestionWindow::new(MSS);
        // Reno's window of that rate, to begin with.
        let reno = (3 * segments_per_loss / 2).isqrt();
        window.cwnd = u32::try_from(reno).unwrap_or(u32::MAX).saturating_mul(MSS);
        window.ssthresh = window.cwnd;
        let rtt_us = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
        let mut now = Instant::ZERO;
        let mut delivered_bytes = 0;
        let (mut sum, mut time_us) = (0_u128, 0_u128);
        let mut lost = 0;
        while lost < losses {
            let acks = (window.cwnd / MSS).clamp(1, MAX_ACKS);
            let bytes = window.cwnd / acks;
            let step_us = rtt_us / acks;
            now = now + Duration::from_micros(u64::from(step_us));
            congestion.on_ack(
                &mut window,
                &AckSample {
                    now,
                    rtt_us: Some(rtt_us),
                    srtt_us: rtt_us,
                    min_rtt_us: rtt_us,
                    ..ack(bytes)
                },
            );
            if lost >= losses / 3 {
                sum += u128::from(window.cwnd) * u128::from(step_us);
                time_us += u128::from(step_us);
            }
            delivered_bytes += u64::from(bytes);
            if delivered_bytes >= segments_per_loss * u64::from(MSS) {
                delivered_bytes -= segments_per_loss * u64::from(MSS);
                lost += 1;
                let event = CongestionEvent {
                    cause: Cause::Loss,
                    used_bytes: window.cwnd,
                };
                congestion.on_event(&mut window, event);
                window.cwnd = window.ssthresh;
            }
        }
        (sum * 1000 / u128::from(MSS) / time_us.max(1)) as u64
    }
}
