//! A fake hypervisor for host tests: shared info, grant table, event channels, timers and a mock
//! xenstored, all in this process's memory, with the means to play the other domain.
//!
//! The guest's side goes through [`Hypervisor`] as on real Xen. The other side is played with
//! [`FakeXen::bind`], [`FakeXen::raise`], [`FakeXen::take_sends`] and [`FakeXen::map_grant`],
//! which check what Xen checks.

mod executor;
mod grants;
mod memory;
mod store;

pub use executor::block_on;
pub use grants::{GrantMapping, MapGrantError};
pub use memory::Pages;
pub use store::FakeStore;

use super::errno::Errno;
use super::event::{EventChannels, MAX_PORTS};
use super::grant::{ENTRIES_PER_FRAME, GrantTable};
use super::hypercall::{
    HvmParam, Hypervisor, PastDeadline, Resumed, ShutdownReason, SpecialFrame, Version, Virq,
};
use super::shared_info::{SharedInfo, VcpuTimeInfo};
use super::types::{DomId, EventPort, Gfn, PAGE_BYTES, VcpuId};
use super::xenstore::Xenstore;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use memory::{Memory, Region};

/// The guest's own domain.
pub const GUEST: DomId = DomId(1);

/// Frames of the grant table at most (the default of `gnttab_max_frames`).
pub const MAX_GRANT_FRAMES: u32 = 64;

/// Where the special pages of a PVH guest lie.
const SPECIAL_GFN: u64 = 0xf_eff8;
/// Where [`FakeXen::alloc_pages`] starts.
const RAM_GFN: u64 = 0x1000;
/// Where [`FakeXen::event_channels`] and [`FakeXen::grant_table`] map.
const HOLE_GFN: u64 = 0x8_0000;

const STORE_PORT: EventPort = EventPort(1);
const CONSOLE_PORT: EventPort = EventPort(2);

/// The fake hypervisor; clones are the same one.
#[derive(Clone)]
pub struct FakeXen(Rc<State>);

struct State {
    memory: RefCell<Memory>,
    shared_info: Pages,
    grant_frames: Pages,
    store_page: Pages,
    console_page: Pages,
    next_ram_gfn: Cell<u64>,
    ports: RefCell<Vec<Port>>,
    params: RefCell<BTreeMap<HvmParam, u64>>,
    upcall_vector: Cell<Option<u8>>,
    upcalls: Cell<u64>,
    timer: Cell<Option<u64>>,
    time_ns: Cell<u64>,
    shutdown: Cell<Option<ShutdownReason>>,
    resume_as: Cell<Resumed>,
    console: RefCell<Vec<u8>>,
    failures: RefCell<VecDeque<(&'static str, Errno)>>,
    hypercalls: Cell<u64>,
    /// How often each grant is mapped, for reading and for writing.
    mappings: RefCell<BTreeMap<u32, grants::Uses>>,
}

/// An event channel's end in the guest.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    kind: PortKind,
    sends: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PortKind {
    #[default]
    Closed,
    Unbound(DomId),
    Bound(DomId),
    Virq(Virq),
}

impl FakeXen {
    /// A hypervisor with one guest, whose xenstore and console pages dom0 has set up.
    pub fn new() -> Self {
        let state = State {
            memory: RefCell::default(),
            shared_info: Pages::new(1),
            grant_frames: Pages::new(MAX_GRANT_FRAMES as usize),
            store_page: Pages::new(1),
            console_page: Pages::new(1),
            next_ram_gfn: Cell::new(RAM_GFN),
            ports: RefCell::default(),
            params: RefCell::default(),
            upcall_vector: Cell::new(None),
            upcalls: Cell::new(0),
            timer: Cell::new(None),
            time_ns: Cell::new(0),
            shutdown: Cell::new(None),
            resume_as: Cell::new(Resumed::NewDomain),
            console: RefCell::default(),
            failures: RefCell::default(),
            hypercalls: Cell::new(0),
            mappings: RefCell::default(),
        };
        let xen = Self(Rc::new(state));
        let bound = Port {
            kind: PortKind::Bound(DomId::DOM0),
            sends: 0,
        };
        *xen.0.ports.borrow_mut() = alloc::vec![Port::default(), bound, bound];
        for (gfn, pages, pfn, evtchn, port) in [
            (
                SPECIAL_GFN,
                &xen.0.store_page,
                HvmParam::StorePfn,
                HvmParam::StoreEvtchn,
                STORE_PORT,
            ),
            (
                SPECIAL_GFN + 1,
                &xen.0.console_page,
                HvmParam::ConsolePfn,
                HvmParam::ConsoleEvtchn,
                CONSOLE_PORT,
            ),
        ] {
            xen.0.memory.borrow_mut().add(Region {
                base: pages.base(),
                first: Gfn(gfn),
                pages: 1,
            });
            let mut params = xen.0.params.borrow_mut();
            params.insert(pfn, gfn);
            params.insert(evtchn, u64::from(port.0));
        }
        xen
    }

    // The guest's memory.

    /// Makes `pages` zeroed pages in a row part of the guest's memory, and returns them. They stay
    /// as long as the hypervisor does.
    pub fn alloc_pages(&self, pages: usize) -> (NonNull<u8>, Gfn) {
        let first = Gfn(self.0.next_ram_gfn.get());
        self.0.next_ram_gfn.set(first.0 + pages as u64);
        let base = self.0.memory.borrow_mut().add_owned(first, pages);
        (base, first)
    }

    /// Makes memory of the test's own part of the guest's, at `first`.
    ///
    /// # Safety
    ///
    /// `base` points to `pages` pages that outlive every use of the hypervisor, and whose owner
    /// accesses them like memory that another domain writes to.
    pub unsafe fn register(&self, base: NonNull<u8>, first: Gfn, pages: usize) {
        self.0
            .memory
            .borrow_mut()
            .add(Region { base, first, pages });
    }

    /// Where the page at `gfn` lies in this process.
    pub fn translate(&self, gfn: Gfn) -> Option<NonNull<u8>> {
        self.0.memory.borrow().translate(gfn)
    }

    /// The frame that `address` lies in.
    pub fn gfn_of(&self, address: NonNull<u8>) -> Option<Gfn> {
        self.0.memory.borrow().gfn_of(address)
    }

    // What boot code sets up, for tests of other things.

    /// The shared info page.
    pub fn shared_info(&self) -> NonNull<SharedInfo> {
        self.0.shared_info.base().cast()
    }

    /// The event channels of vCPU 0, all masked.
    pub fn event_channels(&self) -> EventChannels {
        // SAFETY: the page lives as long as the hypervisor.
        let events = unsafe { EventChannels::new(self.shared_info(), VcpuId(0)) };
        let events = events.expect("vCPU 0 is in the page");
        events.mask_all();
        events
    }

    /// A grant table of `frames` frames, mapped.
    pub fn grant_table(&self, frames: u32) -> GrantTable {
        for index in (0..frames).rev() {
            let gfn = Gfn(HOLE_GFN + u64::from(index));
            self.add_to_physmap(SpecialFrame::GrantTable(index), gfn)
                .expect("not more than the maximum");
        }
        let base = self.0.grant_frames.base().cast();
        // SAFETY: the frames lie in a row and live as long as the hypervisor.
        unsafe { GrantTable::new(base, frames * ENTRIES_PER_FRAME) }
    }

    /// A mock xenstored on the xenstore page, with an empty tree. There should be one.
    pub fn store(&self) -> FakeStore {
        FakeStore::new(self.clone(), self.0.store_page.base(), STORE_PORT)
    }

    /// A client on the xenstore page.
    pub fn xenstore(&self) -> Xenstore {
        let xen = Rc::new(self.clone());
        // SAFETY: the page lives as long as the hypervisor, which the client holds.
        unsafe { Xenstore::new(xen, self.0.store_page.base(), STORE_PORT) }
    }

    /// The console page and its port.
    pub fn console_page(&self) -> (NonNull<u8>, EventPort) {
        (self.0.console_page.base(), CONSOLE_PORT)
    }

    // Event channels, from the other side.

    /// Binds a port that the guest allocated for `dom`, as a backend does.
    pub fn bind(&self, dom: DomId, port: EventPort) -> Result<(), Errno> {
        self.with_port(port, |port| {
            if port.kind != PortKind::Unbound(dom) {
                return Err(Errno::EINVAL);
            }
            port.kind = PortKind::Bound(dom);
            Ok(())
        })
    }

    /// Lets go of a port, as a backend that closes its end does.
    pub fn unbind(&self, dom: DomId, port: EventPort) -> Result<(), Errno> {
        self.with_port(port, |port| {
            if port.kind != PortKind::Bound(dom) {
                return Err(Errno::EINVAL);
            }
            port.kind = PortKind::Unbound(dom);
            Ok(())
        })
    }

    /// Raises an event in the guest. `EINVAL` unless the port is bound.
    pub fn raise(&self, port: EventPort) -> Result<(), Errno> {
        self.with_port(port, |port| match port.kind {
            PortKind::Bound(_) | PortKind::Virq(_) => Ok(()),
            PortKind::Closed | PortKind::Unbound(_) => Err(Errno::EINVAL),
        })?;
        let (word, bit) = (port.0 as usize / 64, 1 << (port.0 % 64));
        let info = self.shared_info().as_ptr();
        // SAFETY: the page lives as long as the hypervisor; the fields are atomics.
        let (pending, mask) =
            unsafe { (&(*info).evtchn_pending[word], &(*info).evtchn_mask[word]) };
        if pending.fetch_or(bit, Ordering::SeqCst) & bit != 0 {
            return Ok(());
        }
        if mask.load(Ordering::SeqCst) & bit == 0 {
            self.select(word);
        }
        Ok(())
    }

    /// Has the vCPU look at a word of the bitmap.
    fn select(&self, word: usize) {
        let info = self.shared_info().as_ptr();
        // SAFETY: the page lives as long as the hypervisor; the fields are atomics.
        let events = unsafe { &(*info).vcpu_info[0].events };
        if events.pending_sel.fetch_or(1 << word, Ordering::SeqCst) & (1 << word) == 0
            && events.upcall_pending.swap(1, Ordering::SeqCst) == 0
        {
            self.0.upcalls.set(self.0.upcalls.get() + 1);
        }
    }

    /// How often the guest notified a port since this was last asked.
    pub fn take_sends(&self, port: EventPort) -> u64 {
        self.with_port(port, |port| Ok(core::mem::take(&mut port.sends)))
            .unwrap_or(0)
    }

    /// How often Xen interrupted the guest for an event.
    pub fn upcalls(&self) -> u64 {
        self.0.upcalls.get()
    }

    /// How many ports are not closed.
    pub fn open_ports(&self) -> usize {
        let ports = self.0.ports.borrow();
        ports.iter().filter(|p| p.kind != PortKind::Closed).count()
    }

    fn with_port<T>(
        &self,
        port: EventPort,
        f: impl FnOnce(&mut Port) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut ports = self.0.ports.borrow_mut();
        f(ports.get_mut(port.0 as usize).ok_or(Errno::EINVAL)?)
    }

    fn open_port(&self, kind: PortKind) -> Result<EventPort, Errno> {
        let mut ports = self.0.ports.borrow_mut();
        let free = ports
            .iter()
            .skip(1)
            .position(|p| p.kind == PortKind::Closed);
        let index = free.map_or(ports.len(), |i| i + 1);
        if index >= MAX_PORTS as usize {
            return Err(Errno::ENOSPC);
        }
        if index == ports.len() {
            ports.push(Port::default());
        }
        ports[index] = Port { kind, sends: 0 };
        Ok(EventPort(index as u32))
    }

    // Time, and what the guest asked for.

    /// The guest's system time in nanoseconds: also written to the clock in the shared info page,
    /// as a TSC that stands still.
    pub fn set_time_ns(&self, now_ns: u64) {
        self.0.time_ns.set(now_ns);
        let info = self.shared_info();
        // SAFETY: the page lives as long as the hypervisor, and there is a vCPU 0.
        let time = unsafe { SharedInfo::time_info(info, 0) }.expect("vCPU 0 is in the page");
        // SAFETY: nobody else writes to the page now: all is one thread.
        unsafe {
            time.write_volatile(VcpuTimeInfo {
                system_time_ns: now_ns,
                ..VcpuTimeInfo::default()
            });
        }
        if self
            .0
            .timer
            .get()
            .is_some_and(|deadline| deadline <= now_ns)
        {
            self.0.timer.set(None);
            self.raise_virq(Virq::Timer);
        }
    }

    fn raise_virq(&self, virq: Virq) {
        let ports = self.0.ports.borrow();
        let bound = ports.iter().position(|p| p.kind == PortKind::Virq(virq));
        drop(ports);
        if let Some(index) = bound {
            let raised = self.raise(EventPort(index as u32));
            debug_assert_eq!(raised, Ok(()));
        }
    }

    /// The deadline of the guest's one-shot timer.
    pub fn timer_deadline_ns(&self) -> Option<u64> {
        self.0.timer.get()
    }

    /// Why the guest shut down, if it did.
    pub fn shutdown_reason(&self) -> Option<ShutdownReason> {
        self.0.shutdown.get()
    }

    /// How the next suspend comes back.
    pub fn resume_as(&self, resumed: Resumed) {
        self.0.resume_as.set(resumed);
    }

    /// What the guest wrote to Xen's console.
    pub fn console_output(&self) -> Vec<u8> {
        self.0.console.borrow().clone()
    }

    /// The vector of vCPU 0's event upcall.
    pub fn upcall_vector(&self) -> Option<u8> {
        self.0.upcall_vector.get()
    }

    /// How many hypercalls the guest made.
    pub fn hypercalls(&self) -> u64 {
        self.0.hypercalls.get()
    }

    /// Makes the next call of the [`Hypervisor`] method `method` fail. Several are served in
    /// order.
    pub fn fail_next(&self, method: &'static str, errno: Errno) {
        self.0.failures.borrow_mut().push_back((method, errno));
    }

    /// Counts a hypercall, and fails it when the test said so.
    fn enter(&self, method: &'static str) -> Result<(), Errno> {
        self.0.hypercalls.set(self.0.hypercalls.get() + 1);
        let mut failures = self.0.failures.borrow_mut();
        match failures.iter().position(|(m, _)| *m == method) {
            Some(index) => Err(failures.remove(index).map_or(Errno::EINVAL, |(_, e)| e)),
            None => Ok(()),
        }
    }
}

impl Default for FakeXen {
    fn default() -> Self {
        Self::new()
    }
}

impl Hypervisor for FakeXen {
    fn version(&self) -> Result<Version, Errno> {
        self.enter("version")?;
        Ok(Version {
            major: 4,
            minor: 20,
        })
    }

    fn evtchn_send(&self, port: EventPort) -> Result<(), Errno> {
        self.enter("evtchn_send")?;
        self.with_port(port, |port| {
            match port.kind {
                PortKind::Bound(_) => port.sends += 1,
                // Xen drops it silently.
                PortKind::Unbound(_) => {}
                PortKind::Closed | PortKind::Virq(_) => return Err(Errno::EINVAL),
            }
            Ok(())
        })
    }

    fn evtchn_alloc_unbound(&self, remote: DomId) -> Result<EventPort, Errno> {
        self.enter("evtchn_alloc_unbound")?;
        self.open_port(PortKind::Unbound(remote))
    }

    fn evtchn_bind_virq(&self, virq: Virq, vcpu: VcpuId) -> Result<EventPort, Errno> {
        self.enter("evtchn_bind_virq")?;
        if vcpu != VcpuId(0) {
            return Err(Errno::ENOENT);
        }
        let bound = |port: &Port| port.kind == PortKind::Virq(virq);
        if self.0.ports.borrow().iter().any(bound) {
            return Err(Errno::EEXIST);
        }
        self.open_port(PortKind::Virq(virq))
    }

    fn evtchn_unmask(&self, port: EventPort) -> Result<(), Errno> {
        self.enter("evtchn_unmask")?;
        self.with_port(port, |port| match port.kind {
            PortKind::Closed => Err(Errno::EINVAL),
            _ => Ok(()),
        })?;
        let (word, bit) = (port.0 as usize / 64, 1 << (port.0 % 64));
        let info = self.shared_info().as_ptr();
        // SAFETY: the page lives as long as the hypervisor; the fields are atomics.
        let (pending, mask) =
            unsafe { (&(*info).evtchn_pending[word], &(*info).evtchn_mask[word]) };
        let was_masked = mask.fetch_and(!bit, Ordering::SeqCst) & bit != 0;
        if was_masked && pending.load(Ordering::SeqCst) & bit != 0 {
            self.select(word);
        }
        Ok(())
    }

    fn evtchn_close(&self, port: EventPort) -> Result<(), Errno> {
        self.enter("evtchn_close")?;
        self.with_port(port, |port| {
            if port.kind == PortKind::Closed {
                return Err(Errno::EINVAL);
            }
            *port = Port::default();
            Ok(())
        })?;
        let info = self.shared_info().as_ptr();
        // SAFETY: the page lives as long as the hypervisor; the field is an atomic.
        let pending = unsafe { &(*info).evtchn_pending[port.0 as usize / 64] };
        pending.fetch_and(!(1 << (port.0 % 64)), Ordering::SeqCst);
        Ok(())
    }

    fn add_to_physmap(&self, frame: SpecialFrame, gfn: Gfn) -> Result<(), Errno> {
        self.enter("add_to_physmap")?;
        let base = match frame {
            SpecialFrame::SharedInfo => self.0.shared_info.base(),
            SpecialFrame::GrantTable(index) if index < MAX_GRANT_FRAMES => {
                let offset = index as usize * PAGE_BYTES;
                // SAFETY: `index` is below the number of frames that were allocated.
                unsafe { self.0.grant_frames.base().add(offset) }
            }
            SpecialFrame::GrantTable(_) => return Err(Errno::EINVAL),
        };
        self.0.memory.borrow_mut().replace(Region {
            base,
            first: gfn,
            pages: 1,
        });
        Ok(())
    }

    fn hvm_param(&self, param: HvmParam) -> Result<u64, Errno> {
        self.enter("hvm_param")?;
        Ok(self.0.params.borrow().get(&param).copied().unwrap_or(0))
    }

    fn set_hvm_param(&self, param: HvmParam, value: u64) -> Result<(), Errno> {
        self.enter("set_hvm_param")?;
        self.0.params.borrow_mut().insert(param, value);
        Ok(())
    }

    fn set_evtchn_upcall_vector(&self, vcpu: VcpuId, vector: u8) -> Result<(), Errno> {
        self.enter("set_evtchn_upcall_vector")?;
        if vector < 0x10 {
            return Err(Errno::EINVAL);
        }
        if vcpu != VcpuId(0) {
            return Err(Errno::ENOENT);
        }
        self.0.upcall_vector.set(Some(vector));
        Ok(())
    }

    fn shutdown(&self, reason: ShutdownReason) -> Result<Resumed, Errno> {
        self.enter("shutdown")?;
        self.0.shutdown.set(Some(reason));
        Ok(self.0.resume_as.get())
    }

    fn set_singleshot_timer(
        &self,
        vcpu: VcpuId,
        deadline_ns: u64,
        past: PastDeadline,
    ) -> Result<(), Errno> {
        self.enter("set_singleshot_timer")?;
        if vcpu != VcpuId(0) {
            return Err(Errno::ENOENT);
        }
        let passed = deadline_ns <= self.0.time_ns.get();
        match past {
            PastDeadline::Refuse if passed => return Err(Errno::ETIME),
            PastDeadline::Fire if passed => {
                self.0.timer.set(None);
                self.raise_virq(Virq::Timer);
            }
            _ => self.0.timer.set(Some(deadline_ns)),
        }
        Ok(())
    }

    fn stop_singleshot_timer(&self, _vcpu: VcpuId) -> Result<(), Errno> {
        self.enter("stop_singleshot_timer")?;
        self.0.timer.set(None);
        Ok(())
    }

    fn stop_periodic_timer(&self, _vcpu: VcpuId) -> Result<(), Errno> {
        self.enter("stop_periodic_timer")
    }

    fn console_write(&self, bytes: &[u8]) -> Result<(), Errno> {
        self.enter("console_write")?;
        self.0.console.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
