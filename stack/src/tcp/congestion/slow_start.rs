//! Slow start, and the ways to leave it before anything is lost.

use super::{
    AckSample, CongestionWindow, SlowStartExit, hystart::HyStart,
    hystart_plus_plus::HyStartPlusPlus,
};

/// How slow start ends before a loss ends it: the setting `net.ipv4.tcp_hystart`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStartMode {
    /// Only by loss.
    Off,
    /// HyStart as in Linux: by the length of ACK trains, and by delay.
    ///
    /// The default: on the paths that guests of one machine have, round trips are shorter than the
    /// 4 ms that RFC 9406 takes for the least delay worth noticing, and their queues are too short
    /// for more. HyStart++ would never end slow start there; the ACK train does.
    #[default]
    Classic,
    /// HyStart++ (RFC 9406): by delay, and not at once.
    PlusPlus,
}

impl SlowStartMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::Classic, Self::PlusPlus];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Classic => "classic",
            Self::PlusPlus => "plusplus",
        }
    }
}

/// Slow start of one connection.
#[derive(Clone, Debug)]
pub(super) enum SlowStart {
    Off,
    Classic(HyStart),
    PlusPlus(HyStartPlusPlus),
}

impl SlowStart {
    pub(super) fn new(mode: SlowStartMode) -> Self {
        match mode {
            SlowStartMode::Off => Self::Off,
            SlowStartMode::Classic => Self::Classic(HyStart::default()),
            SlowStartMode::PlusPlus => Self::PlusPlus(HyStartPlusPlus::default()),
        }
    }

    /// Takes in an acknowledgment during slow start: ends it, or widens the window. Returns why it
    /// ended, and the bytes left over for congestion avoidance.
    pub(super) fn on_ack(
        &mut self,
        window: &mut CongestionWindow,
        ack: &AckSample,
    ) -> (Option<SlowStartExit>, u32) {
        let (exit, divisor) = match self {
            Self::Off => (None, 1),
            Self::Classic(hystart) => (hystart.on_ack(window, ack), 1),
            Self::PlusPlus(hystart) => {
                let (exit, divisor) = hystart.on_ack(ack);
                (exit.map(|exit| (exit, window.cwnd)), divisor)
            }
        };
        let exit = exit.map(|(exit, cwnd)| {
            window.cwnd = cwnd;
            window.ssthresh = cwnd;
            exit
        });
        if !ack.may_grow {
            return (exit, 0);
        }
        if divisor > 1 {
            window.slow_start(ack.delivered_bytes / divisor);
            return (exit, 0);
        }
        (exit, window.slow_start(ack.delivered_bytes))
    }

    /// The retransmission timer ran out: slow start begins anew, with a threshold this time.
    pub(super) fn on_timeout(&mut self) {
        match self {
            Self::Off => {}
            Self::Classic(hystart) => *hystart = HyStart::default(),
            // RFC 9406 §4.3: for the first slow start only.
            Self::PlusPlus(hystart) => hystart.retire(),
        }
    }
}
