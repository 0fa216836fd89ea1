//! Watches: a queue of changed paths for a task to await.

use super::client::{Client, Part};
use super::error::{Error, ProtocolError};
use super::request::{Requests, parse_decimal, to_unit};
use super::wire::Kind;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::future::poll_fn;
use core::task::{Poll, Waker};

/// Changed paths that a watch keeps at most. A path that is in the queue is not queued again; on
/// overflow the queue becomes the watched path alone, which stands for all below it.
const MAX_EVENTS: usize = 32;

/// A watch on a path and everything below it, until it is dropped.
pub struct Watch {
    client: Rc<Client>,
    token: u32,
}

impl Watch {
    pub(super) async fn register(
        client: Rc<Client>,
        path: impl fmt::Display,
    ) -> Result<Self, Error> {
        let path = path.to_string();
        let token = client.with_watches(|watches| watches.add(path.clone()));
        // From here on a drop removes the watch, be it this future's or the caller's.
        let watch = Self { client, token };
        Requests::new(watch.client.clone(), 0)
            .request(Kind::Watch, &message(&path, &token), to_unit)
            .await?;
        Ok(watch)
    }

    /// Waits for the next change and returns the path that changed: the watched one or one below
    /// it. The change may be any, a removal too: read it.
    ///
    /// An error is returned once, ahead of changes; after a reconnection the watch works on.
    pub async fn changed(&mut self) -> Result<String, Error> {
        poll_fn(|cx| {
            self.client.with_watches(|watches| {
                let Some(state) = watches.find(self.token) else {
                    return Poll::Ready(Err(Error::Disconnected));
                };
                if let Some(error) = state.error.take() {
                    return Poll::Ready(Err(error));
                }
                if let Some(path) = state.events.pop_front() {
                    return Poll::Ready(Ok(path));
                }
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            })
        })
        .await
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let removed = self
            .client
            .with_watches(|watches| watches.remove(self.token));
        if let Some(state) = removed {
            self.client
                .submit_and_forget(Kind::Unwatch, 0, &message(&state.path, &self.token));
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

/// The payload that sets or removes a watch.
pub(super) fn message<'a>(path: &'a str, token: &'a u32) -> [Part<'a>; 4] {
    [
        Part::Str(path),
        Part::Str("\0"),
        Part::Display(token),
        Part::Str("\0"),
    ]
}

/// All watches of a connection.
#[derive(Default)]
pub(super) struct Watches {
    list: Vec<State>,
    last_token: u32,
}

pub(super) struct State {
    token: u32,
    path: String,
    events: VecDeque<String>,
    error: Option<Error>,
    waker: Option<Waker>,
}

impl Watches {
    /// Token and path of each.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&u32, &str)> {
        self.list
            .iter()
            .map(|state| (&state.token, state.path.as_str()))
    }

    /// Queues the event of an `XS_WATCH_EVENT` and returns whom to wake. One for a watch that is
    /// gone was on its way when it was removed.
    pub(super) fn event(&mut self, payload: &[u8]) -> Result<Option<Waker>, ProtocolError> {
        let (path, token) = parse_event(payload).ok_or(ProtocolError::BadPayload {
            kind: Kind::WatchEvent as u32,
        })?;
        let Some(state) = self.find(token) else {
            return Ok(None);
        };
        if state.events.iter().any(|queued| queued == path) {
            return Ok(None);
        }
        if state.events.len() < MAX_EVENTS {
            state.events.push_back(path.to_string());
        } else {
            state.events.clear();
            state.events.push_back(state.path.clone());
        }
        Ok(state.waker.take())
    }

    /// Makes every wait end with `error`.
    pub(super) fn fail(&mut self, error: &Error, woken: &mut Vec<Waker>) {
        for state in &mut self.list {
            state.error = Some(error.clone());
            woken.extend(state.waker.take());
        }
    }

    fn add(&mut self, path: String) -> u32 {
        self.last_token = self.last_token.wrapping_add(1);
        self.list.push(State {
            token: self.last_token,
            path,
            events: VecDeque::new(),
            error: None,
            waker: None,
        });
        self.last_token
    }

    fn find(&mut self, token: u32) -> Option<&mut State> {
        self.list.iter_mut().find(|state| state.token == token)
    }

    fn remove(&mut self, token: u32) -> Option<State> {
        let index = self.list.iter().position(|state| state.token == token)?;
        Some(self.list.swap_remove(index))
    }
}

/// Path and token of an event: both end with a zero byte.
fn parse_event(payload: &[u8]) -> Option<(&str, u32)> {
    let mut fields = payload.strip_suffix(&[0])?.split(|byte| *byte == 0);
    let (path, token) = (fields.next()?, fields.next()?);
    if fields.next().is_some() {
        return None;
    }
    Some((core::str::from_utf8(path).ok()?, parse_decimal(token)?))
}
