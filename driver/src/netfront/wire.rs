//! What the slots of netif's rings hold (`io/netif.h` of Xen's public headers), as 32-bit words.

use crate::xen::GrantRef;
use bitflags::bitflags;

/// Words of a slot of the transmit ring.
pub(super) const TX_WORDS: usize = 3;
/// Words of a slot of the receive ring.
pub(super) const RX_WORDS: usize = 2;

/// Most data slots that every backend takes for one frame (`XEN_NETIF_NR_SLOTS_MIN`).
pub(super) const NR_SLOTS_MIN: usize = 18;

/// The request was carried out.
pub(super) const RSP_OKAY: i16 = 0;
/// It could not be.
pub(super) const RSP_ERROR: i16 = -1;
/// The backend dropped the frame.
pub(super) const RSP_DROPPED: i16 = -2;
/// Fills the slot that an extra took.
pub(super) const RSP_NULL: i16 = 1;

/// Type of the extra that makes a frame a large TCP segment.
pub(super) const EXTRA_GSO: u8 = 1;
/// Type of the extra with the flow's hash.
pub(super) const EXTRA_HASH: u8 = 4;
/// Another extra follows.
pub(super) const EXTRA_MORE: u8 = 1;

/// TCP over IPv4, as a segmentation type.
pub(super) const GSO_TCPV4: u8 = 1;
/// TCP over IPv6.
pub(super) const GSO_TCPV6: u8 = 2;

bitflags! {
    /// Flags of a transmit request.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct TxFlags: u16 {
        /// The transport checksum is to be completed.
        const CSUM_BLANK = 1 << 0;
        /// The data is known to be good.
        const DATA_VALIDATED = 1 << 1;
        /// Another data slot follows.
        const MORE_DATA = 1 << 2;
        /// An extra follows.
        const EXTRA_INFO = 1 << 3;
    }

    /// Flags of a receive response. The first two are swapped against [`TxFlags`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct RxFlags: u16 {
        /// The data is known to be good.
        const DATA_VALIDATED = 1 << 0;
        /// The transport checksum is not filled in; the data never left the machine.
        const CSUM_BLANK = 1 << 1;
        /// Another data slot follows.
        const MORE_DATA = 1 << 2;
        /// An extra follows.
        const EXTRA_INFO = 1 << 3;
    }
}

/// A transmit request. `size` is the whole frame's in its first slot, the slot's own in others.
pub(super) fn tx_request(
    gref: GrantRef,
    offset: u16,
    flags: TxFlags,
    id: u8,
    size: u16,
) -> [u32; TX_WORDS] {
    [
        gref.0,
        pair(offset, flags.bits()),
        pair(u16::from(id), size),
    ]
}

/// The extra that has the backend treat a frame as a TCP segment to be cut every `size` bytes.
pub(super) fn gso_extra(size: u16, gso_type: u8) -> [u32; TX_WORDS] {
    [pair(u16::from(EXTRA_GSO), size), u32::from(gso_type), 0]
}

/// A receive request.
pub(super) fn rx_request(id: u8, gref: GrantRef) -> [u32; RX_WORDS] {
    [u32::from(id), gref.0]
}

/// A transmit response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TxResponse {
    pub(super) id: u16,
    pub(super) status: i16,
}

impl TxResponse {
    pub(super) fn parse([word]: [u32; 1]) -> Self {
        let (id, status) = halves(word);
        Self {
            id,
            status: status as i16,
        }
    }
}

/// A receive response for data. Its id is not looked at: a response is in its request's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RxResponse {
    pub(super) offset: u16,
    pub(super) flags: RxFlags,
    pub(super) status: i16,
}

impl RxResponse {
    pub(super) fn parse([first, second]: [u32; RX_WORDS]) -> Self {
        let (_, offset) = halves(first);
        let (flags, status) = halves(second);
        Self {
            offset,
            flags: RxFlags::from_bits_retain(flags),
            status: status as i16,
        }
    }
}

/// An extra in a slot of the receive ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RxExtra {
    pub(super) kind: u8,
    pub(super) more: bool,
    /// Of a GSO extra: the segment size.
    pub(super) gso_size: u16,
    /// Of a GSO extra: the segmentation type.
    pub(super) gso_type: u8,
}

impl RxExtra {
    pub(super) fn parse([first, second]: [u32; RX_WORDS]) -> Self {
        let (head, gso_size) = halves(first);
        let [kind, flags] = head.to_le_bytes();
        Self {
            kind,
            more: flags & EXTRA_MORE != 0,
            gso_size,
            gso_type: second as u8,
        }
    }
}

/// Two 16-bit fields that share a word, the one at the lower address first.
pub(super) fn pair(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

/// The opposite of [`pair`].
pub(super) fn halves(word: u32) -> (u16, u16) {
    (word as u16, (word >> 16) as u16)
}

const _: () = assert!(
    cfg!(target_endian = "little"),
    "the rings are little-endian"
);
