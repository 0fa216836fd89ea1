//! Requests and responses.

use super::{BACKLOG, Histogram, Stream, address, filled_page, pause, read_exactly, write};
use crate::{
    sim::{Clock, Host, Network, SimPage},
    socket::{TcpListener, TcpStream},
    tcp::Options,
    time::Duration,
};
use alloc::rc::Rc;
use core::cell::RefCell;

/// Who says how much, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialogue {
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Bytes of the response to it.
    pub response_bytes: u64,
    /// Time from a response until the next request.
    pub think: Duration,
    /// How many are exchanged on each connection; none: without end.
    pub count: Option<u64>,
    /// Connections at a time.
    pub parallel: usize,
}

impl Default for Dialogue {
    /// One connection that asks without end and without thought, 100 bytes each way.
    fn default() -> Self {
        Self {
            request_bytes: 100,
            response_bytes: 100,
            think: Duration::ZERO,
            count: None,
            parallel: 1,
        }
    }
}

/// What was exchanged. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Exchanges(Rc<RefCell<Histogram>>);

impl Exchanges {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.0.borrow().count()
    }

    /// How long they took, in microseconds from the first byte written to the last byte read.
    pub fn latencies(&self) -> Histogram {
        self.0.borrow().clone()
    }

    /// Forgets those so far.
    pub fn reset(&self) {
        *self.0.borrow_mut() = Histogram::default();
    }
}

impl Dialogue {
    /// A server for it.
    pub fn serve(
        self,
        network: &mut Network,
        (host, port): (&Host, u16),
        change: impl FnOnce(&mut Options),
    ) {
        let listener = TcpListener::bind_with(&host.net, address((host, port)), BACKLOG, change)
            .expect("a free port");
        let (spawner, net) = (network.spawner(), host.net.clone());
        network.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some(page) = filled_page(&net) else {
                    return;
                };
                spawner.spawn(async move {
                    while read_exactly(&mut stream, self.request_bytes).await {
                        if write(&mut stream, &page, self.response_bytes)
                            .await
                            .is_err()
                        {
                            return;
                        }
                    }
                });
            }
        });
    }

    /// Its clients.
    pub fn ask(
        self,
        network: &mut Network,
        host: &Host,
        server: (&Host, u16),
        change: impl Fn(&mut Options) + Clone + 'static,
    ) -> Exchanges {
        let exchanges = Exchanges::default();
        for _ in 0..self.parallel {
            let (net, server, clock) = (host.net.clone(), address(server), network.clock());
            let (change, Exchanges(latencies)) = (change.clone(), exchanges.clone());
            network.spawn(async move {
                let stream = TcpStream::connect_with(&net, None, server, change).await;
                if let (Ok(mut stream), Some(page)) = (stream, filled_page(&net)) {
                    self.talk(&mut stream, &page, &clock, &latencies).await;
                }
            });
        }
        exchanges
    }

    async fn talk(
        self,
        stream: &mut Stream,
        page: &SimPage,
        clock: &Clock,
        latencies: &RefCell<Histogram>,
    ) {
        let mut left = self.count.unwrap_or(u64::MAX);
        while left > 0 {
            let start = clock.now();
            if write(stream, page, self.request_bytes).await.is_err()
                || !read_exactly(stream, self.response_bytes).await
            {
                return;
            }
            let took = clock.now().since(start);
            latencies.borrow_mut().add(took.as_micros() as u64);
            pause(clock, self.think).await;
            left -= 1;
        }
    }
}
