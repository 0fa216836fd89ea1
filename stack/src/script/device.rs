//! The NIC that a script's stack sits on: what the stack sends is kept for the script to look at,
//! and address resolution is answered by itself.

use super::options::Plan;
use crate::{
    device::{
        Capabilities, Completion, Device, Owner, Page, RxChecksum, RxFrame, RxMemory, Slice,
        TxError, TxFrame, TxOffload,
    },
    sim::{PAGE_BYTES, Pool, SimPage},
    time::{Duration, Instant},
    wire::{
        arp,
        ethernet::{self, Mac},
    },
};
use alloc::{collections::VecDeque, rc::Rc, vec::Vec};
use core::cell::RefCell;

/// The stack's own address on the link.
pub(super) const LOCAL_MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);
/// The address of everybody else.
pub(super) const REMOTE_MAC: Mac = Mac([2, 0, 0, 0, 0, 2]);

/// Pages there are: enough for any window.
const PAGES: usize = 1 << 16;

/// A frame that the stack sent.
#[derive(Clone, Debug)]
pub(super) struct SentFrame {
    pub(super) at: Instant,
    pub(super) bytes: Vec<u8>,
    /// Whether its checksum was left to the device.
    pub(super) offloaded: bool,
}

/// A frame the device still holds.
#[derive(Debug)]
struct Held {
    since: Instant,
    until: Instant,
    owner: Owner,
    payload_bytes: u32,
    /// Kept, not looked at.
    _pages: Vec<SimPage>,
}

#[derive(Debug)]
struct State {
    pool: Pool,
    capabilities: Capabilities,
    completion: Duration,
    inbound: VecDeque<Vec<u8>>,
    queued: Vec<(SentFrame, Held)>,
    held: VecDeque<Held>,
    sent: VecDeque<SentFrame>,
}

/// The device as the stack sees it.
#[derive(Debug)]
pub(super) struct ScriptDevice(Rc<RefCell<State>>);

/// The device as the script sees it.
#[derive(Debug)]
pub(super) struct Wire(Rc<RefCell<State>>);

impl Wire {
    /// A device as `plan` has it.
    pub(super) fn new(plan: &Plan) -> (Self, ScriptDevice) {
        let state = Rc::new(RefCell::new(State {
            pool: Pool::new(PAGES),
            capabilities: Capabilities {
                mtu_bytes: plan.mtu_bytes,
                max_tso4_bytes: plan.max_tso_bytes,
                max_tso6_bytes: 0,
                max_tx_slices: 17,
                tx_ring_bytes: u32::MAX,
                tx_checksum4: plan.max_tso_bytes > 0,
                tx_checksum6: false,
            },
            completion: Duration::from_micros(plan.completion_us),
            inbound: VecDeque::new(),
            queued: Vec::new(),
            held: VecDeque::new(),
            sent: VecDeque::new(),
        }));
        (Self(Rc::clone(&state)), ScriptDevice(state))
    }

    /// Hands a frame to the stack.
    pub(super) fn inject(&self, frame: Vec<u8>) {
        self.0.borrow_mut().inbound.push_back(frame);
    }

    /// The next frame that the stack sent.
    pub(super) fn take(&self) -> Option<SentFrame> {
        self.0.borrow_mut().sent.pop_front()
    }

    /// Whether the stack must be polled at `now`.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let state = self.0.borrow();
        !state.inbound.is_empty() || state.held.front().is_some_and(|held| held.until <= now)
    }

    /// When the next frame is completed.
    pub(super) fn next_completion(&self) -> Option<Instant> {
        self.0.borrow().held.front().map(|held| held.until)
    }
}

impl State {
    /// Answers a request for an address; whether the frame was one for resolution.
    fn resolve(&mut self, bytes: &[u8]) -> bool {
        let Ok(header) = ethernet::Header::parse(bytes) else {
            return false;
        };
        if header.ether_type != ethernet::TYPE_ARP {
            return false;
        }
        if let Ok(request) = arp::Packet::parse(&bytes[ethernet::HEADER_BYTES..])
            && request.operation == arp::Operation::Request
            && request.target != request.sender
        {
            let reply = arp::Packet {
                operation: arp::Operation::Reply,
                sender_mac: REMOTE_MAC,
                sender: request.target,
                target_mac: request.sender_mac,
                target: request.sender,
            };
            let mut frame = [0; ethernet::HEADER_BYTES + arp::PACKET_BYTES];
            let (head, tail) = frame.split_at_mut(ethernet::HEADER_BYTES);
            let header = ethernet::Header {
                dst: request.sender_mac,
                src: REMOTE_MAC,
                ether_type: ethernet::TYPE_ARP,
            };
            if let (Ok(head), Ok(tail)) = (head.try_into(), tail.try_into()) {
                header.emit(head);
                reply.emit(tail);
            }
            self.inbound.push_back(frame.to_vec());
        }
        true
    }
}

impl Device for ScriptDevice {
    type Page = SimPage;

    fn capabilities(&self) -> Capabilities {
        self.0.borrow().capabilities
    }

    fn mac(&self) -> [u8; 6] {
        LOCAL_MAC.0
    }

    fn link_up(&self) -> bool {
        true
    }

    fn alloc_page(&mut self) -> Option<SimPage> {
        self.0.borrow().pool.alloc()
    }

    fn rx_memory(&self) -> RxMemory {
        RxMemory::Plenty
    }

    fn receive(&mut self, _now: Instant) -> Option<RxFrame<SimPage>> {
        let mut state = self.0.borrow_mut();
        let frame = state.inbound.pop_front()?;
        let mut slices = heapless::Vec::new();
        for part in frame.chunks(PAGE_BYTES) {
            let mut page = state.pool.alloc()?;
            page.append(part);
            slices.push(Slice::whole(page)).ok()?;
        }
        Some(RxFrame {
            slices,
            checksum: RxChecksum::Unverified,
            segment_bytes: None,
        })
    }

    fn transmit(&mut self, frame: &TxFrame<'_, SimPage>) -> Result<(), TxError> {
        let mut bytes = frame.header.to_vec();
        for slice in frame.payload {
            bytes.extend_from_slice(slice.bytes());
        }
        let payload_bytes = frame.payload.iter().map(|slice| slice.len() as u32).sum();
        let sent = SentFrame {
            at: Instant::ZERO,
            bytes,
            offloaded: frame.offload != TxOffload::None,
        };
        let held = Held {
            since: Instant::ZERO,
            until: Instant::ZERO,
            owner: frame.owner,
            payload_bytes,
            _pages: frame.payload.iter().map(|s| s.page().clone()).collect(),
        };
        self.0.borrow_mut().queued.push((sent, held));
        Ok(())
    }

    fn flush(&mut self, now: Instant) {
        let mut state = self.0.borrow_mut();
        let state = &mut *state;
        for (mut frame, mut held) in core::mem::take(&mut state.queued) {
            frame.at = now;
            held.since = now;
            held.until = now + state.completion;
            if held.payload_bytes > 0 {
                state.held.push_back(held);
            }
            if !state.resolve(&frame.bytes) {
                state.sent.push_back(frame);
            }
        }
    }

    fn complete(&mut self, now: Instant, sink: &mut dyn FnMut(Completion)) {
        let mut state = self.0.borrow_mut();
        while let Some(held) = state.held.pop_front_if(|held| held.until <= now) {
            sink(Completion {
                owner: held.owner,
                bytes: held.payload_bytes,
                held: held.until.since(held.since),
            });
        }
    }

    fn arm(&mut self) -> bool {
        !self.0.borrow().inbound.is_empty()
    }
}
