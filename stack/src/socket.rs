//! Sockets: what applications hold.

mod udp;

pub use udp::UdpSocket;
