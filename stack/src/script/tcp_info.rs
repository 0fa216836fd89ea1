//! The names that `%{ assert … }%` blocks may use of one connection.

use crate::tcp::Info;

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

/// The value of a field by Linux's name.
pub(super) fn field(info: &Info, name: &str) -> Option<i64> {
    let value = name.starts_with("tcpi_").then(|| info.field(name))??;
    Some(i64::try_from(value).unwrap_or(i64::MAX))
}
