//! What is counted over all connections.

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
        /// Retransmissions that were lost in their turn.
        lost_retransmit = "TcpExtTCPLostRetransmit",
        /// Retransmissions while the device was not done with what had been sent before.
        spurious_rtx_host_queues = "TcpExtTCPSpuriousRtxHostQueues",
        /// Timeouts found to have been spurious (RFC 5682).
        spurious_rtos = "TcpExtTCPSpuriousRTOs",
        /// Tail loss probes sent.
        loss_probes = "TcpExtTCPLossProbes",
        /// Losses that a probe repaired.
        loss_probe_recovery = "TcpExtTCPLossProbeRecovery",
        /// Data that arrived behind data sent later, as SACKs tell.
        sack_reorder = "TcpExtTCPSACKReorder",
        /// Data that arrived although it was held for lost, as timestamps tell.
        ts_reorder = "TcpExtTCPTSReorder",
        /// Fast recoveries undone at their end.
        full_undo = "TcpExtTCPFullUndo",
        /// Fast recoveries undone before their end.
        partial_undo = "TcpExtTCPPartialUndo",
        /// Fast recoveries undone by reports of duplicates.
        dsack_undo = "TcpExtTCPDSACKUndo",
        /// Recoveries from timeouts undone.
        loss_undo = "TcpExtTCPLossUndo",
        /// SACK blocks that could not be true.
        sack_discard = "TcpExtTCPSACKDiscard",
        /// Duplicates reported to peers.
        dsack_old_sent = "TcpExtTCPDSACKOldSent",
        /// Out-of-order duplicates reported to peers.
        dsack_ofo_sent = "TcpExtTCPDSACKOfoSent",
        /// Reports of duplicates of data held out of order.
        dsack_ofo_recv = "TcpExtTCPDSACKOfoRecv",
        /// Reports of duplicates of what was sent before the last loss was found.
        dsack_ignored_old = "TcpExtTCPDSACKIgnoredOld",
        /// Reports of duplicates while there was nothing to undo.
        dsack_ignored_no_undo = "TcpExtTCPDSACKIgnoredNoUndo",
        /// Reports of duplicates that cannot be ours.
        dsack_ignored_dubious = "TcpExtTCPDSACKIgnoredDubious",
        /// Duplicates that peers reported.
        dsack_recv = "TcpExtTCPDSACKRecv",
        /// Reports of a gap left out.
        ack_compressed = "TcpExtTCPAckCompressed",
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
        /// Times data was held because its time to leave had not come.
        pacing_held = "TcpExtPacelinePacingHeld",
        /// Times a packet waited for acknowledgments to become larger.
        tso_deferred = "TcpExtPacelineTsoDeferred",
    }
}
