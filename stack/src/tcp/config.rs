//! Settings, under the names that Linux's sysctls and socket options have.

use super::{
    congestion::{CongestionAlgorithm, SlowStartMode},
    device_share::TsqPolicy,
    rate::Rate,
};
use crate::time::Duration;

/// Settings of all connections; a change concerns those made after it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// `net.ipv4.tcp_wmem`, middle value: bytes a connection may hold for sending, at first.
    pub sndbuf_bytes: u32,
    /// `net.ipv4.tcp_wmem`, last value: bytes it may hold once its window is wide.
    pub max_sndbuf_bytes: u32,
    /// `net.ipv4.tcp_notsent_lowat`: bytes that may wait to be sent, where a socket does not say.
    pub notsent_lowat_bytes: u32,
    /// `net.ipv4.tcp_rmem`, middle value: bytes a connection may hold unread, at first.
    pub rcvbuf_bytes: u32,
    /// `net.ipv4.tcp_rmem`, last value: bytes it may hold once it is seen to read fast; what the
    /// window scale must be able to express.
    pub max_rcvbuf_bytes: u32,
    /// `net.ipv4.tcp_moderate_rcvbuf`: whether the receive buffer follows the reader.
    pub moderate_rcvbuf: bool,
    /// `net.ipv4.tcp_limit_output_bytes`: most bytes of a connection in the device, or with
    /// [`TsqPolicy::Paced`] those it may always have there.
    pub limit_output_bytes: u32,
    /// `net.ipv4.tcp_tsq_policy`: by which rule bytes in the device are limited.
    pub tsq_policy: TsqPolicy,
    /// `net.ipv4.tcp_pacing`: data does not leave faster than the pacing rate.
    pub pacing: bool,
    /// `net.ipv4.tcp_pacing_ss_ratio`: the pacing rate in slow start, in hundredths of a window
    /// per round-trip time.
    pub pacing_ss_ratio: u16,
    /// `net.ipv4.tcp_pacing_ca_ratio`: the pacing rate in congestion avoidance.
    pub pacing_ca_ratio: u16,
    /// `net.ipv4.tcp_sack`.
    pub sack: bool,
    /// `net.ipv4.tcp_dsack`.
    pub dsack: bool,
    /// `net.ipv4.tcp_comp_sack_nr`: reports of a gap that may be left out in a row, as later ones
    /// say the same; 0: none.
    pub comp_sack_nr: u8,
    /// `net.ipv4.tcp_frto`: whether a timeout is suspected to be spurious (RFC 5682).
    pub frto: bool,
    /// `net.ipv4.tcp_early_retrans`: tail loss probes (RFC 8985 §7).
    pub tail_loss_probe: bool,
    /// `net.ipv4.tcp_reordering`: segments that may arrive ahead of one before that is taken for
    /// lost, as long as nothing is known of reordering (RFC 5681 §3.2).
    pub reordering: u8,
    /// `net.ipv4.tcp_timestamps`.
    pub timestamps: bool,
    /// `net.ipv4.tcp_window_scaling`.
    pub window_scaling: bool,
    /// `net.ipv4.tcp_rto_min_us`: floor of the retransmission timeout.
    pub rto_min: Duration,
    /// `net.ipv4.tcp_rto_max_ms`: its ceiling.
    pub rto_max: Duration,
    /// `net.ipv4.tcp_congestion_control`.
    pub congestion_control: CongestionAlgorithm,
    /// `net.ipv4.tcp_hystart`: how CUBIC leaves slow start before a loss.
    pub hystart: SlowStartMode,
    /// `net.ipv4.tcp_slow_start_after_idle`: a congestion window that was not used for a
    /// retransmission timeout shrinks.
    pub slow_start_after_idle: bool,
    /// `net.ipv4.tcp_ecn`.
    pub ecn: EcnMode,
    /// How long an acknowledgment waits for company, at least.
    pub delayed_ack: Duration,
    /// `net.ipv4.tcp_syn_retries`.
    pub syn_retries: u8,
    /// `net.ipv4.tcp_synack_retries`.
    pub synack_retries: u8,
    /// `net.ipv4.tcp_retries2`: timeouts in a row after which a connection is given up
    /// (RFC 1122 §4.2.3.5, R2).
    pub retries2: u8,
    /// `net.ipv4.tcp_orphan_retries`: timeouts in a row, or window probes, after which a
    /// connection that its owner has closed is given up.
    pub orphan_retries: u8,
    /// `net.ipv4.tcp_fin_timeout`: how long a closed connection waits for the peer's FIN.
    pub fin_timeout: Duration,
    /// Twice the maximum segment lifetime: how long TIME-WAIT lasts.
    pub time_wait: Duration,
    /// `net.ipv4.tcp_max_tw_buckets`: connections in TIME-WAIT; of more, the oldest go.
    pub max_tw_buckets: usize,
    /// Connections at a time, half-open ones and those waiting to be accepted among them.
    pub max_connections: usize,
    /// `net.ipv4.tcp_keepalive_time`, `_intvl` and `_probes`, for sockets that ask for it.
    pub keepalive: Keepalive,
    /// Old, wrong behaviours to compare with; connections look at them all the time.
    #[cfg(any(test, feature = "sim"))]
    pub mistakes: Mistakes,
}

impl Config {
    /// The mistakes to make: none in a build that is not for experiments, and known to be none
    /// when it is compiled.
    #[cfg_attr(
        not(any(test, feature = "sim")),
        expect(clippy::unused_self, reason = "known without looking")
    )]
    pub(super) fn mistakes(&self) -> Mistakes {
        #[cfg(any(test, feature = "sim"))]
        return self.mistakes;
        #[cfg(not(any(test, feature = "sim")))]
        Mistakes::NONE
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            sndbuf_bytes: 256 << 10,
            max_sndbuf_bytes: 16 << 20,
            notsent_lowat_bytes: u32::MAX,
            rcvbuf_bytes: 256 << 10,
            max_rcvbuf_bytes: 32 << 20,
            moderate_rcvbuf: true,
            limit_output_bytes: 4 << 20,
            tsq_policy: TsqPolicy::default(),
            pacing: true,
            pacing_ss_ratio: 200,
            pacing_ca_ratio: 120,
            sack: true,
            dsack: true,
            comp_sack_nr: 44,
            frto: true,
            tail_loss_probe: true,
            reordering: 3,
            timestamps: true,
            window_scaling: true,
            rto_min: Duration::from_millis(200),
            rto_max: Duration::from_mins(2),
            congestion_control: CongestionAlgorithm::default(),
            hystart: SlowStartMode::default(),
            slow_start_after_idle: true,
            ecn: EcnMode::default(),
            delayed_ack: Duration::from_millis(40),
            syn_retries: 6,
            synack_retries: 5,
            retries2: 15,
            orphan_retries: 8,
            fin_timeout: Duration::from_mins(1),
            time_wait: Duration::from_mins(1),
            max_tw_buckets: 4096,
            max_connections: 16_384,
            keepalive: Keepalive::default(),
            #[cfg(any(test, feature = "sim"))]
            mistakes: Mistakes::NONE,
        }
    }
}

/// Behaviours that stacks had, or have, and that are wrong. An experiment turns one on to show
/// what it costs; nothing else may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mistakes {
    /// Writers that wait are told of room on acknowledgments only, not when data leaves the send
    /// queue for the network: Linux before 5.18 (4bfe744ff164). With `TCP_NOTSENT_LOWAT` the
    /// queue then runs dry once a round trip.
    pub write_space_on_ack_only: bool,
    /// HyStart begins its rounds where the window grows, and so not on flows that do not fill it:
    /// Linux before 5.16 (4e1fddc98d25). Their requests and responses look like one long train of
    /// acknowledgments, and slow start ends at once.
    pub hystart_round_where_window_grows: bool,
    /// HyStart begins no round below its low window: Linux from 5.16 to 6.13 (25c1a9ca53db). The
    /// first round that counts has begun long before, and slow start ends too early.
    pub hystart_round_behind_low_window: bool,
}

impl Mistakes {
    /// None of them.
    pub const NONE: Self = Self {
        write_space_on_ack_only: false,
        hystart_round_where_window_grows: false,
        hystart_round_behind_low_window: false,
    };
}

/// Who may ask for explicit congestion notification (RFC 3168): `net.ipv4.tcp_ecn`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnMode {
    /// 0: it is not used.
    Off,
    /// 1: we ask for it, and so may peers.
    On,
    /// 2: peers may ask for it. The default, as in Linux: there are paths that drop SYNs which
    /// ask.
    #[default]
    Passive,
}

impl EcnMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::On, Self::Passive];

    /// Its number, as Linux has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "0",
            Self::On => "1",
            Self::Passive => "2",
        }
    }
}

/// When an idle connection is probed (RFC 9293 §3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// `TCP_KEEPIDLE`: time without a segment from the peer before the first probe.
    pub time: Duration,
    /// `TCP_KEEPINTVL`: time between probes.
    pub interval: Duration,
    /// `TCP_KEEPCNT`: probes without an answer after which the connection is given up.
    pub probes: u8,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self {
            time: Duration::from_hours(2),
            interval: Duration::from_secs(75),
            probes: 9,
        }
    }
}

/// Settings of one connection, or of the connections a listener accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// `SO_SNDBUF`, in bytes of data; none: as wide as the congestion window asks for.
    pub sndbuf_bytes: Option<u32>,
    /// `TCP_NOTSENT_LOWAT`: written and not yet sent, no more than this; a writer that waits is
    /// woken at half of it.
    pub notsent_lowat_bytes: u32,
    /// By which rule, and with which bound, the connection's bytes in the device are limited.
    pub tsq_policy: TsqPolicy,
    /// The bound: see [`Config::limit_output_bytes`].
    pub limit_output_bytes: u32,
    /// Data does not leave faster than the pacing rate.
    pub pacing: bool,
    /// `SO_MAX_PACING_RATE`: data does not leave faster than this, whether paced or not.
    pub max_pacing_rate: Rate,
    /// `SO_RCVBUF`, in bytes of data; none: as wide as the application reads fast.
    pub rcvbuf_bytes: Option<u32>,
    /// `TCP_MAXSEG`: no larger segment is sent or asked for.
    pub max_segment_bytes: Option<u16>,
    /// `TCP_NODELAY`: small segments are not held back (RFC 9293 §3.7.4).
    pub nodelay: bool,
    /// `SO_KEEPALIVE` with its times.
    pub keepalive: Option<Keepalive>,
    /// `TCP_CONGESTION`.
    pub congestion_control: CongestionAlgorithm,
    /// `TCP_USER_TIMEOUT`: how long sent data may go unacknowledged (RFC 5482).
    pub user_timeout: Option<Duration>,
}

impl Options {
    /// What a socket has that asks for nothing.
    pub fn new(config: &Config) -> Self {
        Self {
            sndbuf_bytes: None,
            notsent_lowat_bytes: config.notsent_lowat_bytes,
            tsq_policy: config.tsq_policy,
            limit_output_bytes: config.limit_output_bytes,
            pacing: config.pacing,
            max_pacing_rate: Rate::UNLIMITED,
            rcvbuf_bytes: None,
            max_segment_bytes: None,
            nodelay: false,
            keepalive: None,
            congestion_control: config.congestion_control,
            user_timeout: None,
        }
    }
}
