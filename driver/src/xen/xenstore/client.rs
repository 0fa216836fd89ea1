//! The connection: requests under way, watches, and the bytes between.

use super::error::{Error, ProtocolError};
use super::ring::Ring;
use super::watch::{Watches, message};
use super::wire::{Assembler, Header, Kind, MAX_PAYLOAD_BYTES, Message};
use crate::xen::errno::Errno;
use crate::xen::hypercall::Hypervisor;
use crate::xen::types::EventPort;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::fmt::{self, Write};
use core::mem;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};
use zerocopy::IntoBytes;

/// Most requests that wait for a reply. It bounds the bytes waiting for room in the ring, too.
const MAX_REQUESTS: usize = 64;

/// Times that one poll empties the ring at most, however fast xenstored fills it.
const MAX_PASSES: usize = 16;

/// What [`super::Xenstore::poll`] left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled {
    /// Whether replies may still be in the ring: poll again, without waiting for an event.
    pub more: bool,
}

pub(super) struct Client {
    xen: Rc<dyn Hypervisor>,
    port: Cell<EventPort>,
    state: RefCell<State>,
}

struct State {
    ring: Ring,
    link: Link,
    /// Bytes of requests that the ring had no room for yet.
    out: VecDeque<u8>,
    assembler: Assembler,
    requests: Vec<Request>,
    last_req_id: u32,
    watches: Watches,
    /// Tasks to wake once the state is not borrowed any more.
    woken: Vec<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Up,
    /// Asked for a fresh connection; requests wait in `out`.
    Reconnecting,
    Broken(ProtocolError),
}

/// A request under way.
struct Request {
    id: u32,
    kind: Kind,
    /// Whether xenstored has not replied yet. A request stays until it has and until its future
    /// is done with it.
    reply_due: bool,
    waiter: Waiter,
}

enum Waiter {
    /// Its future lives and waits.
    Waiting(Option<Waker>),
    /// Its future lives and has not fetched the result yet. The wait may have ended before the
    /// reply came.
    Done(Result<Vec<u8>, Error>),
    /// Nobody wants the reply.
    Gone,
}

/// Identifies a request to its future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestId(u32);

impl Client {
    /// # Safety
    ///
    /// As for [`super::Xenstore::new`].
    pub(super) unsafe fn new(xen: Rc<dyn Hypervisor>, page: NonNull<u8>, port: EventPort) -> Self {
        // SAFETY: as this function's caller vouches.
        let ring = unsafe { Ring::new(page) };
        let link = if ring.is_connected() {
            Link::Up
        } else {
            Link::Reconnecting
        };
        Self {
            xen,
            port: Cell::new(port),
            state: RefCell::new(State {
                ring,
                link,
                out: VecDeque::new(),
                assembler: Assembler::default(),
                requests: Vec::new(),
                last_req_id: 0,
                watches: Watches::default(),
                woken: Vec::new(),
            }),
        }
    }

    pub(super) fn port(&self) -> EventPort {
        self.port.get()
    }

    pub(super) fn broken(&self) -> Option<ProtocolError> {
        match self.state.borrow().link {
            Link::Broken(error) => Some(error),
            Link::Up | Link::Reconnecting => None,
        }
    }

    pub(super) fn poll(&self) -> Polled {
        let more = self.with_state(State::exchange);
        Polled { more }
    }

    pub(super) fn fail_all(&self, error: &Error) {
        self.with_state(|state| {
            state.fail_all(error);
            ((), false)
        });
    }

    pub(super) fn reconnect(&self) -> Result<(), Error> {
        self.with_state(|state| {
            if !state.ring.request_reconnect() {
                return (Err(Error::ReconnectUnsupported), false);
            }
            state.disconnect();
            (Ok(()), true)
        })
    }

    /// # Safety
    ///
    /// As for [`super::Xenstore::new`].
    pub(super) unsafe fn reset(&self, page: NonNull<u8>, port: EventPort) {
        // SAFETY: as this function's caller vouches.
        let ring = unsafe { Ring::new(page) };
        self.port.set(port);
        self.with_state(|state| {
            state.ring = ring;
            state.disconnect();
            let (_, moved) = state.exchange();
            ((), moved)
        });
    }

    /// Sends a request whose payload is the `parts`, and expects a reply for its future.
    pub(super) fn submit(
        &self,
        kind: Kind,
        tx_id: u32,
        parts: &[Part<'_>],
    ) -> Result<RequestId, Error> {
        self.with_state(|state| {
            if state.requests.len() >= MAX_REQUESTS {
                return (Err(Error::TooManyRequests), false);
            }
            match state.enqueue(kind, tx_id, parts, Waiter::Waiting(None)) {
                Ok(id) => (Ok(id), state.flush()),
                Err(error) => (Err(error), false),
            }
        })
    }

    /// Sends a request whose reply nobody waits for. A connection that is down forgets the state
    /// that such requests undo, so that errors do not matter.
    pub(super) fn submit_and_forget(&self, kind: Kind, tx_id: u32, parts: &[Part<'_>]) {
        self.with_state(|state| {
            let queued = state.enqueue(kind, tx_id, parts, Waiter::Gone).is_ok();
            ((), queued && state.flush())
        });
    }

    /// The reply to a request, for its future.
    pub(super) fn poll_reply(
        &self,
        RequestId(id): RequestId,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Vec<u8>, Error>> {
        let mut state = self.state.borrow_mut();
        let Some(index) = state.requests.iter().position(|r| r.id == id) else {
            // Every path that drops a request whose future waits leaves a result for it.
            return Poll::Ready(Err(Error::Disconnected));
        };
        match &mut state.requests[index].waiter {
            Waiter::Waiting(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Waiter::Done(_) | Waiter::Gone => Poll::Ready(match state.leave(index) {
                Waiter::Done(result) => result,
                Waiter::Waiting(_) | Waiter::Gone => Err(Error::Disconnected),
            }),
        }
    }

    /// Forgets a request because its future is dropped.
    pub(super) fn abandon(&self, RequestId(id): RequestId) {
        self.with_state(|state| {
            let Some(index) = state.requests.iter().position(|r| r.id == id) else {
                return ((), false);
            };
            let kind = state.requests[index].kind;
            if let Waiter::Done(Ok(reply)) = state.leave(index) {
                state.undo(kind, &reply);
            }
            ((), state.flush())
        });
    }

    /// Gives access to the watches.
    pub(super) fn with_watches<T>(&self, f: impl FnOnce(&mut Watches) -> T) -> T {
        f(&mut self.state.borrow_mut().watches)
    }

    /// Runs `f`, then notifies xenstored if `f` says so, and wakes tasks: both only once the state
    /// is not borrowed, because they may call back.
    fn with_state<T>(&self, f: impl FnOnce(&mut State) -> (T, bool)) -> T {
        let mut state = self.state.borrow_mut();
        let (value, notify) = f(&mut state);
        let mut woken = mem::take(&mut state.woken);
        drop(state);
        if notify && let Err(errno) = self.xen.evtchn_send(self.port.get()) {
            log::error!("xenstore: cannot notify: {errno}");
        }
        for waker in woken.drain(..) {
            waker.wake();
        }
        value
    }
}

impl State {
    /// Moves bytes both ways. Returns whether more may be in the ring and whether anything moved.
    fn exchange(&mut self) -> (bool, bool) {
        if self.link == Link::Reconnecting && self.ring.is_connected() {
            self.ring.resume();
            self.link = Link::Up;
            self.rewatch();
        }
        let mut moved = self.flush();
        let mut more = false;
        for _ in 0..MAX_PASSES {
            if self.link != Link::Up {
                return (false, moved);
            }
            match self.receive() {
                Ok(0) => {
                    more = false;
                    break;
                }
                Ok(_) => {
                    moved = true;
                    more = true;
                }
                Err(error) => self.fail(error),
            }
        }
        // Replies made room in the table of requests, not in the ring; but what they led to, the
        // abort of an abandoned transaction say, may wait.
        moved |= self.flush();
        (more, moved)
    }

    fn receive(&mut self) -> Result<usize, ProtocolError> {
        self.ring.check()?;
        let count = self.ring.receive(|bytes| self.assembler.push(bytes))?;
        while let Some(message) = self.assembler.next_message()? {
            self.accept(message)?;
        }
        Ok(count)
    }

    fn accept(&mut self, message: Message) -> Result<(), ProtocolError> {
        let Message { header, payload } = message;
        if header.kind == Kind::WatchEvent as u32 {
            if let Some(waker) = self.watches.event(&payload)? {
                self.woken.push(waker);
            }
            return Ok(());
        }
        let req_id = header.req_id;
        let index = self
            .requests
            .iter()
            .position(|r| r.id == req_id && r.reply_due)
            .ok_or(ProtocolError::UnknownRequest { req_id })?;
        let kind = self.requests[index].kind;
        let result = if header.kind == Kind::Error as u32 {
            Err(Error::Refused(parse_error(&payload)?))
        } else if header.kind == kind as u32 {
            Ok(payload)
        } else {
            return Err(ProtocolError::BadReplyType {
                expected: kind as u32,
                found: header.kind,
            });
        };
        let request = &mut self.requests[index];
        request.reply_due = false;
        match &mut request.waiter {
            Waiter::Waiting(waker) => {
                self.woken.extend(waker.take());
                request.waiter = Waiter::Done(result);
                return Ok(());
            }
            // The wait ended before; its result stays for the future to fetch.
            Waiter::Done(_) => {}
            Waiter::Gone => {
                self.requests.swap_remove(index);
            }
        }
        if let Ok(reply) = result {
            self.undo(kind, &reply);
        }
        Ok(())
    }

    /// Takes the future's part in a request away.
    fn leave(&mut self, index: usize) -> Waiter {
        let request = &mut self.requests[index];
        if request.reply_due {
            mem::replace(&mut request.waiter, Waiter::Gone)
        } else {
            self.requests.swap_remove(index).waiter
        }
    }

    /// Undoes the effect of a request that nobody waits for any more.
    fn undo(&mut self, kind: Kind, reply: &[u8]) {
        if kind == Kind::TransactionStart
            && let Some(tx_id) = parse_transaction_id(reply)
        {
            // It cannot fail but for a broken link, which ends transactions anyway.
            let _ = self.enqueue(
                Kind::TransactionEnd,
                tx_id,
                &[Part::Str("F\0")],
                Waiter::Gone,
            );
        }
    }

    fn enqueue(
        &mut self,
        kind: Kind,
        tx_id: u32,
        parts: &[Part<'_>],
        waiter: Waiter,
    ) -> Result<RequestId, Error> {
        if let Link::Broken(error) = self.link {
            return Err(error.into());
        }
        let start = self.out.len();
        self.last_req_id = self.last_req_id.wrapping_add(1).max(1);
        let id = self.last_req_id;
        let mut header = Header {
            kind: kind as u32,
            req_id: id,
            tx_id,
            payload_bytes: 0,
        };
        self.out.extend(header.as_bytes());
        let payload = self.out.len();
        for part in parts {
            match part {
                Part::Str(s) => self.out.extend(s.as_bytes()),
                Part::Display(value) => {
                    // Fails only when a value's own `Display` does: it is sent as far as it got.
                    let _ = write!(Sink(&mut self.out), "{value}");
                }
            }
        }
        let bytes = self.out.len() - payload;
        if bytes > MAX_PAYLOAD_BYTES {
            self.out.truncate(start);
            return Err(Error::TooLong { bytes });
        }
        header.payload_bytes = bytes as u32;
        for (to, from) in self.out.range_mut(start..payload).zip(header.as_bytes()) {
            *to = *from;
        }
        self.requests.push(Request {
            id,
            kind,
            reply_due: true,
            waiter,
        });
        Ok(RequestId(id))
    }

    /// Moves waiting bytes to the ring. Returns whether any moved.
    fn flush(&mut self) -> bool {
        if self.link != Link::Up {
            return false;
        }
        match self.ring.send(&mut self.out) {
            Ok(count) => count > 0,
            Err(error) => {
                self.fail(error);
                false
            }
        }
    }

    fn fail(&mut self, error: ProtocolError) {
        log::error!("xenstore: {error}");
        self.link = Link::Broken(error);
        self.drop_traffic(&error.into());
    }

    /// Ends every wait for a reply or a watch.
    fn fail_all(&mut self, error: &Error) {
        for request in &mut self.requests {
            if let Waiter::Waiting(waker) = &mut request.waiter {
                self.woken.extend(waker.take());
                request.waiter = Waiter::Done(Err(error.clone()));
            }
        }
        self.watches.fail(error, &mut self.woken);
    }

    /// Forgets the old connection and waits for a new one.
    fn disconnect(&mut self) {
        self.link = Link::Reconnecting;
        self.drop_traffic(&Error::Disconnected);
    }

    /// Ends all waits, and expects no reply any more.
    fn drop_traffic(&mut self, error: &Error) {
        self.out.clear();
        self.assembler.clear();
        self.fail_all(error);
        self.requests.retain_mut(|request| {
            request.reply_due = false;
            !matches!(request.waiter, Waiter::Gone)
        });
    }

    /// Sets all watches on a new connection.
    fn rewatch(&mut self) {
        let watches = mem::take(&mut self.watches);
        for (token, path) in watches.iter() {
            // It fitted a message before.
            let _ = self.enqueue(Kind::Watch, 0, &message(path, token), Waiter::Gone);
        }
        self.watches = watches;
    }
}

/// A piece of a request's payload.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    Str(&'a str),
    Display(&'a dyn fmt::Display),
}

/// Formats into the queue of bytes.
struct Sink<'a>(&'a mut VecDeque<u8>);

impl Write for Sink<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.0.extend(s.as_bytes());
        Ok(())
    }
}

/// The error that an `XS_ERROR` names. oxenstored has a name of its own for a used up quota; a name
/// that is known to nobody is still a refusal, not a breach.
fn parse_error(payload: &[u8]) -> Result<Errno, ProtocolError> {
    let malformed = ProtocolError::BadPayload {
        kind: Kind::Error as u32,
    };
    let name = payload.strip_suffix(&[0]).ok_or(malformed)?;
    let name = core::str::from_utf8(name).map_err(|_| malformed)?;
    if name == "EQUOTA" {
        return Ok(Errno::ENOSPC);
    }
    Ok(Errno::from_name(name).unwrap_or_else(|| {
        log::warn!("xenstore: unknown error {name:?}");
        Errno::EIO
    }))
}

/// The identifier that `XS_TRANSACTION_START` returned. Zero would mean "no transaction".
pub(super) fn parse_transaction_id(payload: &[u8]) -> Option<u32> {
    let digits = payload.strip_suffix(&[0])?;
    super::request::parse_decimal(digits).filter(|id| *id != 0)
}
