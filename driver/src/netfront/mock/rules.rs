//! What Linux's `xen-netback` makes of the requests on the transmit ring.

use super::super::wire::{self, TX_WORDS, TxFlags};
use super::rings::BackRing;
use crate::xen::{GrantRef, PAGE_BYTES};
use alloc::vec::Vec;
use core::fmt;

/// How much a backend takes, and how it fills the pages it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Slots of the ring.
    pub(super) ring_slots: usize,
    /// Data slots behind the first with which a frame is dropped.
    pub(super) dropped_slots: usize,
    /// Data slots behind the first with which the device is disabled.
    pub(super) fatal_slots: usize,
    /// How much of a frame is copied rather than mapped.
    pub(super) copy_bytes: usize,
    /// Frames have one slot only.
    pub(super) single_slot: bool,
    /// Where received data starts in a page.
    pub(super) rx_offset: usize,
    /// How much of it goes into a page.
    pub(super) rx_slot_bytes: usize,
}

impl Limits {
    /// Linux's, 6.18, but that more than 18 data slots in all are not tolerated.
    pub const LINUX: Self = Self {
        ring_slots: 256,
        dropped_slots: 18,
        fatal_slots: 20,
        copy_bytes: 128,
        single_slot: false,
        rx_offset: 0,
        rx_slot_bytes: PAGE_BYTES,
    };

    /// Those of QEMU's `xen-net-device`, which copies everything.
    pub const QEMU: Self = Self {
        ring_slots: 256,
        dropped_slots: 0,
        fatal_slots: 20,
        copy_bytes: PAGE_BYTES,
        single_slot: true,
        rx_offset: 2,
        rx_slot_bytes: PAGE_BYTES - 2,
    };
}

/// Why the backend has disabled the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fatal {
    /// A slot leaves its page.
    CrossPage {
        /// Where it starts.
        offset: u16,
        /// Its size.
        size: u16,
    },
    /// A slot without data.
    EmptySlot,
    /// An extra of an unknown type.
    ExtraType(u8),
    /// A grant that does not exist or does not allow the access.
    Grant {
        /// The grant.
        gref: GrantRef,
    },
    /// A segment size of zero.
    GsoSize,
    /// A large segment without a blank checksum.
    GsoChecksum,
    /// A segmentation type that does not exist.
    GsoType(u8),
    /// An extra is announced, and is not there.
    MissingExtra,
    /// More data is announced, and is not there.
    MissingSlot,
    /// More requests than the ring has slots.
    RequestProducer {
        /// How many.
        ahead: usize,
    },
    /// Too many slots.
    TooManySlots,
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device disabled: {self:?}")
    }
}

/// A transmit request as the backend reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TxRequest {
    pub(super) gref: GrantRef,
    pub(super) offset: u16,
    pub(super) flags: TxFlags,
    pub(super) id: u16,
    pub(super) size: u16,
}

impl TxRequest {
    fn parse([gref, second, third]: [u32; TX_WORDS]) -> Self {
        let (offset, flags) = wire::halves(second);
        let (id, size) = wire::halves(third);
        Self {
            gref: GrantRef(gref),
            offset,
            flags: TxFlags::from_bits_retain(flags),
            id,
            size,
        }
    }
}

/// A packet taken off the ring: each slot with its own size.
pub(super) struct Packet {
    pub(super) slots: Vec<TxRequest>,
    pub(super) extras: usize,
    pub(super) gso: Option<(u16, u8)>,
    pub(super) dropped: bool,
}

/// Takes the next packet off the ring.
pub(super) fn next_packet(ring: &mut BackRing<TX_WORDS>, limits: Limits) -> Result<Packet, Fatal> {
    let mut first = TxRequest::parse(ring.request());
    let (mut extras, mut gso, mut dropped) = (0, None, false);
    let mut extra_follows = first.flags.contains(TxFlags::EXTRA_INFO);
    while extra_follows {
        if ring.work() == 0 {
            return Err(Fatal::MissingExtra);
        }
        let [head, body, _] = ring.request();
        let ([kind, flags, ..], (_, size)) = (head.to_le_bytes(), wire::halves(head));
        match kind {
            wire::EXTRA_GSO => gso = Some((size, body as u8)),
            2..=5 => {}
            _ => return Err(Fatal::ExtraType(kind)),
        }
        extras += 1;
        extra_follows = flags & wire::EXTRA_MORE != 0;
    }
    let mut rest = Vec::new();
    let mut more = first.flags.contains(TxFlags::MORE_DATA);
    while more {
        if ring.work() == 0 {
            return Err(Fatal::MissingSlot);
        }
        if rest.len() >= limits.fatal_slots {
            return Err(Fatal::TooManySlots);
        }
        dropped |= rest.len() >= limits.dropped_slots;
        let slot = TxRequest::parse(ring.request());
        match first.size.checked_sub(slot.size) {
            Some(left) => first.size = left,
            None => dropped = true,
        }
        in_page(slot)?;
        more = slot.flags.contains(TxFlags::MORE_DATA);
        rest.push(slot);
    }
    if 1 + rest.len() > wire::NR_SLOTS_MIN {
        dropped = true;
    }
    dropped |= limits.single_slot && (extras > 0 || !rest.is_empty());
    let mut slots = Vec::from([first]);
    slots.append(&mut rest);
    if !dropped {
        in_page(first)?;
        dropped = usize::from(first.size) < super::super::tx::ETHERNET_HEADER_BYTES;
    }
    if let Some((size, kind)) = gso {
        if size == 0 {
            return Err(Fatal::GsoSize);
        }
        if ![wire::GSO_TCPV4, wire::GSO_TCPV6].contains(&kind) {
            return Err(Fatal::GsoType(kind));
        }
        // Linux repairs this, at a cost; a frontend that does it has a bug.
        if !first.flags.contains(TxFlags::CSUM_BLANK) {
            return Err(Fatal::GsoChecksum);
        }
    }
    Ok(Packet {
        slots,
        extras,
        gso,
        dropped,
    })
}

fn in_page(slot: TxRequest) -> Result<(), Fatal> {
    let TxRequest { offset, size, .. } = slot;
    if usize::from(offset) + usize::from(size) > PAGE_BYTES {
        return Err(Fatal::CrossPage { offset, size });
    }
    if size == 0 {
        return Err(Fatal::EmptySlot);
    }
    Ok(())
}
