//! What one connection tells of itself: Linux's `tcp_info`.

use super::{
    chrono::Times,
    connection::{Connection, State},
    delivery_rate::Sample,
    recovery::Phase,
    sent::SentFlags,
};
use crate::{
    device::Page,
    time::{Duration, Instant},
};

/// What Linux says of a threshold that is not set.
const NO_SSTHRESH: u32 = 0x7fff_ffff;
/// No window is wider: a threshold as large is not set.
const UNSET_SSTHRESH_BYTES: u32 = 1 << 30;

/// What one connection tells of itself: fields and units of Linux's `tcp_info`, where it has them,
/// without the prefix; [`Info::field`] finds them by Linux's names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// Its state.
    pub state: State,
    /// What loss recovery is at.
    pub ca_state: CaState,
    /// Consecutive retransmission timeouts.
    pub retransmits: u8,
    /// Probes without an answer.
    pub probes: u8,
    /// Doublings of the retransmission timeout.
    pub backoff: u8,
    /// Whether timestamps, SACK and window scaling are in use.
    pub options: InfoOptions,
    /// Bits that our window is scaled by.
    pub rcv_wscale: u8,
    /// Bits that the peer's window is scaled by.
    pub snd_wscale: u8,
    /// Retransmission timeout in microseconds.
    pub rto_us: u32,
    /// How long an acknowledgment waits for company, in microseconds.
    pub ato_us: u32,
    /// Largest segment sent, in bytes of payload.
    pub snd_mss: u32,
    /// Largest segment received, in bytes of payload.
    pub rcv_mss: u32,
    /// Segment size we asked for.
    pub advmss: u32,
    /// Largest packet that the path takes, in bytes; 0: nothing was sent yet.
    pub path_mtu: u16,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Of these, segments the peer has reported to hold.
    pub sacked: u32,
    /// Of these, segments held for lost.
    pub lost: u32,
    /// Of these, segments sent again.
    pub retrans: u32,
    /// Bytes sent and not acknowledged.
    pub unacked_bytes: u32,
    /// Of these, bytes the peer has reported to hold.
    pub sacked_bytes: u32,
    /// Of these, bytes held for lost.
    pub lost_bytes: u32,
    /// Of these, bytes sent again.
    pub retrans_bytes: u32,
    /// Milliseconds since data was last sent.
    pub last_data_sent_ms: u32,
    /// Milliseconds since data last came.
    pub last_data_recv_ms: u32,
    /// Milliseconds since a segment last came.
    pub last_ack_recv_ms: u32,
    /// Segments sent again, ever.
    pub total_retrans: u64,
    /// Smoothed round-trip time in microseconds; 0: not known.
    pub srtt_us: u32,
    /// Its mean deviation in microseconds.
    pub rttvar_us: u32,
    /// The least round-trip time in microseconds; 0: not known.
    pub min_rtt_us: u32,
    /// Round-trip time as the receiving side sees it, in microseconds; 0: not known.
    pub rcv_rtt_us: u32,
    /// Most bytes the application read in a round trip.
    pub rcv_space: u32,
    /// Congestion window in bytes.
    pub cwnd_bytes: u32,
    /// Slow start threshold in bytes.
    pub ssthresh_bytes: u32,
    /// The peer's window in bytes.
    pub snd_wnd: u32,
    /// Our window, as the peer knows it, in bytes.
    pub rcv_wnd: u32,
    /// Bytes that may wait to be acknowledged.
    pub sndbuf_bytes: u32,
    /// Bytes that may wait to be read.
    pub rcvbuf_bytes: u32,
    /// Bytes the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Bytes of data sent, retransmissions among them.
    pub bytes_sent: u64,
    /// Bytes of data sent again.
    pub bytes_retrans: u64,
    /// Segments sent.
    pub segs_out: u64,
    /// Segments received.
    pub segs_in: u64,
    /// Segments with data sent.
    pub data_segs_out: u64,
    /// Segments with data received.
    pub data_segs_in: u64,
    /// Bytes written and not yet sent.
    pub notsent_bytes: u32,
    /// Bytes received in order and not yet read.
    pub unread_bytes: u32,
    /// Duplicates the peer reported.
    pub dsack_dups: u64,
    /// Segments received out of order.
    pub rcv_ooopack: u64,
    /// Time with data to deliver, in microseconds.
    pub busy_time_us: u64,
    /// Of this, time in which the peer's window held it up.
    pub rwnd_limited_us: u64,
    /// Of this, time in which all written was sent and the send buffer let no more be written.
    pub sndbuf_limited_us: u64,
    /// Bytes given to the device that it is not done with.
    pub in_device_bytes: u32,
    /// How many there may be: 0 before the first was given to it.
    pub device_limit_bytes: u32,
    /// Bytes a second that data leaves with at most.
    pub pacing_rate: u64,
    /// `SO_MAX_PACING_RATE`; all ones: none.
    pub max_pacing_rate: u64,
    /// Bytes known to have arrived, SACKed ones included.
    pub delivered_bytes: u64,
    /// Latest measurement of how fast data arrives, in bytes a second.
    pub delivery_rate: u64,
    /// Whether the application set the pace in that measurement, at least in part.
    pub delivery_rate_app_limited: bool,
    /// Times that data arrived behind data sent later.
    pub reord_seen: u32,
    /// Name of the congestion control.
    pub congestion_control: &'static str,
}

/// What loss recovery is at, by Linux's names and numbers (`tcpi_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaState {
    /// Nothing is amiss.
    Open = 0,
    /// The peer reports a gap, or duplicates; nothing is held for lost yet.
    Disorder = 1,
    /// The window is being cut for another reason than loss.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// After a retransmission timeout.
    Loss = 4,
}

/// Options in use on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InfoOptions {
    /// RFC 7323 timestamps.
    pub timestamps: bool,
    /// RFC 2018 selective acknowledgments.
    pub sack: bool,
    /// RFC 7323 window scaling.
    pub wscale: bool,
    /// RFC 3168 explicit congestion notification.
    pub ecn: bool,
    /// Whether the peer has sent data that could be marked.
    pub ecn_seen: bool,
}

impl Info {
    /// A field by the name, and in the unit, that it has in Linux's `struct tcp_info`, as
    /// `tcpi_unacked` or `unacked`. None: there is no such field here.
    pub fn field(&self, name: &str) -> Option<u64> {
        let mss = self.snd_mss.max(1);
        Some(match name.strip_prefix("tcpi_").unwrap_or(name) {
            "state" => state_number(self.state),
            "ca_state" => self.ca_state as u64,
            "retransmits" => self.retransmits.into(),
            "probes" => self.probes.into(),
            "backoff" => self.backoff.into(),
            "options" => {
                let InfoOptions {
                    timestamps,
                    sack,
                    wscale,
                    ecn,
                    ecn_seen,
                } = self.options;
                u64::from(timestamps)
                    | u64::from(sack) << 1
                    | u64::from(wscale) << 2
                    | u64::from(ecn) << 3
                    | u64::from(ecn_seen) << 4
            }
            "snd_wscale" => self.snd_wscale.into(),
            "rcv_wscale" => self.rcv_wscale.into(),
            "rto" => self.rto_us.into(),
            "ato" => self.ato_us.into(),
            "snd_mss" => self.snd_mss.into(),
            "rcv_mss" => self.rcv_mss.into(),
            "unacked" => self.unacked.into(),
            "sacked" => self.sacked.into(),
            "lost" => self.lost.into(),
            "retrans" => self.retrans.into(),
            "last_data_sent" => self.last_data_sent_ms.into(),
            "last_data_recv" => self.last_data_recv_ms.into(),
            "last_ack_recv" => self.last_ack_recv_ms.into(),
            "pmtu" => self.path_mtu.into(),
            "rcv_ssthresh" => self.rcvbuf_bytes.into(),
            "rtt" => self.srtt_us.into(),
            "rttvar" => self.rttvar_us.into(),
            "snd_ssthresh" if self.ssthresh_bytes >= UNSET_SSTHRESH_BYTES => NO_SSTHRESH.into(),
            "snd_ssthresh" => (self.ssthresh_bytes / mss).into(),
            "snd_cwnd" => (self.cwnd_bytes / mss).into(),
            "advmss" => self.advmss.into(),
            "rcv_rtt" => self.rcv_rtt_us.into(),
            "rcv_space" => self.rcv_space.into(),
            "total_retrans" => self.total_retrans,
            "pacing_rate" => self.pacing_rate,
            "max_pacing_rate" => self.max_pacing_rate,
            "bytes_acked" => self.bytes_acked,
            "bytes_received" => self.bytes_received,
            "segs_out" => self.segs_out,
            "segs_in" => self.segs_in,
            "notsent_bytes" => self.notsent_bytes.into(),
            "min_rtt" => self.min_rtt_us.into(),
            "data_segs_in" => self.data_segs_in,
            "data_segs_out" => self.data_segs_out,
            "busy_time" => self.busy_time_us,
            "rwnd_limited" => self.rwnd_limited_us,
            "sndbuf_limited" => self.sndbuf_limited_us,
            "bytes_sent" => self.bytes_sent,
            "bytes_retrans" => self.bytes_retrans,
            "dsack_dups" => self.dsack_dups,
            "rcv_ooopack" => self.rcv_ooopack,
            "delivered" => self.delivered_bytes.div_ceil(mss.into()),
            "delivery_rate" => self.delivery_rate,
            "delivery_rate_app_limited" => self.delivery_rate_app_limited.into(),
            "reord_seen" => self.reord_seen.into(),
            "snd_wnd" => self.snd_wnd.into(),
            "rcv_wnd" => self.rcv_wnd.into(),
            _ => return None,
        })
    }
}

/// A state's number in Linux's `tcp_states.h`.
fn state_number(state: State) -> u64 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

/// Segments outstanding, by what is known of them.
#[derive(Default)]
struct Segments {
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
}

impl<P: Page> Connection<P> {
    /// What `ss -ti` shows.
    pub(super) fn info(&self, now: Instant) -> Info {
        let Times {
            busy,
            rwnd_limited,
            sndbuf_limited,
        } = self.chrono.times(now);
        let us = |span: Duration| span.as_micros() as u64;
        let us32 = |span: Duration| u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
        let ms = |since: Instant| {
            let ms = now.since(since).as_millis();
            u32::try_from(ms).unwrap_or(u32::MAX)
        };
        let Segments {
            unacked,
            sacked,
            lost,
            retrans,
        } = self.segments();
        Info {
            state: self.state,
            ca_state: self.ca_state(),
            retransmits: self.timeouts,
            probes: if self.timers.persist.is_some() {
                self.timeouts
            } else {
                0
            },
            backoff: self.rtt.backoff(),
            options: InfoOptions {
                timestamps: self.timestamps.is_some(),
                sack: self.sack,
                wscale: self.scaling,
                ecn: self.ecn.is_on(),
                ecn_seen: self.ecn.has_seen(),
            },
            rcv_wscale: self.rcv.wscale.shift(),
            snd_wscale: self.snd.wscale.shift(),
            rto_us: us32(self.rtt.rto()),
            ato_us: us32(self.ack_policy.ato()),
            snd_mss: self.snd.mss,
            rcv_mss: self.rcv.mss,
            advmss: u32::from(self.rcv.advmss),
            path_mtu: self.stats.path_mtu,
            unacked,
            sacked,
            lost,
            retrans,
            unacked_bytes: self.snd.nxt.bytes_since(self.snd.una),
            sacked_bytes: self.retransmits.sacked_bytes(),
            lost_bytes: self.retransmits.lost_bytes(),
            retrans_bytes: self.retransmits.retransmitted_bytes(),
            last_data_sent_ms: ms(self.snd.last_data_at),
            last_data_recv_ms: self.ack_policy.last_data_at().map_or(0, ms),
            last_ack_recv_ms: ms(self.rcv.last_at),
            total_retrans: self.stats.total_retrans,
            srtt_us: self.rtt.srtt_us().unwrap_or(0),
            rttvar_us: self.rtt.rttvar_us(),
            min_rtt_us: self.rtt.min_us().unwrap_or(0),
            rcv_rtt_us: self.receive_buffer.rtt_us().unwrap_or(0),
            rcv_space: self.receive_buffer.space(),
            cwnd_bytes: self.window.cwnd,
            ssthresh_bytes: self.window.ssthresh,
            snd_wnd: self.snd.wnd,
            rcv_wnd: self.rcv.adv.bytes_since(self.rcv.nxt),
            sndbuf_bytes: self.sndbuf_bytes() as u32,
            rcvbuf_bytes: self.rcvbuf_bytes(),
            bytes_acked: self.stats.bytes_acked,
            bytes_received: self.stats.bytes_received,
            bytes_sent: self.stats.bytes_sent,
            bytes_retrans: self.stats.bytes_retrans,
            segs_out: self.stats.segs_out,
            segs_in: self.stats.segs_in,
            data_segs_out: self.stats.data_segs_out,
            data_segs_in: self.stats.data_segs_in,
            notsent_bytes: self.notsent_bytes(),
            unread_bytes: u32::try_from(self.recv_queue.len()).unwrap_or(u32::MAX),
            dsack_dups: self.stats.dsack_dups,
            rcv_ooopack: self.stats.rcv_ooopack,
            busy_time_us: us(busy),
            rwnd_limited_us: us(rwnd_limited),
            sndbuf_limited_us: us(sndbuf_limited),
            in_device_bytes: self.device.in_device_bytes(),
            device_limit_bytes: self.device.limit_bytes(),
            pacing_rate: self.pacing_rate.bytes_per_second(),
            max_pacing_rate: self.options.max_pacing_rate.bytes_per_second(),
            delivered_bytes: self.delivery.delivered_bytes(),
            delivery_rate: self.delivery.latest().map_or(0, Sample::rate),
            delivery_rate_app_limited: self
                .delivery
                .latest()
                .is_some_and(|sample| sample.is_app_limited),
            reord_seen: self.rack.reordering_events(),
            congestion_control: self.congestion.name(),
        }
    }

    fn ca_state(&self) -> CaState {
        match self.recovery.phase() {
            Phase::Recovery { .. } => CaState::Recovery,
            Phase::Loss { .. } => CaState::Loss,
            Phase::Reducing { .. } => CaState::Cwr,
            Phase::Open if self.retransmits.sacked_bytes() > 0 => CaState::Disorder,
            Phase::Open if self.recovery.dup_acks() > 0 => CaState::Disorder,
            Phase::Open => CaState::Open,
        }
    }

    /// Counts segments as Linux does: as they were sent.
    fn segments(&self) -> Segments {
        let mut segments = Segments::default();
        for sent in self.retransmits.iter() {
            let count = sent.segments();
            segments.unacked += count;
            for (flag, place) in [
                (SentFlags::SACKED, &mut segments.sacked),
                (SentFlags::LOST, &mut segments.lost),
                (SentFlags::RETRANSMITTED, &mut segments.retrans),
            ] {
                if sent.flags.contains(flag) {
                    *place += count;
                }
            }
        }
        segments
    }
}

#[cfg(test)]
mod tests;
