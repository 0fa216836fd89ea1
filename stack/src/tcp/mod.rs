//! The Transmission Control Protocol (RFC 9293).

mod out_of_order;
mod recv_queue;
mod retransmit_queue;
mod rtt;
mod sack;
mod send_queue;
mod seq;
#[cfg(test)]
mod testing;

use crate::device::{Completion, Page};
use crate::ip::{IcmpError, IpSender, RxMeta, RxSlices};
use crate::time::Instant;
use core::marker::PhantomData;

/// All TCP connections and listeners of a stack.
#[derive(Debug)]
pub struct Tcp<P> {
    secret: [u8; 16],
    pages: PhantomData<P>,
}

impl<P: Page> Tcp<P> {
    /// No connections yet. `secret` keys initial sequence numbers and ports (RFC 6528 §3).
    pub fn new(secret: [u8; 16]) -> Self {
        Self {
            secret,
            pages: PhantomData,
        }
    }

    /// Takes in a segment: `slices` start at the TCP header, its checksum is good.
    pub fn input(&mut self, now: Instant, meta: &RxMeta, slices: RxSlices<P>) {
        let _ = (now, meta, slices, self.secret);
    }

    /// Takes in an ICMP error; true when it concerns a connection and the quoted sequence number
    /// is one in flight (RFC 5927 §4.1), so that the path MTU may be lowered on its word.
    pub fn icmp_error(&mut self, now: Instant, error: &IcmpError) -> bool {
        let _ = (now, error);
        false
    }

    /// Runs timers and sends as far as the device takes.
    pub fn poll(&mut self, now: Instant, ip: &mut impl IpSender<P>) {
        let _ = (now, ip);
    }

    /// When [`Tcp::poll`] must be called at the latest, if nothing happens before.
    pub fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Credits bytes that the device is done with.
    pub fn completed(&mut self, completion: Completion) {
        let _ = completion;
    }
}
