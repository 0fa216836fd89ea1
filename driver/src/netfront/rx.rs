//! The receive ring.
//!
//! Each slot is posted with a page of its own under a writable grant. A response to a request is
//! in the same slot of the ring as the request was, which is how its page is found: identifiers
//! are the backend's word only. A page is looked at once its grant has ended, for until then the
//! backend could change it. Frames of several slots are put together response by response, so
//! that one whose rest is still to come waits without anything being read twice.

use super::OpenError;
use super::grants::{BackendGrants, GrantedPage};
use super::ring::{FrontRing, RING_SLOTS};
use super::statistics::Statistics;
use super::tx::{ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use super::violation::{RingKind, Violation};
use super::wire::{self, NR_SLOTS_MIN, RX_WORDS, RxExtra, RxFlags, RxResponse};
use crate::page::{Page, PageSlice};
use crate::xen::grant::Access;
use crate::xen::{GrantRef, PAGE_BYTES};
use alloc::boxed::Box;

/// Most slices of a received frame.
pub const MAX_RX_SLICES: usize = NR_SLOTS_MIN;

/// Slots that must be posted for a backend to deliver the longest frame: its data and an extra.
/// With fewer, Linux's backend stops, and cuts the device off when that lasts.
pub const RX_SLOTS_MIN: usize = NR_SLOTS_MIN + 1;

/// Longest frame taken: the longest IP packet with an Ethernet header and a VLAN tag.
const MAX_FRAME_BYTES: u32 = 65_535 + 18;

/// Pages that the backend may keep mapped after it has answered their slots.
const MAX_GRANTS_HELD: usize = 64;

/// A received frame.
#[derive(Debug, Default)]
pub struct RxFrame {
    /// Its bytes in order; backends put all headers into the first slice.
    pub slices: heapless::Vec<PageSlice, MAX_RX_SLICES>,
    /// Whether the data is good, though its transport checksum may not be filled in. Else it has
    /// to be verified.
    pub checksum_good: bool,
    /// Of a frame made of several TCP segments: the payload bytes of each.
    pub segment_bytes: Option<u16>,
}

impl RxFrame {
    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.slices
            .iter()
            .map(|slice| usize::from(slice.end - slice.start))
            .sum()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What the next response holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expect {
    /// The first data of a frame.
    #[default]
    First,
    /// An extra.
    Extra,
    /// Further data.
    Data,
}

/// Why a frame is not handed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bad {
    /// The backend reported an error in it.
    Error,
    /// The backend has one of its pages mapped still.
    StillMapped,
}

/// A frame being put together.
#[derive(Default)]
struct Chain {
    frame: RxFrame,
    expect: Expect,
    /// Further data follows the extras.
    more_data: bool,
    gso: Option<(u16, u8)>,
    hash: bool,
    data_slots: usize,
    bytes: u32,
    bad: Option<Bad>,
}

/// The receive half of a queue.
pub(super) struct RxQueue {
    ring: FrontRing<RX_WORDS>,
    /// What each slot of the ring is posted with.
    posted: Box<[Option<GrantedPage>; RING_SLOTS]>,
    /// Buffers to be posted again as they are.
    recycled: heapless::Vec<GrantedPage, RING_SLOTS>,
    chain: Chain,
    /// The last refill left slots empty.
    short: bool,
}

impl RxQueue {
    /// A ring without buffers, granted to the backend.
    pub(super) fn open(grants: &BackendGrants) -> Result<Self, OpenError> {
        Ok(Self {
            ring: FrontRing::open(RingKind::Rx, grants)?,
            posted: Box::new([const { None }; RING_SLOTS]),
            recycled: heapless::Vec::new(),
            chain: Chain::default(),
            short: false,
        })
    }

    /// The grant of the ring's page.
    pub(super) fn gref(&self) -> GrantRef {
        self.ring.gref()
    }

    /// Posts a buffer in every empty slot, as far as there are pages.
    pub(super) fn refill(&mut self, grants: &BackendGrants, statistics: &mut Statistics) {
        self.short = false;
        while self.ring.room() > 0 {
            let Some(buffer) = self
                .recycled
                .pop()
                .or_else(|| grants.grant(Access::ReadWrite, false).ok())
            else {
                self.short = true;
                statistics.rx_refill_failures += 1;
                return;
            };
            let slot = self.ring.next_request() as usize % RING_SLOTS;
            self.ring.push(wire::rx_request(slot as u8, buffer.gref()));
            self.posted[slot] = Some(buffer);
        }
    }

    /// Shows the backend what has been posted; true when it wants an event for it.
    pub(super) fn flush(&mut self) -> bool {
        self.ring.publish()
    }

    /// The next frame that is complete on the ring.
    pub(super) fn receive(
        &mut self,
        grants: &mut BackendGrants,
        statistics: &mut Statistics,
    ) -> Result<Option<RxFrame>, Violation> {
        // Nothing is posted meanwhile, so there are at most as many turns as the ring has slots.
        loop {
            let Some((at, words)) = self.ring.take() else {
                if self.ring.poll()? == 0 {
                    return Ok(None);
                }
                continue;
            };
            let slot = (at as usize % RING_SLOTS) as u8;
            let buffer = self.posted[usize::from(slot)]
                .take()
                .ok_or(Violation::RxSlotEmpty { slot })?;
            statistics.rx_slots += 1;
            let complete = match self.chain.expect {
                Expect::Extra => {
                    self.recycle(buffer);
                    self.chain.extra(RxExtra::parse(words))?
                }
                Expect::First | Expect::Data => {
                    self.data(slot, RxResponse::parse(words), buffer, grants, statistics)?
                }
            };
            if complete && let Some(frame) = self.finish(grants, statistics) {
                return Ok(Some(frame));
            }
        }
    }

    /// Asks for an event with the next response; returns whether it is there already.
    pub(super) fn arm(&mut self) -> Result<bool, Violation> {
        self.ring.arm(1)
    }

    /// How many pages the ring needs to be full, and the backend to deliver a frame.
    pub(super) fn reserve(&self) -> usize {
        self.ring.room() + RX_SLOTS_MIN
    }

    /// Whether the last refill left slots empty.
    pub(super) fn is_short(&self) -> bool {
        self.short
    }

    /// Buffers posted.
    pub(super) fn posted(&self) -> usize {
        self.ring.outstanding()
    }

    /// Ends the grants of ring and buffers.
    pub(super) fn close(self, grants: &mut BackendGrants, statistics: &mut Statistics) {
        let Self {
            ring,
            posted,
            recycled,
            chain: _,
            short: _,
        } = self;
        ring.close(grants, statistics);
        for buffer in posted.into_iter().flatten().chain(recycled) {
            grants.end(buffer, statistics);
        }
    }

    /// Takes a response that holds data; true when it is a frame's last.
    fn data(
        &mut self,
        slot: u8,
        response: RxResponse,
        buffer: GrantedPage,
        grants: &mut BackendGrants,
        statistics: &mut Statistics,
    ) -> Result<bool, Violation> {
        let RxResponse {
            offset,
            flags,
            status,
        } = response;
        let len = match status {
            ..=-1 => None,
            1..=PAGE_BYTES_I16 => Some(status as u16),
            _ => {
                self.recycle(buffer);
                return Err(Violation::RxStatus { slot, got: status });
            }
        };
        if let Some(len) = len
            && usize::from(offset) + usize::from(len) > PAGE_BYTES
        {
            self.recycle(buffer);
            return Err(Violation::RxBounds { slot, offset, len });
        }
        if let Err(violation) = self.chain.count(len) {
            self.recycle(buffer);
            return Err(violation);
        }
        match len {
            None => {
                self.chain.bad.get_or_insert(Bad::Error);
                self.recycle(buffer);
            }
            Some(_) if self.chain.bad.is_some() => self.recycle(buffer),
            Some(len) => {
                if let Some(page) = grants.end(buffer, statistics) {
                    self.chain.push(page, offset, len);
                } else {
                    self.chain.bad = Some(Bad::StillMapped);
                    // Those that an earlier backend holds are not this one's fault.
                    if grants.deferred() > MAX_GRANTS_HELD {
                        return Err(Violation::GrantsHeld {
                            limit: MAX_GRANTS_HELD,
                        });
                    }
                }
            }
        }
        Ok(self.chain.advance(flags))
    }

    /// Ends the frame at hand, and returns it if it is to be handed up.
    fn finish(&mut self, grants: &BackendGrants, statistics: &mut Statistics) -> Option<RxFrame> {
        let Chain {
            mut frame,
            gso,
            bytes,
            bad,
            expect: _,
            more_data: _,
            hash: _,
            data_slots: _,
        } = core::mem::take(&mut self.chain);
        match bad {
            Some(Bad::Error) => {
                statistics.rx_errors += 1;
                return None;
            }
            Some(Bad::StillMapped) => {
                statistics.rx_still_mapped += 1;
                return None;
            }
            None => {}
        }
        if (bytes as usize) < ETHERNET_HEADER_BYTES {
            statistics.rx_length_errors += 1;
            return None;
        }
        if let Some((size, gso_type)) = gso {
            let head = frame.slices.first().map_or(&[][..], PageSlice::bytes);
            if !is_tcp_segment(head, gso_type) {
                statistics.rx_gso_mismatch += 1;
                return None;
            }
            statistics.rx_gso_packets += 1;
            frame.segment_bytes = Some(size);
        }
        // The pages of this frame are back when it is dropped. If without them the ring could not
        // be filled enough to receive anything, it is.
        let left = self.ring.outstanding() + self.recycled.len() + grants.pool().available();
        if left < RX_SLOTS_MIN {
            statistics.rx_no_buffer += 1;
            return None;
        }
        statistics.rx_packets += 1;
        statistics.rx_bytes += u64::from(bytes);
        statistics.rx_csum_good += u64::from(frame.checksum_good);
        Some(frame)
    }

    fn recycle(&mut self, buffer: GrantedPage) {
        // There is room: there are as many buffers as slots at most, for none is made while one
        // waits here.
        let _ = self.recycled.push(buffer);
    }
}

/// [`PAGE_BYTES`], as a status.
const PAGE_BYTES_I16: i16 = PAGE_BYTES as i16;

impl Chain {
    /// Counts a data slot of `len` bytes.
    fn count(&mut self, len: Option<u16>) -> Result<(), Violation> {
        self.data_slots += 1;
        if self.data_slots > MAX_RX_SLICES {
            return Err(Violation::RxTooManySlots {
                limit: MAX_RX_SLICES,
            });
        }
        self.bytes += u32::from(len.unwrap_or(0));
        if self.bytes > MAX_FRAME_BYTES {
            return Err(Violation::RxTooLong {
                limit_bytes: MAX_FRAME_BYTES,
                got_bytes: self.bytes,
            });
        }
        Ok(())
    }

    /// Appends what a page holds, whose grant has ended.
    fn push(&mut self, mut page: Page, start: u16, len: u16) {
        let end = start + len;
        // All of the page is initialised; what the backend left before `start` is its own.
        page.commit(usize::from(end));
        let page = page.sealed();
        // There is room: `count` has seen to it.
        let _ = self.frame.slices.push(PageSlice { page, start, end });
    }

    /// Moves on behind a data slot; true when it is the last.
    fn advance(&mut self, flags: RxFlags) -> bool {
        let more_data = flags.contains(RxFlags::MORE_DATA);
        if self.expect == Expect::First {
            self.frame.checksum_good =
                flags.intersects(RxFlags::DATA_VALIDATED | RxFlags::CSUM_BLANK);
            self.more_data = more_data;
            if flags.contains(RxFlags::EXTRA_INFO) {
                self.expect = Expect::Extra;
                return false;
            }
        }
        self.expect = Expect::Data;
        !more_data
    }

    /// Takes an extra; true when the frame is complete.
    fn extra(&mut self, extra: RxExtra) -> Result<bool, Violation> {
        let RxExtra {
            kind,
            more,
            gso_size,
            gso_type,
        } = extra;
        match kind {
            wire::EXTRA_GSO => {
                if self.gso.is_some() {
                    return Err(Violation::RxExtraTwice { got: kind });
                }
                if gso_size == 0 {
                    return Err(Violation::RxGsoSize);
                }
                if ![wire::GSO_TCPV4, wire::GSO_TCPV6].contains(&gso_type) {
                    return Err(Violation::RxGsoType { got: gso_type });
                }
                self.gso = Some((gso_size, gso_type));
            }
            wire::EXTRA_HASH => {
                if core::mem::replace(&mut self.hash, true) {
                    return Err(Violation::RxExtraTwice { got: kind });
                }
            }
            got => return Err(Violation::RxExtraType { got }),
        }
        if more {
            return Ok(false);
        }
        self.expect = Expect::Data;
        Ok(!self.more_data)
    }
}

/// Whether a frame starts with the headers that a large segment of this type has, whole.
fn is_tcp_segment(head: &[u8], gso_type: u8) -> bool {
    const TCP: u8 = 6;
    const TCP_HEADER_BYTES: usize = 20;
    let Some((ethernet, ip)) = head.split_at_checked(ETHERNET_HEADER_BYTES) else {
        return false;
    };
    let Some(&first) = ip.first() else {
        return false;
    };
    let tcp = match (gso_type, first >> 4) {
        (wire::GSO_TCPV4, 4) if ethernet[12..] == ETHERTYPE_IPV4 => {
            let header_bytes = usize::from(first & 15) * 4;
            if header_bytes < 20 || ip.get(9) != Some(&TCP) {
                return false;
            }
            ip.get(header_bytes..)
        }
        // There may be extension headers, which are for the stack to follow.
        (wire::GSO_TCPV6, 6) if ethernet[12..] == ETHERTYPE_IPV6 => ip.get(40..),
        _ => return false,
    };
    tcp.is_some_and(|tcp| {
        let header_bytes = tcp.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
        let fixed = gso_type == wire::GSO_TCPV6 && ip[6] != TCP;
        tcp.len() >= TCP_HEADER_BYTES
            && (fixed || (TCP_HEADER_BYTES..=tcp.len()).contains(&header_bytes))
    })
}

#[cfg(test)]
mod tests;
