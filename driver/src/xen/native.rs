//! The real hypervisor: detection by CPUID, and hypercalls through the page that Xen fills.

use super::errno::Errno;
use super::hypercall::{
    HvmParam, Hypervisor, PastDeadline, Resumed, ShutdownReason, SpecialFrame, Version, Virq,
};
use super::types::{DomId, EventPort, Gfn, VcpuId};
use core::arch::x86_64::{__cpuid_count, CpuidResult};
use core::arch::{asm, global_asm};
use core::ptr;
use xen_sys::{
    __HYPERVISOR_console_io, __HYPERVISOR_event_channel_op, __HYPERVISOR_hvm_op,
    __HYPERVISOR_memory_op, __HYPERVISOR_sched_op, __HYPERVISOR_vcpu_op, __HYPERVISOR_xen_version,
    CONSOLEIO_write, EVTCHNOP_alloc_unbound, EVTCHNOP_bind_virq, EVTCHNOP_close, EVTCHNOP_send,
    EVTCHNOP_unmask, SCHEDOP_shutdown, evtchn_alloc_unbound, evtchn_bind_virq, evtchn_close,
    evtchn_send, evtchn_unmask, hypercall_2, hypercall_3, sched_shutdown,
};

/// `XENVER_version` (`version.h`).
const XENVER_VERSION: u32 = 0;
/// `XENMEM_add_to_physmap` (`memory.h`).
const XENMEM_ADD_TO_PHYSMAP: u32 = 7;
/// `HVMOP_set_param` (`hvm/hvm_op.h`).
const HVMOP_SET_PARAM: u32 = 0;
/// `HVMOP_get_param`.
const HVMOP_GET_PARAM: u32 = 1;
/// `HVMOP_set_evtchn_upcall_vector`.
const HVMOP_SET_EVTCHN_UPCALL_VECTOR: u32 = 23;
/// `VCPUOP_stop_periodic_timer` (`vcpu.h`).
const VCPUOP_STOP_PERIODIC_TIMER: u32 = 7;
/// `VCPUOP_set_singleshot_timer`.
const VCPUOP_SET_SINGLESHOT_TIMER: u32 = 8;
/// `VCPUOP_stop_singleshot_timer`.
const VCPUOP_STOP_SINGLESHOT_TIMER: u32 = 9;
/// `VCPU_SSHOTTMR_future`.
const VCPU_SSHOTTMR_FUTURE: u32 = 1;

/// `struct xen_add_to_physmap` (`memory.h`).
#[repr(C)]
struct AddToPhysmap {
    domid: u16,
    size: u16,
    space: u32,
    idx: u64,
    gpfn: u64,
}

/// `struct xen_hvm_param` (`hvm/hvm_op.h`).
#[repr(C)]
struct XenHvmParam {
    domid: u16,
    pad: u16,
    index: u32,
    value: u64,
}

/// `struct xen_hvm_evtchn_upcall_vector` (`hvm/hvm_op.h`).
#[repr(C)]
struct EvtchnUpcallVector {
    vcpu: u32,
    vector: u8,
}

/// `struct vcpu_set_singleshot_timer` (`vcpu.h`).
#[repr(C)]
struct SetSingleshotTimer {
    timeout_abs_ns: u64,
    flags: u32,
}

// The page that xen-sys calls into, filled by Xen. It lies with the code, so that page tables that
// tell code from data make it executable; Xen writes to it by its physical address. Until then it
// holds breakpoints, so that a call made too early is caught at once.
global_asm!(
    ".pushsection .text.hypercall_page, \"ax\", @progbits",
    ".p2align 12",
    ".globl HYPERCALL_PAGE",
    ".type HYPERCALL_PAGE, @object",
    ".size HYPERCALL_PAGE, 4096",
    "HYPERCALL_PAGE:",
    ".fill 4096, 1, 0xcc",
    ".popsection",
);

unsafe extern "C" {
    #[link_name = "HYPERCALL_PAGE"]
    safe static HYPERCALL_PAGE: [u8; 4096];
}

/// The address of the hypercall page in the image, page-aligned: [`Xen::enable`] wants its
/// physical address.
pub fn hypercall_page() -> *const u8 {
    (&raw const HYPERCALL_PAGE).cast()
}

/// What Xen says of itself in its CPUID leaves (`arch-x86/cpuid.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XenCpuid {
    /// The hypervisor's version; QEMU's Xen emulation says what it was told to say.
    pub version: Version,
    /// The MSR that takes the physical address of the hypercall page.
    pub hypercall_msr: u32,
    /// This vCPU's number as Xen counts, where the leaf gives it.
    pub vcpu: Option<VcpuId>,
    /// This domain's number, where the leaf gives it.
    pub domid: Option<DomId>,
}

impl XenCpuid {
    /// Looks for Xen with the CPUID instruction.
    pub fn detect() -> Option<Self> {
        Self::scan(|leaf| __cpuid_count(leaf, 0))
    }

    /// Looks for Xen's signature in the leaves that hypervisors use. Xen is not at the first of
    /// them when it offers Viridian leaves too.
    fn scan(cpuid: impl Fn(u32) -> CpuidResult) -> Option<Self> {
        // CPUID.1:ECX bit 31: without it there is no hypervisor and the range is not defined.
        if cpuid(1).ecx >> 31 == 0 {
            return None;
        }
        let (base, max_leaf) = (0x4000_0000..0x4001_0000)
            .step_by(0x100)
            .map(|base| (base, cpuid(base)))
            .find(|(_, r)| [r.ebx, r.ecx, r.edx] == [0x566e_6558, 0x6558_4d4d, 0x4d4d_566e])
            .map(|(base, r)| (base, r.eax))?;
        if max_leaf < base + 2 {
            return None;
        }
        let version = cpuid(base + 1).eax;
        let hypercall_msr = cpuid(base + 2).ebx;
        let (mut vcpu, mut domid) = (None, None);
        if max_leaf >= base + 4 {
            let hvm = cpuid(base + 4);
            vcpu = (hvm.eax & (1 << 3) != 0).then_some(VcpuId(hvm.ebx));
            domid = (hvm.eax & (1 << 4) != 0).then_some(DomId(hvm.ecx as u16));
        }
        Some(Self {
            version: Version {
                major: (version >> 16) as u16,
                minor: version as u16,
            },
            hypercall_msr,
            vcpu,
            domid,
        })
    }
}

/// Xen itself. A value exists only once the hypercall page is filled.
#[derive(Clone, Copy, Debug)]
pub struct Xen(());

impl Xen {
    /// Has Xen fill the hypercall page at physical address `page_paddr`.
    ///
    /// From now on Xen lays out `shared_info` for the CPU mode of this call, 64-bit.
    ///
    /// # Safety
    ///
    /// - The CPU is in ring 0 of a Xen guest that `cpuid` describes.
    /// - `page_paddr` is the physical address of [`hypercall_page`], which is mapped executable,
    ///   and virtual addresses of hypercall arguments stay mapped while a call lasts.
    pub unsafe fn enable(cpuid: &XenCpuid, page_paddr: u64) -> Self {
        // SAFETY: the caller vouches for ring 0 and for the MSR, which Xen's CPUID leaf named. The
        // page that Xen overwrites holds nothing but breakpoints.
        unsafe {
            asm!(
                "wrmsr",
                in("ecx") cpuid.hypercall_msr,
                in("eax") page_paddr as u32,
                in("edx") (page_paddr >> 32) as u32,
                options(nostack, preserves_flags),
            );
        }
        Self(())
    }

    /// A hypercall with a number and a pointer to its argument, which Xen may write to.
    fn op<T>(self, hypercall: u32, cmd: u32, arg: &mut T) -> Result<u64, Errno> {
        let Self(()) = self;
        let arg = ptr::from_mut(arg).expose_provenance() as u64;
        // SAFETY: a `Xen` exists, so the hypercall page is filled and executable. `arg` points to
        // a structure that the caller of this private method chose to be the one `cmd` takes, and
        // that is borrowed for the call. Xen touches no other memory of ours. The call
        // instruction of xen-sys pushes although it says `nostack`: harmless, because
        // x86_64-unknown-none has no red zone and nothing else runs this in earnest.
        Errno::check(unsafe { hypercall_2(hypercall, u64::from(cmd), arg) })
    }

    /// A `vcpu_op`, with a pointer to its argument or null.
    fn vcpu_op(self, cmd: u32, vcpu: VcpuId, arg: *const SetSingleshotTimer) -> Result<u64, Errno> {
        let Self(()) = self;
        // SAFETY: as in `op`; `arg` is null where `cmd` takes none, else valid for the call.
        Errno::check(unsafe {
            hypercall_3(
                __HYPERVISOR_vcpu_op,
                u64::from(cmd),
                u64::from(vcpu.0),
                arg.expose_provenance() as u64,
            )
        })
    }
}

impl Hypervisor for Xen {
    fn version(&self) -> Result<Version, Errno> {
        // SAFETY: as in `op`; XENVER_version ignores its argument.
        let packed = Errno::check(unsafe {
            hypercall_2(__HYPERVISOR_xen_version, XENVER_VERSION.into(), 0)
        })?;
        Ok(Version {
            major: (packed >> 16) as u16,
            minor: packed as u16,
        })
    }

    fn evtchn_send(&self, port: EventPort) -> Result<(), Errno> {
        let mut arg = evtchn_send { port: port.0 };
        self.op(__HYPERVISOR_event_channel_op, EVTCHNOP_send, &mut arg)?;
        Ok(())
    }

    fn evtchn_alloc_unbound(&self, remote: DomId) -> Result<EventPort, Errno> {
        let mut arg = evtchn_alloc_unbound {
            dom: DomId::SELF.0,
            remote_dom: remote.0,
            port: 0,
        };
        self.op(
            __HYPERVISOR_event_channel_op,
            EVTCHNOP_alloc_unbound,
            &mut arg,
        )?;
        Ok(EventPort(arg.port))
    }

    fn evtchn_bind_virq(&self, virq: Virq, vcpu: VcpuId) -> Result<EventPort, Errno> {
        let mut arg = evtchn_bind_virq {
            virq: virq as u32,
            vcpu: vcpu.0,
            port: 0,
        };
        self.op(__HYPERVISOR_event_channel_op, EVTCHNOP_bind_virq, &mut arg)?;
        Ok(EventPort(arg.port))
    }

    fn evtchn_unmask(&self, port: EventPort) -> Result<(), Errno> {
        let mut arg = evtchn_unmask { port: port.0 };
        self.op(__HYPERVISOR_event_channel_op, EVTCHNOP_unmask, &mut arg)?;
        Ok(())
    }

    fn evtchn_close(&self, port: EventPort) -> Result<(), Errno> {
        let mut arg = evtchn_close { port: port.0 };
        self.op(__HYPERVISOR_event_channel_op, EVTCHNOP_close, &mut arg)?;
        Ok(())
    }

    fn add_to_physmap(&self, frame: SpecialFrame, gfn: Gfn) -> Result<(), Errno> {
        let (space, idx) = match frame {
            SpecialFrame::SharedInfo => (0, 0),
            SpecialFrame::GrantTable(index) => (1, u64::from(index)),
        };
        let mut arg = AddToPhysmap {
            domid: DomId::SELF.0,
            size: 0,
            space,
            idx,
            gpfn: gfn.0,
        };
        self.op(__HYPERVISOR_memory_op, XENMEM_ADD_TO_PHYSMAP, &mut arg)?;
        Ok(())
    }

    fn hvm_param(&self, param: HvmParam) -> Result<u64, Errno> {
        let mut arg = XenHvmParam {
            domid: DomId::SELF.0,
            pad: 0,
            index: param as u32,
            value: 0,
        };
        self.op(__HYPERVISOR_hvm_op, HVMOP_GET_PARAM, &mut arg)?;
        Ok(arg.value)
    }

    fn set_hvm_param(&self, param: HvmParam, value: u64) -> Result<(), Errno> {
        let mut arg = XenHvmParam {
            domid: DomId::SELF.0,
            pad: 0,
            index: param as u32,
            value,
        };
        self.op(__HYPERVISOR_hvm_op, HVMOP_SET_PARAM, &mut arg)?;
        Ok(())
    }

    fn set_evtchn_upcall_vector(&self, vcpu: VcpuId, vector: u8) -> Result<(), Errno> {
        let mut arg = EvtchnUpcallVector {
            vcpu: vcpu.0,
            vector,
        };
        self.op(
            __HYPERVISOR_hvm_op,
            HVMOP_SET_EVTCHN_UPCALL_VECTOR,
            &mut arg,
        )?;
        Ok(())
    }

    fn shutdown(&self, reason: ShutdownReason) -> Result<Resumed, Errno> {
        let mut arg = sched_shutdown {
            reason: reason as u32,
        };
        match self.op(__HYPERVISOR_sched_op, SCHEDOP_shutdown, &mut arg)? {
            0 => Ok(Resumed::NewDomain),
            _ => Ok(Resumed::Cancelled),
        }
    }

    fn set_singleshot_timer(
        &self,
        vcpu: VcpuId,
        deadline_ns: u64,
        past: PastDeadline,
    ) -> Result<(), Errno> {
        let arg = SetSingleshotTimer {
            timeout_abs_ns: deadline_ns,
            flags: match past {
                PastDeadline::Fire => 0,
                PastDeadline::Refuse => VCPU_SSHOTTMR_FUTURE,
            },
        };
        self.vcpu_op(VCPUOP_SET_SINGLESHOT_TIMER, vcpu, &raw const arg)?;
        Ok(())
    }

    fn stop_singleshot_timer(&self, vcpu: VcpuId) -> Result<(), Errno> {
        self.vcpu_op(VCPUOP_STOP_SINGLESHOT_TIMER, vcpu, ptr::null())?;
        Ok(())
    }

    fn stop_periodic_timer(&self, vcpu: VcpuId) -> Result<(), Errno> {
        self.vcpu_op(VCPUOP_STOP_PERIODIC_TIMER, vcpu, ptr::null())?;
        Ok(())
    }

    fn console_write(&self, bytes: &[u8]) -> Result<(), Errno> {
        // SAFETY: as in `op`; the third argument points to as many bytes as the second says.
        Errno::check(unsafe {
            hypercall_3(
                __HYPERVISOR_console_io,
                u64::from(CONSOLEIO_write),
                bytes.len() as u64,
                bytes.as_ptr().expose_provenance() as u64,
            )
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
