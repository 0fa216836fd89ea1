//! Drivers for paravirtual devices, and all that Paceline has to know of a hypervisor.
//!
//! - [`xen`]: hypercalls, grant table, event channels, clock, console and xenstore of a Xen guest.
//!
//! Everything is testable on the host: what the hypervisor or a backend does is reached through
//! traits and raw shared memory, which the `fake` feature provides.
#![no_std]

extern crate alloc;

pub mod xen;
