//! Names that stand for numbers, with Linux's values. Scripts name them; that the values are one
//! system's matters only where a script spells a number out.

use super::errno::Errno;

pub(super) const AF_INET: i64 = 2;
pub(super) const AF_INET6: i64 = 10;
pub(super) const SOCK_STREAM: i64 = 1;
pub(super) const SOCK_DGRAM: i64 = 2;
pub(super) const SOCK_NONBLOCK: i64 = 0o4000;
pub(super) const SOCK_CLOEXEC: i64 = 0o2_000_000;
pub(super) const IPPROTO_TCP: i64 = 6;
pub(super) const SOL_SOCKET: i64 = 1;
pub(super) const SO_REUSEADDR: i64 = 2;
pub(super) const SO_TYPE: i64 = 3;
pub(super) const SO_ERROR: i64 = 4;
pub(super) const SO_SNDBUF: i64 = 7;
pub(super) const SO_RCVBUF: i64 = 8;
pub(super) const SO_KEEPALIVE: i64 = 9;
pub(super) const SO_LINGER: i64 = 13;
pub(super) const SO_MAX_PACING_RATE: i64 = 47;
pub(super) const TCP_NODELAY: i64 = 1;
pub(super) const TCP_MAXSEG: i64 = 2;
pub(super) const TCP_KEEPIDLE: i64 = 4;
pub(super) const TCP_KEEPINTVL: i64 = 5;
pub(super) const TCP_KEEPCNT: i64 = 6;
pub(super) const TCP_INFO: i64 = 11;
pub(super) const TCP_CONGESTION: i64 = 13;
pub(super) const TCP_USER_TIMEOUT: i64 = 18;
pub(super) const TCP_NOTSENT_LOWAT: i64 = 25;
pub(super) const F_GETFD: i64 = 1;
pub(super) const F_SETFD: i64 = 2;
pub(super) const F_GETFL: i64 = 3;
pub(super) const F_SETFL: i64 = 4;
pub(super) const O_RDWR: i64 = 2;
pub(super) const O_NONBLOCK: i64 = 0o4000;
pub(super) const SHUT_RD: i64 = 0;
pub(super) const SHUT_WR: i64 = 1;
pub(super) const SHUT_RDWR: i64 = 2;
pub(super) const MSG_DONTWAIT: i64 = 0x40;
pub(super) const MSG_NOSIGNAL: i64 = 0x4000;
pub(super) const POLLIN: i64 = 1;
pub(super) const POLLOUT: i64 = 4;
pub(super) const POLLERR: i64 = 8;
pub(super) const POLLHUP: i64 = 0x10;
pub(super) const POLLNVAL: i64 = 0x20;
pub(super) const POLLRDNORM: i64 = 0x40;
pub(super) const POLLWRNORM: i64 = 0x100;
pub(super) const POLLRDHUP: i64 = 0x2000;
pub(super) const EPOLLET: i64 = 1 << 31;
pub(super) const EPOLLONESHOT: i64 = 1 << 30;
pub(super) const EPOLL_CTL_ADD: i64 = 1;
pub(super) const EPOLL_CTL_DEL: i64 = 2;
pub(super) const EPOLL_CTL_MOD: i64 = 3;

/// Names and values; those that only have to be told apart have no constant of their own.
const TABLE: &[(&str, i64)] = &[
    ("AF_INET", AF_INET),
    ("AF_INET6", AF_INET6),
    ("PF_INET", AF_INET),
    ("PF_INET6", AF_INET6),
    ("SOCK_STREAM", SOCK_STREAM),
    ("SOCK_DGRAM", SOCK_DGRAM),
    ("SOCK_RAW", 3),
    ("SOCK_NONBLOCK", SOCK_NONBLOCK),
    ("SOCK_CLOEXEC", SOCK_CLOEXEC),
    ("IPPROTO_IP", 0),
    ("IPPROTO_TCP", IPPROTO_TCP),
    ("IPPROTO_UDP", 17),
    ("IPPROTO_IPV6", 41),
    ("IPPROTO_SCTP", 132),
    ("IPPROTO_MPTCP", 262),
    ("SOL_IP", 0),
    ("SOL_IPV6", 41),
    ("SOL_SOCKET", SOL_SOCKET),
    ("SOL_TCP", IPPROTO_TCP),
    ("SO_REUSEADDR", SO_REUSEADDR),
    ("SO_TYPE", SO_TYPE),
    ("SO_ERROR", SO_ERROR),
    ("SO_SNDBUF", SO_SNDBUF),
    ("SO_RCVBUF", SO_RCVBUF),
    ("SO_KEEPALIVE", SO_KEEPALIVE),
    ("SO_LINGER", SO_LINGER),
    ("SO_MAX_PACING_RATE", SO_MAX_PACING_RATE),
    ("TCP_NODELAY", TCP_NODELAY),
    ("TCP_MAXSEG", TCP_MAXSEG),
    ("TCP_KEEPIDLE", TCP_KEEPIDLE),
    ("TCP_KEEPINTVL", TCP_KEEPINTVL),
    ("TCP_KEEPCNT", TCP_KEEPCNT),
    ("TCP_INFO", TCP_INFO),
    ("TCP_CONGESTION", TCP_CONGESTION),
    ("TCP_USER_TIMEOUT", TCP_USER_TIMEOUT),
    ("TCP_NOTSENT_LOWAT", TCP_NOTSENT_LOWAT),
    ("F_GETFD", F_GETFD),
    ("F_SETFD", F_SETFD),
    ("F_GETFL", F_GETFL),
    ("F_SETFL", F_SETFL),
    ("FD_CLOEXEC", 1),
    ("O_RDONLY", 0),
    ("O_WRONLY", 1),
    ("O_RDWR", O_RDWR),
    ("O_NONBLOCK", O_NONBLOCK),
    ("SHUT_RD", SHUT_RD),
    ("SHUT_WR", SHUT_WR),
    ("SHUT_RDWR", SHUT_RDWR),
    ("MSG_OOB", 1),
    ("MSG_PEEK", 2),
    ("MSG_TRUNC", 0x20),
    ("MSG_DONTWAIT", MSG_DONTWAIT),
    ("MSG_EOR", 0x80),
    ("MSG_WAITALL", 0x100),
    ("MSG_ERRQUEUE", 0x2000),
    ("MSG_NOSIGNAL", MSG_NOSIGNAL),
    ("MSG_MORE", 0x8000),
    ("MSG_ZEROCOPY", 0x400_0000),
    ("MSG_FASTOPEN", 0x2000_0000),
    ("POLLIN", POLLIN),
    ("POLLPRI", 2),
    ("POLLOUT", POLLOUT),
    ("POLLERR", POLLERR),
    ("POLLHUP", POLLHUP),
    ("POLLNVAL", POLLNVAL),
    ("POLLRDNORM", POLLRDNORM),
    ("POLLWRNORM", POLLWRNORM),
    ("POLLRDHUP", POLLRDHUP),
    ("EPOLLIN", POLLIN),
    ("EPOLLPRI", 2),
    ("EPOLLOUT", POLLOUT),
    ("EPOLLERR", POLLERR),
    ("EPOLLHUP", POLLHUP),
    ("EPOLLRDNORM", POLLRDNORM),
    ("EPOLLWRNORM", POLLWRNORM),
    ("EPOLLRDHUP", POLLRDHUP),
    ("EPOLLET", EPOLLET),
    ("EPOLLONESHOT", EPOLLONESHOT),
    ("EPOLL_CTL_ADD", EPOLL_CTL_ADD),
    ("EPOLL_CTL_DEL", EPOLL_CTL_DEL),
    ("EPOLL_CTL_MOD", EPOLL_CTL_MOD),
    ("INADDR_ANY", 0),
];

/// The number of a name.
pub(super) fn value(name: &str) -> Option<i64> {
    let listed = TABLE.iter().find(|(known, _)| *known == name);
    listed
        .map(|(_, value)| *value)
        .or_else(|| Errno::number_of(name))
}
