//! Applications to put load on a network.

mod dialogue;
mod histogram;

pub use dialogue::{Dialogue, Exchanges};
pub use histogram::Histogram;

use super::{Clock, Host, Network, PAGE_BYTES, SimDevice, SimPage};
use crate::{
    device::{Device, Page, Slice},
    socket::{TcpListener, TcpStream},
    tcp::{Options, WriteError},
    time::{Duration, Instant},
};
use alloc::rc::Rc;
use core::{
    cell::Cell,
    net::{IpAddr, SocketAddr},
};
use embedded_io_async::BufRead;

/// Connections that an application's server lets wait.
const BACKLOG: usize = 64;

/// A simulated connection.
type Stream = TcpStream<SimDevice>;

/// Counts the bytes that an application has received. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    bytes: Rc<Cell<u64>>,
}

impl Meter {
    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    pub(super) fn add(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes as u64);
    }
}

/// The address of a host's server.
pub fn address((host, port): (&Host, u16)) -> SocketAddr {
    let address = host.net.with(|stack| stack.address());
    SocketAddr::new(IpAddr::V4(address), port)
}

/// A server on `host` that reads all it is sent and forgets it; returns the count of bytes.
pub fn sink(
    network: &mut Network,
    host: &Host,
    port: u16,
    change: impl FnOnce(&mut Options),
) -> Meter {
    let meter = Meter::default();
    let listener = TcpListener::bind_with(&host.net, address((host, port)), BACKLOG, change)
        .expect("a free port");
    let (spawner, counter) = (network.spawner(), meter.clone());
    network.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let counter = counter.clone();
            spawner.spawn(async move {
                while let Some(len) = read(&mut stream, usize::MAX).await {
                    counter.add(len);
                }
            });
        }
    });
    meter
}

/// A client on `host` that connects to a server and sends without end, the same page again and
/// again, by reference.
pub fn bulk(
    network: &mut Network,
    host: &Host,
    server: (&Host, u16),
    change: impl FnOnce(&mut Options) + 'static,
) {
    let _ = send(network, host, server, u64::MAX, change);
}

/// When something was done. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Finish(Rc<Cell<Option<Instant>>>);

impl Finish {
    /// When it was done, if it was.
    pub fn at(&self) -> Option<Instant> {
        self.0.get()
    }
}

/// As [`bulk`], for so many bytes; then it closes and waits for the server to close. That is when
/// it is done.
pub fn send(
    network: &mut Network,
    host: &Host,
    server: (&Host, u16),
    bytes: u64,
    change: impl FnOnce(&mut Options) + 'static,
) -> Finish {
    let finish = Finish::default();
    let (net, server, clock) = (host.net.clone(), address(server), network.clock());
    let Finish(done) = finish.clone();
    network.spawn(async move {
        let Ok(mut stream) = TcpStream::connect_with(&net, None, server, change).await else {
            return;
        };
        let Some(page) = filled_page(&net) else {
            return;
        };
        if write(&mut stream, &page, bytes).await.is_err() {
            return;
        }
        stream.shutdown();
        while read(&mut stream, usize::MAX).await.is_some() {}
        done.set(Some(clock.now()));
    });
    finish
}

/// A client that sends `burst_bytes` as fast as it may, waits until they have been acknowledged,
/// sleeps for `off`, and again.
pub fn on_off(
    network: &mut Network,
    host: &Host,
    server: (&Host, u16),
    burst_bytes: u64,
    off: Duration,
    change: impl FnOnce(&mut Options) + 'static,
) {
    let (net, server, clock) = (host.net.clone(), address(server), network.clock());
    network.spawn(async move {
        let Ok(mut stream) = TcpStream::connect_with(&net, None, server, change).await else {
            return;
        };
        let Some(page) = filled_page(&net) else {
            return;
        };
        loop {
            let written = write(&mut stream, &page, burst_bytes).await;
            let flushed = embedded_io_async::Write::flush(&mut stream).await;
            if written.is_err() || flushed.is_err() {
                return;
            }
            clock.sleep(off).await;
        }
    });
}

/// A page to send again and again.
fn filled_page(net: &crate::net::Net<SimDevice>) -> Option<SimPage> {
    let mut page = net.with(|stack| stack.device_mut().alloc_page())?;
    page.append(&[0x55; PAGE_BYTES]);
    // The writer copies when it writes on; a reader never does.
    Some(page.clone())
}

/// Writes `bytes` bytes, by reference.
async fn write(stream: &mut Stream, page: &SimPage, bytes: u64) -> Result<(), WriteError> {
    let mut left = bytes;
    while left > 0 {
        let len = left.min(PAGE_BYTES as u64);
        let slice = Slice::new(page.clone(), 0..len as usize);
        stream.write_slice(slice).await?;
        left -= len;
    }
    Ok(())
}

/// Reads what there is, `most` at most, by reference; none at the end.
async fn read(stream: &mut Stream, most: usize) -> Option<usize> {
    let len = stream.fill_buf().await.ok()?.len().min(most);
    stream.consume(len);
    (len > 0).then_some(len)
}

/// Reads `bytes` bytes; false when the stream ended before.
async fn read_exactly(stream: &mut Stream, bytes: u64) -> bool {
    let mut left = bytes;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        match read(stream, most).await {
            Some(len) => left -= len as u64,
            None => return false,
        }
    }
    true
}

/// Lets a task pass time, if it wants to.
async fn pause(clock: &Clock, span: Duration) {
    if span > Duration::ZERO {
        clock.sleep(span).await;
    }
}

#[cfg(test)]
mod tests;
