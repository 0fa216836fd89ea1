//! What the image runs on.

use core::fmt;
use paceline_driver::xen::native::{Xen, XenCpuid, hypercall_page};
use raw_cpuid::{CpuId, Hypervisor};
use spin::Once;

/// What the image runs on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Platform {
    /// A Xen guest.
    Xen(XenCpuid),
    /// QEMU or another monitor on KVM.
    Kvm,
    /// QEMU without acceleration, or a machine that does not say.
    Pc,
}

static XEN: Once<Xen> = Once::new();

/// Asks CPUID, and sets up hypercalls where it says Xen.
pub(crate) fn detect() -> Platform {
    if let Some(cpuid) = XenCpuid::detect() {
        // SAFETY: this is ring 0 of a Xen guest; the hypercall page lies at its physical address
        // and with the code; all memory stays mapped.
        XEN.call_once(|| unsafe { Xen::enable(&cpuid, hypercall_page() as u64) });
        return Platform::Xen(cpuid);
    }
    match CpuId::new()
        .get_hypervisor_info()
        .map(|info| info.identify())
    {
        Some(Hypervisor::KVM) => Platform::Kvm,
        _ => Platform::Pc,
    }
}

/// Xen, of a Xen guest.
pub(crate) fn xen() -> Option<Xen> {
    XEN.get().copied()
}

impl Platform {
    /// Whether this is a Xen guest.
    pub(crate) fn is_xen(self) -> bool {
        matches!(self, Self::Xen(_))
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Xen(cpuid) => write!(f, "Xen {}", cpuid.version),
            Self::Kvm => f.write_str("KVM"),
            Self::Pc => f.write_str("a PC without hypervisor interface"),
        }
    }
}
