use super::*;
use alloc::alloc::{alloc_zeroed, dealloc};
use alloc::rc::Rc;
use alloc::vec;
use core::alloc::Layout;
use core::cell::RefCell;
use core::iter;
use core::mem;
use core::ptr::NonNull;
use virtio_drivers::transport::{DeviceStatus, DeviceType, InterruptStatus};
use virtio_drivers::{BufferDirection, PhysAddr, Result};
use zerocopy::{FromBytes, Immutable, IntoBytes};

const MAC: [u8; 6] = [0x52, 0x54, 0, 1, 2, 3];
const RECEIVE: usize = 0;
const TRANSMIT: usize = 1;

/// Bytes of the header before each frame, with VERSION_1.
const HEADER_BYTES: usize = 12;
const VERSION_1: u64 = 1 << 32;

/// Memory at its own address.
struct FakeHal;

fn layout(pages: usize) -> Layout {
    Layout::from_size_align(pages * 4096, 4096).unwrap()
}

// SAFETY: memory comes zeroed and aligned from the allocator.
unsafe impl Hal for FakeHal {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        // SAFETY: the size is not 0.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout(pages)) }).unwrap();
        (memory.as_ptr().expose_provenance() as u64, memory)
    }

    unsafe fn dma_dealloc(_: PhysAddr, memory: NonNull<u8>, pages: usize) -> i32 {
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(memory.as_ptr(), layout(pages)) };
        0
    }

    unsafe fn mmio_phys_to_virt(_: PhysAddr, _: usize) -> NonNull<u8> {
        unreachable!("there are no registers")
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        buffer.cast::<u8>().as_ptr().expose_provenance() as u64
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}

/// A queue as the device sees it.
#[derive(Default)]
struct DeviceQueue {
    descriptors: u64,
    available: u64,
    used: u64,
    next: u16,
    used_index: u16,
    notified: u32,
}

fn read<T: Copy>(address: u64) -> T {
    // SAFETY: tests read the queues' memory, which the driver under test keeps, by addresses it
    // has exposed.
    unsafe { core::ptr::with_exposed_provenance::<T>(address as usize).read_volatile() }
}

fn write<T>(address: u64, value: T) {
    // SAFETY: as in `read`.
    unsafe { core::ptr::with_exposed_provenance_mut::<T>(address as usize).write_volatile(value) };
}

impl DeviceQueue {
    /// Takes the next buffer on offer: its descriptor's number, address and length.
    fn take(&mut self) -> Option<(u16, u64, u32)> {
        if self.next == read::<u16>(self.available + 2) {
            return None;
        }
        let slot = u64::from(self.next) % QUEUE_SIZE as u64;
        self.next = self.next.wrapping_add(1);
        let id: u16 = read(self.available + 4 + 2 * slot);
        let descriptor = self.descriptors + 16 * u64::from(id);
        Some((id, read(descriptor), read(descriptor + 8)))
    }

    /// Gives a buffer back.
    fn give(&mut self, id: u32, len: u32) {
        let slot = u64::from(self.used_index) % QUEUE_SIZE as u64;
        write(self.used + 4 + 8 * slot, [id, len]);
        self.used_index = self.used_index.wrapping_add(1);
        write(self.used + 2, self.used_index);
    }
}

#[derive(Default)]
struct FakeDevice {
    status: u32,
    queues: [DeviceQueue; 2],
}

impl FakeDevice {
    /// Has the driver receive `frame`.
    fn deliver(&mut self, frame: &[u8]) {
        let queue = &mut self.queues[RECEIVE];
        let (id, address, room) = queue.take().expect("no receive buffer posted");
        assert!(room as usize >= HEADER_BYTES + frame.len());
        let bytes = iter::repeat_n(&0xee, HEADER_BYTES).chain(frame);
        for (offset, byte) in bytes.enumerate() {
            write(address + offset as u64, *byte);
        }
        queue.give(id.into(), (HEADER_BYTES + frame.len()) as u32);
    }

    /// Takes a frame that the driver sends, without giving its buffer back.
    fn collect(&mut self) -> Option<(u16, Vec<u8>)> {
        let (id, address, len) = self.queues[TRANSMIT].take()?;
        let bytes: Vec<u8> = (0..u64::from(len))
            .map(|offset| read(address + offset))
            .collect();
        let (header, frame) = bytes.split_at(HEADER_BYTES);
        assert_eq!(header, [0; HEADER_BYTES], "no offload was agreed on");
        Some((id, frame.to_vec()))
    }
}

struct FakeTransport(Rc<RefCell<FakeDevice>>);

impl Transport for FakeTransport {
    fn device_type(&self) -> DeviceType {
        DeviceType::Network
    }

    fn read_device_features(&mut self) -> u64 {
        VERSION_1
    }

    fn write_driver_features(&mut self, features: u64) {
        assert_eq!(features, VERSION_1);
    }

    fn max_queue_size(&mut self, _: u16) -> u32 {
        QUEUE_SIZE as u32
    }

    fn notify(&mut self, queue: u16) {
        self.0.borrow_mut().queues[usize::from(queue)].notified += 1;
    }

    fn get_status(&self) -> DeviceStatus {
        DeviceStatus::from_bits_retain(self.0.borrow().status)
    }

    fn set_status(&mut self, status: DeviceStatus) {
        self.0.borrow_mut().status = status.bits();
    }

    fn set_guest_page_size(&mut self, _: u32) {}

    fn requires_legacy_layout(&self) -> bool {
        false
    }

    fn queue_set(
        &mut self,
        queue: u16,
        size: u32,
        descriptors: PhysAddr,
        driver_area: PhysAddr,
        device_area: PhysAddr,
    ) {
        assert_eq!(size as usize, QUEUE_SIZE);
        self.0.borrow_mut().queues[usize::from(queue)] = DeviceQueue {
            descriptors,
            available: driver_area,
            used: device_area,
            ..DeviceQueue::default()
        };
    }

    fn queue_unset(&mut self, _: u16) {}

    fn queue_used(&mut self, queue: u16) -> bool {
        self.0.borrow().queues[usize::from(queue)].descriptors != 0
    }

    fn ack_interrupt(&mut self) -> InterruptStatus {
        InterruptStatus::empty()
    }

    fn read_config_generation(&self) -> u32 {
        0
    }

    fn read_config_space<T: FromBytes + IntoBytes>(&self, offset: usize) -> Result<T> {
        // The address, then the link's status: up.
        let mut config = [0; 16];
        config[..6].copy_from_slice(&MAC);
        config[6] = 1;
        let field = &config[offset..offset + mem::size_of::<T>()];
        Ok(T::read_from_bytes(field).unwrap_or_else(|_| unreachable!("the size is right")))
    }

    fn write_config_space<T: IntoBytes + Immutable>(&mut self, _: usize, _: T) -> Result<()> {
        Ok(())
    }
}

type Net = VirtioNet<FakeHal, FakeTransport, u32>;

fn open() -> (Net, Rc<RefCell<FakeDevice>>) {
    let device = Rc::new(RefCell::new(FakeDevice::default()));
    let net = VirtioNet::new(FakeTransport(Rc::clone(&device))).unwrap();
    (net, device)
}

fn completed(net: &mut Net) -> Vec<u32> {
    let mut tags = vec![];
    net.complete(|tag| tags.push(tag));
    tags
}

#[test]
fn received_frames_come_whole_and_in_order() {
    let (mut net, device) = open();
    assert_eq!(net.mac(), MAC);
    for round in 0..3 * QUEUE_SIZE {
        let frame = vec![round as u8; 60 + round % (MAX_FRAME_BYTES - 60)];
        device.borrow_mut().deliver(&frame);
        assert_eq!(net.receive(<[u8]>::to_vec), Some(frame));
        assert_eq!(net.receive(<[u8]>::len), None);
        net.refill();
    }
    assert_eq!(net.statistics().rx_frames, 3 * QUEUE_SIZE as u64);
}

#[test]
fn sent_frames_are_gathered_and_their_tags_returned_out_of_order() {
    let (mut net, device) = open();
    for tag in 0..3 {
        let parts = [&b"head"[..], &[tag as u8; 3], b""];
        net.transmit(parts.into_iter(), tag).unwrap();
    }
    let mut ids = vec![];
    for tag in 0..3 {
        let (id, frame) = device.borrow_mut().collect().unwrap();
        assert_eq!(frame, [&b"head"[..], &[tag; 3]].concat());
        ids.push(id);
    }
    assert_eq!(completed(&mut net), []);
    for index in [2, 0, 1] {
        device.borrow_mut().queues[TRANSMIT].give(ids[index].into(), 0);
    }
    assert!(net.arm());
    assert_eq!(completed(&mut net), [2, 0, 1]);
    assert!(!net.arm());
}

#[test]
fn a_full_queue_refuses_until_a_completion() {
    let (mut net, device) = open();
    let frame = || iter::once(&[7; 64][..]);
    for tag in 0..QUEUE_SIZE as u32 {
        net.transmit(frame(), tag).unwrap();
    }
    assert_eq!(net.transmit(frame(), 999), Err(TxError::Full));
    let (id, _) = device.borrow_mut().collect().unwrap();
    device.borrow_mut().queues[TRANSMIT].give(id.into(), 0);
    assert_eq!(completed(&mut net), [0]);
    assert_eq!(net.transmit(frame(), 999), Ok(()));
    assert_eq!(net.statistics().tx_full, 1);
}

#[test]
fn a_frame_that_is_too_long_is_refused_and_nothing_sent() {
    let (mut net, device) = open();
    for len in [MAX_FRAME_BYTES + 1, BUFFER_BYTES, 100_000] {
        let frame = vec![0; len];
        let sent = net.transmit(iter::once(&frame[..]), 0);
        assert_eq!(sent, Err(TxError::TooLong));
    }
    assert!(device.borrow_mut().collect().is_none());
    let longest = [1; MAX_FRAME_BYTES];
    assert_eq!(net.transmit(iter::once(&longest[..]), 0), Ok(()));
}

#[test]
fn a_hostile_device_is_stopped() {
    type Attack = fn(&mut FakeDevice);
    let attacks: [(&str, Attack); 6] = [
        ("receive: identifier out of range", |device| {
            device.queues[RECEIVE].give(QUEUE_SIZE as u32, 100);
        }),
        ("receive: longer than its buffer", |device| {
            let (id, _, room) = device.queues[RECEIVE].take().unwrap();
            device.queues[RECEIVE].give(id.into(), room + 1);
        }),
        ("receive: longest possible", |device| {
            let (id, _, _) = device.queues[RECEIVE].take().unwrap();
            device.queues[RECEIVE].give(id.into(), u32::MAX);
        }),
        ("receive: shorter than its header", |device| {
            let (id, _, _) = device.queues[RECEIVE].take().unwrap();
            device.queues[RECEIVE].give(id.into(), HEADER_BYTES as u32 - 1);
        }),
        ("transmit: nothing was sent", |device| {
            device.queues[TRANSMIT].give(0, 0);
        }),
        ("transmit: identifier out of range", |device| {
            device.queues[TRANSMIT].give(u32::from(u16::MAX), 0);
        }),
    ];
    for (name, attack) in attacks {
        let (mut net, device) = open();
        attack(&mut device.borrow_mut());
        assert!(net.arm(), "{name}");
        assert_eq!(net.receive(<[u8]>::len), None, "{name}");
        assert_eq!(completed(&mut net), [], "{name}");
        assert!(!net.is_up(), "{name}");
        assert!(!net.arm(), "{name}");
        let sent = net.transmit(iter::once(&[0; 60][..]), 0);
        assert_eq!(sent, Err(TxError::Broken), "{name}");
    }
}

#[test]
fn a_buffer_given_back_twice_stops_the_device() {
    let (mut net, device) = open();
    device.borrow_mut().deliver(&[1; 60]);
    device.borrow_mut().queues[RECEIVE].give(0, 72);
    assert!(net.receive(<[u8]>::len).is_some());
    assert_eq!(net.receive(<[u8]>::len), None);
    assert!(!net.is_up());
}
