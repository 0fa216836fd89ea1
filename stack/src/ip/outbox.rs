//! Packets that nobody waits to send again: answers of the stack itself and the remainders of
//! fragmented datagrams, held while the device queue is full or a neighbour is being resolved.

use super::MAX_TRANSPORT_BYTES;
use crate::{
    device::Slice,
    time::{Duration, Instant},
    wire::ipv4,
};
use alloc::{collections::VecDeque, vec::Vec};

/// Most packets held: three datagrams of 64 KiB in fragments of an Ethernet's size.
pub(crate) const CAPACITY: usize = 144;

/// How long a packet waits: as long as ARP tries.
const LIFETIME: Duration = Duration::from_secs(3);

/// An IP packet with what it needs to be sent.
#[derive(Debug)]
pub(crate) struct OwnedPacket<P> {
    pub(crate) header: ipv4::Header,
    /// Transport header, of a packet or fragment that has it.
    pub(crate) transport: heapless::Vec<u8, MAX_TRANSPORT_BYTES>,
    pub(crate) payload: Vec<Slice<P>>,
    /// Where in `transport` a checksum with pseudo-header is to be filled in.
    pub(crate) checksum: Option<u16>,
}

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct Waiting<P> {
    pub(crate) packet: OwnedPacket<P>,
    expires: Instant,
}

/// Packets that wait, first in, first out for each neighbour.
#[derive(Debug)]
pub(crate) struct Outbox<P> {
    packets: VecDeque<Waiting<P>>,
}

impl<P> Outbox<P> {
    pub(crate) fn new() -> Self {
        Self {
            packets: VecDeque::new(),
        }
    }

    /// How many more packets may wait.
    pub(crate) fn room(&self) -> usize {
        CAPACITY - self.packets.len()
    }

    /// Puts a packet behind the others; false when there is no room.
    pub(crate) fn push(&mut self, now: Instant, packet: OwnedPacket<P>) -> bool {
        let room = self.room() > 0;
        if room {
            self.packets.push_back(Waiting {
                packet,
                expires: now + LIFETIME,
            });
        }
        room
    }

    /// Takes out the packet at `index`.
    pub(crate) fn take(&mut self, index: usize) -> Option<Waiting<P>> {
        self.packets.remove(index)
    }

    /// Puts a packet back where it was.
    pub(crate) fn put_back(&mut self, index: usize, packet: Waiting<P>) {
        self.packets.insert(index, packet);
    }

    /// Drops what has waited too long and returns how many packets that were.
    pub(crate) fn expire(&mut self, now: Instant) -> u64 {
        let before = self.packets.len();
        self.packets.retain(|packet| now < packet.expires);
        (before - self.packets.len()) as u64
    }

    /// When the next packet expires.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.packets.iter().map(|packet| packet.expires).min()
    }
}
