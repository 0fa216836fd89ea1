//! The requests, each a future.

use super::client::{Client, Part, RequestId};
use super::error::{Error, ProtocolError};
use super::wire::Kind;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// Requests, inside a transaction or outside of any.
///
/// A request is sent when its method is called; the future only waits for the reply. Paths and
/// values are anything that can be formatted, written straight into the message:
/// `store.write(format_args!("{dir}/state"), 4)`.
pub struct Requests {
    client: Rc<Client>,
    tx_id: u32,
}

impl Requests {
    pub(super) fn new(client: Rc<Client>, tx_id: u32) -> Self {
        Self { client, tx_id }
    }

    /// The value at `path`.
    pub fn read(&self, path: impl fmt::Display) -> Reply<Vec<u8>> {
        self.on_path(Kind::Read, &path, |value| Ok(value.to_vec()))
    }

    /// The value at `path` as text without zero bytes, so that it may become part of a path.
    pub fn read_string(&self, path: impl fmt::Display) -> Reply<String> {
        self.on_path(Kind::Read, &path, to_string)
    }

    /// The value at `path` as a decimal number: digits and nothing else.
    pub fn read_u32(&self, path: impl fmt::Display) -> Reply<u32> {
        self.on_path(Kind::Read, &path, to_u32)
    }

    /// The names of the entries below `path`.
    pub fn directory(&self, path: impl fmt::Display) -> Reply<Vec<String>> {
        self.on_path(Kind::Directory, &path, to_names)
    }

    /// Writes `value` to `path`, creating it and what it lies in as needed.
    pub fn write(&self, path: impl fmt::Display, value: impl fmt::Display) -> Reply<()> {
        let parts = [Part::Display(&path), Part::Str("\0"), Part::Display(&value)];
        self.request(Kind::Write, &parts, to_unit)
    }

    /// Creates an entry without a value, if there is none.
    pub fn mkdir(&self, path: impl fmt::Display) -> Reply<()> {
        self.on_path(Kind::Mkdir, &path, to_unit)
    }

    /// Removes `path` and all below it. That it does not exist is no error, but that its parent
    /// does not is.
    pub fn rm(&self, path: impl fmt::Display) -> Reply<()> {
        self.on_path(Kind::Rm, &path, to_unit)
    }

    pub(super) fn client(&self) -> &Rc<Client> {
        &self.client
    }

    pub(super) fn tx_id(&self) -> u32 {
        self.tx_id
    }

    fn on_path<T>(
        &self,
        kind: Kind,
        path: &dyn fmt::Display,
        convert: fn(&[u8]) -> Result<T, Error>,
    ) -> Reply<T> {
        self.request(kind, &[Part::Display(path), Part::Str("\0")], convert)
    }

    pub(super) fn request<T>(
        &self,
        kind: Kind,
        parts: &[Part<'_>],
        convert: fn(&[u8]) -> Result<T, Error>,
    ) -> Reply<T> {
        Reply {
            client: self.client.clone(),
            sent: Some(self.client.submit(kind, self.tx_id, parts)),
            convert,
        }
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests")
            .field("tx_id", &self.tx_id)
            .finish_non_exhaustive()
    }
}

/// Waits for the reply to a request. Dropping it is fine at any time; the request takes effect or
/// not.
#[must_use = "futures do nothing unless polled"]
pub struct Reply<T> {
    client: Rc<Client>,
    /// `None` once the reply was handed out.
    sent: Option<Result<RequestId, Error>>,
    convert: fn(&[u8]) -> Result<T, Error>,
}

impl<T> Future for Reply<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = match &self.sent {
            Some(Ok(id)) => match self.client.poll_reply(*id, cx) {
                Poll::Ready(result) => result,
                Poll::Pending => return Poll::Pending,
            },
            Some(Err(error)) => Err(error.clone()),
            // Polled again after it was ready.
            None => Err(Error::Disconnected),
        };
        self.sent = None;
        Poll::Ready(result.and_then(|reply| (self.convert)(&reply)))
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(Ok(id)) = self.sent {
            self.client.abandon(id);
        }
    }
}

/// Turns "does not exist" into `None`.
pub fn optional<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

/// A decimal number: digits and nothing else, no sign, no blank.
pub(super) fn parse_decimal(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u32, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value.checked_mul(10)?.checked_add(digit.into())
    })
}

fn to_string(value: &[u8]) -> Result<String, Error> {
    match core::str::from_utf8(value) {
        Ok(text) if !text.contains('\0') => Ok(text.into()),
        _ => Err(bad_value("text without zero bytes", value)),
    }
}

fn to_u32(value: &[u8]) -> Result<u32, Error> {
    parse_decimal(value).ok_or_else(|| bad_value("a decimal number", value))
}

fn to_names(list: &[u8]) -> Result<Vec<String>, Error> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let malformed = ProtocolError::BadPayload {
        kind: Kind::Directory as u32,
    };
    let list = list.strip_suffix(&[0]).ok_or(malformed)?;
    let name = |name: &[u8]| String::from_utf8(name.to_vec()).map_err(|_| malformed.into());
    list.split(|byte| *byte == 0).map(name).collect()
}

/// The reply to a request that has nothing to tell.
pub(super) fn to_unit(reply: &[u8]) -> Result<(), Error> {
    if reply == b"OK\0" {
        Ok(())
    } else {
        Err(bad_value("OK", reply))
    }
}

fn bad_value(expected: &'static str, found: &[u8]) -> Error {
    let found = &found[..found.len().min(64)];
    Error::BadValue {
        expected,
        found: String::from_utf8_lossy(found).into_owned(),
    }
}
