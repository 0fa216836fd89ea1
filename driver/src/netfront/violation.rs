//! What a backend can do wrong.

use core::fmt;

/// One of a queue's rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingKind {
    /// Frames that we send.
    Tx,
    /// Frames that we receive.
    Rx,
}

/// A breach of netif's rules by the backend, after which nothing it says can be trusted.
///
/// The device stops: it looks at the rings no more, and memory that the backend has access to
/// stays out of use until that access has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// Memory that the backend was to have let go of, in this many pages, is mapped still.
    GrantsHeld {
        /// How many are tolerated.
        limit: usize,
    },
    /// The response producer went backwards, or past the requests.
    ResponseProducer {
        /// Of which ring.
        ring: RingKind,
        /// What it became.
        got: u32,
        /// What it was: the least it may be.
        seen: u32,
        /// The most it may be.
        limit: u32,
    },
    /// A received slot's bytes do not lie within its page.
    RxBounds {
        /// The ring slot.
        slot: u8,
        /// Where they start.
        offset: u16,
        /// How many they are.
        len: u16,
    },
    /// An extra that was not negotiated or does not exist.
    RxExtraType {
        /// Its type.
        got: u8,
    },
    /// An extra that a frame has already.
    RxExtraTwice {
        /// Its type.
        got: u8,
    },
    /// A segment size of zero.
    RxGsoSize,
    /// A segmentation type that was not negotiated or does not exist.
    RxGsoType {
        /// The type.
        got: u8,
    },
    /// A response in a slot that no buffer was posted in.
    RxSlotEmpty {
        /// The ring slot.
        slot: u8,
    },
    /// A status that is neither a length nor an error.
    RxStatus {
        /// The ring slot.
        slot: u8,
        /// The status.
        got: i16,
    },
    /// A frame longer than IP allows.
    RxTooLong {
        /// The most it may have.
        limit_bytes: u32,
        /// What it has, at least.
        got_bytes: u32,
    },
    /// A frame of more slots than the longest needs.
    RxTooManySlots {
        /// The most it may have.
        limit: usize,
    },
    /// A response with an identifier that no request ever has.
    TxId {
        /// The identifier.
        got: u16,
    },
    /// A response to a request that has been answered, or was never made.
    TxNotPending {
        /// Its identifier.
        id: u8,
    },
    /// A response to an extra where there is none to answer.
    TxNull,
    /// A status that does not exist.
    TxStatus {
        /// The request's identifier.
        id: u8,
        /// The status.
        got: i16,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::GrantsHeld { limit } => write!(
                f,
                "the backend keeps more than {limit} received pages mapped; expected none"
            ),
            Self::ResponseProducer {
                ring,
                got,
                seen,
                limit,
            } => write!(
                f,
                "{ring:?} response producer is {got}; expected {seen} to {limit}"
            ),
            Self::RxBounds { slot, offset, len } => write!(
                f,
                "received slot {slot} has {len} bytes at offset {offset}; expected an end within 4096"
            ),
            Self::RxExtraType { got } => write!(
                f,
                "received extra of type {got}; expected GSO (1) or hash (4)"
            ),
            Self::RxExtraTwice { got } => {
                write!(f, "received extra of type {got} twice; expected it once")
            }
            Self::RxGsoSize => f.write_str("received segment size is 0; expected 1 to 65535"),
            Self::RxGsoType { got } => write!(
                f,
                "received segmentation type {got}; expected TCPv4 (1) or TCPv6 (2)"
            ),
            Self::RxSlotEmpty { slot } => write!(
                f,
                "response in receive slot {slot}, where no buffer is posted"
            ),
            Self::RxStatus { slot, got } => write!(
                f,
                "receive slot {slot} has status {got}; expected 1 to 4096, or negative"
            ),
            Self::RxTooLong {
                limit_bytes,
                got_bytes,
            } => write!(
                f,
                "received frame of {got_bytes} bytes or more; expected at most {limit_bytes}"
            ),
            Self::RxTooManySlots { limit } => write!(
                f,
                "received frame of more than {limit} slots; expected at most as many"
            ),
            Self::TxId { got } => {
                write!(f, "transmit response with id {got}; expected less than 256")
            }
            Self::TxNotPending { id } => write!(
                f,
                "transmit response with id {id}, which waits for none; expected each once"
            ),
            Self::TxNull => f.write_str(
                "transmit response for an extra; expected it only behind that of its frame",
            ),
            Self::TxStatus { id, got } => write!(
                f,
                "transmit response {id} has status {got}; expected 0, -1 or -2"
            ),
        }
    }
}

impl core::error::Error for Violation {}
