//! A connection as a task sees it.

use super::split::{TcpReader, TcpWriter};
use crate::{
    device::{Device, Slice},
    net::Net,
    tcp::{ConnectError, ConnectionId, Info, Keepalive, Options, ReadError, Tcp, WriteError},
    time::Duration,
};
use alloc::rc::Rc;
use core::{
    cell::Cell,
    fmt,
    future::poll_fn,
    net::{IpAddr, SocketAddr},
};
use embedded_io_async::{BufRead, ErrorKind, ErrorType, Read, Write};

/// The hold on a connection that its sides share.
pub(super) struct Handle<D: Device> {
    net: Net<D>,
    id: ConnectionId,
    local: SocketAddr,
    pub(super) remote: SocketAddr,
    /// Whether a side was dropped that still held data.
    pub(super) unread: Cell<bool>,
}

impl<D: Device> Handle<D> {
    /// Calls into TCP; the loop looks after what that makes to be sent.
    pub(super) fn with<R>(
        &self,
        f: impl FnOnce(&mut Tcp<D::Page>, ConnectionId, &mut D) -> R,
    ) -> R {
        self.net.with(|stack| {
            let (tcp, device) = stack.tcp_and_device();
            let result = f(tcp, self.id, device);
            if tcp.wants_poll() {
                stack.want_poll();
            }
            result
        })
    }

    pub(super) fn info(&self) -> Option<Info> {
        self.net.with(|stack| stack.tcp().info(self.id))
    }

    fn set_options(&self, change: impl FnOnce(&mut Options)) {
        let now = self.net.with(|stack| stack.now());
        self.with(|tcp, id, _| tcp.set_options(id, now, change));
    }

    pub(super) fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("local", &self.local)
            .field("peer", &self.remote)
            .finish_non_exhaustive()
    }
}

impl<D: Device> Drop for Handle<D> {
    fn drop(&mut self) {
        let now = self.net.with(|stack| stack.now());
        let unread = self.unread.get();
        self.with(|tcp, id, _| tcp.release(id, unread, now));
    }
}

/// A TCP connection.
///
/// Dropping it closes it in the background: what was written is still delivered. When data that
/// came has not been read, the connection is reset instead, so that the peer learns of it.
pub struct TcpStream<D: Device> {
    reader: TcpReader<D>,
    writer: TcpWriter<D>,
    handle: Rc<Handle<D>>,
}

impl<D: Device> TcpStream<D> {
    pub(super) fn new(
        net: &Net<D>,
        id: ConnectionId,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Self {
        let handle = Rc::new(Handle {
            net: net.clone(),
            id,
            local,
            remote,
            unread: Cell::new(false),
        });
        Self {
            reader: TcpReader::new(Rc::clone(&handle)),
            writer: TcpWriter::new(Rc::clone(&handle)),
            handle,
        }
    }

    /// Connects to `remote`.
    pub async fn connect(net: &Net<D>, remote: SocketAddr) -> Result<Self, ConnectError> {
        Self::connect_with(net, None, remote, |_| {}).await
    }

    /// As [`TcpStream::connect`], from `local_port`, if one is given, and with settings that hold
    /// from the SYN on. Dropping the future gives the attempt up.
    pub async fn connect_with(
        net: &Net<D>,
        local_port: Option<u16>,
        remote: SocketAddr,
        change: impl FnOnce(&mut Options),
    ) -> Result<Self, ConnectError> {
        let (id, local) = net.with(|stack| {
            let now = stack.now();
            let address = IpAddr::V4(stack.address());
            let local = SocketAddr::new(address, local_port.unwrap_or(0));
            let (tcp, _) = stack.tcp_and_device();
            let mut options = Options::new(tcp.config());
            change(&mut options);
            let id = tcp.connect(now, local, remote, options)?;
            let local = tcp.local_addr(id).unwrap_or(local);
            stack.want_poll();
            Ok::<_, ConnectError>((id, local))
        })?;
        let stream = Self::new(net, id, local, remote);
        poll_fn(|cx| {
            stream
                .handle
                .with(|tcp, id, _| tcp.poll_connected(id, cx.waker()))
        })
        .await?;
        Ok(stream)
    }

    /// The two sides, to be used by two tasks.
    pub fn into_split(self) -> (TcpReader<D>, TcpWriter<D>) {
        let Self { reader, writer, .. } = self;
        (reader, writer)
    }

    /// Our address and port.
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.local
    }

    /// The peer's address and port.
    pub fn peer_addr(&self) -> SocketAddr {
        self.handle.remote
    }

    /// What the connection tells of itself; none once it is closed and forgotten.
    pub fn info(&self) -> Option<Info> {
        self.handle.info()
    }

    /// Closes the sending side: the peer reads the end of the stream behind what was written.
    pub fn shutdown(&mut self) {
        self.writer.shutdown();
    }

    /// Resets the connection: what was written may be lost.
    pub fn abort(self) {
        self.handle.with(|tcp, id, _| tcp.abort(id));
    }

    /// `TCP_NODELAY`: whether small segments go out at once (RFC 9293 §3.7.4).
    pub fn set_nodelay(&self, nodelay: bool) {
        self.handle.set_options(|options| options.nodelay = nodelay);
    }

    /// `SO_SNDBUF`: bytes that may wait to be acknowledged; the buffer does not follow the
    /// congestion window any more.
    pub fn set_sndbuf(&self, bytes: u32) {
        self.handle
            .set_options(|options| options.sndbuf_bytes = Some(bytes.max(1)));
    }

    /// `TCP_NOTSENT_LOWAT`: bytes that may be written and not yet sent; 0: as
    /// `net.ipv4.tcp_notsent_lowat` says.
    pub fn set_notsent_lowat(&self, bytes: u32) {
        let default = self
            .handle
            .with(|tcp, _, _| tcp.config().notsent_lowat_bytes);
        let bytes = if bytes == 0 { default } else { bytes };
        self.handle
            .set_options(|options| options.notsent_lowat_bytes = bytes);
    }

    /// As [`TcpWriter::writable`].
    pub async fn writable(&self) -> Result<(), WriteError> {
        self.writer.writable().await
    }

    /// `SO_RCVBUF`: bytes that may wait to be read; the buffer does not follow the reader any
    /// more. A window once given is not taken back.
    pub fn set_rcvbuf(&self, bytes: u32) {
        self.handle
            .set_options(|options| options.rcvbuf_bytes = Some(bytes.max(1)));
    }

    /// `TCP_MAXSEG`: the largest segment sent; none: what the path allows.
    pub fn set_mss(&self, bytes: Option<u16>) {
        self.handle
            .set_options(|options| options.max_segment_bytes = bytes);
    }

    /// `SO_KEEPALIVE` and its times; none: off.
    pub fn set_keepalive(&self, keepalive: Option<Keepalive>) {
        self.handle
            .set_options(|options| options.keepalive = keepalive);
    }

    /// `TCP_USER_TIMEOUT`: how long sent data may go unacknowledged.
    pub fn set_user_timeout(&self, timeout: Option<Duration>) {
        self.handle
            .set_options(|options| options.user_timeout = timeout);
    }

    /// As [`TcpWriter::write_slice`].
    pub async fn write_slice(&mut self, slice: Slice<D::Page>) -> Result<(), WriteError> {
        self.writer.write_slice(slice).await
    }

    /// As [`TcpWriter::reserve`].
    pub async fn reserve(&mut self) -> Result<D::Page, WriteError> {
        self.writer.reserve().await
    }

    /// As [`TcpWriter::commit`].
    pub async fn commit(&mut self, page: D::Page) -> Result<(), WriteError> {
        self.writer.commit(page).await
    }

    /// As [`TcpWriter::write_vectored`].
    pub async fn write_vectored(&mut self, bufs: &[&[u8]]) -> Result<usize, WriteError> {
        self.writer.write_vectored(bufs).await
    }

    /// As [`TcpReader::read_vectored`].
    pub async fn read_vectored(&mut self, bufs: &mut [&mut [u8]]) -> Result<usize, ReadError> {
        self.reader.read_vectored(bufs).await
    }
}

/// Why a stream operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// Reading failed.
    Read(ReadError),
    /// Writing failed.
    Write(WriteError),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for StreamError {}

impl embedded_io_async::Error for StreamError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => error.kind(),
            Self::Write(error) => error.kind(),
        }
    }
}

impl<D: Device> ErrorType for TcpStream<D> {
    type Error = StreamError;
}

impl<D: Device> Read for TcpStream<D> {
    async fn read(&mut self, buf: &mut [u8]) -> Result<usize, StreamError> {
        self.reader.read(buf).await.map_err(StreamError::Read)
    }
}

impl<D: Device> BufRead for TcpStream<D> {
    async fn fill_buf(&mut self) -> Result<&[u8], StreamError> {
        self.reader.fill_buf().await.map_err(StreamError::Read)
    }

    fn consume(&mut self, len: usize) {
        self.reader.consume(len);
    }
}

impl<D: Device> Write for TcpStream<D> {
    async fn write(&mut self, buf: &[u8]) -> Result<usize, StreamError> {
        self.writer.write(buf).await.map_err(StreamError::Write)
    }

    async fn flush(&mut self) -> Result<(), StreamError> {
        self.writer.flush().await.map_err(StreamError::Write)
    }
}

impl<D: Device> fmt::Debug for TcpStream<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.debug("TcpStream", f)
    }
}
