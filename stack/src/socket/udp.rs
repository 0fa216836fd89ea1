//! UDP sockets.

use crate::{
    device::{Device, Slice},
    ip::SendError,
    net::Net,
    stack::Stack,
    udp::UdpError,
};
use alloc::vec::Vec;
use core::{
    future::poll_fn,
    net::{IpAddr, SocketAddr},
    task::{Context, Poll},
};

/// A UDP socket. It closes when it is dropped.
///
/// One task may receive while another sends; of several that do the same, each is served in turn.
pub struct UdpSocket<D: Device> {
    net: Net<D>,
    id: usize,
}

impl<D: Device> UdpSocket<D> {
    /// Opens a socket at `local`: the unspecified address or ours, and a port, or zero for any
    /// that is free.
    pub fn bind(net: &Net<D>, local: SocketAddr) -> Result<Self, UdpError> {
        let id = net.with(|stack| {
            let ours = IpAddr::V4(stack.address());
            if !local.ip().is_unspecified() && local.ip() != ours {
                return Err(UdpError::AddressNotAvailable);
            }
            stack.udp_mut().bind(local.port())
        })?;
        Ok(Self {
            net: net.clone(),
            id,
        })
    }

    /// Names the peer: the socket receives from nobody else from now on, and learns when the peer
    /// cannot be reached. The port may be bound by another socket then.
    pub fn connect(&self, remote: SocketAddr) {
        self.net.with(|stack| {
            if let Some(socket) = stack.udp_mut().socket(self.id) {
                socket.remote = Some(remote);
            }
        });
    }

    /// Our address and port.
    pub fn local_addr(&self) -> SocketAddr {
        self.net.with(|stack| {
            let port = stack.udp_mut().socket(self.id).map_or(0, |s| s.port());
            SocketAddr::new(IpAddr::V4(stack.address()), port)
        })
    }

    /// The peer, of a connected socket.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.net
            .with(|stack| stack.udp_mut().socket(self.id)?.remote)
    }

    /// Bounds the memory that received datagrams may hold on to until they are taken, in bytes. A
    /// datagram holds whole pages. More is dropped and counted as `UdpRcvbufErrors`.
    pub fn set_recv_limit_bytes(&self, limit_bytes: usize) {
        self.net.with(|stack| {
            if let Some(socket) = stack.udp_mut().socket(self.id) {
                socket.recv_limit_bytes = limit_bytes;
            }
        });
    }

    /// Sends a datagram; waits while the device queue is full or the neighbour not known.
    pub async fn send_to(&self, data: &[u8], to: SocketAddr) -> Result<(), UdpError> {
        poll_fn(|context| self.poll_send_to(context, data, to)).await
    }

    /// Sends a datagram to the peer; see [`UdpSocket::send_to`].
    pub async fn send(&self, data: &[u8]) -> Result<(), UdpError> {
        let to = self.peer_addr().ok_or(UdpError::NotConnected)?;
        self.send_to(data, to).await
    }

    /// As [`UdpSocket::send_to`], for callers that poll.
    pub fn poll_send_to(
        &self,
        context: &mut Context<'_>,
        data: &[u8],
        to: SocketAddr,
    ) -> Poll<Result<(), UdpError>> {
        self.net.with(|stack| {
            let Some(socket) = stack.udp_mut().socket(self.id) else {
                return Poll::Ready(Err(UdpError::NotConnected));
            };
            if let Some(error) = socket.take_error() {
                return Poll::Ready(Err(error));
            }
            let port = socket.port();
            match stack.udp_send(port, data, to) {
                Err(UdpError::Send(SendError::Busy)) => {
                    if let Some(socket) = stack.udp_mut().socket(self.id) {
                        socket.send_waker.register(context);
                    }
                    stack.udp_mut().send_waiting = true;
                    stack.want_poll();
                    Poll::Pending
                }
                result => Poll::Ready(result),
            }
        })
    }

    /// Receives a datagram into `buffer` and returns its sender, and how many bytes it put there:
    /// what does not fit is cut off.
    pub async fn recv_from(&self, buffer: &mut [u8]) -> Result<(usize, SocketAddr), UdpError> {
        poll_fn(|context| self.poll_recv_from(context, buffer)).await
    }

    /// As [`UdpSocket::recv_from`], for callers that poll.
    pub fn poll_recv_from(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<(usize, SocketAddr), UdpError>> {
        self.poll_recv(context, |from, slices| {
            let mut len = 0;
            for slice in slices {
                let room = &mut buffer[len..];
                let part = slice.len().min(room.len());
                room[..part].copy_from_slice(&slice.bytes()[..part]);
                len += part;
            }
            (len, from)
        })
    }

    /// Receives a datagram by reference: appends the slices it lies in to `slices` and returns
    /// its sender. An empty datagram has none.
    pub async fn recv_slices(
        &self,
        slices: &mut Vec<Slice<D::Page>>,
    ) -> Result<SocketAddr, UdpError> {
        poll_fn(|context| {
            self.poll_recv(context, |from, received| {
                slices.extend(received);
                from
            })
        })
        .await
    }

    fn poll_recv<R>(
        &self,
        context: &mut Context<'_>,
        take: impl FnOnce(SocketAddr, &mut dyn Iterator<Item = Slice<D::Page>>) -> R,
    ) -> Poll<Result<R, UdpError>> {
        self.net.with(|stack: &mut Stack<D>| {
            let Some(socket) = stack.udp_mut().socket(self.id) else {
                return Poll::Ready(Err(UdpError::NotConnected));
            };
            if let Some(error) = socket.take_error() {
                return Poll::Ready(Err(error));
            }
            if let Some((from, mut slices)) = socket.pop() {
                return Poll::Ready(Ok(take(from, &mut slices)));
            }
            socket.recv_waker.register(context);
            Poll::Pending
        })
    }
}

impl<D: Device> Drop for UdpSocket<D> {
    fn drop(&mut self) {
        self.net.with(|stack| stack.udp_mut().close(self.id));
    }
}

#[cfg(test)]
mod tests;
