//! What is counted over all connections, and what one connection tells of itself.

use super::connection::State;
use crate::counters::counters;

counters! {
    /// Counters over all connections, under `nstat`'s names.
    pub struct Counters {
        /// Connections begun from here.
        active_opens = "TcpActiveOpens",
        /// Connections begun by peers.
        passive_opens = "TcpPassiveOpens",
        /// Connections that failed before they were established.
        attempt_fails = "TcpAttemptFails",
        /// Connections that were established and then reset.
        estab_resets = "TcpEstabResets",
        /// Segments received; one that the device put together counts as all its parts.
        in_segs = "TcpInSegs",
        /// Segments sent, without retransmissions.
        out_segs = "TcpOutSegs",
        /// Segments sent again.
        retrans_segs = "TcpRetransSegs",
        /// Segments received that are no TCP.
        in_errs = "TcpInErrs",
        /// Resets sent.
        out_rsts = "TcpOutRsts",
        /// SYNs dropped because a listener's queue was full.
        listen_overflows = "TcpExtListenOverflows",
        /// SYNs dropped for whatever reason.
        listen_drops = "TcpExtListenDrops",
        /// Connections that went into TIME-WAIT.
        time_waited = "TcpExtTW",
        /// TIME-WAIT ended by a new connection of the same name.
        time_wait_recycled = "TcpExtTWRecycled",
        /// TIME-WAIT ended early for want of room.
        time_wait_overflow = "TcpExtTCPTimeWaitOverflow",
        /// Segments refused for an old timestamp.
        paws_estab = "TcpExtPAWSEstab",
        /// Acknowledgments sent by the delay timer.
        delayed_acks = "TcpExtDelayedACKs",
        /// In-order segments that took the short way.
        hp_hits = "TcpExtTCPHPHits",
        /// Acknowledgments that took the short way.
        hp_acks = "TcpExtTCPHPAcks",
        /// Acknowledgments without data.
        pure_acks = "TcpExtTCPPureAcks",
        /// Fast recoveries begun with SACK.
        sack_recovery = "TcpExtTCPSackRecovery",
        /// Fast recoveries begun without SACK.
        reno_recovery = "TcpExtTCPRenoRecovery",
        /// Peers that took back what they had SACKed.
        sack_reneging = "TcpExtTCPSACKReneging",
        /// Segments retransmitted in fast recovery.
        fast_retrans = "TcpExtTCPFastRetrans",
        /// Segments retransmitted in slow start after a timeout.
        slow_start_retrans = "TcpExtTCPSlowStartRetrans",
        /// Retransmission timeouts.
        timeouts = "TcpExtTCPTimeouts",
        /// SACK blocks that could not be true.
        sack_discard = "TcpExtTCPSACKDiscard",
        /// Duplicates reported to peers.
        dsack_old_sent = "TcpExtTCPDSACKOldSent",
        /// Out-of-order duplicates reported to peers.
        dsack_ofo_sent = "TcpExtTCPDSACKOfoSent",
        /// Duplicates that peers reported.
        dsack_recv = "TcpExtTCPDSACKRecv",
        /// Segments that arrived out of order and were kept.
        ofo_queue = "TcpExtTCPOFOQueue",
        /// Segments that arrived out of order and found no room.
        ofo_drop = "TcpExtTCPOFODrop",
        /// Connections that let go of what had arrived out of order, for want of memory.
        ofo_pruned = "TcpExtOfoPruned",
        /// Segments next in order that found no memory.
        rcvq_drop = "TcpExtTCPRcvQDrop",
        /// Challenge acknowledgments sent (RFC 5961).
        challenge_ack = "TcpExtTCPChallengeACK",
        /// Challenge acknowledgments that the limit held back.
        ack_skipped_challenge = "TcpExtTCPACKSkippedChallenge",
        /// SYNs on a connection that exists.
        syn_challenge = "TcpExtTCPSYNChallenge",
        /// Connections reset because data came after the close.
        abort_on_data = "TcpExtTCPAbortOnData",
        /// Connections reset because they were dropped with data unread.
        abort_on_close = "TcpExtTCPAbortOnClose",
        /// Connections given up for timeouts.
        abort_on_timeout = "TcpExtTCPAbortOnTimeout",
        /// Connections given up while lingering after the close.
        abort_on_linger = "TcpExtTCPAbortOnLinger",
        /// Times a window fell to zero.
        to_zero_window = "TcpExtTCPToZeroWindowAdv",
        /// Times a window opened from zero.
        from_zero_window = "TcpExtTCPFromZeroWindowAdv",
        /// Probes of a closed window sent.
        win_probe = "TcpExtTCPWinProbe",
        /// Keepalive probes sent.
        keepalive = "TcpExtTCPKeepAlive",
        /// Data segments sent, without retransmissions.
        orig_data_sent = "TcpExtTCPOrigDataSent",
        /// Times slow start ended because a round's acknowledgments stretched over a round trip.
        hystart_train_detect = "TcpExtTCPHystartTrainDetect",
        /// Windows then, in segments, summed.
        hystart_train_cwnd = "TcpExtTCPHystartTrainCwnd",
        /// Times slow start ended because round trips took longer.
        hystart_delay_detect = "TcpExtTCPHystartDelayDetect",
        /// Windows then, in segments, summed.
        hystart_delay_cwnd = "TcpExtTCPHystartDelayCwnd",
        /// Times the device had no room for a packet that could have gone.
        device_busy = "TcpExtPacelineDeviceBusy",
        /// Times a flow waited for completions of its own before it sent more.
        device_throttled = "TcpExtPacelineDeviceThrottled",
    }
}

/// What one connection tells of itself: fields and units of Linux's `tcp_info`, where it has them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// Its state.
    pub state: State,
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
    /// Largest segment sent, in bytes of payload.
    pub snd_mss: u32,
    /// Largest segment received, in bytes of payload.
    pub rcv_mss: u32,
    /// Segment size we asked for.
    pub advmss: u32,
    /// Bytes sent and not acknowledged.
    pub unacked_bytes: u32,
    /// Of these, bytes the peer has reported to hold.
    pub sacked_bytes: u32,
    /// Of these, bytes held for lost.
    pub lost_bytes: u32,
    /// Of these, bytes sent again.
    pub retrans_bytes: u32,
    /// Segments sent again, ever.
    pub total_retrans: u64,
    /// Smoothed round-trip time in microseconds; 0: not known.
    pub srtt_us: u32,
    /// Its mean deviation in microseconds.
    pub rttvar_us: u32,
    /// The least round-trip time in microseconds; 0: not known.
    pub min_rtt_us: u32,
    /// Congestion window in bytes.
    pub cwnd_bytes: u32,
    /// Slow start threshold in bytes.
    pub ssthresh_bytes: u32,
    /// The peer's window in bytes.
    pub snd_wnd: u32,
    /// Our window, as the peer knows it, in bytes.
    pub rcv_wnd: u32,
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
    /// Name of the congestion control.
    pub congestion_control: &'static str,
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
}
