//! Two stacks over a simulated network, in virtual time.

mod buffers;
mod close;
mod ecn;
mod handshake;
pub(in crate::tcp) mod harness;
mod hostile;
mod loss;
mod lossy;
mod memory;
mod options;
mod recovery;
mod small_queues;
mod sockets;
mod states;
mod transfer;
mod window;
mod write_space;

use crate::{
    sim::{Host, Link, Network, NicConfig},
    socket::{TcpListener, TcpStream},
    time::{Duration, Instant},
};
use alloc::{rc::Rc, vec, vec::Vec};
use core::{
    cell::{Cell, RefCell},
    future::Future,
    net::{Ipv4Addr, SocketAddr},
};
use embedded_io_async::{BufRead, Read, Write};

/// Where the second host's server listens.
const PORT: u16 = 5201;

/// The second host's server.
fn server_addr() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(192, 0, 2, 2), PORT))
}

/// A link of 1 Gb/s and half a millisecond each way.
fn lan() -> Link {
    Link {
        rate_bps: Some(1_000_000_000),
        delay: Duration::from_micros(500),
        ..Link::default()
    }
}

/// Byte `position` of the stream that tests send.
fn pattern(position: usize) -> u8 {
    let mixed = (position as u32).wrapping_mul(0x9e37_79b1);
    (mixed >> 24) as u8
}

/// Writes `len` bytes of the pattern.
async fn send_pattern(stream: &mut impl Write, len: usize) {
    let mut position = 0;
    let mut buffer = vec![0; 50_000];
    while position < len {
        let part = buffer.len().min(len - position);
        for (byte, at) in buffer[..part].iter_mut().zip(position..) {
            *byte = pattern(at);
        }
        stream.write_all(&buffer[..part]).await.expect("written");
        position += part;
    }
}

/// Reads to the end; all of it must be the pattern. Returns its length.
async fn receive_pattern(stream: &mut impl BufRead) -> usize {
    let mut position = 0;
    loop {
        let bytes = stream.fill_buf().await.expect("read");
        if bytes.is_empty() {
            return position;
        }
        for (&byte, at) in bytes.iter().zip(position..) {
            assert_eq!(byte, pattern(at), "byte {at}");
        }
        let len = bytes.len();
        position += len;
        stream.consume(len);
    }
}

/// A cell for results of tasks.
fn shared<T>(value: T) -> (Rc<Cell<T>>, Rc<Cell<T>>) {
    let cell = Rc::new(Cell::new(value));
    (Rc::clone(&cell), cell)
}

/// All connections of a host.
fn infos(host: &Host) -> Vec<super::Info> {
    host.net
        .with(|stack| stack.tcp().connections().map(|(_, _, info)| info).collect())
}
