//! What the stack needs of a NIC.
//!
//! Payload travels by reference, in pages that belong to the device: the stack fills pages it got
//! from [`Device::alloc_page`] and hands slices of them to [`Device::transmit`]; received frames
//! arrive as slices of pages. A page goes back to the device's pool when its last handle is
//! dropped, be it the stack's, the application's or the device's own.

use crate::time::{Duration, Instant};
use core::ops::Range;

/// Longest header (Ethernet, IP and transport together) that a [`TxFrame`] may carry.
pub const MAX_HEADER_BYTES: usize = 128;

/// Most slices a received frame can have: a 64 KiB frame in 4 KiB pages, with room for one that
/// starts or ends unaligned.
pub const MAX_RX_SLICES: usize = 18;

/// Most payload slices that a transmitted frame may have, whatever the device.
pub const MAX_TX_SLICES: usize = 17;

/// A handle to device memory of at most one 4 KiB page.
///
/// The handle from [`Device::alloc_page`] is the writer. Clones read what had been written when
/// they were made; they see no spare room and cannot write. Bytes once written never change while
/// a handle exists, so that the device may read them at any time.
pub trait Page: Clone {
    /// The bytes written so far.
    fn bytes(&self) -> &[u8];

    /// The room behind the written bytes; empty for a clone.
    fn spare_mut(&mut self) -> &mut [u8];

    /// Declares the first `len` bytes of the spare room written; more than it has is cut off.
    fn commit(&mut self, len: usize);

    /// Copies as much of `data` as fits behind the written bytes and returns how much that was.
    fn append(&mut self, data: &[u8]) -> usize {
        let spare = self.spare_mut();
        let len = spare.len().min(data.len());
        spare[..len].copy_from_slice(&data[..len]);
        self.commit(len);
        len
    }
}

/// A part of a page, holding on to it.
#[derive(Clone, Debug)]
pub struct Slice<P> {
    page: P,
    start: u16,
    end: u16,
}

impl<P: Page> Slice<P> {
    /// The bytes `range` of `page`, cut to what is written of it.
    pub fn new(page: P, range: Range<usize>) -> Self {
        let end = range.end.min(page.bytes().len()).min(usize::from(u16::MAX));
        let start = range.start.min(end);
        Self {
            page,
            start: start as u16,
            end: end as u16,
        }
    }

    /// All that is written of `page`.
    pub fn whole(page: P) -> Self {
        let len = page.bytes().len();
        Self::new(page, 0..len)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.page.bytes()[usize::from(self.start)..usize::from(self.end)]
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        usize::from(self.end - self.start)
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Drops the first `len` bytes, or all there are.
    pub fn advance(&mut self, len: usize) {
        self.start += len.min(self.len()) as u16;
    }

    /// Keeps the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.end = self.start + len.min(self.len()) as u16;
    }

    /// The same bytes, borrowed.
    pub fn borrow(&self) -> SliceRef<'_, P> {
        SliceRef {
            page: &self.page,
            start: self.start,
            end: self.end,
        }
    }
}

/// A borrowed part of a page.
#[derive(Debug)]
pub struct SliceRef<'a, P> {
    page: &'a P,
    start: u16,
    end: u16,
}

impl<P> Clone for SliceRef<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for SliceRef<'_, P> {}

impl<'a, P: Page> SliceRef<'a, P> {
    /// The bytes `range` of `page`, cut to what is written of it.
    pub fn new(page: &'a P, range: Range<usize>) -> Self {
        let end = range.end.min(page.bytes().len()).min(usize::from(u16::MAX));
        let start = range.start.min(end);
        Self {
            page,
            start: start as u16,
            end: end as u16,
        }
    }

    /// The page the bytes lie in.
    pub fn page(&self) -> &'a P {
        self.page
    }

    /// Where in the page the bytes start.
    pub fn offset(&self) -> usize {
        usize::from(self.start)
    }

    /// The bytes.
    pub fn bytes(&self) -> &'a [u8] {
        &self.page.bytes()[usize::from(self.start)..usize::from(self.end)]
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        usize::from(self.end - self.start)
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The part `range` of these bytes, cut to what there is.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let end = range.end.min(self.len());
        let start = range.start.min(end);
        Self {
            page: self.page,
            start: self.start + start as u16,
            end: self.start + end as u16,
        }
    }
}

/// Network-layer version of an offloaded frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Work left to the device, or done by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TxOffload {
    /// The frame goes out as it is.
    #[default]
    None,
    /// The transport checksum field holds the pseudo-header's sum; the device completes it over
    /// the bytes from `start`.
    Checksum {
        /// Where the transport header starts, in bytes from the start of the frame.
        start: u16,
        /// Where the checksum field lies, in bytes from `start`.
        offset: u16,
    },
    /// One large TCP segment that the device cuts into frames of `mss_bytes` payload, checksums
    /// included.
    Tso {
        /// As in [`TxOffload::Checksum`].
        start: u16,
        /// As in [`TxOffload::Checksum`].
        offset: u16,
        /// TCP payload bytes of each frame on the wire.
        mss_bytes: u16,
        /// Which IP header the frame has.
        version: IpVersion,
    },
}

/// What the device says of a received frame's transport checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RxChecksum {
    /// Nothing: the stack must verify it.
    #[default]
    Unverified,
    /// The data is good, whether or not the checksum field is filled in: it came from this
    /// machine, or the device verified it.
    Good,
}

/// Whose bytes a frame carries: chosen by the stack, returned in [`Completion`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner(pub u32);

impl Owner {
    /// Nobody's: control frames and pure ACKs, which are not accounted.
    pub const NONE: Self = Self(0);
}

/// A frame to send.
#[derive(Debug)]
pub struct TxFrame<'a, P> {
    /// Ethernet, IP and transport headers (and payload, of a small frame without slices): at most
    /// [`MAX_HEADER_BYTES`]. The device copies it.
    pub header: &'a [u8],
    /// Payload behind the header: no empty slice, at most [`Capabilities::max_tx_slices`]. The
    /// device keeps the pages until it is done with them.
    pub payload: &'a [SliceRef<'a, P>],
    /// Work left to the device.
    pub offload: TxOffload,
    /// Whom to credit when the device is done.
    pub owner: Owner,
}

/// A received frame.
#[derive(Debug)]
pub struct RxFrame<P> {
    /// The frame's bytes in order. Headers must lie in the first slice whole; the stack drops
    /// frames where they do not.
    pub slices: heapless::Vec<Slice<P>, MAX_RX_SLICES>,
    /// What is known of its checksum.
    pub checksum: RxChecksum,
    /// Of a frame made of several TCP segments: the payload bytes of each.
    pub segment_bytes: Option<u16>,
}

/// Bytes that the device is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Whose they were.
    pub owner: Owner,
    /// How many payload bytes.
    pub bytes: u32,
    /// How long the device held them, from [`Device::flush`] to its answer.
    pub held: Duration,
}

/// Why a frame was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxError {
    /// No room now; nothing was taken. A completion will make room.
    Full,
    /// The device is not connected; the frame is lost.
    Down,
    /// The frame breaks a limit of [`Capabilities`]; it can never be sent.
    Unsendable,
}

/// What a device can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Largest IP packet on the wire, in bytes.
    pub mtu_bytes: u16,
    /// Largest frame for [`TxOffload::Tso`] over IPv4, headers included; 0: none.
    pub max_tso4_bytes: u32,
    /// Largest frame for [`TxOffload::Tso`] over IPv6, headers included; 0: none.
    pub max_tso6_bytes: u32,
    /// Most payload slices of one frame, at most [`MAX_TX_SLICES`]; a device without
    /// scatter-gather that gathers by copying says so with a small frame limit, not here.
    pub max_tx_slices: u8,
    /// About how many payload bytes its transmit queue has room for, in frames of the largest
    /// size. Flows share that; a little too much means that some find it full.
    pub tx_ring_bytes: u32,
    /// Completes checksums of TCP and UDP over IPv4.
    pub tx_checksum4: bool,
    /// Completes checksums of TCP and UDP over IPv6.
    pub tx_checksum6: bool,
}

/// How much of a device's memory is left for received data that waits to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RxMemory {
    /// Enough.
    #[default]
    Plenty,
    /// Little: each connection may keep some, so that it gets on.
    Scarce,
    /// What is left is needed to receive at all. Nothing more may be kept, or acknowledgments and
    /// resets, which free memory, would find no page to arrive in.
    Spent,
}

/// A NIC: a queue pair with the pages its frames lie in.
pub trait Device {
    /// Its memory.
    type Page: Page;

    /// What it can do, now: a reconnect may change it.
    fn capabilities(&self) -> Capabilities;

    /// Its Ethernet address.
    fn mac(&self) -> [u8; 6];

    /// Whether frames can flow.
    fn link_up(&self) -> bool;

    /// A fresh page to write payload into; none when the pool is spent but for what receiving
    /// needs: a full send buffer must not shut out the acknowledgments that empty it, nor by
    /// itself make [`Device::rx_memory`] anything worse than [`RxMemory::Scarce`].
    fn alloc_page(&mut self) -> Option<Self::Page>;

    /// What the pool still has for received data.
    fn rx_memory(&self) -> RxMemory;

    /// The next received frame, if any.
    fn receive(&mut self, now: Instant) -> Option<RxFrame<Self::Page>>;

    /// Puts a frame on the queue, to be published by [`Device::flush`].
    fn transmit(&mut self, frame: &TxFrame<'_, Self::Page>) -> Result<(), TxError>;

    /// Publishes what was queued since the last call, with at most one notification; refills
    /// receive slots.
    fn flush(&mut self, now: Instant);

    /// Takes back what the device is done with, each run of bytes told to `sink`.
    fn complete(&mut self, now: Instant, sink: &mut dyn FnMut(Completion));

    /// Asks to be interrupted by the next event; true when one has happened meanwhile and the
    /// caller must poll again instead of going idle.
    fn arm(&mut self) -> bool;
}
