//! The device against the mock backend.

mod allocations;
mod connecting;
mod flow;
mod hostile;

use super::mock::{BackendFeatures, Frame, Host, Netback};
use super::*;
use crate::page::PageSlice;
use crate::xen::fake::{FakeStore, FakeXen, block_on};
use crate::xen::xenstore::Xenstore;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

const POOL_PAGES: usize = 1024;
const GRANT_FRAMES: u32 = 8;
const DRIVER_DOMAIN: DomId = DomId(7);

/// A guest with one device, and the host it runs on.
struct Rig {
    xen: FakeXen,
    store: FakeStore,
    client: Xenstore,
    events: Rc<EventChannels>,
    grants: Rc<GrantTable>,
    pool: PagePool,
    host: Host,
    vif: Vif,
    device: RefCell<Netfront>,
    now_us: u64,
    completions: Vec<Completion>,
}

/// What there is when nothing is in use.
#[derive(Debug, PartialEq, Eq)]
struct Inventory {
    pages: usize,
    grefs: u32,
    mapped: usize,
    ports: usize,
}

impl Rig {
    /// A rig whose device is not connected.
    fn new(features: BackendFeatures) -> Self {
        Self::with_pool(features, POOL_PAGES)
    }

    fn with_pool(features: BackendFeatures, pages: usize) -> Self {
        Self::with_tables(features, pages, GRANT_FRAMES)
    }

    fn with_tables(features: BackendFeatures, pages: usize, grant_frames: u32) -> Self {
        let xen = FakeXen::new();
        let (base, gfn) = xen.alloc_pages(pages);
        // The pool's handles are for the rest of the program, and so is its memory.
        core::mem::forget(xen.clone());
        // SAFETY: the pages are aligned, the guest's own and used for nothing else; they stay,
        // for the hypervisor that has them does.
        let pool = unsafe { PagePool::new(base, pages, gfn) };
        let (store, client) = (xen.store(), xen.xenstore());
        let (events, grants) = (
            Rc::new(xen.event_channels()),
            Rc::new(xen.grant_table(grant_frames)),
        );
        let host = Host::new(xen.clone(), store.clone(), DRIVER_DOMAIN, features);
        let device = Netfront::new(Rc::new(xen.clone()), events.clone(), grants.clone(), pool);
        Self {
            vif: Vif::new(client.clone(), "device/vif/0"),
            device: RefCell::new(device),
            xen,
            store,
            client,
            events,
            grants,
            pool,
            host,
            now_us: 1_000,
            completions: Vec::new(),
        }
    }

    /// A rig whose device is connected.
    fn connected(features: BackendFeatures) -> Self {
        let mut rig = Self::new(features);
        assert_eq!(rig.connect(), Ok(()));
        rig.host.poll();
        rig
    }

    fn linux() -> Self {
        Self::connected(BackendFeatures::linux())
    }

    fn qemu() -> Self {
        Self::connected(BackendFeatures::qemu())
    }

    fn connect(&mut self) -> Result<(), ConnectError> {
        let Self {
            store,
            client,
            host,
            vif,
            device,
            ..
        } = self;
        block_on(store, client, || host.step(), vif.connect(device)).expect("it gets somewhere")
    }

    /// Waits for the backend to close, and follows.
    fn follow_backend(&mut self) -> XenbusState {
        let Self {
            store,
            client,
            host,
            vif,
            device,
            ..
        } = self;
        let state = block_on(store, client, || host.step(), vif.backend_closing())
            .expect("it closes")
            .unwrap();
        block_on(store, client, || host.step(), vif.disconnect(device))
            .expect("it gets somewhere")
            .unwrap();
        host.step();
        state
    }

    fn inventory(&self) -> Inventory {
        Inventory {
            pages: self.pool.available(),
            grefs: self.grants.available(),
            mapped: self.xen.mapped_grants(),
            ports: self.xen.open_ports(),
        }
    }

    fn device(&mut self) -> &mut Netfront {
        self.device.get_mut()
    }

    fn netback(&mut self) -> &mut Netback {
        self.host.netback().expect("it is connected")
    }

    fn statistics(&mut self) -> Statistics {
        *self.device().statistics()
    }

    /// Pages with `bytes` in pieces of at most `piece` bytes.
    fn slices(&mut self, bytes: &[u8], piece: usize) -> Vec<PageSlice> {
        let pieces = bytes.chunks(piece).map(|piece| {
            let mut page = self.device.get_mut().alloc_page().expect("a page");
            page.spare_mut()[..piece.len()].copy_from_slice(piece);
            page.commit(piece.len());
            PageSlice {
                page,
                start: 0,
                end: piece.len() as u16,
            }
        });
        pieces.collect()
    }

    fn transmit(
        &mut self,
        header: &[u8],
        payload: &[PageSlice],
        offload: TxOffload,
        owner: u32,
    ) -> Result<(), TxError> {
        self.device().transmit(TxFrame {
            header,
            payload: payload.iter().map(|slice| TxSlice {
                page: &slice.page,
                offset: slice.start,
                len: slice.end - slice.start,
            }),
            offload,
            owner,
        })
    }

    fn flush(&mut self) {
        let now_us = self.now_us;
        self.device().flush(now_us);
    }

    fn complete(&mut self) {
        let now_us = self.now_us;
        let completions = &mut self.completions;
        self.device
            .get_mut()
            .complete(now_us, &mut |completion| completions.push(completion));
    }

    fn receive_all(&mut self) -> Vec<RxFrame> {
        core::iter::from_fn(|| self.device().receive()).collect()
    }

    /// Lets everything in flight come to its end.
    fn settle(&mut self) {
        for _ in 0..8 {
            self.flush();
            self.host.poll();
            self.host.complete(usize::MAX, |_| 0);
            self.complete();
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !std::thread::panicking()
            && let Some(netback) = self.host.netback()
        {
            assert_eq!(
                netback.fatal(),
                None,
                "Linux would have disabled the device"
            );
        }
    }
}

/// The bytes of a received frame.
fn bytes(frame: &RxFrame) -> Vec<u8> {
    frame
        .slices
        .iter()
        .flat_map(|slice| slice.bytes().iter().copied())
        .collect()
}

/// `len` bytes that differ by `seed` and place.
fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 31 + at / 251 + seed * 7) as u8)
        .collect()
}

/// Ethernet, IPv4 and TCP headers, as far as the driver looks at them.
fn tcp4_header() -> Vec<u8> {
    let mut header = alloc::vec![0; 66];
    header[12..14].copy_from_slice(&[0x08, 0x00]);
    header[14] = 0x45;
    header[23] = 6;
    header[46] = 0x80;
    header
}

/// Ethernet, IPv6 and TCP headers.
fn tcp6_header() -> Vec<u8> {
    let mut header = alloc::vec![0; 86];
    header[12..14].copy_from_slice(&[0x86, 0xdd]);
    header[14] = 0x60;
    header[20] = 6;
    header[66] = 0x80;
    header
}

/// A frame that the backend is to deliver: `header` and `len` bytes behind it.
fn large_segment(header: Vec<u8>, len: usize, gso: (u16, u8)) -> Frame {
    let mut bytes = header;
    bytes.extend(pattern(len, 3));
    Frame {
        bytes,
        csum_blank: true,
        data_validated: true,
        gso: Some(gso),
    }
}
