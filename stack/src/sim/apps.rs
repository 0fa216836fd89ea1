//! Applications to put load on a network.

use super::{Host, Network, PAGE_BYTES};
use crate::{
    device::{Device, Page, Slice},
    socket::{TcpListener, TcpStream},
    tcp::Options,
};
use alloc::rc::Rc;
use core::{
    cell::Cell,
    net::{IpAddr, SocketAddr},
};
use embedded_io_async::BufRead;

/// Connections that an application's server lets wait.
const BACKLOG: usize = 64;

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

    fn add(&self, bytes: usize) {
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
                while let Ok(bytes) = stream.fill_buf().await {
                    let len = bytes.len();
                    if len == 0 {
                        return;
                    }
                    stream.consume(len);
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
    let (net, server) = (host.net.clone(), address(server));
    network.spawn(async move {
        let Ok(mut stream) = TcpStream::connect_with(&net, None, server, change).await else {
            return;
        };
        let page = net.with(|stack| stack.device_mut().alloc_page());
        let Some(mut page) = page else { return };
        page.append(&[0x55; PAGE_BYTES]);
        while stream.write_slice(Slice::whole(page.clone())).await.is_ok() {}
    });
}
