//! `ss`: the TCP connections, with the names that Linux's tool gives things.

use alloc::string::{String, ToString};
use core::{
    fmt::{self, Write},
    net::SocketAddr,
};
use paceline_stack::tcp::{Info, InfoOptions, State};

/// Writes a line for each connection, its local address before the remote one; with `info` another
/// of what is known of it.
pub fn ss(
    connections: impl Iterator<Item = (SocketAddr, SocketAddr, Info)>,
    info: bool,
    out: &mut dyn Write,
) -> fmt::Result {
    line(
        out,
        [
            "State",
            "Recv-Q",
            "Send-Q",
            "Local Address:Port",
            "Peer Address:Port",
        ],
    )?;
    for (local, remote, tcp) in connections {
        let queued = tcp.unacked_bytes.saturating_add(tcp.notsent_bytes);
        let words = [
            &tcp.unread_bytes.to_string(),
            &queued.to_string(),
            &local.to_string(),
            &remote.to_string(),
        ];
        let [unread, queued, local, remote] = words.map(String::as_str);
        line(out, [state(tcp.state), unread, queued, local, remote])?;
        if info {
            details(&tcp, out)?;
        }
    }
    Ok(())
}

fn line(out: &mut dyn Write, [state, unread, queued, local, remote]: [&str; 5]) -> fmt::Result {
    writeln!(
        out,
        "{state:<10} {unread:>8} {queued:>8} {local:>21} {remote:>21}"
    )
}

/// A state's name.
fn state(state: State) -> &'static str {
    match state {
        State::Closed => "UNCONN",
        State::CloseWait => "CLOSE-WAIT",
        State::Closing => "CLOSING",
        State::Established => "ESTAB",
        State::FinWait1 => "FIN-WAIT-1",
        State::FinWait2 => "FIN-WAIT-2",
        State::LastAck => "LAST-ACK",
        State::SynReceived => "SYN-RECV",
        State::SynSent => "SYN-SENT",
        State::TimeWait => "TIME-WAIT",
    }
}

/// All but the addresses and queues, in the order and with the names of `ss -ti`; `in_device` and
/// `device_limit` are ours: what TCP small queues count, and what they allow.
fn details(tcp: &Info, out: &mut dyn Write) -> fmt::Result {
    let InfoOptions {
        timestamps,
        sack,
        wscale,
        ecn,
        ecn_seen,
    } = tcp.options;
    for (is_on, word) in [
        (timestamps, "ts"),
        (sack, "sack"),
        (ecn, "ecn"),
        (ecn_seen, "ecnseen"),
    ] {
        if is_on {
            write!(out, " {word}")?;
        }
    }
    write!(out, " {}", tcp.congestion_control)?;
    if wscale {
        write!(out, " wscale:{},{}", tcp.snd_wscale, tcp.rcv_wscale)?;
    }
    write!(out, " rto:{}", Millis(tcp.rto_us.into()))?;
    optional(out, "backoff", tcp.backoff.into())?;
    if tcp.srtt_us > 0 {
        let (srtt, var) = (Millis(tcp.srtt_us.into()), Millis(tcp.rttvar_us.into()));
        write!(out, " rtt:{srtt}/{var}")?;
    }
    write!(
        out,
        " ato:{} mss:{} pmtu:{} rcvmss:{} advmss:{} cwnd:{}",
        Millis(tcp.ato_us.into()),
        tcp.snd_mss,
        tcp.path_mtu,
        tcp.rcv_mss,
        tcp.advmss,
        field(tcp, "snd_cwnd"),
    )?;
    let ssthresh = field(tcp, "snd_ssthresh");
    if ssthresh < NO_SSTHRESH {
        write!(out, " ssthresh:{ssthresh}")?;
    }
    for (name, value) in [
        ("bytes_sent", tcp.bytes_sent),
        ("bytes_retrans", tcp.bytes_retrans),
        ("bytes_acked", tcp.bytes_acked),
        ("bytes_received", tcp.bytes_received),
        ("segs_out", tcp.segs_out),
        ("segs_in", tcp.segs_in),
        ("data_segs_out", tcp.data_segs_out),
        ("data_segs_in", tcp.data_segs_in),
    ] {
        optional(out, name, value)?;
    }
    for (name, value) in [
        ("lastsnd", tcp.last_data_sent_ms),
        ("lastrcv", tcp.last_data_recv_ms),
        ("lastack", tcp.last_ack_recv_ms),
    ] {
        optional(out, name, value.into())?;
    }
    for (name, bytes) in [
        ("pacing_rate", tcp.pacing_rate),
        ("delivery_rate", tcp.delivery_rate),
    ] {
        if bytes > 0 && bytes < u64::MAX {
            write!(out, " {name} {}", Rate(bytes))?;
        }
    }
    optional(out, "delivered", field(tcp, "delivered"))?;
    if tcp.delivery_rate_app_limited {
        out.write_str(" app_limited")?;
    }
    for (name, us) in [
        ("busy", tcp.busy_time_us),
        ("rwnd_limited", tcp.rwnd_limited_us),
        ("sndbuf_limited", tcp.sndbuf_limited_us),
    ] {
        if us > 0 {
            write!(out, " {name}:{}ms", us / 1000)?;
        }
    }
    optional(out, "unacked", tcp.unacked.into())?;
    if tcp.total_retrans > 0 {
        write!(out, " retrans:{}/{}", tcp.retrans, tcp.total_retrans)?;
    }
    for (name, value) in [
        ("lost", tcp.lost.into()),
        ("sacked", tcp.sacked.into()),
        ("dsack_dups", tcp.dsack_dups),
        ("reord_seen", tcp.reord_seen.into()),
    ] {
        optional(out, name, value)?;
    }
    if tcp.rcv_rtt_us > 0 {
        write!(out, " rcv_rtt:{}", Millis(tcp.rcv_rtt_us.into()))?;
    }
    optional(out, "rcv_space", tcp.rcv_space.into())?;
    optional(out, "notsent", tcp.notsent_bytes.into())?;
    if tcp.min_rtt_us > 0 {
        write!(out, " minrtt:{}", Millis(tcp.min_rtt_us.into()))?;
    }
    for (name, value) in [
        ("rcv_ooopack", tcp.rcv_ooopack),
        ("snd_wnd", tcp.snd_wnd.into()),
        ("rcv_wnd", tcp.rcv_wnd.into()),
    ] {
        optional(out, name, value)?;
    }
    writeln!(
        out,
        " in_device:{} device_limit:{}",
        tcp.in_device_bytes, tcp.device_limit_bytes
    )
}

/// What Linux says of a threshold that is not set.
const NO_SSTHRESH: u64 = 0x7fff_ffff;

/// A field in Linux's unit.
fn field(tcp: &Info, name: &str) -> u64 {
    tcp.field(name).unwrap_or(0)
}

/// A number that is not worth telling when it is zero.
fn optional(out: &mut dyn Write, name: &str, value: u64) -> fmt::Result {
    if value == 0 {
        return Ok(());
    }
    write!(out, " {name}:{value}")
}

/// Microseconds, shown as milliseconds without needless digits.
struct Millis(u64);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(us) = self;
        write!(f, "{}", us / 1000)?;
        let digits = alloc::format!("{:03}", us % 1000);
        match digits.trim_end_matches('0') {
            "" => Ok(()),
            digits => write!(f, ".{digits}"),
        }
    }
}

/// Bytes a second, shown in bits as `ss` does.
struct Rate(u64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from(self.0) * 8;
        if bits < 1_000_000 {
            return write!(f, "{bits}bps");
        }
        write!(f, "{}.{}Mbps", bits / 1_000_000, bits / 100_000 % 10)
    }
}

#[cfg(test)]
mod tests;
