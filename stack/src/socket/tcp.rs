//! TCP sockets for tasks: [`TcpListener`] and [`TcpStream`].

mod split;
mod stream;

pub use split::{TcpReader, TcpWriter};
pub use stream::{StreamError, TcpStream};

use crate::{
    device::Device,
    net::Net,
    tcp::{AcceptError, ListenError, ListenerId, Options},
};
use core::{
    fmt,
    future::poll_fn,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

/// A port that takes connections.
///
/// One task accepts at a time; the streams may be handled in others. Dropping the listener resets
/// the connections that nobody has accepted.
pub struct TcpListener<D: Device> {
    net: Net<D>,
    id: ListenerId,
    local: SocketAddr,
}

impl<D: Device> TcpListener<D> {
    /// Takes connections to `local`; an unspecified address stands for all of ours. At most
    /// `backlog` connections are half open, and as many wait to be accepted; a SYN over that is
    /// dropped, so that the peer asks again.
    pub fn bind(net: &Net<D>, local: SocketAddr, backlog: usize) -> Result<Self, ListenError> {
        Self::bind_with(net, local, backlog, |_| {})
    }

    /// The same on all of our addresses.
    pub fn bind_port(net: &Net<D>, port: u16, backlog: usize) -> Result<Self, ListenError> {
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Self::bind(net, SocketAddr::new(any, port), backlog)
    }

    /// As [`TcpListener::bind`], with settings for the connections that it will accept.
    pub fn bind_with(
        net: &Net<D>,
        local: SocketAddr,
        backlog: usize,
        change: impl FnOnce(&mut Options),
    ) -> Result<Self, ListenError> {
        let id = net.with(|stack| {
            let (tcp, _) = stack.tcp_and_device();
            let mut options = Options::new(tcp.config());
            change(&mut options);
            tcp.listen(local, backlog, options)
        })?;
        Ok(Self {
            net: net.clone(),
            id,
            local,
        })
    }

    /// Waits for a connection; returns it and the peer's address.
    pub async fn accept(&self) -> Result<(TcpStream<D>, SocketAddr), AcceptError> {
        let (id, local, remote) = poll_fn(|cx| {
            self.net
                .with(|stack| stack.tcp_and_device().0.poll_accept(self.id, cx.waker()))
        })
        .await?;
        Ok((TcpStream::new(&self.net, id, local, remote), remote))
    }

    /// The address and port it was bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }
}

impl<D: Device> Drop for TcpListener<D> {
    fn drop(&mut self) {
        self.net.with(|stack| {
            stack.tcp_and_device().0.close_listener(self.id);
            stack.want_poll();
        });
    }
}

impl<D: Device> fmt::Debug for TcpListener<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpListener")
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}
