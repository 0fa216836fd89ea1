//! The guest's end of Xen: frames, event channels, clock, console, xenstore and the NIC.

use super::{
    clock, console,
    interrupts::{self, Source},
    nic::{Mac, Nic},
    paging, power,
};
use alloc::{rc::Rc, string::String};
use core::{
    cell::RefCell,
    fmt::Display,
    future::{Future, poll_fn},
    pin::pin,
    ptr::NonNull,
    task::Poll,
};
use paceline_driver::{
    netfront::{Features, Netfront, Vif},
    page::PagePool,
    xen::{
        EventPort, Gfn, Hypervisor, VcpuId,
        clock::PvClock,
        console::PvConsole,
        control::{ShutdownRequest, ShutdownRequests},
        event::{EventChannels, Upcall},
        grant::{ENTRIES_PER_FRAME, GrantTable},
        hypercall::{HvmParam, Virq},
        memory::{Hole, find_hole},
        native::Xen,
        shared_info::SharedInfo,
        start_info::MemoryRegion,
        xenstore::{Error, Xenstore},
    },
};
use paceline_guest::{
    executor::{Spawner, Timers},
    memory::PAGE_BYTES,
};
use paceline_stack::time::Duration;

/// The image's only processor.
const VCPU: VcpuId = VcpuId(0);

/// Frames of the grant table that Xen allows by default.
const MAX_GRANT_FRAMES: u32 = 64;

/// Grants beside those of the pool's pages: receive ring, rings, and those reserved.
const OTHER_GRANTS: u32 = 1024;

/// How long to wait before trying again what failed.
const PAUSE: Duration = Duration::from_secs(1);

/// The connection to Xen.
pub(crate) struct Guest {
    xen: Xen,
    events: Rc<EventChannels>,
    grants: Rc<GrantTable>,
    store: Xenstore,
}

/// What [`Guest::dispatch`] leaves to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dispatched {
    /// Whether more events are waiting.
    pub(crate) more: bool,
    /// Whether the console may have input.
    pub(crate) console: bool,
}

impl Guest {
    /// Sets everything up, for a pool of `pool_pages` NIC pages. Called once, with the APIC
    /// enabled. Ends the guest when Xen refuses what it must give.
    pub(crate) fn new(xen: Xen, map: &[MemoryRegion], pool_pages: usize) -> Self {
        let (info, grants) = map_frames(xen, map, pool_pages);
        // SAFETY: the page is mapped for good.
        let time = unsafe { SharedInfo::time_info(info, VCPU.0) };
        if let Some(time) = time {
            // SAFETY: the parameters lie in that page, which only Xen writes to.
            clock::use_pvclock(unsafe { PvClock::new(time) });
        }

        // SAFETY: as above.
        let events = must(
            "event channels",
            unsafe { EventChannels::new(info, VCPU) }.ok_or("no vCPU 0"),
        );
        events.mask_all();
        let upcall = must(
            "event upcall",
            Upcall::register(&xen, VCPU, Source::Event.vector()),
        );
        if upcall == Upcall::Domain {
            // SAFETY: as above.
            interrupts::acknowledge_events(unsafe { EventChannels::new(info, VCPU) });
        }
        // There may be no periodic timer to stop.
        let _ = xen.stop_periodic_timer(VCPU);
        let timer = must("timer", xen.evtchn_bind_virq(Virq::Timer, VCPU));
        must("timer", events.unmask(&xen, timer));

        let events = Rc::new(events);
        if let Some((page, port)) = shared_page(xen, HvmParam::ConsolePfn, HvmParam::ConsoleEvtchn)
        {
            // SAFETY: Xen says that the console's ring is there; nobody else uses it.
            console::use_ring(unsafe { PvConsole::new(page, port) }, xen);
            must("console", events.unmask(&xen, port));
        }
        let store = shared_page(xen, HvmParam::StorePfn, HvmParam::StoreEvtchn);
        let (page, port) = must("xenstore", store.ok_or("Xen gives no ring"));
        // SAFETY: Xen says that xenstore's ring is there; nobody else uses it.
        let store = unsafe { Xenstore::new(Rc::new(xen), page, port) };
        must("xenstore", events.unmask(&xen, port));
        Self {
            xen,
            events,
            grants: Rc::new(grants),
            store,
        }
    }

    /// Takes the events that have come.
    pub(crate) fn dispatch(&self) -> Dispatched {
        let mut console = false;
        let console_port = console::port();
        let mut store = false;
        let dispatched = self.events.dispatch(|port| {
            console |= Some(port) == console_port;
            store |= port == self.store.port();
            // The NIC is polled at every turn of the loop; the timer has done its work.
        });
        let mut more = dispatched.more;
        if store {
            more |= self.store.poll().more;
        }
        Dispatched { more, console }
    }

    /// Whether there are events to take.
    pub(crate) fn has_events(&self) -> bool {
        self.events.any_pending()
    }

    /// The NIC, and a task that keeps it connected.
    pub(crate) fn nic(&self, pool: PagePool, spawner: &Spawner, timers: &Timers) -> Nic {
        let netfront = Rc::new(RefCell::new(Netfront::new(
            Rc::new(self.xen),
            Rc::clone(&self.events),
            Rc::clone(&self.grants),
            pool,
        )));
        let device = Rc::clone(&netfront);
        let (store, timers) = (self.store.clone(), timers.clone());
        spawner.spawn(async move {
            loop {
                if let Err(error) = keep_connected(&store, &device, &timers).await {
                    log::warn!("netfront: xenstore: {error}");
                }
                timers.sleep(PAUSE).await;
            }
        });
        Nic::Netfront(netfront)
    }

    /// Starts the task that does what the toolstack asks.
    pub(crate) fn heed_toolstack(&self, spawner: &Spawner, timers: &Timers) {
        let (store, timers) = (self.store.clone(), timers.clone());
        spawner.spawn(async move {
            loop {
                let Err(error) = heed(&store).await;
                log::warn!("toolstack: xenstore: {error}");
                timers.sleep(PAUSE).await;
            }
        });
    }
}

/// Does what the toolstack asks, until xenstore fails.
async fn heed(store: &Xenstore) -> Result<core::convert::Infallible, Error> {
    let mut requests = ShutdownRequests::listen(store).await?;
    loop {
        match requests.next().await? {
            ShutdownRequest::Poweroff | ShutdownRequest::Halt => power::off(),
            ShutdownRequest::Reboot => power::reboot(),
            ShutdownRequest::Crash => panic!("asked for by the toolstack"),
            ShutdownRequest::Suspend => log::warn!("toolstack: suspend is not supported"),
        }
    }
}

/// Connects the first network device, and again whenever the connection ends; until xenstore
/// fails.
async fn keep_connected(
    store: &Xenstore,
    device: &RefCell<Netfront>,
    timers: &Timers,
) -> Result<(), Error> {
    let mut vif = Vif::new(store.clone(), first_vif(store).await?);
    loop {
        match vif.connect(device).await {
            Ok(()) => report(vif.frontend(), &device.borrow()),
            Err(error) => {
                log::warn!("netfront: {}: {error}", vif.frontend());
                // The device may have been detached: look again.
                return Ok(());
            }
        }
        let state = ends(&mut vif, device, timers).await;
        match state? {
            End::Backend => log::info!("netfront: the backend disconnects"),
            End::Violation => log::warn!("netfront: reconnecting after the violation"),
        }
        vif.disconnect(device).await?;
        timers.sleep(PAUSE).await;
    }
}

/// The directory of the first network device, once there is one.
async fn first_vif(store: &Xenstore) -> Result<String, Error> {
    let mut changes = store.watch("device/vif").await?;
    loop {
        changes.changed().await?;
        if let Some(first) = Vif::list(store).await?.into_iter().next() {
            return Ok(first);
        }
        log::info!("netfront: no device yet");
    }
}

/// How a connection ended.
enum End {
    Backend,
    Violation,
}

/// Waits for the end of the connection.
async fn ends(vif: &mut Vif, device: &RefCell<Netfront>, timers: &Timers) -> Result<End, Error> {
    let mut closing = pin!(vif.backend_closing());
    loop {
        // The device says nothing when it stops, so it is looked at from time to time.
        let mut pause = pin!(timers.sleep(PAUSE));
        let closed = poll_fn(|cx| {
            if let Poll::Ready(state) = closing.as_mut().poll(cx) {
                return Poll::Ready(Some(state));
            }
            pause.as_mut().poll(cx).map(|()| None)
        })
        .await;
        if let Some(state) = closed {
            return state.map(|_| End::Backend);
        }
        if device.borrow().violation().is_some() {
            return Ok(End::Violation);
        }
    }
}

fn report(frontend: &str, netfront: &Netfront) {
    let Features {
        mtu_bytes,
        scatter_gather,
        tso4,
        tso6,
        tx_checksum6,
        split_event_channels,
    } = netfront.features();
    log::info!(
        "netfront: {frontend} connected, {} mtu {mtu_bytes} sg {scatter_gather} tso4 {tso4} tso6 \
         {tso6} csum6 {tx_checksum6} split {split_event_channels}",
        Mac(netfront.mac()),
    );
}

/// Maps the shared info page and the grant table, outside of memory.
fn map_frames(
    xen: Xen,
    map: &[MemoryRegion],
    pool_pages: usize,
) -> (NonNull<SharedInfo>, GrantTable) {
    let wanted = u32::try_from(pool_pages)
        .unwrap_or(u32::MAX)
        .saturating_add(OTHER_GRANTS)
        .div_ceil(ENTRIES_PER_FRAME)
        .min(MAX_GRANT_FRAMES);
    // Room for one attempt with as many as are wanted and further ones with half of the last.
    let hole = must(
        "frames",
        find_hole(map, 1 + 2 * u64::from(wanted)).ok_or("no hole in the memory map"),
    );
    let info = must("shared info", hole.map_shared_info(&xen));
    let info = map_page(info);
    let (first, frames) = map_grants(xen, &hole, wanted);
    let range = first.paddr()..first.paddr() + u64::from(frames) * PAGE_BYTES;
    // SAFETY: Xen has put the grant table there, where there was nothing.
    let base = unsafe { paging::map_shared(&range) };
    let base = must("grant table", base.map(NonNull::new));
    let base = must("grant table", base.ok_or("at address 0"));
    // SAFETY: all frames are mapped for good, in a row, and this is the only table.
    let grants = unsafe { GrantTable::new(base.cast(), frames * ENTRIES_PER_FRAME) };
    (info.cast(), grants)
}

/// Maps as many frames of the grant table as are wanted and Xen allows.
fn map_grants(xen: Xen, hole: &Hole, wanted: u32) -> (Gfn, u32) {
    let mut frames = wanted;
    loop {
        match hole.map_grant_table(&xen, frames) {
            Ok(first) => return (first, frames),
            Err(_) if frames > 1 => frames /= 2,
            Err(error) => super::refuse(&error),
        }
    }
}

/// The page and the port that two parameters of the domain name.
fn shared_page(xen: Xen, pfn: HvmParam, port: HvmParam) -> Option<(NonNull<u8>, EventPort)> {
    let pfn = xen.hvm_param(pfn).ok().filter(|&pfn| pfn != 0)?;
    let port = xen.hvm_param(port).ok()?;
    let port = u32::try_from(port).ok().filter(|&port| port != 0)?;
    Some((map_page(Gfn(pfn)), EventPort(port)))
}

fn map_page(gfn: Gfn) -> NonNull<u8> {
    let range = gfn.paddr()..gfn.paddr().saturating_add(PAGE_BYTES);
    // SAFETY: the frame is Xen's, and no memory of ours.
    let page = unsafe { paging::map_shared(&range) };
    let page = must("page tables", page.map(NonNull::new));
    must("page tables", page.ok_or("a frame at address 0"))
}

/// What is needed to go on at all.
fn must<T, E: Display>(what: &str, result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| super::refuse(&format_args!("{what}: {error}")))
}
