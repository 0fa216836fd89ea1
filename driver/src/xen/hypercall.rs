//! The hypercalls that Paceline uses, as a trait: the real ones are in [`super::native`], a fake
//! for host tests in `super::fake`.

use super::errno::Errno;
use super::types::{DomId, EventPort, Gfn, VcpuId};
use alloc::rc::Rc;
use core::fmt;

/// A hypervisor that speaks Xen's interface.
///
/// Names follow the public headers; each method says which operation it is.
pub trait Hypervisor {
    /// The hypervisor's version (`XENVER_version` in `version.h`).
    fn version(&self) -> Result<Version, Errno>;

    /// Notifies the other end of a channel (`EVTCHNOP_send` in `event_channel.h`).
    fn evtchn_send(&self, port: EventPort) -> Result<(), Errno>;

    /// Allocates a port that `remote` may bind to (`EVTCHNOP_alloc_unbound`).
    fn evtchn_alloc_unbound(&self, remote: DomId) -> Result<EventPort, Errno>;

    /// Allocates a port that a virtual interrupt raises (`EVTCHNOP_bind_virq`).
    fn evtchn_bind_virq(&self, virq: Virq, vcpu: VcpuId) -> Result<EventPort, Errno>;

    /// Unmasks a port and delivers what came in while it was masked (`EVTCHNOP_unmask`).
    fn evtchn_unmask(&self, port: EventPort) -> Result<(), Errno>;

    /// Closes a port; the other end is left unbound (`EVTCHNOP_close`).
    fn evtchn_close(&self, port: EventPort) -> Result<(), Errno>;

    /// Makes a frame of Xen's appear at `gfn` (`XENMEM_add_to_physmap` in `memory.h`).
    ///
    /// Memory that was at `gfn` is lost for good: choose a frame that holds none.
    fn add_to_physmap(&self, frame: SpecialFrame, gfn: Gfn) -> Result<(), Errno>;

    /// Reads a parameter of this domain (`HVMOP_get_param` in `hvm/hvm_op.h`).
    fn hvm_param(&self, param: HvmParam) -> Result<u64, Errno>;

    /// Sets a parameter of this domain (`HVMOP_set_param`).
    fn set_hvm_param(&self, param: HvmParam, value: u64) -> Result<(), Errno>;

    /// Has a vCPU's events raise `vector` through its local APIC, which must be enabled and wants
    /// an EOI (`HVMOP_set_evtchn_upcall_vector`).
    fn set_evtchn_upcall_vector(&self, vcpu: VcpuId, vector: u8) -> Result<(), Errno>;

    /// Ends the domain, or suspends it (`SCHEDOP_shutdown` in `sched.h`). Only a suspended domain
    /// comes back.
    fn shutdown(&self, reason: ShutdownReason) -> Result<Resumed, Errno>;

    /// Raises [`Virq::Timer`] on `vcpu` at `deadline_ns` of the guest's system time
    /// (`VCPUOP_set_singleshot_timer` in `vcpu.h`).
    fn set_singleshot_timer(
        &self,
        vcpu: VcpuId,
        deadline_ns: u64,
        past: PastDeadline,
    ) -> Result<(), Errno>;

    /// Stops a vCPU's one-shot timer (`VCPUOP_stop_singleshot_timer`).
    fn stop_singleshot_timer(&self, vcpu: VcpuId) -> Result<(), Errno>;

    /// Stops a vCPU's periodic timer (`VCPUOP_stop_periodic_timer`).
    fn stop_periodic_timer(&self, vcpu: VcpuId) -> Result<(), Errno>;

    /// Writes to Xen's own console, where a debug build or `guest_loglvl` shows it
    /// (`CONSOLEIO_write` in `xen.h`).
    fn console_write(&self, bytes: &[u8]) -> Result<(), Errno>;
}

macro_rules! delegate {
    ($($pointer:ty),*) => {$(
        impl<T: Hypervisor + ?Sized> Hypervisor for $pointer {
            fn version(&self) -> Result<Version, Errno> {
                (**self).version()
            }

            fn evtchn_send(&self, port: EventPort) -> Result<(), Errno> {
                (**self).evtchn_send(port)
            }

            fn evtchn_alloc_unbound(&self, remote: DomId) -> Result<EventPort, Errno> {
                (**self).evtchn_alloc_unbound(remote)
            }

            fn evtchn_bind_virq(&self, virq: Virq, vcpu: VcpuId) -> Result<EventPort, Errno> {
                (**self).evtchn_bind_virq(virq, vcpu)
            }

            fn evtchn_unmask(&self, port: EventPort) -> Result<(), Errno> {
                (**self).evtchn_unmask(port)
            }

            fn evtchn_close(&self, port: EventPort) -> Result<(), Errno> {
                (**self).evtchn_close(port)
            }

            fn add_to_physmap(&self, frame: SpecialFrame, gfn: Gfn) -> Result<(), Errno> {
                (**self).add_to_physmap(frame, gfn)
            }

            fn hvm_param(&self, param: HvmParam) -> Result<u64, Errno> {
                (**self).hvm_param(param)
            }

            fn set_hvm_param(&self, param: HvmParam, value: u64) -> Result<(), Errno> {
                (**self).set_hvm_param(param, value)
            }

            fn set_evtchn_upcall_vector(&self, vcpu: VcpuId, vector: u8) -> Result<(), Errno> {
                (**self).set_evtchn_upcall_vector(vcpu, vector)
            }

            fn shutdown(&self, reason: ShutdownReason) -> Result<Resumed, Errno> {
                (**self).shutdown(reason)
            }

            fn set_singleshot_timer(
                &self,
                vcpu: VcpuId,
                deadline_ns: u64,
                past: PastDeadline,
            ) -> Result<(), Errno> {
                (**self).set_singleshot_timer(vcpu, deadline_ns, past)
            }

            fn stop_singleshot_timer(&self, vcpu: VcpuId) -> Result<(), Errno> {
                (**self).stop_singleshot_timer(vcpu)
            }

            fn stop_periodic_timer(&self, vcpu: VcpuId) -> Result<(), Errno> {
                (**self).stop_periodic_timer(vcpu)
            }

            fn console_write(&self, bytes: &[u8]) -> Result<(), Errno> {
                (**self).console_write(bytes)
            }
        }
    )*};
}

delegate!(&T, Rc<T>);

/// A hypervisor's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The number before the point.
    pub major: u16,
    /// The number behind it.
    pub minor: u16,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A virtual interrupt (`VIRQ_*` in `xen.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Virq {
    /// The vCPU's timer.
    Timer = 0,
    /// Someone asked for debug output.
    Debug = 1,
}

/// A frame that belongs to Xen and that a guest may map (`XENMAPSPACE_*` in `memory.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialFrame {
    /// The `shared_info` page.
    SharedInfo,
    /// The grant table's frame with this index; Xen grows the table to it.
    GrantTable(u32),
}

/// A parameter of an HVM or PVH domain (`HVM_PARAM_*` in `hvm/params.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum HvmParam {
    /// How events interrupt the domain.
    CallbackIrq = 0,
    /// The frame of the xenstore ring.
    StorePfn = 1,
    /// The xenstore ring's port.
    StoreEvtchn = 2,
    /// The frame of the console ring.
    ConsolePfn = 17,
    /// The console ring's port.
    ConsoleEvtchn = 18,
}

impl HvmParam {
    /// The value of [`HvmParam::CallbackIrq`] that has every vCPU's events raise `vector`
    /// (`HVM_PARAM_CALLBACK_TYPE_VECTOR`).
    pub const fn callback_vector(vector: u8) -> u64 {
        (2 << 56) | vector as u64
    }
}

/// Why a domain ends (`SHUTDOWN_*` in `sched.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ShutdownReason {
    /// The end, cleanly.
    Poweroff = 0,
    /// Start again.
    Reboot = 1,
    /// Save, or move to another host.
    Suspend = 2,
    /// The guest found itself broken.
    Crash = 3,
}

/// How a suspended domain came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// In a new domain: grants, event channels and rings of the old one are void.
    NewDomain,
    /// In the same domain, as if nothing had been: the suspend was cancelled.
    Cancelled,
}

/// What [`Hypervisor::set_singleshot_timer`] does with a deadline that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastDeadline {
    /// Fire at once.
    Fire,
    /// Return [`Errno::ETIME`] (`VCPU_SSHOTTMR_future`).
    Refuse,
}
