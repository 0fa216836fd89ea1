//! The names that `%{ assert … }%` blocks may use of one connection.

use crate::tcp::{Info, State};

/// States as Linux numbers them.
const STATES: [(&str, i64); 11] = [
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
];

/// The other constants.
const CONSTANTS: [(&str, i64); 10] = [
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("TCPI_OPT_TIMESTAMPS", 1),
    ("TCPI_OPT_SACK", 2),
    ("TCPI_OPT_WSCALE", 4),
    ("TCPI_OPT_ECN", 8),
    ("TCP_INFINITE_SSTHRESH", 0x7fff_ffff),
];

/// The value of a constant's name.
pub(super) fn constant(name: &str) -> Option<i64> {
    let mut all = STATES.iter().chain(&CONSTANTS);
    all.find(|(known, _)| *known == name)
        .map(|(_, value)| *value)
}

fn state_number(state: State) -> i64 {
    let name = match state {
        State::SynSent => "TCP_SYN_SENT",
        State::SynReceived => "TCP_SYN_RECV",
        State::Established => "TCP_ESTABLISHED",
        State::FinWait1 => "TCP_FIN_WAIT1",
        State::FinWait2 => "TCP_FIN_WAIT2",
        State::CloseWait => "TCP_CLOSE_WAIT",
        State::Closing => "TCP_CLOSING",
        State::LastAck => "TCP_LAST_ACK",
        State::TimeWait => "TCP_TIME_WAIT",
        State::Closed => "TCP_CLOSE",
    };
    constant(name).unwrap_or(0)
}

/// The value of a field by Linux's name; counts that Linux has in segments are rounded up from
/// bytes.
pub(super) fn field(info: &Info, name: &str) -> Option<i64> {
    let mss = i64::from(info.snd_mss.max(1));
    let segments = |bytes: u32| (i64::from(bytes) + mss - 1) / mss;
    let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    Some(match name {
        "tcpi_state" => state_number(info.state),
        "tcpi_retransmits" => i64::from(info.retransmits),
        "tcpi_probes" => i64::from(info.probes),
        "tcpi_backoff" => i64::from(info.backoff),
        "tcpi_options" => {
            i64::from(info.options.timestamps)
                | i64::from(info.options.sack) << 1
                | i64::from(info.options.wscale) << 2
        }
        "tcpi_rcv_wscale" => i64::from(info.rcv_wscale),
        "tcpi_snd_wscale" => i64::from(info.snd_wscale),
        "tcpi_rto" => i64::from(info.rto_us),
        "tcpi_snd_mss" => i64::from(info.snd_mss),
        "tcpi_rcv_mss" => i64::from(info.rcv_mss),
        "tcpi_advmss" => i64::from(info.advmss),
        "tcpi_unacked" => segments(info.unacked_bytes),
        "tcpi_sacked" => segments(info.sacked_bytes),
        "tcpi_lost" => segments(info.lost_bytes),
        "tcpi_retrans" => segments(info.retrans_bytes),
        "tcpi_total_retrans" => count(info.total_retrans),
        "tcpi_rtt" => i64::from(info.srtt_us),
        "tcpi_rttvar" => i64::from(info.rttvar_us),
        "tcpi_min_rtt" => i64::from(info.min_rtt_us),
        "tcpi_snd_cwnd" => i64::from(info.cwnd_bytes) / mss,
        "tcpi_snd_ssthresh" => {
            let infinite = info.ssthresh_bytes >= 1 << 30;
            if infinite {
                0x7fff_ffff
            } else {
                i64::from(info.ssthresh_bytes) / mss
            }
        }
        "tcpi_snd_wnd" => i64::from(info.snd_wnd),
        "tcpi_rcv_wnd" => i64::from(info.rcv_wnd),
        "tcpi_bytes_acked" => count(info.bytes_acked),
        "tcpi_bytes_received" => count(info.bytes_received),
        "tcpi_bytes_sent" => count(info.bytes_sent),
        "tcpi_bytes_retrans" => count(info.bytes_retrans),
        "tcpi_segs_out" => count(info.segs_out),
        "tcpi_segs_in" => count(info.segs_in),
        "tcpi_data_segs_out" => count(info.data_segs_out),
        "tcpi_data_segs_in" => count(info.data_segs_in),
        "tcpi_notsent_bytes" => i64::from(info.notsent_bytes),
        "tcpi_dsack_dups" => count(info.dsack_dups),
        "tcpi_rcv_ooopack" => count(info.rcv_ooopack),
        _ => return None,
    })
}
