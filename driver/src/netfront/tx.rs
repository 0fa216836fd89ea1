//! The transmit ring.
//!
//! A frame is planned whole before anything is written: its first slot has all headers, then comes
//! the extra of a large segment, then a slot for each piece of payload. Headers are copied into an
//! arena that is granted once, 128 bytes for each request identifier: what Linux's backend copies
//! rather than maps, so that a frame of no more is answered at once. Payload stays where it is, in
//! pages that are granted read-only when first sent and stay so.
//!
//! The backend answers slot by slot, in any order.

use super::grants::{BackendGrants, GrantedPage};
use super::ring::{FrontRing, RING_SLOTS};
use super::statistics::Statistics;
use super::violation::{RingKind, Violation};
use super::wire::{self, NR_SLOTS_MIN, TX_WORDS, TxFlags, TxResponse};
use super::{Features, OpenError};
use crate::page::{InFlight, Page, PagePool};
use crate::xen::grant::Access;
use crate::xen::{GrantRef, PAGE_BYTES};
use alloc::boxed::Box;
use core::mem;

/// Longest header of a frame, in bytes.
pub const MAX_HEADER_BYTES: usize = 128;

/// Most payload slices of a frame.
pub const MAX_TX_SLICES: usize = NR_SLOTS_MIN - 1;

/// Longest frame, in bytes: what the first slot's size field can say.
pub const MAX_FRAME_BYTES: usize = u16::MAX as usize;

/// Payload bytes that the ring has room for, about, in frames of the largest size: each takes a
/// slot for its headers and one for the extra of a large segment.
pub const TX_RING_BYTES: u32 = (RING_SLOTS / (MAX_TX_SLICES + 2) * MAX_FRAME_BYTES) as u32;

/// Bytes of an Ethernet header.
pub(super) const ETHERNET_HEADER_BYTES: usize = 14;

/// Ethernet's type number of IPv4.
pub(super) const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];

/// Ethernet's type number of IPv6.
pub(super) const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];

/// Pages of the header arena.
const ARENA_PAGES: usize = RING_SLOTS * MAX_HEADER_BYTES / PAGE_BYTES;

/// A piece of payload to send.
#[derive(Clone, Copy, Debug)]
pub struct TxSlice<'a> {
    /// The page it lies in, which is kept until the backend is done with it.
    pub page: &'a Page,
    /// Where in the page it starts.
    pub offset: u16,
    /// How many bytes it has: at least one, all of them written.
    pub len: u16,
}

/// A frame to send.
#[derive(Clone, Debug)]
pub struct TxFrame<'a, I> {
    /// All headers, Ethernet's to TCP's, and whatever follows them in the same piece: 14 to
    /// [`MAX_HEADER_BYTES`] bytes. They are copied.
    pub header: &'a [u8],
    /// The payload behind it, as [`TxSlice`]s: at most [`MAX_TX_SLICES`].
    pub payload: I,
    /// What is left to the backend.
    pub offload: TxOffload,
    /// Returned with each [`Completion`].
    pub owner: u32,
}

/// Version of the IP header of a large segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// What the backend, or whoever receives the frame, is to complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TxOffload {
    /// Nothing.
    #[default]
    None,
    /// The TCP or UDP checksum, whose field holds the pseudo-header's sum. The backend finds it
    /// by itself.
    Checksum,
    /// The frame is a TCP segment to be cut, checksums included.
    Tso {
        /// Payload bytes of each piece.
        mss_bytes: u16,
        /// Which IP header it has.
        version: IpVersion,
    },
}

/// Why a frame was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxError {
    /// No room now, and nothing was taken: a later completion will make room.
    Full,
    /// The device is not connected.
    Down,
    /// The frame breaks a limit, and can never be sent.
    Unsendable,
}

/// Payload bytes that the backend is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The owner given with the frame.
    pub owner: u32,
    /// How many bytes.
    pub bytes: u32,
    /// How long the backend had them, in microseconds.
    pub held_us: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// No request has this identifier.
    #[default]
    Free,
    /// Written, and not shown to the backend.
    Queued,
    /// Shown, and not answered.
    Pending,
}

/// What is known of a request, by its identifier.
#[derive(Default)]
struct Slot {
    state: State,
    /// Whether an extra follows the request on the ring.
    extra: bool,
    owner: u32,
    /// Payload bytes to be credited to the owner.
    bytes: u32,
    /// When the backend was shown the request.
    since_us: u64,
    /// The page with the payload.
    page: Option<InFlight>,
}

/// The pages that headers are copied into: one piece for each request identifier.
struct Arena([GrantedPage; ARENA_PAGES]);

impl Arena {
    /// The piece of `id`, with what to tell the backend of it: grant and offset.
    fn piece(&mut self, id: u8) -> (&mut [u8], GrantRef, u16) {
        let start = usize::from(id) * MAX_HEADER_BYTES;
        let (page, offset) = (&mut self.0[start / PAGE_BYTES], start % PAGE_BYTES);
        let gref = page.gref();
        let piece = &mut page.bytes_mut()[offset..offset + MAX_HEADER_BYTES];
        (piece, gref, offset as u16)
    }
}

/// How a frame is laid out on the ring.
enum Layout {
    /// All of it in the header arena.
    Small,
    /// All of it copied into one page.
    Gathered(Page, GrantRef),
    /// Headers in the arena, payload where it is, under these grants.
    Scattered(heapless::Vec<GrantRef, MAX_TX_SLICES>),
}

/// A frame found fit to be sent.
struct Plan<'a> {
    header: &'a [u8],
    slices: heapless::Vec<TxSlice<'a>, MAX_TX_SLICES>,
    total: usize,
    offload: TxOffload,
}

impl<'a> Plan<'a> {
    /// None when the frame breaks a rule of netif, or what was negotiated.
    fn new<I>(frame: TxFrame<'a, I>, pool: PagePool, features: Features) -> Option<Self>
    where
        I: IntoIterator<Item = TxSlice<'a>>,
    {
        let TxFrame {
            header,
            payload,
            offload,
            owner: _,
        } = frame;
        if !(ETHERNET_HEADER_BYTES..=MAX_HEADER_BYTES).contains(&header.len()) {
            return None;
        }
        let mut total = header.len();
        let mut slices = heapless::Vec::new();
        for slice in payload {
            let end = usize::from(slice.offset) + usize::from(slice.len);
            if slice.len == 0 || end > slice.page.bytes().len() || !pool.owns(slice.page) {
                return None;
            }
            total += usize::from(slice.len);
            slices.push(slice).ok()?;
        }
        let ipv6 = header[12..14] == ETHERTYPE_IPV6;
        let limit = match offload {
            TxOffload::None => features.max_frame_bytes(),
            TxOffload::Checksum => {
                if ipv6 && !features.tx_checksum6 {
                    return None;
                }
                features.max_frame_bytes()
            }
            TxOffload::Tso { mss_bytes, version } => {
                let (able, fits) = match version {
                    IpVersion::V4 => (features.tso4, header[12..14] == ETHERTYPE_IPV4),
                    IpVersion::V6 => (features.tso6, ipv6),
                };
                // A frame of one page has no room for a large segment.
                if !able || !fits || mss_bytes == 0 || !features.scatter_gather {
                    return None;
                }
                MAX_FRAME_BYTES
            }
        };
        (total <= limit).then_some(Self {
            header,
            slices,
            total,
            offload,
        })
    }

    /// The extra that the frame needs.
    fn extra(&self) -> Option<[u32; TX_WORDS]> {
        match self.offload {
            TxOffload::None | TxOffload::Checksum => None,
            TxOffload::Tso { mss_bytes, version } => {
                let gso_type = match version {
                    IpVersion::V4 => wire::GSO_TCPV4,
                    IpVersion::V6 => wire::GSO_TCPV6,
                };
                Some(wire::gso_extra(mss_bytes, gso_type))
            }
        }
    }

    /// The flags of its first slot.
    fn flags(&self, data_slots: usize) -> TxFlags {
        let mut flags = match self.offload {
            TxOffload::None => TxFlags::empty(),
            TxOffload::Checksum => TxFlags::CSUM_BLANK | TxFlags::DATA_VALIDATED,
            TxOffload::Tso { .. } => {
                TxFlags::CSUM_BLANK | TxFlags::DATA_VALIDATED | TxFlags::EXTRA_INFO
            }
        };
        flags.set(TxFlags::MORE_DATA, data_slots > 1);
        flags
    }

    /// Copies the payload to `to`, which has room for it.
    fn copy_payload(&self, mut to: &mut [u8]) {
        for slice in &self.slices {
            let start = usize::from(slice.offset);
            let bytes = &slice.page.bytes()[start..start + usize::from(slice.len)];
            let (piece, rest) = to.split_at_mut(bytes.len());
            piece.copy_from_slice(bytes);
            to = rest;
        }
    }

    /// Decides on the layout and gets what it takes; none when that is not to be had now.
    fn layout(
        &self,
        grants: &BackendGrants,
        scatter_gather: bool,
        reserve: usize,
    ) -> Option<Layout> {
        if self.total <= MAX_HEADER_BYTES {
            return Some(Layout::Small);
        }
        grants.make_room(reserve + 1 + self.slices.len());
        if scatter_gather {
            let grefs = self
                .slices
                .iter()
                .map(|slice| grants.tx_gref(slice.page, reserve));
            return grefs.collect::<Option<_>>().map(Layout::Scattered);
        }
        if grants.pool().available() <= reserve {
            return None;
        }
        let mut page = grants.pool().alloc()?;
        let gref = grants.tx_gref(&page, reserve)?;
        let (header, payload) = page.spare_mut()[..self.total].split_at_mut(self.header.len());
        header.copy_from_slice(self.header);
        self.copy_payload(payload);
        Some(Layout::Gathered(page, gref))
    }
}

/// What is known of all requests.
pub(super) struct Slots(Box<[Slot; RING_SLOTS]>);

impl Slots {
    /// Whether someone is still to be credited.
    pub(super) fn owe(&self) -> bool {
        self.0.iter().any(|slot| slot.bytes > 0)
    }

    /// Credits every owner, for no response will be taken any more. The pages stay.
    pub(super) fn credit_all(&mut self, now_us: u64, sink: &mut dyn FnMut(Completion)) {
        for slot in self.0.iter_mut() {
            let bytes = mem::take(&mut slot.bytes);
            if bytes == 0 {
                continue;
            }
            let held_us = match slot.state {
                State::Pending => now_us.saturating_sub(slot.since_us),
                State::Free | State::Queued => 0,
            };
            sink(Completion {
                owner: slot.owner,
                bytes,
                held_us,
            });
        }
    }
}

/// The transmit half of a queue.
pub(super) struct TxQueue {
    ring: FrontRing<TX_WORDS>,
    arena: Arena,
    pub(super) slots: Slots,
    /// Identifiers in no use.
    free: heapless::Vec<u8, RING_SLOTS>,
    /// Identifiers of requests written since the last flush.
    queued: heapless::Vec<u8, RING_SLOTS>,
    /// Responses to extras that are due next.
    nulls_due: u32,
    /// Slots that the smallest frame needs of those refused since the last response; 0: none was.
    wanted: usize,
}

impl TxQueue {
    /// A ring and an arena, granted to the backend.
    pub(super) fn open(
        grants: &mut BackendGrants,
        statistics: &mut Statistics,
    ) -> Result<Self, OpenError> {
        let ring = FrontRing::open(RingKind::Tx, grants)?;
        let mut arena = heapless::Vec::<_, ARENA_PAGES>::new();
        let result = (0..ARENA_PAGES).try_for_each(|_| {
            // There is room for as many as the loop has turns.
            let _ = arena.push(grants.grant(Access::ReadOnly, true)?);
            Ok(())
        });
        match (result, arena.into_array()) {
            (Ok(()), Ok(arena)) => Ok(Self {
                ring,
                arena: Arena(arena),
                slots: Slots(Box::new(core::array::from_fn(|_| Slot::default()))),
                free: (0..=u8::MAX).rev().collect(),
                queued: heapless::Vec::new(),
                nulls_due: 0,
                wanted: 0,
            }),
            (result, arena) => {
                for page in arena.err().into_iter().flatten() {
                    grants.end(page, statistics);
                }
                ring.close(grants, statistics);
                Err(result.err().unwrap_or(OpenError::Pages))
            }
        }
    }

    /// The grant of the ring's page.
    pub(super) fn gref(&self) -> GrantRef {
        self.ring.gref()
    }

    /// Puts a frame on the ring, or nothing of it. Pages and grant references are
    /// only taken while there are more than `reserve`.
    pub(super) fn transmit<'a, I>(
        &mut self,
        frame: TxFrame<'a, I>,
        grants: &BackendGrants,
        features: Features,
        reserve: usize,
        statistics: &mut Statistics,
    ) -> Result<(), TxError>
    where
        I: IntoIterator<Item = TxSlice<'a>>,
    {
        let owner = frame.owner;
        let Some(plan) = Plan::new(frame, grants.pool(), features) else {
            statistics.tx_unsendable += 1;
            return Err(TxError::Unsendable);
        };
        let scattered = plan.total > MAX_HEADER_BYTES && features.scatter_gather;
        let data_slots = if scattered { 1 + plan.slices.len() } else { 1 };
        let extra = plan.extra();
        let slots = data_slots + usize::from(extra.is_some());
        if self.ring.room() < slots || self.free.len() < data_slots {
            statistics.tx_full += 1;
            self.want(slots);
            return Err(TxError::Full);
        }
        let Some(layout) = plan.layout(grants, features.scatter_gather, reserve) else {
            statistics.tx_no_buffer += 1;
            self.want(1);
            return Err(TxError::Full);
        };

        // Nothing fails from here on.
        let flags = plan.flags(data_slots);
        let payload_bytes = (plan.total - plan.header.len()) as u32;
        let id = self.take_id();
        let (gref, offset, bytes, page, grefs) = match layout {
            Layout::Small => {
                let (piece, gref, offset) = self.arena.piece(id);
                let (header, payload) = piece.split_at_mut(plan.header.len());
                header.copy_from_slice(plan.header);
                plan.copy_payload(payload);
                (gref, offset, payload_bytes, None, heapless::Vec::new())
            }
            Layout::Gathered(page, gref) => (
                gref,
                0,
                payload_bytes,
                Some(InFlight::new(page)),
                heapless::Vec::new(),
            ),
            Layout::Scattered(grefs) => {
                let (piece, gref, offset) = self.arena.piece(id);
                piece[..plan.header.len()].copy_from_slice(plan.header);
                (gref, offset, 0, None, grefs)
            }
        };
        // The first slot has the size of the whole frame, and the extra comes right behind it.
        let request = wire::tx_request(gref, offset, flags, id, plan.total as u16);
        let slot = Slot {
            state: State::Queued,
            extra: extra.is_some(),
            owner,
            bytes,
            since_us: 0,
            page,
        };
        self.push(id, slot, request);
        if let Some(extra) = extra {
            self.ring.push(extra);
        }
        let last = grefs.len().saturating_sub(1);
        for (at, (gref, slice)) in grefs.into_iter().zip(&plan.slices).enumerate() {
            let id = self.take_id();
            let mut flags = TxFlags::empty();
            flags.set(TxFlags::MORE_DATA, at != last);
            let request = wire::tx_request(gref, slice.offset, flags, id, slice.len);
            let slot = Slot {
                state: State::Queued,
                extra: false,
                owner,
                bytes: u32::from(slice.len),
                since_us: 0,
                page: Some(InFlight::new(slice.page.clone())),
            };
            self.push(id, slot, request);
        }

        statistics.tx_packets += 1;
        statistics.tx_bytes += plan.total as u64;
        statistics.tx_slots += slots as u64;
        statistics.tx_gso_packets += u64::from(extra.is_some());
        statistics.tx_csum_blank += u64::from(flags.contains(TxFlags::CSUM_BLANK));
        statistics.tx_copied += u64::from(!scattered && !plan.slices.is_empty());
        Ok(())
    }

    /// Shows the backend what has been put on the ring; true when it wants an event for it.
    pub(super) fn flush(&mut self, now_us: u64) -> bool {
        for id in self.queued.drain(..) {
            let slot = &mut self.slots.0[usize::from(id)];
            slot.state = State::Pending;
            slot.since_us = now_us;
        }
        self.ring.publish()
    }

    /// Takes the responses there are and credits each slot's owner.
    pub(super) fn complete(
        &mut self,
        now_us: u64,
        statistics: &mut Statistics,
        sink: &mut dyn FnMut(Completion),
    ) -> Result<(), Violation> {
        let ready = self.ring.poll()?;
        if ready == 0 {
            return Ok(());
        }
        self.wanted = 0;
        while let Some((_, response)) = self.ring.take::<1>() {
            let response = TxResponse::parse(response);
            if let Some(completion) = self.answer(response, now_us, statistics)? {
                sink(completion);
            }
        }
        Ok(())
    }

    /// Takes one response.
    fn answer(
        &mut self,
        response: TxResponse,
        now_us: u64,
        statistics: &mut Statistics,
    ) -> Result<Option<Completion>, Violation> {
        let TxResponse { id, status } = response;
        if status == wire::RSP_NULL {
            // It answers an extra, right behind the response to the slot that had it. Its id is
            // what the slot happened to hold.
            self.nulls_due = self.nulls_due.checked_sub(1).ok_or(Violation::TxNull)?;
            return Ok(None);
        }
        let id = u8::try_from(id).map_err(|_| Violation::TxId { got: id })?;
        match status {
            wire::RSP_OKAY => {}
            wire::RSP_ERROR => statistics.tx_errors += 1,
            wire::RSP_DROPPED => statistics.tx_dropped += 1,
            got => return Err(Violation::TxStatus { id, got }),
        }
        let slot = &mut self.slots.0[usize::from(id)];
        if slot.state != State::Pending {
            return Err(Violation::TxNotPending { id });
        }
        let Slot {
            state: _,
            extra,
            owner,
            bytes,
            since_us,
            page: _,
        } = mem::take(slot);
        self.nulls_due += u32::from(extra);
        // There is room: an identifier is in the list or in use.
        let _ = self.free.push(id);
        statistics.tx_responses += 1;
        Ok((bytes > 0).then_some(Completion {
            owner,
            bytes,
            held_us: now_us.saturating_sub(since_us),
        }))
    }

    /// Asks for an event: when half of what is outstanding has been answered, or as soon as there
    /// is room for a frame that was refused. Returns whether it is too late for it.
    pub(super) fn arm(&mut self) -> Result<bool, Violation> {
        let outstanding = self.ring.outstanding();
        if outstanding == 0 {
            return Ok(false);
        }
        let half = outstanding / 2 + 1;
        let after = match self.wanted.saturating_sub(self.ring.room()) {
            _ if self.wanted == 0 => half,
            missing => missing.clamp(1, half),
        };
        self.ring.arm(after as u32)
    }

    /// Whether responses may come that [`Self::arm`] asks no event for.
    pub(super) fn coalesces(&self) -> bool {
        self.ring.outstanding() > 1
    }

    /// Whether a frame was refused though there is no response to wait for.
    pub(super) fn is_short(&self) -> bool {
        self.wanted > 0 && self.ring.outstanding() == 0
    }

    /// Slots that are free.
    pub(super) fn room(&self) -> usize {
        self.ring.room()
    }

    /// Ends the grants of ring and arena, and returns whom to credit. The grants of the payload's
    /// pages must have been ended or held before, for the pages are let go of here.
    pub(super) fn close(self, grants: &mut BackendGrants, statistics: &mut Statistics) -> Slots {
        let Self {
            ring,
            arena,
            mut slots,
            free: _,
            queued: _,
            nulls_due: _,
            wanted: _,
        } = self;
        ring.close(grants, statistics);
        for page in arena.0 {
            grants.end(page, statistics);
        }
        for slot in slots.0.iter_mut() {
            slot.page = None;
        }
        slots
    }

    fn push(&mut self, id: u8, slot: Slot, request: [u32; TX_WORDS]) {
        self.slots.0[usize::from(id)] = slot;
        // There is room: each identifier is queued at most once.
        let _ = self.queued.push(id);
        self.ring.push(request);
    }

    /// Notes that a frame of so many slots waits for room.
    fn want(&mut self, slots: usize) {
        self.wanted = match self.wanted {
            0 => slots,
            smallest => smallest.min(slots),
        };
    }

    /// An identifier in no use. `transmit` has made sure that there are enough.
    fn take_id(&mut self) -> u8 {
        self.free
            .pop()
            .expect("an identifier for each slot of the frame")
    }
}
