//! What a PVH guest needs of Xen, from the start info to xenstore.
//!
//! Nothing here trusts dom0 or a backend: shared memory is read once into private copies, through
//! raw pointers and atomics only, and indices are checked before use. The hypervisor itself is
//! trusted, as it must be.

pub mod clock;
pub mod console;
pub mod control;
pub mod errno;
pub mod event;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
pub mod grant;
pub mod hypercall;
pub mod memory;
#[cfg(all(target_arch = "x86_64", any(target_os = "none", target_os = "linux")))]
pub mod native;
pub mod shared_info;
pub mod start_info;
pub mod types;
pub mod xenstore;

pub use errno::Errno;
pub use hypercall::Hypervisor;
pub use types::{DomId, EventPort, Gfn, GrantRef, PAGE_BYTES, VcpuId};
