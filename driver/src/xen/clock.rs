//! The paravirtual clock: system time from the TSC and the parameters that the hypervisor keeps
//! up to date (`struct vcpu_time_info` in `xen.h`). KVM's clock has the same structure, which is
//! called `pvclock_vcpu_time_info` there.

use super::shared_info::{SharedInfo, VcpuTimeInfo};
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering, fence};

/// `XEN_PVCLOCK_TSC_STABLE_BIT`: time is monotonic across vCPUs.
pub const TSC_STABLE: u8 = 1 << 0;
/// `XEN_PVCLOCK_GUEST_STOPPED`: the host paused the guest.
pub const GUEST_STOPPED: u8 = 1 << 1;

/// Attempts to read parameters that are being written. The hypervisor writes them in well under a
/// microsecond, so that more than a few mean that it never will be done.
const MAX_ATTEMPTS: usize = 64;

impl VcpuTimeInfo {
    /// The system time at `tsc`, in nanoseconds. A TSC from before the parameters counts as theirs.
    pub fn ns_at(&self, tsc: u64) -> u64 {
        let ticks = tsc.saturating_sub(self.tsc_timestamp);
        // A shift past the width leaves nothing, or more than fits: it means garbage, and must not
        // overflow.
        let shift = u32::from(self.tsc_shift.unsigned_abs());
        let shifted = if self.tsc_shift < 0 {
            ticks.checked_shr(shift).unwrap_or(0)
        } else {
            ticks.checked_shl(shift).unwrap_or(0)
        };
        let ns = (u128::from(shifted) * u128::from(self.tsc_to_system_mul)) >> 32;
        self.system_time_ns.wrapping_add(ns as u64)
    }

    /// The TSC's frequency in Hz as the parameters have it; 0 when they are not set.
    pub fn tsc_hz(&self) -> u64 {
        if self.tsc_to_system_mul == 0 {
            return 0;
        }
        // One tick takes mul * 2^shift / 2^32 ns.
        let hz = (1_000_000_000_u128 << 32) / u128::from(self.tsc_to_system_mul);
        let shift = u32::from(self.tsc_shift.unsigned_abs()).min(63);
        let hz = if self.tsc_shift < 0 {
            hz << shift
        } else {
            hz >> shift
        };
        u64::try_from(hz).unwrap_or(u64::MAX)
    }
}

/// A clock whose parameters are in shared memory.
///
/// It never goes back, even if the parameters make it.
#[derive(Debug)]
pub struct PvClock {
    info: NonNull<VcpuTimeInfo>,
    last_ns: Cell<u64>,
}

impl PvClock {
    /// The clock with the parameters at `info`: [`SharedInfo::time_info`] of the vCPU that reads
    /// it, or the structure that KVM was given.
    ///
    /// # Safety
    ///
    /// `info` points to such a structure, mapped for as long as the value lives, that only the
    /// hypervisor writes to.
    pub unsafe fn new(info: NonNull<VcpuTimeInfo>) -> Self {
        Self {
            info,
            last_ns: Cell::new(0),
        }
    }

    /// The system time in nanoseconds, with `rdtsc` to read the TSC.
    pub fn now_ns(&self, rdtsc: impl Fn() -> u64) -> u64 {
        // When no consistent parameters can be had, time stands still until they can.
        let now = self
            .read(&rdtsc)
            .map_or(0, |(params, tsc)| params.ns_at(tsc))
            .max(self.last_ns.get());
        self.last_ns.set(now);
        now
    }

    /// The parameters, or `None` when they kept changing.
    pub fn params(&self) -> Option<VcpuTimeInfo> {
        self.read(&|| 0).map(|(params, _)| params)
    }

    /// Consistent parameters, and the TSC while they held: with newer ones it could be before
    /// their timestamp, with older ones too far past it.
    fn read(&self, rdtsc: &impl Fn() -> u64) -> Option<(VcpuTimeInfo, u64)> {
        // SAFETY: `new`'s caller vouches for the memory; the version is an aligned u32 that is
        // accessed atomically.
        let version = unsafe { AtomicU32::from_ptr(&raw mut (*self.info.as_ptr()).version) };
        read_versioned(version, || {
            // SAFETY: as above. A copy torn by the hypervisor is thrown away by version.
            let params = unsafe { self.info.read_volatile() };
            (params, rdtsc())
        })
    }
}

/// The wall clock at system time 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    /// Seconds since 1970-01-01 00:00 UTC.
    pub secs: u64,
    /// Nanoseconds to add.
    pub nanos: u32,
}

impl WallClock {
    /// Reads it from a shared info page; `None` when it kept changing.
    ///
    /// # Safety
    ///
    /// `info` points to a shared info page.
    pub unsafe fn read(info: NonNull<SharedInfo>) -> Option<Self> {
        // SAFETY: the caller vouches for the page.
        let wall = unsafe { &raw mut (*info.as_ptr()).wall_clock };
        // SAFETY: likewise; the version is accessed atomically.
        let version = unsafe { AtomicU32::from_ptr(&raw mut (*wall).version) };
        read_versioned(version, || {
            // SAFETY: likewise. A torn copy is thrown away.
            let wall = unsafe { wall.read_volatile() };
            Self {
                secs: (u64::from(wall.sec_hi) << 32) | u64::from(wall.sec),
                nanos: wall.nsec,
            }
        })
    }
}

/// Runs `read` until the version was even and the same before and after.
fn read_versioned<T>(version: &AtomicU32, mut read: impl FnMut() -> T) -> Option<T> {
    for _ in 0..MAX_ATTEMPTS {
        let before = version.load(Ordering::Acquire);
        if before & 1 == 0 {
            let value = read();
            fence(Ordering::Acquire);
            if version.load(Ordering::Relaxed) == before {
                return Some(value);
            }
        }
        core::hint::spin_loop();
    }
    None
}

#[cfg(test)]
mod tests;
