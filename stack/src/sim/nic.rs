//! A NIC with a ring of programmable size and the offloads one likes.

use super::{
    completion::{CompletionTime, Cost},
    frame::Frame,
    packet::Packet,
    page::{PAGE_BYTES, Part, Pool, SimPage},
    random::Random,
};
use crate::{
    device::{
        Capabilities, Completion, Device, MAX_HEADER_BYTES, MAX_RX_SLICES, Owner, RxChecksum,
        RxFrame, RxMemory, Slice, SliceRef, TxError, TxFrame, TxOffload,
    },
    time::{Duration, Instant},
};
use alloc::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
    vec::Vec,
};
use core::cell::RefCell;

/// What a NIC is like. The default has all offloads, and a ring as netfront has it.
#[derive(Clone, Copy, Debug)]
pub struct NicConfig {
    /// Ethernet address; zeros: one is chosen by [`super::Network::add`].
    pub mac: [u8; 6],
    /// Largest IP packet on the wire.
    pub mtu_bytes: u16,
    /// Largest frame for segmentation offload; 0: none.
    pub max_tso_bytes: u32,
    /// Most payload slices of a frame.
    pub max_tx_slices: u8,
    /// Completes checksums of frames to send.
    pub tx_checksum: bool,
    /// Vouches for checksums of received frames.
    pub rx_checksum: bool,
    /// Joins segments of one flow that wait to be received (GRO, LRO).
    pub gro: bool,
    /// Slots of the transmit ring: one for a header, one for each slice, one for segmentation.
    pub tx_slots: usize,
    /// Frames that wait to be received.
    pub rx_frames: usize,
    /// Time from the first frame that waits until the interrupt that tells of it.
    pub rx_coalesce: Duration,
    /// Pages there are, for both directions.
    pub pages: usize,
    /// Time until the slots of a frame come back.
    pub completion: CompletionTime,
    /// What the backend has to do for each frame, one after the other, before it is on the wire.
    pub backend: Cost,
    /// What the host has to do for each frame it sends or receives; it is deaf meanwhile.
    pub cpu: Cost,
}

impl Default for NicConfig {
    fn default() -> Self {
        Self {
            mac: [0; 6],
            mtu_bytes: 1500,
            max_tso_bytes: 65_535,
            max_tx_slices: 17,
            tx_checksum: true,
            rx_checksum: true,
            gro: false,
            tx_slots: 256,
            rx_frames: 256,
            rx_coalesce: Duration::ZERO,
            pages: 8192,
            completion: CompletionTime::AfterSent(Duration::ZERO),
            backend: Cost::default(),
            cpu: Cost::default(),
        }
    }
}

impl NicConfig {
    /// Payload bytes of full frames that the transmit ring has room for. A large segment's payload
    /// begins anywhere in a page, and so takes a slice more than its length has pages.
    pub fn tx_ring_bytes(&self) -> u32 {
        let (frame_bytes, slots) = if self.max_tso_bytes > 0 {
            let slices = u32::from(self.max_tx_slices);
            let frame_bytes = self.max_tso_bytes.min(slices * PAGE_BYTES as u32);
            (frame_bytes, usize::from(self.max_tx_slices) + 2)
        } else {
            (u32::from(self.mtu_bytes), 2)
        };
        let frames = u32::try_from(self.tx_slots / slots).unwrap_or(u32::MAX);
        frames.max(1).saturating_mul(frame_bytes)
    }

    /// Without any offload.
    #[must_use]
    pub fn plain() -> Self {
        Self {
            max_tso_bytes: 0,
            tx_checksum: false,
            rx_checksum: false,
            ..Self::default()
        }
    }
}

/// What a NIC has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NicCounters {
    /// Frames refused because the ring was full.
    pub tx_full: u64,
    /// Frames put on the ring.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Calls of flush that published something.
    pub notifications: u64,
    /// Frames received, those that were joined to others among them.
    pub rx_frames: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames that were joined to the one before.
    pub rx_joined: u64,
    /// Frames lost for want of a slot or page.
    pub rx_dropped: u64,
    /// Most slots of the transmit ring that were in use.
    pub max_tx_slots: usize,
    /// Most payload bytes that were on the transmit ring.
    pub max_tx_bytes: u64,
}

/// A frame that the stack has published, for the other side to take.
#[derive(Debug)]
pub struct Sent {
    /// When it was published.
    pub at: Instant,
    packet: Packet,
    held: Held,
}

/// What comes back to the stack when a frame is done.
#[derive(Debug)]
struct Held {
    owner: Owner,
    payload: Vec<Slice<SimPage>>,
    slots: usize,
}

impl Sent {
    /// The frames on the wire that it becomes; `whole` leaves a large segment in one piece.
    pub fn frames(&self, whole: bool) -> Vec<Frame> {
        let packet = self.packet.clone();
        if whole {
            return [packet.to_frame()].into();
        }
        packet.cut().map(|part| part.to_frame()).collect()
    }

    /// Bytes of the frame.
    pub(super) fn len(&self) -> u64 {
        self.packet.len() as u64
    }

    /// Takes the packet out, to be put on a wire.
    pub(super) fn take_packet(&mut self) -> Packet {
        let empty = Packet::new(Vec::new(), Vec::new(), TxOffload::None);
        core::mem::replace(&mut self.packet, empty)
    }
}

/// A frame that waits to be received, with the pages counted for it.
#[derive(Debug)]
struct Waiting {
    packet: Packet,
    pages: usize,
}

#[derive(Debug)]
struct Nic {
    config: NicConfig,
    pool: Pool,
    random: Random,
    link_up: bool,
    used_slots: usize,
    /// Payload bytes on the ring, and how many of each owner.
    used_bytes: u64,
    owned_bytes: BTreeMap<u32, u64>,
    queued: VecDeque<Sent>,
    published: VecDeque<Sent>,
    /// In order of time.
    done: VecDeque<(Instant, Instant, Held)>,
    stalled_until: Instant,
    received: VecDeque<Waiting>,
    /// Packets and bytes that the host has worked on and that were not yet charged.
    work: (u64, u64),
    interrupt: bool,
    /// When what was received is told of.
    interrupt_at: Option<Instant>,
    counters: NicCounters,
}

impl Nic {
    /// Notes a frame that the host works on.
    fn charge(&mut self, bytes: usize) {
        self.work.0 += 1;
        self.work.1 += bytes as u64;
    }
}

/// The NIC as the stack sees it.
#[derive(Debug)]
pub struct SimDevice(Rc<RefCell<Nic>>);

/// The NIC as the wire sees it.
#[derive(Clone, Debug)]
pub struct SimNic(Rc<RefCell<Nic>>);

impl SimNic {
    /// A NIC: its wire side, and the device for the stack.
    pub fn new(config: NicConfig) -> (Self, SimDevice) {
        let nic = Rc::new(RefCell::new(Nic {
            config,
            pool: Pool::new(config.pages),
            random: Random::new(u64::from(config.mac[5])),
            link_up: true,
            used_slots: 0,
            used_bytes: 0,
            owned_bytes: BTreeMap::new(),
            queued: VecDeque::new(),
            published: VecDeque::new(),
            done: VecDeque::new(),
            stalled_until: Instant::ZERO,
            received: VecDeque::new(),
            work: (0, 0),
            interrupt: true,
            interrupt_at: None,
            counters: NicCounters::default(),
        }));
        (Self(Rc::clone(&nic)), SimDevice(nic))
    }

    /// Takes the next published frame.
    pub fn take(&self) -> Option<Sent> {
        self.0.borrow_mut().published.pop_front()
    }

    /// Gives back a taken frame's slots and pages, from time `at` on.
    pub fn complete(&self, sent: Sent, at: Instant) {
        let mut nic = self.0.borrow_mut();
        let at = nic.done.back().map_or(at, |(last, ..)| at.max(*last));
        let at = at.max(nic.stalled_until);
        nic.done.push_back((at, sent.at, sent.held));
    }

    /// The same when the configured time has passed, for a frame that was sent at `sent_at`.
    pub(super) fn complete_in_time(&self, sent: Sent, sent_at: Instant) {
        let at = {
            let nic = &mut *self.0.borrow_mut();
            nic.config.completion.at(sent.at, sent_at, &mut nic.random)
        };
        self.complete(sent, at);
    }

    /// Receives a frame at once; false when it is lost for want of room.
    pub fn receive(&self, frame: &Frame) -> bool {
        let received = self.deliver(Packet::from_frame(frame.clone()), Instant::ZERO);
        self.0.borrow_mut().interrupt |= received;
        received
    }

    /// Takes in a packet from the wire; false when it is lost for want of room.
    pub(super) fn deliver(&self, packet: Packet, now: Instant) -> bool {
        let mut nic = self.0.borrow_mut();
        let nic = &mut *nic;
        let bytes = match packet.payload_len() {
            0 => packet.front.len(),
            payload => payload,
        };
        let pages = bytes.div_ceil(PAGE_BYTES).max(1);
        let fits = nic.received.len() < nic.config.rx_frames
            && nic.link_up
            && pages < MAX_RX_SLICES
            && nic.pool.reserve(pages);
        if fits {
            nic.counters.rx_frames += 1;
            nic.counters.rx_bytes += packet.len() as u64;
            nic.received.push_back(Waiting { packet, pages });
            let at = now + nic.config.rx_coalesce;
            nic.interrupt_at = nic.interrupt_at.or(Some(at));
        } else {
            nic.counters.rx_dropped += 1;
        }
        fits
    }

    /// Plugs the cable in or pulls it.
    pub fn set_link(&self, up: bool) {
        let mut nic = self.0.borrow_mut();
        nic.link_up = up;
        nic.interrupt = true;
    }

    /// Changes how long slots are held from now on.
    pub fn set_completion(&self, completion: CompletionTime) {
        self.0.borrow_mut().config.completion = completion;
    }

    /// Lets no slot come back before `until`, those that were to come earlier neither.
    pub fn stall(&self, until: Instant) {
        let mut nic = self.0.borrow_mut();
        nic.stalled_until = until;
        for (at, ..) in &mut nic.done {
            *at = (*at).max(until);
        }
    }

    /// What it is like.
    pub fn config(&self) -> NicConfig {
        self.0.borrow().config
    }

    /// What it has counted.
    pub fn counters(&self) -> NicCounters {
        self.0.borrow().counters
    }

    /// Pages in use.
    pub fn pages_in_use(&self) -> usize {
        self.0.borrow().pool.live()
    }

    /// Slots of the transmit ring in use.
    pub fn slots_in_use(&self) -> usize {
        self.0.borrow().used_slots
    }

    /// Payload bytes of `owner` that were not told to be done.
    pub fn bytes_held(&self, owner: Owner) -> u64 {
        let nic = self.0.borrow();
        nic.owned_bytes.get(&owner.0).copied().unwrap_or(0)
    }

    /// How long the host has worked on frames since the last call, in nanoseconds.
    pub(super) fn take_work_ns(&self) -> u64 {
        let mut nic = self.0.borrow_mut();
        let (packets, bytes) = core::mem::take(&mut nic.work);
        nic.config.cpu.nanos(packets, bytes)
    }

    /// Whether the stack must be polled at `now`: something was received or completed.
    pub fn take_interrupt(&self, now: Instant) -> bool {
        let mut nic = self.0.borrow_mut();
        let completed = nic.done.front().is_some_and(|(at, ..)| *at <= now);
        let received = nic.interrupt_at.is_some_and(|at| at <= now);
        if received {
            nic.interrupt_at = None;
        }
        core::mem::take(&mut nic.interrupt) || completed || received
    }

    /// When the stack must be polled next for something received or completed.
    pub fn next_interrupt(&self) -> Option<Instant> {
        let nic = self.0.borrow();
        let now = nic.interrupt.then_some(Instant::ZERO);
        let completion = nic.done.front().map(|(at, ..)| *at);
        let next = [now, completion, nic.interrupt_at];
        next.into_iter().flatten().min()
    }
}

impl Device for SimDevice {
    type Page = SimPage;

    fn capabilities(&self) -> Capabilities {
        let config = self.0.borrow().config;
        Capabilities {
            mtu_bytes: config.mtu_bytes,
            max_tso4_bytes: config.max_tso_bytes,
            max_tso6_bytes: config.max_tso_bytes,
            max_tx_slices: config.max_tx_slices,
            tx_ring_bytes: config.tx_ring_bytes(),
            tx_checksum4: config.tx_checksum,
            tx_checksum6: config.tx_checksum,
        }
    }

    fn mac(&self) -> [u8; 6] {
        self.0.borrow().config.mac
    }

    fn link_up(&self) -> bool {
        self.0.borrow().link_up
    }

    /// A quarter of the pages is kept for receiving: a full send buffer must not shut out the
    /// acknowledgments that empty it.
    fn alloc_page(&mut self) -> Option<SimPage> {
        let nic = self.0.borrow();
        let share = nic.config.pages - nic.config.pages / 4;
        (nic.pool.live() < share).then(|| nic.pool.alloc())?
    }

    fn rx_memory(&self) -> RxMemory {
        let nic = self.0.borrow();
        let (pages, left) = (
            nic.config.pages,
            nic.config.pages.saturating_sub(nic.pool.live()),
        );
        if left <= pages / 8 {
            RxMemory::Spent
        } else if left <= pages / 4 {
            RxMemory::Scarce
        } else {
            RxMemory::Plenty
        }
    }

    fn receive(&mut self, _now: Instant) -> Option<RxFrame<SimPage>> {
        let nic = &mut *self.0.borrow_mut();
        let Waiting { mut packet, pages } = nic.received.pop_front()?;
        let mut pages = pages;
        while nic.config.gro
            && packet.payload.len() < MAX_RX_SLICES - 3
            && let Some(next) = nic.received.pop_front()
        {
            if let Err(packet) = packet.merge(next.packet) {
                let pages = next.pages;
                nic.received.push_front(Waiting { packet, pages });
                break;
            }
            nic.counters.rx_joined += 1;
            nic.work.0 += 1;
            pages += next.pages;
        }
        nic.pool.unreserve(pages);
        nic.charge(packet.len());
        let checksum = if nic.config.rx_checksum {
            RxChecksum::Good
        } else {
            if packet.partial.is_some() {
                packet = Packet::from_frame(packet.to_frame());
            }
            RxChecksum::Unverified
        };
        Some(RxFrame {
            segment_bytes: packet.mss_bytes,
            slices: nic.pool.take_in(packet),
            checksum,
        })
    }

    /// Panics when the frame breaks the contract of [`Device`]: that is a bug of the stack.
    fn transmit(&mut self, frame: &TxFrame<'_, SimPage>) -> Result<(), TxError> {
        let mut nic = self.0.borrow_mut();
        let &TxFrame {
            header,
            payload,
            offload,
            owner,
        } = frame;
        let config = nic.config;
        assert!(header.len() <= MAX_HEADER_BYTES, "header too long");
        assert!(payload.iter().all(|slice| !slice.is_empty()), "empty slice");
        assert!(payload.len() <= usize::from(config.max_tx_slices), "slices");
        let payload_bytes: usize = payload.iter().map(SliceRef::len).sum();
        let frame_bytes = header.len() + payload_bytes;
        match offload {
            TxOffload::None => {}
            TxOffload::Checksum { .. } => assert!(config.tx_checksum, "no checksum offload"),
            TxOffload::Tso { mss_bytes, .. } => {
                assert!(mss_bytes > 0, "segments of nothing");
                assert!(
                    frame_bytes <= config.max_tso_bytes as usize,
                    "{frame_bytes} bytes are over the limit of {}",
                    config.max_tso_bytes
                );
            }
        }
        let large = matches!(offload, TxOffload::Tso { .. });
        assert!(
            large || frame_bytes <= 14 + usize::from(config.mtu_bytes),
            "{frame_bytes} bytes are over the MTU"
        );
        if !nic.link_up {
            return Err(TxError::Down);
        }
        let slots = 1 + payload.len() + usize::from(large);
        if nic.used_slots + slots > config.tx_slots {
            nic.counters.tx_full += 1;
            return Err(TxError::Full);
        }
        nic.used_slots += slots;
        nic.used_bytes += payload_bytes as u64;
        *nic.owned_bytes.entry(owner.0).or_default() += payload_bytes as u64;
        nic.counters.max_tx_slots = nic.counters.max_tx_slots.max(nic.used_slots);
        nic.counters.max_tx_bytes = nic.counters.max_tx_bytes.max(nic.used_bytes);
        nic.counters.tx_frames += 1;
        nic.counters.tx_bytes += frame_bytes as u64;
        nic.charge(frame_bytes);
        let part = |slice: &SliceRef<'_, SimPage>| {
            let start = slice.offset();
            Part::new(slice.page(), start..start + slice.len())
        };
        let parts = payload.iter().map(part).collect();
        nic.queued.push_back(Sent {
            at: Instant::ZERO,
            packet: Packet::new(header.to_vec(), parts, offload),
            held: Held {
                owner,
                payload: payload.iter().map(own).collect(),
                slots,
            },
        });
        Ok(())
    }

    fn flush(&mut self, now: Instant) {
        let mut nic = self.0.borrow_mut();
        let nic = &mut *nic;
        nic.counters.notifications += u64::from(!nic.queued.is_empty());
        nic.published.extend(nic.queued.drain(..).map(|mut sent| {
            sent.at = now;
            sent
        }));
    }

    /// Each slot is told by itself, as netfront sees them come back.
    fn complete(&mut self, now: Instant, sink: &mut dyn FnMut(Completion)) {
        let mut nic = self.0.borrow_mut();
        while let Some((at, published, held)) = nic.done.pop_front_if(|(at, ..)| *at <= now) {
            let Held {
                owner,
                payload,
                slots,
            } = held;
            nic.used_slots -= slots;
            let held: u64 = payload.iter().map(|slice| slice.len() as u64).sum();
            if let Some(owned) = nic.owned_bytes.get_mut(&owner.0) {
                *owned -= held;
                if *owned == 0 {
                    nic.owned_bytes.remove(&owner.0);
                }
            }
            for slice in payload {
                let bytes = slice.len() as u32;
                drop(slice);
                nic.used_bytes -= u64::from(bytes);
                sink(Completion {
                    owner,
                    bytes,
                    held: at.since(published),
                });
            }
        }
    }

    fn arm(&mut self) -> bool {
        let nic = self.0.borrow();
        nic.interrupt || nic.interrupt_at.is_some()
    }
}

/// The same bytes, held.
fn own(slice: &SliceRef<'_, SimPage>) -> Slice<SimPage> {
    let start = slice.offset();
    Slice::new(slice.page().clone(), start..start + slice.len())
}

impl Pool {
    /// The slices of a received packet, in pages of this pool: headers in the first, payload by
    /// reference to the memory it came in.
    fn take_in(&self, packet: Packet) -> heapless::Vec<Slice<SimPage>, MAX_RX_SLICES> {
        let Packet { front, payload, .. } = packet;
        let mut slices = heapless::Vec::new();
        if payload.is_empty() {
            for chunk in front.chunks(PAGE_BYTES) {
                let _ = slices.push(Slice::whole(self.counted(chunk.into())));
            }
            return slices;
        }
        // The headers share a page with the payload.
        let header = SimPage::received(front.into(), None);
        let _ = slices.push(Slice::whole(header));
        if payload.len() < MAX_RX_SLICES {
            for Part { memory, start, end } in payload {
                let _ = slices.push(Slice::new(self.counted(memory), start..end));
            }
            return slices;
        }
        let mut bytes = Vec::new();
        for part in payload {
            bytes.extend_from_slice(part.bytes());
        }
        for chunk in bytes.chunks(PAGE_BYTES) {
            let _ = slices.push(Slice::whole(self.counted(chunk.into())));
        }
        slices
    }

    /// A page that counts, however full the pool is: room was reserved for it, or nearly so.
    fn counted(&self, memory: Rc<[u8]>) -> SimPage {
        self.force();
        SimPage::received(memory, Some(self.token()))
    }
}
