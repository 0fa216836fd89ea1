//! Where new connections are sorted: the control connection of a test to come, data connections of
//! the test being set up, and those to turn away.

use super::net::{Network, Stream, farewell, with_timeout};
use super::protocol::{COOKIE_BYTES, Cookie, State, read_exact, write_all};
use alloc::vec::Vec;
use core::cell::RefCell;
use core::convert::Infallible;
use core::future::{pending, poll_fn};
use core::mem;
use core::pin::pin;
use core::task::{Poll, Waker};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use paceline_stack::time::Duration;

/// Most connections waiting to show their cookie or to be turned away: the streams of the largest
/// test and a few strangers.
const MAX_GREETINGS: usize = 2 * super::params::MAX_STREAMS as usize + 16;

/// What is wanted of the next connection.
enum Door<S> {
    /// To be a test's control connection.
    Idle,
    /// Nothing: such a connection has come, its test will start.
    Arrived { cookie: Cookie, control: S },
    /// Nothing: a test runs.
    Busy,
    /// To be a data connection of the test named by `cookie`.
    Collecting {
        cookie: Cookie,
        wanted: usize,
        streams: Vec<(u64, S)>,
    },
}

/// Keeps the door of one port.
pub(crate) struct Reception<S> {
    inner: RefCell<Inner<S>>,
}

struct Inner<S> {
    door: Door<S>,
    /// The session, waiting for the door to change.
    session: Option<Waker>,
    /// Control connections of ended tests.
    leaving: Vec<S>,
    /// The receiver, waiting for someone to leave.
    receiver: Option<Waker>,
}

impl<S> Reception<S> {
    pub(crate) fn new() -> Self {
        Self {
            inner: RefCell::new(Inner {
                door: Door::Idle,
                session: None,
                leaving: Vec::new(),
                receiver: None,
            }),
        }
    }

    /// Lets the next client in and waits for it.
    pub(crate) async fn next_client(&self) -> (Cookie, S) {
        self.inner.borrow_mut().door = Door::Idle;
        poll_fn(|cx| {
            let mut inner = self.inner.borrow_mut();
            match mem::replace(&mut inner.door, Door::Busy) {
                Door::Arrived { cookie, control } => Poll::Ready((cookie, control)),
                door => {
                    inner.door = door;
                    inner.session = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Lets in data connections with this cookie, `wanted` of them.
    pub(crate) fn collect(&self, cookie: Cookie, wanted: usize) -> Collection<'_, S> {
        self.inner.borrow_mut().door = Door::Collecting {
            cookie,
            wanted,
            streams: Vec::with_capacity(wanted),
        };
        Collection(self)
    }

    /// Closes a control connection without keeping the next client waiting.
    pub(crate) fn see_off(&self, control: S) {
        let mut inner = self.inner.borrow_mut();
        inner.leaving.push(control);
        if let Some(receiver) = inner.receiver.take() {
            receiver.wake();
        }
    }

    /// The next connection to close.
    async fn next_leaving(&self) -> S {
        poll_fn(|cx| {
            let mut inner = self.inner.borrow_mut();
            if let Some(stream) = inner.leaving.pop() {
                return Poll::Ready(stream);
            }
            inner.receiver = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Whether a connection is to be turned away unread: reading it could hold up a test.
    fn turns_away(&self) -> bool {
        matches!(self.inner.borrow().door, Door::Arrived { .. } | Door::Busy)
    }

    /// Takes a connection that has shown its cookie, or gives it back.
    fn present(&self, turn: u64, shown: Cookie, stream: S) -> Result<(), S> {
        let mut inner = self.inner.borrow_mut();
        match &mut inner.door {
            Door::Idle => {
                inner.door = Door::Arrived {
                    cookie: shown,
                    control: stream,
                };
            }
            Door::Collecting {
                cookie,
                wanted,
                streams,
            } if *cookie == shown && streams.len() < *wanted => streams.push((turn, stream)),
            Door::Arrived { .. } | Door::Busy | Door::Collecting { .. } => return Err(stream),
        }
        if let Some(session) = inner.session.take() {
            session.wake();
        }
        Ok(())
    }
}

/// Data connections on their way; dropping it turns later ones away.
pub(crate) struct Collection<'a, S>(&'a Reception<S>);

impl<S> Collection<'_, S> {
    /// Waits for all of them and returns them in the order in which they were accepted.
    pub(crate) async fn all(self) -> Vec<S> {
        let mut streams = poll_fn(|cx| {
            let mut inner = self.0.inner.borrow_mut();
            match &mut inner.door {
                Door::Collecting {
                    wanted, streams, ..
                } if streams.len() >= *wanted => Poll::Ready(mem::take(streams)),
                _ => {
                    inner.session = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
        streams.sort_unstable_by_key(|(turn, _)| *turn);
        streams.into_iter().map(|(_, stream)| stream).collect()
    }
}

impl<S> Drop for Collection<'_, S> {
    fn drop(&mut self) {
        let door = mem::replace(&mut self.0.inner.borrow_mut().door, Door::Busy);
        // Its streams are closed outside of the borrow.
        drop(door);
    }
}

/// Accepts connections for ever and sorts them.
pub(crate) async fn receive<N: Network>(
    net: &N,
    reception: &Reception<N::Stream>,
    patience: Duration,
) -> Infallible {
    let mut greetings = FuturesUnordered::new();
    let mut farewells = FuturesUnordered::new();
    let mut turn = 0;
    loop {
        // When full, the next waits in the backlog: each greeting ends within its patience.
        let is_full = greetings.len() >= MAX_GREETINGS;
        let accepting = async {
            if is_full {
                pending().await
            } else {
                net.accept().await
            }
        };
        let ending = poll_fn(|cx| {
            let greeted = greetings.poll_next_unpin(cx);
            let left = farewells.poll_next_unpin(cx);
            match (greeted, left) {
                (Poll::Ready(Some(())), _) | (_, Poll::Ready(Some(()))) => Poll::Ready(()),
                _ => Poll::Pending,
            }
        });
        let (accepting, leaving) = (pin!(accepting), pin!(reception.next_leaving()));
        match select(select(accepting, leaving), ending).await {
            Either::Left((Either::Left((stream, _)), _)) => {
                greetings.push(greet(net, reception, turn, stream, patience));
                turn += 1;
            }
            Either::Left((Either::Right((stream, _)), _)) => farewells.push(farewell(net, stream)),
            Either::Right(((), _)) => {}
        }
    }
}

/// Reads one connection's cookie and hands it over, or turns it away.
async fn greet<N: Network>(
    net: &N,
    reception: &Reception<N::Stream>,
    turn: u64,
    mut stream: N::Stream,
    patience: Duration,
) {
    if !reception.turns_away() {
        let mut cookie = [0; COOKIE_BYTES];
        let peer = stream.peer_addr();
        let reading = with_timeout(net, patience, read_exact(&mut stream, &mut cookie));
        match reading.await {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                log::info!("iperf3: {peer} sent no cookie: {error}");
                return;
            }
            None => {
                log::info!("iperf3: {peer} sent no cookie in {} s", patience.as_secs());
                return;
            }
        }
        if let Some(cookie) = Cookie::parse(cookie) {
            match reception.present(turn, cookie, stream) {
                Ok(()) => return,
                Err(refused) => stream = refused,
            }
        }
    }
    let denied = [State::AccessDenied.to_wire()];
    let told = with_timeout(net, patience, write_all(&mut stream, &denied)).await;
    if let Some(Ok(())) = told {
        farewell(net, stream).await;
    }
}
