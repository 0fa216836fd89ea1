//! What the image runs on.

use core::fmt;
use raw_cpuid::{CpuId, Hypervisor};

/// What the image runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    /// A Xen guest.
    Xen,
    /// QEMU or another monitor on KVM.
    Kvm,
    /// QEMU without acceleration, or a machine that does not say.
    Pc,
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Xen => "Xen",
            Self::Kvm => "KVM",
            Self::Pc => "a PC without hypervisor interface",
        })
    }
}

/// Asks CPUID.
pub(crate) fn detect() -> Platform {
    match CpuId::new()
        .get_hypervisor_info()
        .map(|info| info.identify())
    {
        Some(Hypervisor::Xen) => Platform::Xen,
        Some(Hypervisor::KVM) => Platform::Kvm,
        _ => Platform::Pc,
    }
}
