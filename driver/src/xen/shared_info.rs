//! The page that Xen shares with the domain: `struct shared_info` of `xen.h`, 64-bit layout.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU64};

/// vCPUs whose `vcpu_info` lies in the page (`XEN_LEGACY_MAX_VCPUS`).
pub const VCPUS: usize = 32;

/// Words of the two event bitmaps, and bits in a selector.
pub const EVENT_WORDS: usize = 64;

/// `struct vcpu_time_info`; its meaning is in [`super::clock`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VcpuTimeInfo {
    /// Odd while the rest is being written.
    pub version: u32,
    /// Padding.
    pub pad: u32,
    /// The TSC at [`VcpuTimeInfo::system_time_ns`].
    pub tsc_timestamp: u64,
    /// Nanoseconds since the domain (on real hardware, the host) started.
    pub system_time_ns: u64,
    /// Nanoseconds per shifted tick, times 2^32.
    pub tsc_to_system_mul: u32,
    /// Ticks are shifted left by this, or right when negative.
    pub tsc_shift: i8,
    /// `XEN_PVCLOCK_*`.
    pub flags: u8,
    /// Padding.
    pub pad1: [u8; 2],
}

/// `struct vcpu_info`.
#[repr(C)]
#[derive(Debug)]
pub struct VcpuInfo {
    pub(crate) events: VcpuEvents,
    pub(crate) arch: [u64; 2],
    pub(crate) time: VcpuTimeInfo,
}

/// The start of `struct vcpu_info`. Xen writes to it at any time, hence atomics.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct VcpuEvents {
    pub(crate) upcall_pending: AtomicU8,
    pub(crate) upcall_mask: AtomicU8,
    pub(crate) pending_sel: AtomicU64,
}

/// `struct shared_info`. Never borrowed as a whole: use the raw pointers below.
#[repr(C)]
#[derive(Debug)]
pub struct SharedInfo {
    pub(crate) vcpu_info: [VcpuInfo; VCPUS],
    pub(crate) evtchn_pending: [AtomicU64; EVENT_WORDS],
    pub(crate) evtchn_mask: [AtomicU64; EVENT_WORDS],
    pub(crate) wall_clock: WallClockInfo,
}

/// The wall clock at system time 0, under its own version.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WallClockInfo {
    pub(crate) version: u32,
    pub(crate) sec: u32,
    pub(crate) nsec: u32,
    pub(crate) sec_hi: u32,
}

impl SharedInfo {
    /// Where the clock of vCPU `vcpu` lies, or `None` past [`VCPUS`].
    ///
    /// # Safety
    ///
    /// `info` points to a `shared_info` page.
    pub unsafe fn time_info(info: NonNull<Self>, vcpu: u32) -> Option<NonNull<VcpuTimeInfo>> {
        if vcpu as usize >= VCPUS {
            return None;
        }
        // SAFETY: the field lies in the page that the caller vouches for; no reference is made.
        let field = unsafe { &raw mut (*info.as_ptr()).vcpu_info[vcpu as usize].time };
        NonNull::new(field)
    }
}

#[cfg(test)]
mod tests;
