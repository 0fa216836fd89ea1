//! A backend for host tests, as strict as Linux's `xen-netback`.
//!
//! It reaches the frontend's pages only through grants, with the checks of [`FakeXen`], and
//! disables the device for good on what Linux takes for malice; [`Netback::fatal`] then says what
//! it was. Its ring ends are open to tests that make it misbehave. [`Host`] has it come and go by
//! way of xenstore.

mod host;
mod rings;
mod rules;

pub use host::{BackendFeatures, Host};
pub use rings::{BackRing, RawRings};
pub use rules::{Fatal, Limits};

use super::wire::{self, TxFlags};
use crate::xen::fake::{FakeXen, GrantMapping};
use crate::xen::{DomId, GrantRef};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use rules::{Packet, TxRequest};

/// A frame on its way through the backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// From the Ethernet header on.
    pub bytes: Vec<u8>,
    /// The transport checksum is not filled in.
    pub csum_blank: bool,
    /// The data is known to be good.
    pub data_validated: bool,
    /// Of a large segment: its pieces' size and the type.
    pub gso: Option<(u16, u8)>,
}

impl Frame {
    /// Plain data.
    pub fn plain(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }
}

/// Which of the frontend's channels to raise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Raise {
    /// The transmit ring's.
    pub tx: bool,
    /// The receive ring's.
    pub rx: bool,
}

/// A request that the backend has mapped and not answered.
struct Mapped {
    id: u16,
    extras: usize,
    /// Unmaps when it goes.
    _mapping: GrantMapping,
}

/// The backend of one queue.
pub struct Netback {
    xen: FakeXen,
    domain: DomId,
    limits: Limits,
    tx: BackRing<{ wire::TX_WORDS }>,
    rx: BackRing<{ wire::RX_WORDS }>,
    mapped: Vec<Mapped>,
    sent: VecDeque<Frame>,
    to_guest: VecDeque<Frame>,
    fatal: Option<Fatal>,
    errors: usize,
    starved: usize,
}

impl Netback {
    /// Maps the rings as `domain`; none when the grants do not allow it.
    pub fn connect(
        xen: FakeXen,
        domain: DomId,
        limits: Limits,
        tx: GrantRef,
        rx: GrantRef,
    ) -> Option<Self> {
        let tx = BackRing::new(xen.map_grant(domain, tx, true).ok()?);
        let rx = BackRing::new(xen.map_grant(domain, rx, true).ok()?);
        Some(Self {
            xen,
            domain,
            limits,
            tx,
            rx,
            mapped: Vec::new(),
            sent: VecDeque::new(),
            to_guest: VecDeque::new(),
            fatal: None,
            errors: 0,
            starved: 0,
        })
    }

    /// Why the device was disabled, if it was.
    pub fn fatal(&self) -> Option<Fatal> {
        self.fatal
    }

    /// Frames of the guest's that were answered with an error.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// How often a frame found too few buffers posted.
    pub fn starved(&self) -> usize {
        self.starved
    }

    /// Requests mapped and not answered.
    pub fn mapped(&self) -> usize {
        self.mapped.len()
    }

    /// The identifier of a request that is mapped.
    pub fn mapped_id(&self, at: usize) -> u16 {
        self.mapped[at].id
    }

    /// Whether a request is mapped.
    pub fn is_mapped(&self, id: u16) -> bool {
        self.mapped.iter().any(|mapped| mapped.id == id)
    }

    /// Unmaps the oldest request that is mapped without answering it; returns its identifier.
    pub fn forget_mapped(&mut self) -> u16 {
        self.mapped.remove(0).id
    }

    /// Frames that wait for buffers.
    pub fn queued(&self) -> usize {
        self.to_guest.len()
    }

    /// The next frame that the guest has sent.
    pub fn next_sent(&mut self) -> Option<Frame> {
        self.sent.pop_front()
    }

    /// Queues a frame for the guest.
    pub fn send(&mut self, frame: Frame) {
        self.to_guest.push_back(frame);
    }

    /// The ring ends, to do with as one likes.
    pub fn rings(&mut self) -> RawRings<'_> {
        RawRings {
            tx: &mut self.tx,
            rx: &mut self.rx,
        }
    }

    /// Takes what the guest has sent and delivers what it can.
    pub fn poll(&mut self) -> Raise {
        if self.fatal.is_some() {
            return Raise::default();
        }
        if let Err(fatal) = self.take_all() {
            self.fatal = Some(fatal);
            return Raise::default();
        }
        self.deliver_all();
        Raise {
            tx: self.tx.publish(),
            rx: self.rx.publish(),
        }
    }

    /// Answers up to `count` mapped requests, each time the one that `pick` chooses among as many
    /// as it is told.
    pub fn complete(&mut self, count: usize, mut pick: impl FnMut(usize) -> usize) -> Raise {
        for _ in 0..count {
            if self.mapped.is_empty() || self.fatal.is_some() {
                break;
            }
            let at = pick(self.mapped.len()) % self.mapped.len();
            let mapped = self.mapped.remove(at);
            self.answer(mapped.id, mapped.extras, wire::RSP_OKAY);
        }
        Raise {
            tx: self.tx.publish(),
            rx: false,
        }
    }

    fn take_all(&mut self) -> Result<(), Fatal> {
        loop {
            let work = self.tx.work();
            if work > self.limits.ring_slots {
                return Err(Fatal::RequestProducer { ahead: work });
            }
            if work == 0 {
                if self.tx.final_check() {
                    continue;
                }
                return Ok(());
            }
            let packet = rules::next_packet(&mut self.tx, self.limits)?;
            self.take(packet)?;
        }
    }

    /// Takes one packet, whose slots have been found in order.
    fn take(&mut self, packet: Packet) -> Result<(), Fatal> {
        let Packet {
            slots,
            extras,
            gso,
            dropped,
        } = packet;
        if dropped {
            self.errors += 1;
            for (at, slot) in slots.iter().enumerate() {
                self.answer(slot.id, if at == 0 { extras } else { 0 }, wire::RSP_ERROR);
            }
            return Ok(());
        }
        let total: usize = slots.iter().map(|slot| usize::from(slot.size)).sum();
        let mut bytes = vec![0; total];
        let mut done = 0;
        for (at, slot) in slots.iter().enumerate() {
            let &TxRequest {
                gref,
                offset,
                id,
                size,
                ..
            } = slot;
            let (start, end) = (done, done + usize::from(size));
            done = end;
            let copied = self.limits.copy_bytes.clamp(start, end);
            let offset = usize::from(offset);
            let mapping = self
                .xen
                .map_grant(self.domain, gref, false)
                .map_err(|_| Fatal::Grant { gref })?;
            mapping.read(offset, &mut bytes[start..end]);
            let extras = if at == 0 { extras } else { 0 };
            if copied == end {
                self.answer(id, extras, wire::RSP_OKAY);
            } else {
                self.mapped.push(Mapped {
                    id,
                    extras,
                    _mapping: mapping,
                });
            }
        }
        let flags = slots[0].flags;
        self.sent.push_back(Frame {
            bytes,
            csum_blank: flags.contains(TxFlags::CSUM_BLANK),
            data_validated: flags.contains(TxFlags::DATA_VALIDATED),
            gso,
        });
        Ok(())
    }

    fn answer(&mut self, id: u16, extras: usize, status: i16) {
        self.tx.respond([wire::pair(id, status as u16), 0, 0], 1);
        for _ in 0..extras {
            // Only the status is written: the id stays whatever the slot holds.
            self.tx.respond_null();
        }
    }

    fn deliver_all(&mut self) {
        while let Some(frame) = self.to_guest.front() {
            let data_slots = frame.bytes.len().div_ceil(self.limits.rx_slot_bytes).max(1);
            let needed = data_slots + usize::from(frame.gso.is_some());
            if self.rx.work() < needed {
                self.starved += 1;
                if self.rx.want(needed) {
                    continue;
                }
                return;
            }
            if let Some(frame) = self.to_guest.pop_front() {
                self.deliver(&frame);
            }
        }
    }

    fn deliver(&mut self, frame: &Frame) {
        let mut pieces = frame.bytes.chunks(self.limits.rx_slot_bytes).peekable();
        let mut first = true;
        while let Some(piece) = pieces.next() {
            let [id, gref] = self.rx.request();
            let offset = self.limits.rx_offset;
            let status = match self.xen.map_grant(self.domain, GrantRef(gref), true) {
                Ok(mapping) => {
                    mapping.write(offset, piece);
                    piece.len() as i16
                }
                Err(_) => wire::RSP_ERROR,
            };
            let mut flags = wire::RxFlags::empty();
            flags.set(wire::RxFlags::MORE_DATA, pieces.peek().is_some());
            if first {
                flags.set(wire::RxFlags::CSUM_BLANK, frame.csum_blank);
                flags.set(wire::RxFlags::DATA_VALIDATED, frame.data_validated);
                flags.set(wire::RxFlags::EXTRA_INFO, frame.gso.is_some());
            }
            self.rx.respond(
                [
                    wire::pair(id as u16, offset as u16),
                    wire::pair(flags.bits(), status as u16),
                ],
                2,
            );
            if let (true, Some((size, kind))) = (first, frame.gso) {
                self.rx.request();
                let extra = [
                    wire::pair(u16::from(wire::EXTRA_GSO), size),
                    u32::from(kind),
                ];
                self.rx.respond(extra, 2);
            }
            first = false;
        }
    }
}
