//! The two sides of a stream, to be used by two tasks.

use super::stream::Handle;
use crate::{
    device::{Device, Page, Slice},
    tcp::{Chunk, Info, ReadError, WriteError},
};
use alloc::rc::Rc;
use core::{fmt, future::poll_fn, net::SocketAddr, task::Poll};
use embedded_io_async::{BufRead, ErrorType, Read, Write};

/// The receiving side.
///
/// Dropped alone, it leaves the sending side as it is.
pub struct TcpReader<D: Device> {
    handle: Rc<Handle<D>>,
    /// What [`BufRead::fill_buf`] shows.
    current: Option<Chunk<D::Page>>,
}

impl<D: Device> TcpReader<D> {
    pub(super) fn new(handle: Rc<Handle<D>>) -> Self {
        Self {
            handle,
            current: None,
        }
    }

    /// Reads into several buffers, one after the other; 0 at the end of the stream.
    pub async fn read_vectored(&mut self, bufs: &mut [&mut [u8]]) -> Result<usize, ReadError> {
        let mut done = 0;
        for buf in bufs.iter_mut().filter(|buf| !buf.is_empty()) {
            // Only the first one waits.
            let len = if done == 0 {
                self.read(buf).await?
            } else {
                match poll_fn(|cx| Poll::Ready(self.poll_read(cx.waker(), buf))).await {
                    Poll::Ready(Ok(len)) => len,
                    // What failed or ended will do so at the next call.
                    Poll::Ready(Err(_)) | Poll::Pending => return Ok(done),
                }
            };
            done += len;
            if len < buf.len() {
                break;
            }
        }
        Ok(done)
    }

    fn poll_read(
        &mut self,
        waker: &core::task::Waker,
        buf: &mut [u8],
    ) -> Poll<Result<usize, ReadError>> {
        if let Some(chunk) = &mut self.current
            && !buf.is_empty()
        {
            let len = chunk.bytes().len().min(buf.len());
            buf[..len].copy_from_slice(&chunk.bytes()[..len]);
            self.consume(len);
            return Poll::Ready(Ok(len));
        }
        self.handle.with(|tcp, id, _| tcp.poll_read(id, waker, buf))
    }

    /// The peer's address and port.
    pub fn peer_addr(&self) -> SocketAddr {
        self.handle.remote
    }
}

impl<D: Device> ErrorType for TcpReader<D> {
    type Error = ReadError;
}

impl<D: Device> Read for TcpReader<D> {
    async fn read(&mut self, buf: &mut [u8]) -> Result<usize, ReadError> {
        poll_fn(|cx| self.poll_read(cx.waker(), buf)).await
    }
}

impl<D: Device> BufRead for TcpReader<D> {
    /// Shows the next bytes, in the page they came in; none at the end of the stream.
    async fn fill_buf(&mut self) -> Result<&[u8], ReadError> {
        if self.current.is_none() {
            self.current = poll_fn(|cx| {
                self.handle
                    .with(|tcp, id, _| tcp.poll_chunk(id, cx.waker()))
            })
            .await?;
        }
        Ok(self.current.as_ref().map_or(&[], Chunk::bytes))
    }

    fn consume(&mut self, len: usize) {
        if let Some(chunk) = &mut self.current {
            chunk.advance(len);
            if chunk.bytes().is_empty() {
                self.current = None;
            }
        }
    }
}

impl<D: Device> Drop for TcpReader<D> {
    fn drop(&mut self) {
        if self.current.is_some() {
            self.handle.unread.set(true);
        }
    }
}

impl<D: Device> fmt::Debug for TcpReader<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.debug("TcpReader", f)
    }
}

/// The sending side.
///
/// Dropped alone, it closes its side, as [`TcpWriter::shutdown`] does.
pub struct TcpWriter<D: Device> {
    handle: Rc<Handle<D>>,
}

impl<D: Device> TcpWriter<D> {
    pub(super) fn new(handle: Rc<Handle<D>>) -> Self {
        Self { handle }
    }

    /// Queues a slice by reference, all of it. The same page may be queued many times.
    pub async fn write_slice(&mut self, slice: Slice<D::Page>) -> Result<(), WriteError> {
        let mut slice = Some(slice);
        poll_fn(|cx| {
            self.handle
                .with(|tcp, id, _| tcp.poll_write_slice(id, cx.waker(), &mut slice))
        })
        .await
    }

    /// Waits until it is worth while to write, as `POLLOUT` tells it: a third of the send buffer is
    /// free, and less than half of `TCP_NOTSENT_LOWAT` waits to be sent. A write may well find
    /// room before.
    pub async fn writable(&self) -> Result<(), WriteError> {
        poll_fn(|cx| {
            self.handle
                .with(|tcp, id, _| tcp.poll_writable(id, cx.waker()))
        })
        .await
    }

    /// Waits for room and returns a page to write into, for [`TcpWriter::commit`].
    pub async fn reserve(&mut self) -> Result<D::Page, WriteError> {
        poll_fn(|cx| {
            self.handle.with(|tcp, id, device| {
                tcp.poll_reserve(id, cx.waker(), &mut || device.alloc_page())
            })
        })
        .await
    }

    /// Queues what has been written into `page`, by reference.
    pub async fn commit(&mut self, page: D::Page) -> Result<(), WriteError> {
        if page.bytes().is_empty() {
            return Ok(());
        }
        self.write_slice(Slice::whole(page)).await
    }

    /// Writes several buffers, one after the other; returns how many bytes of them were taken.
    pub async fn write_vectored(&mut self, bufs: &[&[u8]]) -> Result<usize, WriteError> {
        let mut done = 0;
        for buf in bufs.iter().filter(|buf| !buf.is_empty()) {
            // Only the first one waits.
            let len = if done == 0 {
                self.write(buf).await?
            } else {
                match poll_fn(|cx| Poll::Ready(self.poll_write(cx.waker(), buf))).await {
                    Poll::Ready(Ok(len)) => len,
                    Poll::Ready(Err(_)) | Poll::Pending => return Ok(done),
                }
            };
            done += len;
            if len < buf.len() {
                break;
            }
        }
        Ok(done)
    }

    fn poll_write(
        &mut self,
        waker: &core::task::Waker,
        buf: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        self.handle
            .with(|tcp, id, device| tcp.poll_write(id, waker, buf, &mut || device.alloc_page()))
    }

    /// Closes the sending side: the peer reads the end of the stream behind what was written.
    pub fn shutdown(&mut self) {
        self.handle.with(|tcp, id, _| tcp.shutdown(id));
    }

    /// What the connection tells of itself.
    pub fn info(&self) -> Option<Info> {
        self.handle.info()
    }
}

impl<D: Device> ErrorType for TcpWriter<D> {
    type Error = WriteError;
}

impl<D: Device> Write for TcpWriter<D> {
    async fn write(&mut self, buf: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_write(cx.waker(), buf)).await
    }

    /// Waits until the peer has acknowledged everything written.
    async fn flush(&mut self) -> Result<(), WriteError> {
        poll_fn(|cx| {
            self.handle
                .with(|tcp, id, _| tcp.poll_flush(id, cx.waker()))
        })
        .await
    }
}

impl<D: Device> Drop for TcpWriter<D> {
    fn drop(&mut self) {
        // The last of the two sides lets go of the whole connection; see `Handle`.
        if Rc::strong_count(&self.handle) > 1 {
            self.shutdown();
        }
    }
}

impl<D: Device> fmt::Debug for TcpWriter<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.debug("TcpWriter", f)
    }
}
