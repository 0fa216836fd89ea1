//! Identifiers that Xen hands out, one type each so that they cannot be mixed up.

use core::fmt;

/// Bytes of a page, and of everything Xen maps or grants.
pub const PAGE_BYTES: usize = 4096;

/// A domain's identifier (`domid_t` in `xen.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomId(pub u16);

impl DomId {
    /// The control domain.
    pub const DOM0: Self = Self(0);

    /// The calling domain, where a hypercall wants one (`DOMID_SELF`).
    pub const SELF: Self = Self(0x7ff0);
}

/// An event channel's port in this domain (`evtchn_port_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventPort(pub u32);

/// The index of a grant table entry (`grant_ref_t` in `grant_table.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GrantRef(pub u32);

/// A guest frame number: a guest physical address divided by [`PAGE_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gfn(pub u64);

impl Gfn {
    /// The frame that holds the guest physical address `paddr`.
    pub const fn of_paddr(paddr: u64) -> Self {
        Self(paddr / PAGE_BYTES as u64)
    }

    /// The guest physical address of the frame's first byte; it wraps for a frame that no x86 CPU
    /// can address.
    pub const fn paddr(self) -> u64 {
        self.0.wrapping_mul(PAGE_BYTES as u64)
    }
}

/// A virtual CPU's number in this domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VcpuId(pub u32);

macro_rules! display_as_decimal {
    ($($name:ident),*) => {$(
        // The form in which the number is written to xenstore.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

display_as_decimal!(DomId, EventPort, GrantRef, VcpuId);

impl fmt::Display for Gfn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
