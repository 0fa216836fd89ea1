//! virtio-net, for plain QEMU: on virtio-drivers' own net device and transports.
//!
//! - [`net`]: the NIC: frames in and out, by copying.
//! - [`pci`]: finds NICs on PCI and has them interrupt by MSI-X.
//! - [`transport`]: either transport, with its interrupts.
//!
//! The device is the machine's, and trusted as the machine is; what it writes to the queues is
//! checked nevertheless, and a violation stops the NIC.

pub mod net;
#[cfg(target_arch = "x86_64")]
pub mod pci;
pub mod transport;

pub use net::VirtioNet;
pub use transport::VirtioTransport;
pub use virtio_drivers::{BufferDirection, Hal, PhysAddr};
