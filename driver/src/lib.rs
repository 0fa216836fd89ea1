//! Drivers for paravirtual devices, and all that Paceline has to know of a hypervisor.
//!
//! - [`xen`]: hypercalls, grant table, event channels, clock, console and xenstore of a Xen guest.
//! - [`page`]: the pages that frames lie in.
//! - [`netfront`]: Xen's paravirtual network device.
//! - [`virtio`]: a virtio NIC, for plain QEMU.
//!
//! Everything is testable on the host: what the hypervisor or a backend does is reached through
//! traits and raw shared memory, which the `fake` feature provides.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod netfront;
pub mod page;
pub mod virtio;
pub mod xen;
