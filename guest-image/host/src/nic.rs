//! Frames through a descriptor as the stack's NIC: a TAP interface of Linux, or a socket.

use paceline_stack::device::{
    Capabilities, Completion, Device, MAX_RX_SLICES, MAX_TX_SLICES, Owner, Page, RxChecksum,
    RxFrame, RxMemory, Slice, TxError, TxFrame, TxOffload,
};
use paceline_stack::sim::{PAGE_BYTES, Pool, SimPage};
use paceline_stack::time::{Duration, Instant};
use rustix::event::PollFlags;
use rustix::io::{Errno, readv, writev};
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

const MAC: [u8; 6] = [0x02, 0x50, 0x41, 0x43, 0x45, 0x01];
const MTU_BYTES: u16 = 1500;

/// Pages of the NIC: 256 MiB.
const POOL_PAGES: usize = 65_536;

/// Largest frame with TSO: an IP packet of 65,535 bytes behind an Ethernet header.
const MAX_TSO_BYTES: u32 = 65_535 + 14;

/// `struct virtio_net_hdr` as TAP has it by default, in the host's byte order.
const VNET_HEADER_BYTES: usize = 10;
const VNET_NEEDS_CSUM: u8 = 1;
const VNET_DATA_VALID: u8 = 2;
const VNET_GSO_NONE: u8 = 0;
const VNET_GSO_TCPV4: u8 = 1;
const VNET_GSO_TCPV6: u8 = 4;
const VNET_GSO_ECN: u8 = 0x80;

/// How the interface behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Checksums and segmentation are left to the other side, both ways.
    Offloads,
    /// Every frame is complete.
    Plain,
    /// As plain, and frames are lost and overtake each other, both ways.
    Lossy,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Offloads, Self::Plain, Self::Lossy];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Offloads => "offloads",
            Self::Plain => "plain",
            Self::Lossy => "lossy",
        }
    }
}

/// What becomes of a frame.
enum Fate {
    Arrives,
    Late,
    Lost,
}

/// Decides about frames, the same way in each run.
struct Faults {
    state: u32,
}

impl Faults {
    /// One frame in 200 is lost, two are late.
    fn next(&mut self) -> Fate {
        // xorshift
        self.state ^= self.state << 13;
        self.state ^= self.state >> 17;
        self.state ^= self.state << 5;
        match self.state % 200 {
            0 => Fate::Lost,
            1 | 2 => Fate::Late,
            _ => Fate::Arrives,
        }
    }
}

/// Creates a TAP interface in the current network namespace; it lives as long as what is returned.
/// With `offloads`, checksums and segmentation are left to who reads the frames.
pub fn tap(name: &str, offloads: bool) -> io::Result<SyncDevice> {
    let interface = DeviceBuilder::new()
        .name(name)
        .layer(Layer::L2)
        .with(|builder| {
            builder.offload(offloads);
        })
        .build_sync()?;
    interface.set_nonblocking(true)?;
    Ok(interface)
}

/// A NIC whose wire is a descriptor: a frame for each read and write.
pub struct Nic {
    wire: OwnedFd,
    offloads: bool,
    pool: Pool,
    /// Where the next frame is read to.
    free: Vec<SimPage>,
    /// What the wire has taken since the last [`Device::complete`].
    done: Vec<(Owner, u32)>,
    faults: Option<Faults>,
    /// A received frame that others overtake.
    late: Option<RxFrame<SimPage>>,
    /// Whether the wire has refused a frame since it was last waited for.
    full: bool,
}

impl Nic {
    /// The far end of a new TAP interface in the current network namespace.
    pub fn tap(name: &str, mode: Mode) -> io::Result<Self> {
        let interface = tap(name, mode == Mode::Offloads)?;
        Ok(Self::on(interface.as_fd().try_clone_to_owned()?, mode))
    }

    /// A NIC on a descriptor that does not block and keeps frames apart.
    pub fn on(wire: OwnedFd, mode: Mode) -> Self {
        Self {
            wire,
            offloads: mode == Mode::Offloads,
            pool: Pool::new(POOL_PAGES),
            free: Vec::new(),
            done: Vec::new(),
            faults: (mode == Mode::Lossy).then_some(Faults { state: 0x1234_5678 }),
            late: None,
            full: false,
        }
    }

    /// What to wait for when idle: until a frame has come, or, if one was refused, there is room
    /// again.
    pub fn wire(&mut self) -> (BorrowedFd<'_>, PollFlags) {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, mem::take(&mut self.full));
        (self.wire.as_fd(), flags)
    }

    /// The next frame that has come.
    fn read(&mut self) -> Option<RxFrame<SimPage>> {
        while self.free.len() < MAX_RX_SLICES {
            self.free.push(self.pool.alloc()?);
        }
        let mut header = [0; VNET_HEADER_BYTES];
        let header_bytes = if self.offloads { VNET_HEADER_BYTES } else { 0 };
        let mut buffers = Vec::with_capacity(1 + MAX_RX_SLICES);
        buffers.push(IoSliceMut::new(&mut header[..header_bytes]));
        // The last page first: that is where they are taken from.
        buffers.extend(
            self.free
                .iter_mut()
                .rev()
                .map(|page| IoSliceMut::new(page.spare_mut())),
        );
        let len = match readv(&self.wire, &mut buffers) {
            // Nothing yet, or a socket whose peer is gone.
            Ok(0) | Err(Errno::AGAIN | Errno::INTR) => return None,
            Ok(len) => len,
            Err(error) => panic!("read from the wire: {error}"),
        };
        let mut left = len.checked_sub(header_bytes).expect("a whole header");
        let mut slices = heapless::Vec::new();
        while left > 0 {
            let mut page = self
                .free
                .pop()
                .expect("no frame is longer than the buffers");
            let len = left.min(PAGE_BYTES);
            page.commit(len);
            left -= len;
            assert!(
                slices.push(Slice::whole(page)).is_ok(),
                "as many as buffers"
            );
        }
        let [flags, gso_type, _, _, size_low, size_high, ..] = header;
        let checksum = if flags & (VNET_NEEDS_CSUM | VNET_DATA_VALID) == 0 {
            RxChecksum::Unverified
        } else {
            RxChecksum::Good
        };
        let segment_bytes = matches!(gso_type & !VNET_GSO_ECN, VNET_GSO_TCPV4 | VNET_GSO_TCPV6)
            .then(|| u16::from_ne_bytes([size_low, size_high]));
        Some(RxFrame {
            slices,
            checksum,
            segment_bytes,
        })
    }

    /// How many of the NIC's pages are in use, apart from those that wait for frames.
    pub fn pages_in_use(&self) -> usize {
        self.pool.live() - self.free.len()
    }
}

impl fmt::Debug for Nic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nic")
            .field("wire", &self.wire)
            .field("offloads", &self.offloads)
            .field("pages_in_use", &self.pages_in_use())
            .finish_non_exhaustive()
    }
}

impl Device for Nic {
    type Page = SimPage;

    fn capabilities(&self) -> Capabilities {
        let max_tso_bytes = if self.offloads { MAX_TSO_BYTES } else { 0 };
        Capabilities {
            mtu_bytes: MTU_BYTES,
            max_tso4_bytes: max_tso_bytes,
            max_tso6_bytes: max_tso_bytes,
            max_tx_slices: MAX_TX_SLICES as u8,
            // What is written is copied at once: nothing stays here.
            tx_ring_bytes: u32::MAX,
            tx_checksum4: self.offloads,
            tx_checksum6: self.offloads,
        }
    }

    fn mac(&self) -> [u8; 6] {
        MAC
    }

    fn link_up(&self) -> bool {
        true
    }

    fn alloc_page(&mut self) -> Option<SimPage> {
        self.pool.alloc()
    }

    fn rx_memory(&self) -> RxMemory {
        RxMemory::Plenty
    }

    fn receive(&mut self, _now: Instant) -> Option<RxFrame<SimPage>> {
        while let Some(frame) = self.read() {
            match self.faults.as_mut().map(Faults::next) {
                Some(Fate::Lost) => {}
                Some(Fate::Late) if self.late.is_none() => self.late = Some(frame),
                _ => return Some(frame),
            }
        }
        self.late.take()
    }

    fn transmit(&mut self, frame: &TxFrame<'_, SimPage>) -> Result<(), TxError> {
        let &TxFrame {
            header,
            payload,
            offload,
            owner,
        } = frame;
        let vnet_header = vnet_header(header, offload);
        let header_bytes = if self.offloads { VNET_HEADER_BYTES } else { 0 };
        let mut buffers = Vec::with_capacity(2 + MAX_TX_SLICES);
        buffers.push(IoSlice::new(&vnet_header[..header_bytes]));
        buffers.push(IoSlice::new(header));
        buffers.extend(payload.iter().map(|slice| IoSlice::new(slice.bytes())));
        let is_lost = matches!(self.faults.as_mut().map(Faults::next), Some(Fate::Lost));
        if !is_lost {
            match writev(&self.wire, &buffers) {
                Ok(_) => {}
                Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => {
                    self.full = true;
                    return Err(TxError::Full);
                }
                // The interface is not up, or the socket's peer is gone.
                Err(Errno::IO | Errno::PIPE) => return Err(TxError::Down),
                Err(error) => panic!("write to the wire: {error}: {frame:?}"),
            }
        }
        let bytes = payload.iter().map(|slice| slice.len() as u32).sum();
        if bytes > 0 {
            self.done.push((owner, bytes));
        }
        Ok(())
    }

    fn flush(&mut self, _now: Instant) {}

    fn complete(&mut self, _now: Instant, sink: &mut dyn FnMut(Completion)) {
        for (owner, bytes) in self.done.drain(..) {
            let held = Duration::ZERO;
            sink(Completion { owner, bytes, held });
        }
    }

    fn arm(&mut self) -> bool {
        // The loop looks at the descriptor as it goes idle. What was sent is done.
        !self.done.is_empty()
    }
}

/// What the wire is told of a frame.
fn vnet_header(header: &[u8], offload: TxOffload) -> [u8; VNET_HEADER_BYTES] {
    let (gso_type, segment_bytes, checksum) = match offload {
        TxOffload::None => (VNET_GSO_NONE, 0, None),
        TxOffload::Checksum { start, offset } => (VNET_GSO_NONE, 0, Some((start, offset))),
        TxOffload::Tso {
            start,
            offset,
            mss_bytes,
            version,
        } => {
            let gso_type = match version {
                paceline_stack::device::IpVersion::V4 => VNET_GSO_TCPV4,
                paceline_stack::device::IpVersion::V6 => VNET_GSO_TCPV6,
            };
            (gso_type, mss_bytes, Some((start, offset)))
        }
    };
    let mut bytes = [0; VNET_HEADER_BYTES];
    if let Some((start, offset)) = checksum {
        bytes[0] = VNET_NEEDS_CSUM;
        bytes[6..8].copy_from_slice(&start.to_ne_bytes());
        bytes[8..10].copy_from_slice(&offset.to_ne_bytes());
    }
    bytes[1] = gso_type;
    bytes[2..4].copy_from_slice(&(header.len() as u16).to_ne_bytes());
    bytes[4..6].copy_from_slice(&segment_bytes.to_ne_bytes());
    bytes
}
