//! Either transport of virtio, with interrupts.

use core::ptr::NonNull;
use virtio_drivers::transport::{
    DeviceStatus, DeviceType, InterruptStatus, SomeTransport, Transport,
    mmio::{MmioError, MmioTransport, VirtIOHeader},
};
use virtio_drivers::{PhysAddr, Result};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Offset of `queue_select` in `virtio_pci_common_cfg` (virtio 1.2 §4.1.4.3).
const QUEUE_SELECT: usize = 22;

/// Offset of `queue_msix_vector`.
const QUEUE_MSIX_VECTOR: usize = 26;

/// The registers of a PCI device that tell queues their MSI-X vector.
#[derive(Debug)]
pub(super) struct QueueVectors {
    common_cfg: NonNull<u8>,
}

impl QueueVectors {
    /// # Safety
    ///
    /// `common_cfg` points to the device's common configuration, of at least 28 bytes, mapped as
    /// long as the program runs.
    pub(super) unsafe fn new(common_cfg: NonNull<u8>) -> Self {
        Self { common_cfg }
    }

    /// Has `queue` interrupt by entry 0 of the MSI-X table.
    fn set(&mut self, queue: u16) {
        // SAFETY: both registers lie in the common configuration and are aligned there. The
        // transport that shares it selects a queue before each access of its own.
        unsafe {
            let registers = self.common_cfg;
            registers
                .add(QUEUE_SELECT)
                .cast::<u16>()
                .write_volatile(queue);
            registers
                .add(QUEUE_MSIX_VECTOR)
                .cast::<u16>()
                .write_volatile(0);
        }
    }
}

/// A virtio transport that interrupts.
#[derive(Debug)]
pub struct VirtioTransport {
    inner: SomeTransport<'static>,
    /// With MSI-X; without, an interrupt line stays up until acknowledged.
    vectors: Option<QueueVectors>,
}

impl VirtioTransport {
    /// The device with virtio-mmio registers at `header`, `len` bytes of them. Its interrupts
    /// come on its line.
    ///
    /// # Safety
    ///
    /// The registers are those of a virtio-mmio slot, mapped as long as the program runs, and
    /// used by nobody else.
    pub unsafe fn mmio(header: NonNull<u8>, len: usize) -> core::result::Result<Self, MmioError> {
        // SAFETY: the caller's.
        let transport = unsafe { MmioTransport::new(header.cast::<VirtIOHeader>(), len)? };
        Ok(Self {
            inner: transport.into(),
            vectors: None,
        })
    }

    /// Whether the device is a NIC.
    pub fn is_network(&self) -> bool {
        self.inner.device_type() == DeviceType::Network
    }

    pub(super) fn pci(inner: SomeTransport<'static>, vectors: QueueVectors) -> Self {
        Self {
            inner,
            vectors: Some(vectors),
        }
    }
}

impl Transport for VirtioTransport {
    fn device_type(&self) -> DeviceType {
        self.inner.device_type()
    }

    fn read_device_features(&mut self) -> u64 {
        self.inner.read_device_features()
    }

    fn write_driver_features(&mut self, driver_features: u64) {
        self.inner.write_driver_features(driver_features);
    }

    fn max_queue_size(&mut self, queue: u16) -> u32 {
        self.inner.max_queue_size(queue)
    }

    fn notify(&mut self, queue: u16) {
        self.inner.notify(queue);
    }

    fn get_status(&self) -> DeviceStatus {
        self.inner.get_status()
    }

    fn set_status(&mut self, status: DeviceStatus) {
        self.inner.set_status(status);
    }

    fn set_guest_page_size(&mut self, guest_page_size: u32) {
        self.inner.set_guest_page_size(guest_page_size);
    }

    fn requires_legacy_layout(&self) -> bool {
        self.inner.requires_legacy_layout()
    }

    fn queue_set(
        &mut self,
        queue: u16,
        size: u32,
        descriptors: PhysAddr,
        driver_area: PhysAddr,
        device_area: PhysAddr,
    ) {
        if let Some(vectors) = &mut self.vectors {
            vectors.set(queue);
        }
        self.inner
            .queue_set(queue, size, descriptors, driver_area, device_area);
    }

    fn queue_unset(&mut self, queue: u16) {
        self.inner.queue_unset(queue);
    }

    fn queue_used(&mut self, queue: u16) -> bool {
        self.inner.queue_used(queue)
    }

    /// Takes an interrupt line down, so that the next event raises it again. With MSI-X there is
    /// no line.
    fn ack_interrupt(&mut self) -> InterruptStatus {
        match self.vectors {
            Some(_) => InterruptStatus::empty(),
            None => self.inner.ack_interrupt(),
        }
    }

    fn read_config_generation(&self) -> u32 {
        self.inner.read_config_generation()
    }

    fn read_config_space<T: FromBytes + IntoBytes>(&self, offset: usize) -> Result<T> {
        self.inner.read_config_space(offset)
    }

    fn write_config_space<T: IntoBytes + Immutable>(
        &mut self,
        offset: usize,
        value: T,
    ) -> Result<()> {
        self.inner.write_config_space(offset, value)
    }
}
