//! Messages of the xenstore protocol (`io/xs_wire.h`).

use super::error::ProtocolError;
use alloc::vec::Vec;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Most bytes behind a header (`XENSTORE_PAYLOAD_MAX`).
pub(crate) const MAX_PAYLOAD_BYTES: usize = 4096;

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = size_of::<Header>();

/// A message's type (`enum xsd_sockmsg_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    Directory = 1,
    Read = 2,
    Watch = 4,
    Unwatch = 5,
    TransactionStart = 6,
    TransactionEnd = 7,
    Write = 11,
    Mkdir = 12,
    Rm = 13,
    WatchEvent = 15,
    Error = 16,
}

/// `struct xsd_sockmsg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) kind: u32,
    pub(crate) req_id: u32,
    pub(crate) tx_id: u32,
    pub(crate) payload_bytes: u32,
}

/// A whole message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) header: Header,
    pub(crate) payload: Vec<u8>,
}

/// Puts messages together from the pieces in which the ring delivers them.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    buffer: Vec<u8>,
}

impl Assembler {
    /// Takes bytes in. At most a ring's worth before [`Assembler::next_message`] is asked until it
    /// has none: that bounds the buffer.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message, when it is complete.
    pub(crate) fn next_message(&mut self) -> Result<Option<Message>, ProtocolError> {
        let Ok((header, rest)) = Header::read_from_prefix(&self.buffer) else {
            return Ok(None);
        };
        let len = header.payload_bytes as usize;
        if len > MAX_PAYLOAD_BYTES {
            return Err(ProtocolError::Oversize {
                bytes: header.payload_bytes,
            });
        }
        let Some(payload) = rest.get(..len) else {
            return Ok(None);
        };
        let payload = payload.to_vec();
        self.buffer.drain(..HEADER_BYTES + len);
        Ok(Some(Message { header, payload }))
    }

    /// Forgets a message that is not complete.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
    }
}
