//! The Paceline TCP/IP stack: packets and time in, packets out.
//!
//! No I/O, no globals, no floats, no unsafe code. What the stack needs of a NIC is stated in
//! [`device::Device`]; time is handed in as [`time::Instant`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod counters;
pub mod device;
pub mod ip;
pub mod net;
#[cfg(any(test, feature = "sim"))]
pub mod script;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
mod siphash;
pub mod socket;
pub mod stack;
pub mod sysctl;
pub mod tcp;
pub mod time;
pub mod udp;
pub mod wire;
