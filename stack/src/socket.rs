//! Sockets: what applications hold.
//!
//! Streams have `embedded-io-async`'s traits, and calls that pass pages by reference. Several
//! tasks may use them: one accepts, others handle what was accepted.

mod tcp;
mod udp;

pub use tcp::{StreamError, TcpListener, TcpReader, TcpStream, TcpWriter};
pub use udp::UdpSocket;
