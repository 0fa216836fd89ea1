//! The NICs, as the stack wants a device.

use super::{clock, hal::IdentityHal};
use alloc::{boxed::Box, rc::Rc};
use core::{cell::RefCell, fmt};
use paceline_driver::{
    netfront::{self, Netfront},
    page::{self, PagePool, Supply},
    virtio::{self, VirtioTransport, net},
};
use paceline_stack::{
    device::{
        self, Capabilities, Completion, Device, IpVersion, Owner, RxChecksum, RxFrame, RxMemory,
        Slice, TxError, TxFrame, TxOffload,
    },
    time::{Duration, Instant},
};

/// Longest Ethernet header, with which large frames' limits are counted.
const ETHERNET_HEADER_BYTES: u16 = 14;

/// An Ethernet address, to be shown.
pub(crate) struct Mac(pub(crate) [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let colon = if index == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02x}")?;
        }
        Ok(())
    }
}

/// A page of the pool.
#[derive(Clone, Debug)]
pub(crate) struct Page(page::Page);

impl device::Page for Page {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    fn spare_mut(&mut self) -> &mut [u8] {
        self.0.spare_mut()
    }

    fn commit(&mut self, len: usize) {
        self.0.commit(len);
    }
}

/// What is noted of a frame on its way through virtio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    owner: Owner,
    bytes: u32,
    at: Instant,
}

/// A virtio NIC as this image has it.
pub(crate) type VirtioNet = virtio::VirtioNet<IdentityHal, VirtioTransport, Sent>;

/// A virtio NIC with the pages that its frames are copied to and from.
pub(crate) struct Virtio {
    net: VirtioNet,
    pool: PagePool,
}

impl Virtio {
    pub(crate) fn new(net: VirtioNet, pool: PagePool) -> Self {
        Self { net, pool }
    }

    fn supply(&self) -> Supply {
        Supply::of(self.pool.available(), self.pool.pages())
    }

    fn receive(&mut self) -> Option<RxFrame<Page>> {
        let pool = self.pool;
        loop {
            let page = self.net.receive(|frame| {
                // Without a page the frame is dropped.
                let mut page = Page(pool.alloc()?);
                device::Page::append(&mut page, frame);
                Some(page)
            })?;
            let Some(page) = page else {
                continue;
            };
            let mut slices = heapless::Vec::new();
            // A vector that is empty has room.
            let _ = slices.push(Slice::whole(page));
            return Some(RxFrame {
                slices,
                checksum: RxChecksum::Unverified,
                segment_bytes: None,
            });
        }
    }

    fn transmit(&mut self, frame: &TxFrame<'_, Page>) -> Result<(), TxError> {
        let &TxFrame {
            header,
            payload,
            offload,
            owner,
        } = frame;
        if offload != TxOffload::None {
            return Err(TxError::Unsendable);
        }
        let parts = [header]
            .into_iter()
            .chain(payload.iter().map(device::SliceRef::bytes));
        let sent = Sent {
            owner,
            bytes: payload.iter().map(|slice| slice.len() as u32).sum(),
            at: clock::now(),
        };
        self.net.transmit(parts, sent).map_err(|error| match error {
            net::TxError::Full => TxError::Full,
            net::TxError::Broken => TxError::Down,
            net::TxError::TooLong => TxError::Unsendable,
        })
    }
}

/// The NIC that the guest has.
pub(crate) enum Nic {
    /// Xen's; its life in xenstore shares it.
    Netfront(Rc<RefCell<Netfront>>),
    /// QEMU's.
    Virtio(Box<Virtio>),
}

impl Nic {
    /// When to poll at the latest though nothing happens; none: whenever.
    pub(crate) fn poll_within(&self) -> Option<Duration> {
        match self {
            Self::Netfront(netfront) => netfront
                .borrow()
                .poll_within_us()
                .map(Duration::from_micros),
            Self::Virtio(_) => None,
        }
    }

    /// Writes name, state and counters.
    pub(crate) fn describe(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let name = match self {
            Self::Netfront(_) => "netfront",
            Self::Virtio(_) => "virtio-net",
        };
        let state = if self.link_up() { "up" } else { "down" };
        writeln!(
            out,
            "{name} {} {state} mtu {}",
            Mac(self.mac()),
            self.capabilities().mtu_bytes
        )?;
        match self {
            Self::Netfront(netfront) => {
                for (name, value) in netfront.borrow().statistics().iter() {
                    if value != 0 {
                        writeln!(out, "  {name} {value}")?;
                    }
                }
            }
            Self::Virtio(virtio) => {
                let net::Statistics {
                    rx_frames,
                    rx_bytes,
                    tx_frames,
                    tx_bytes,
                    tx_full,
                } = virtio.net.statistics();
                writeln!(
                    out,
                    "  rx_packets {rx_frames}\n  rx_bytes {rx_bytes}\n  tx_packets {tx_frames}\n  \
                     tx_bytes {tx_bytes}\n  tx_full {tx_full}"
                )?;
            }
        }
        Ok(())
    }
}

impl Device for Nic {
    type Page = Page;

    fn capabilities(&self) -> Capabilities {
        match self {
            Self::Netfront(netfront) => {
                let features = netfront.borrow().features();
                let tso = |on: bool| u32::from(on) * netfront::MAX_FRAME_BYTES as u32;
                Capabilities {
                    mtu_bytes: features.mtu_bytes,
                    max_tso4_bytes: tso(features.tso4),
                    max_tso6_bytes: tso(features.tso6),
                    max_tx_slices: netfront::MAX_TX_SLICES as u8,
                    tx_ring_bytes: netfront::TX_RING_BYTES,
                    tx_checksum4: true,
                    tx_checksum6: features.tx_checksum6,
                }
            }
            Self::Virtio(_) => Capabilities {
                mtu_bytes: net::MAX_FRAME_BYTES as u16 - ETHERNET_HEADER_BYTES,
                max_tso4_bytes: 0,
                max_tso6_bytes: 0,
                max_tx_slices: device::MAX_TX_SLICES as u8,
                tx_ring_bytes: net::TX_RING_BYTES,
                tx_checksum4: false,
                tx_checksum6: false,
            },
        }
    }

    fn mac(&self) -> [u8; 6] {
        match self {
            Self::Netfront(netfront) => netfront.borrow().mac(),
            Self::Virtio(virtio) => virtio.net.mac(),
        }
    }

    fn link_up(&self) -> bool {
        match self {
            Self::Netfront(netfront) => netfront.borrow().link_up(),
            Self::Virtio(virtio) => virtio.net.is_up(),
        }
    }

    fn alloc_page(&mut self) -> Option<Page> {
        match self {
            Self::Netfront(netfront) => netfront.borrow_mut().alloc_page(),
            Self::Virtio(virtio) if virtio.supply() == Supply::Plenty => virtio.pool.alloc(),
            Self::Virtio(_) => None,
        }
        .map(Page)
    }

    fn rx_memory(&self) -> RxMemory {
        let supply = match self {
            Self::Netfront(netfront) => netfront.borrow().supply(),
            Self::Virtio(virtio) => virtio.supply(),
        };
        match supply {
            Supply::Plenty => RxMemory::Plenty,
            Supply::Scarce => RxMemory::Scarce,
            Supply::Spent => RxMemory::Spent,
        }
    }

    fn receive(&mut self, _: Instant) -> Option<RxFrame<Page>> {
        match self {
            Self::Netfront(netfront) => {
                let frame = netfront.borrow_mut().receive()?;
                let netfront::RxFrame {
                    slices,
                    checksum_good,
                    segment_bytes,
                } = frame;
                Some(RxFrame {
                    slices: slices
                        .into_iter()
                        .map(|slice| {
                            let range = usize::from(slice.start)..usize::from(slice.end);
                            Slice::new(Page(slice.page), range)
                        })
                        .collect(),
                    checksum: if checksum_good {
                        RxChecksum::Good
                    } else {
                        RxChecksum::Unverified
                    },
                    segment_bytes,
                })
            }
            Self::Virtio(virtio) => virtio.receive(),
        }
    }

    fn transmit(&mut self, frame: &TxFrame<'_, Page>) -> Result<(), TxError> {
        let netfront = match self {
            Self::Netfront(netfront) => netfront,
            Self::Virtio(virtio) => return virtio.transmit(frame),
        };
        let &TxFrame {
            header,
            payload,
            offload,
            owner,
        } = frame;
        let frame = netfront::TxFrame {
            header,
            payload: payload.iter().map(|slice| netfront::TxSlice {
                page: &slice.page().0,
                offset: slice.offset() as u16,
                len: slice.len() as u16,
            }),
            offload: match offload {
                TxOffload::None => netfront::TxOffload::None,
                TxOffload::Checksum { .. } => netfront::TxOffload::Checksum,
                TxOffload::Tso {
                    mss_bytes, version, ..
                } => netfront::TxOffload::Tso {
                    mss_bytes,
                    version: match version {
                        IpVersion::V4 => netfront::IpVersion::V4,
                        IpVersion::V6 => netfront::IpVersion::V6,
                    },
                },
            },
            owner: owner.0,
        };
        netfront
            .borrow_mut()
            .transmit(frame)
            .map_err(|error| match error {
                netfront::TxError::Full => TxError::Full,
                netfront::TxError::Down => TxError::Down,
                netfront::TxError::Unsendable => TxError::Unsendable,
            })
    }

    fn flush(&mut self, now: Instant) {
        match self {
            Self::Netfront(netfront) => netfront.borrow_mut().flush(now.as_micros()),
            Self::Virtio(virtio) => virtio.net.refill(),
        }
    }

    fn complete(&mut self, now: Instant, sink: &mut dyn FnMut(Completion)) {
        match self {
            Self::Netfront(netfront) => {
                let mut sink = |completion: netfront::Completion| {
                    let netfront::Completion {
                        owner,
                        bytes,
                        held_us,
                    } = completion;
                    sink(Completion {
                        owner: Owner(owner),
                        bytes,
                        held: Duration::from_micros(held_us),
                    });
                };
                netfront.borrow_mut().complete(now.as_micros(), &mut sink);
            }
            Self::Virtio(virtio) => virtio.net.complete(|Sent { owner, bytes, at }| {
                sink(Completion {
                    owner,
                    bytes,
                    held: now.since(at),
                });
            }),
        }
    }

    fn arm(&mut self) -> bool {
        match self {
            Self::Netfront(netfront) => netfront.borrow_mut().arm(),
            Self::Virtio(virtio) => virtio.net.arm(),
        }
    }
}
