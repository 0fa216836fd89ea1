//! A NIC with a ring of programmable size and the offloads one likes.

use super::{
    frame::Frame,
    page::{PAGE_BYTES, Pool, SimPage},
};
use crate::{
    device::{
        Capabilities, Completion, Device, MAX_HEADER_BYTES, Owner, Page, RxChecksum, RxFrame,
        RxMemory, Slice, SliceRef, TxError, TxFrame, TxOffload,
    },
    time::{Duration, Instant},
};
use alloc::{collections::VecDeque, rc::Rc, vec::Vec};
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
    /// Slots of the transmit ring: one for a header, one for each slice, one for segmentation.
    pub tx_slots: usize,
    /// Frames that wait to be received.
    pub rx_frames: usize,
    /// Pages there are, for both directions.
    pub pages: usize,
    /// Time from the end of transmission until the slots come back.
    pub completion_delay: Duration,
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
            tx_slots: 256,
            rx_frames: 256,
            pages: 8192,
            completion_delay: Duration::ZERO,
        }
    }
}

impl NicConfig {
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
    /// Calls of flush that published something.
    pub notifications: u64,
    /// Frames received.
    pub rx_frames: u64,
    /// Frames lost for want of a slot or page.
    pub rx_dropped: u64,
}

/// A frame that the stack has published, for the other side to take.
#[derive(Debug)]
pub struct Sent {
    /// When it was published.
    pub at: Instant,
    bytes: Vec<u8>,
    offload: TxOffload,
    held: Held,
}

/// What comes back to the stack when a frame is done.
#[derive(Debug)]
struct Held {
    owner: Owner,
    payload: Vec<SimPage>,
    payload_bytes: usize,
    slots: usize,
}

impl Sent {
    /// The frames on the wire that it becomes; `whole` leaves a large segment in one piece.
    pub fn frames(&self, whole: bool) -> Vec<Frame> {
        Frame::make(self.bytes.clone(), self.offload, whole)
    }
}

#[derive(Debug)]
struct Nic {
    config: NicConfig,
    pool: Pool,
    link_up: bool,
    used_slots: usize,
    queued: VecDeque<Sent>,
    published: VecDeque<Sent>,
    /// In order of time.
    done: VecDeque<(Instant, Instant, Held)>,
    received: VecDeque<RxFrame<SimPage>>,
    interrupt: bool,
    counters: NicCounters,
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
            link_up: true,
            used_slots: 0,
            queued: VecDeque::new(),
            published: VecDeque::new(),
            done: VecDeque::new(),
            received: VecDeque::new(),
            interrupt: true,
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
        nic.done.push_back((at, sent.at, sent.held));
    }

    /// Receives a frame; false when it is lost for want of room.
    pub fn receive(&self, frame: &Frame) -> bool {
        let mut nic = self.0.borrow_mut();
        let nic = &mut *nic;
        let mut slices = heapless::Vec::new();
        let mut fits = nic.received.len() < nic.config.rx_frames && nic.link_up;
        for part in frame.bytes.chunks(PAGE_BYTES) {
            let Some(mut page) = nic.pool.alloc() else {
                fits = false;
                break;
            };
            page.append(part);
            fits &= slices.push(Slice::whole(page.clone())).is_ok();
        }
        if fits {
            nic.received.push_back(RxFrame {
                slices,
                checksum: if nic.config.rx_checksum {
                    RxChecksum::Good
                } else {
                    RxChecksum::Unverified
                },
                segment_bytes: frame.segment_bytes,
            });
            nic.counters.rx_frames += 1;
            nic.interrupt = true;
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

    /// Whether the stack must be polled at `now`: something was received or completed.
    pub fn take_interrupt(&self, now: Instant) -> bool {
        let mut nic = self.0.borrow_mut();
        let completed = nic.done.front().is_some_and(|(at, ..)| *at <= now);
        core::mem::take(&mut nic.interrupt) || completed
    }

    /// When the next slots come back.
    pub fn next_completion(&self) -> Option<Instant> {
        self.0.borrow().done.front().map(|(at, ..)| *at)
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
        let (pages, left) = (nic.config.pages, nic.config.pages - nic.pool.live());
        if left <= pages / 8 {
            RxMemory::Spent
        } else if left <= pages / 4 {
            RxMemory::Scarce
        } else {
            RxMemory::Plenty
        }
    }

    fn receive(&mut self, _now: Instant) -> Option<RxFrame<SimPage>> {
        self.0.borrow_mut().received.pop_front()
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
        nic.counters.tx_frames += 1;
        let mut bytes = header.to_vec();
        for slice in payload {
            bytes.extend_from_slice(slice.bytes());
        }
        nic.queued.push_back(Sent {
            at: Instant::ZERO,
            bytes,
            offload,
            held: Held {
                owner,
                payload: payload.iter().map(|slice| slice.page().clone()).collect(),
                payload_bytes,
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

    fn complete(&mut self, now: Instant, sink: &mut dyn FnMut(Completion)) {
        let mut nic = self.0.borrow_mut();
        while let Some((at, published, held)) = nic.done.pop_front_if(|(at, ..)| *at <= now) {
            let Held {
                owner,
                payload,
                payload_bytes,
                slots,
            } = held;
            drop(payload);
            nic.used_slots -= slots;
            if payload_bytes > 0 {
                sink(Completion {
                    owner,
                    bytes: payload_bytes as u32,
                    held: at.since(published),
                });
            }
        }
    }

    fn arm(&mut self) -> bool {
        self.0.borrow().interrupt
    }
}
