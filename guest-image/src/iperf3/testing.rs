//! A network in memory and in virtual time, for tests of the server.

use super::net::{Info, Network, OptionError, Options, Stream, StreamError};
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::net::SocketAddr;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use paceline_stack::time::{Duration, Instant};

/// What a connection holds in one direction.
const PIPE_BYTES: usize = 64 << 10;

/// Largest buffer that [`Stream::configure`] grants.
pub(crate) const MAX_BUFFER_BYTES: usize = 1 << 20;

/// Segments that each sender says it has sent again.
pub(crate) const RETRANS: u64 = 7;

/// The network, its clock and its listener.
#[derive(Default)]
pub(crate) struct World {
    now: Cell<Instant>,
    timers: RefCell<Vec<(Instant, Waker)>>,
    backlog: RefCell<VecDeque<End>>,
    acceptor: Cell<Option<Waker>>,
    connections: Cell<u16>,
    /// What the server's ends of connections tell.
    pub(crate) told: Rc<Told>,
}

/// What the server's ends of connections tell.
#[derive(Default)]
pub(crate) struct Told {
    /// How many of them still exist.
    pub(crate) open: Cell<usize>,
    /// What the server asked of them.
    pub(crate) asked: RefCell<Vec<OwnedOptions>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedOptions {
    pub(crate) mss_bytes: Option<u16>,
    pub(crate) buffer_bytes: Option<usize>,
    pub(crate) nodelay: bool,
}

impl World {
    /// Connects to the server and returns the client's end.
    pub(crate) fn connect(&self) -> End {
        let up = Rc::new(RefCell::new(Pipe::default()));
        let down = Rc::new(RefCell::new(Pipe::default()));
        self.connections.set(self.connections.get() + 1);
        let port = 40_000 + self.connections.get();
        self.told.open.set(self.told.open.get() + 1);
        self.backlog.borrow_mut().push_back(End {
            port,
            incoming: up.clone(),
            outgoing: down.clone(),
            server: Some(self.told.clone()),
        });
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.wake();
        }
        End {
            port,
            incoming: down,
            outgoing: up,
            server: None,
        }
    }

    /// Lets time pass.
    pub(crate) async fn sleep(&self, span: Duration) {
        self.sleep_until(self.now() + span).await;
    }

    /// Runs `future`, letting time pass whenever nothing else can happen.
    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        struct Flag(AtomicBool);

        impl Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::Relaxed);
            }
        }

        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(flag.clone());
        let mut future = pin!(future);
        loop {
            while flag.0.swap(false, Ordering::Relaxed) {
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
                {
                    return output;
                }
            }
            let next = self.timers.borrow().iter().map(|(at, _)| *at).min();
            self.now.set(next.expect("nothing can happen any more"));
            let due = {
                let mut timers = self.timers.borrow_mut();
                let now = self.now();
                timers
                    .extract_if(.., |(at, _)| *at <= now)
                    .collect::<Vec<_>>()
            };
            for (_, waker) in due {
                waker.wake();
            }
        }
    }
}

impl Network for World {
    type Stream = End;

    async fn accept(&self) -> End {
        poll_fn(|cx| {
            if let Some(end) = self.backlog.borrow_mut().pop_front() {
                return Poll::Ready(end);
            }
            self.acceptor.set(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await
    }

    fn now(&self) -> Instant {
        self.now.get()
    }

    async fn sleep_until(&self, deadline: Instant) {
        poll_fn(|cx| {
            if self.now() >= deadline {
                return Poll::Ready(());
            }
            self.timers
                .borrow_mut()
                .push((deadline, cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    fn busy(&self) -> Option<Duration> {
        // A quarter of the time.
        Some(self.now().since(Instant::ZERO) / 4)
    }
}

/// Bytes on their way in one direction.
#[derive(Default)]
struct Pipe {
    bytes: VecDeque<u8>,
    ended: bool,
    reset: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// One end of a connection.
pub(crate) struct End {
    port: u16,
    incoming: Rc<RefCell<Pipe>>,
    outgoing: Rc<RefCell<Pipe>>,
    server: Option<Rc<Told>>,
}

impl End {
    /// Resets the connection.
    pub(crate) fn reset(self) {
        for pipe in [&self.incoming, &self.outgoing] {
            let mut pipe = pipe.borrow_mut();
            pipe.reset = true;
            pipe.wake();
        }
    }

    /// Sends all of `bytes`.
    pub(crate) async fn put(&mut self, bytes: &[u8]) {
        super::protocol::write_all(self, bytes).await.unwrap();
    }

    /// Receives exactly `N` bytes.
    pub(crate) async fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        super::protocol::read_exact(self, &mut bytes).await.unwrap();
        bytes
    }

    /// Receives up to the end and returns how many bytes that was.
    pub(crate) async fn take_all(&mut self) -> usize {
        let mut total = 0;
        loop {
            match poll_fn(|cx| self.poll_discard(cx, usize::MAX)).await {
                Ok(0) => return total,
                Ok(len) => total += len,
                Err(error) => panic!("{error} after {total} bytes"),
            }
        }
    }
}

impl Pipe {
    fn wake(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
        self.writer.take().into_iter().for_each(Waker::wake);
    }

    fn read(&mut self, cx: &Context<'_>, max: usize) -> Poll<Result<VecDeque<u8>, StreamError>> {
        if self.reset {
            return Poll::Ready(Err(StreamError::Reset));
        }
        if self.bytes.is_empty() && !self.ended {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let len = max.min(self.bytes.len());
        let rest = self.bytes.split_off(len);
        self.writer.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(core::mem::replace(&mut self.bytes, rest)))
    }

    fn write(
        &mut self,
        cx: &Context<'_>,
        bytes: impl Iterator<Item = u8>,
    ) -> Poll<Result<usize, StreamError>> {
        if self.reset || self.ended {
            return Poll::Ready(Err(StreamError::Reset));
        }
        let before = self.bytes.len();
        if before == PIPE_BYTES {
            self.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        self.bytes.extend(bytes.take(PIPE_BYTES - before));
        self.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(self.bytes.len() - before))
    }
}

impl Stream for End {
    fn local_addr(&self) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 2], super::PORT))
    }

    fn peer_addr(&self) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], self.port))
    }

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<Result<usize, StreamError>> {
        let max = buf.len();
        self.incoming.borrow_mut().read(cx, max).map_ok(|bytes| {
            for (to, from) in buf.iter_mut().zip(&bytes) {
                *to = *from;
            }
            bytes.len()
        })
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, StreamError>> {
        self.outgoing.borrow_mut().write(cx, data.iter().copied())
    }

    fn poll_discard(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<usize, StreamError>> {
        let read = self.incoming.borrow_mut().read(cx, max);
        read.map_ok(|bytes| bytes.len())
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, max: usize) -> Poll<Result<usize, StreamError>> {
        let bytes = core::iter::repeat_n(0x55, max);
        self.outgoing.borrow_mut().write(cx, bytes)
    }

    fn shutdown(&mut self) {
        let mut pipe = self.outgoing.borrow_mut();
        pipe.ended = true;
        pipe.wake();
    }

    fn configure(&mut self, options: &Options<'_>) -> Result<(), OptionError> {
        if let Some(told) = &self.server {
            told.asked.borrow_mut().push(OwnedOptions {
                mss_bytes: options.mss_bytes,
                buffer_bytes: options.buffer_bytes,
                nodelay: options.nodelay,
            });
        }
        if options
            .buffer_bytes
            .is_some_and(|bytes| bytes > MAX_BUFFER_BYTES)
        {
            let max_bytes = MAX_BUFFER_BYTES;
            return Err(OptionError::Buffer { max_bytes });
        }
        match options.congestion {
            None | Some("cubic") => Ok(()),
            Some(_) => Err(OptionError::Congestion),
        }
    }

    fn info(&self) -> Info {
        Info {
            total_retrans: RETRANS,
            cwnd_bytes: 14_480,
            congestion: "cubic",
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.shutdown();
        // Nobody reads any more.
        let mut incoming = self.incoming.borrow_mut();
        incoming.ended = true;
        incoming.bytes.clear();
        incoming.wake();
        if let Some(told) = &self.server {
            told.open.set(told.open.get() - 1);
        }
    }
}
