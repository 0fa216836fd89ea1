//! virtio-net on PCI: finding it, and MSI-X.

use super::transport::{QueueVectors, VirtioTransport};
use core::arch::asm;
use core::fmt;
use core::ptr::NonNull;
use virtio_drivers::Hal;
use virtio_drivers::transport::DeviceType;
use virtio_drivers::transport::pci::bus::{CapabilityInfo, Command, PciError};
pub use virtio_drivers::transport::pci::bus::{ConfigurationAccess, DeviceFunction, PciRoot};
use virtio_drivers::transport::pci::{PciTransport, VirtioPciError, virtio_device_type};

const CONFIG_ADDRESS: u16 = 0xcf8;
const CONFIG_DATA: u16 = 0xcfc;

const CAPABILITY_MSIX: u8 = 0x11;
const CAPABILITY_VENDOR: u8 = 0x09;

/// `VIRTIO_PCI_CAP_COMMON_CFG` (virtio 1.2 §4.1.4).
const CFG_TYPE_COMMON: u8 = 1;

/// Bytes of `virtio_pci_common_cfg` up to the last register of virtio 1.0.
const COMMON_CFG_BYTES: usize = 56;

/// Bit of an MSI-X capability's first word that enables it.
const MSIX_ENABLE: u32 = 1 << 31;

/// Bytes of an entry of the MSI-X table.
const MSIX_ENTRY_BYTES: usize = 16;

/// Where an MSI-X message is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// APIC id of the processor.
    pub apic_id: u8,
    /// Interrupt vector.
    pub vector: u8,
}

/// PCI's configuration space, through the PC's I/O ports.
#[derive(Debug)]
pub struct PortCam(());

impl PortCam {
    /// # Safety
    ///
    /// This is ring 0 of a PC with PCI, and nobody else uses the configuration ports.
    pub unsafe fn new() -> Self {
        Self(())
    }

    fn select(device: DeviceFunction, register: u8) {
        let address = 1 << 31
            | u32::from(device.bus) << 16
            | u32::from(device.device) << 11
            | u32::from(device.function) << 8
            | u32::from(register & !3);
        // SAFETY: whoever made a `PortCam` vouches for the ports; selecting has no other effect.
        unsafe {
            asm!("out dx, eax", in("dx") CONFIG_ADDRESS, in("eax") address,
                options(nomem, nostack, preserves_flags));
        }
    }
}

impl ConfigurationAccess for PortCam {
    fn read_word(&self, device: DeviceFunction, register: u8) -> u32 {
        Self::select(device, register);
        let value;
        // SAFETY: as in `select`; reading a configuration register has no effect.
        unsafe {
            asm!("in eax, dx", in("dx") CONFIG_DATA, out("eax") value,
                options(nomem, nostack, preserves_flags));
        }
        value
    }

    fn write_word(&mut self, device: DeviceFunction, register: u8, value: u32) {
        Self::select(device, register);
        // SAFETY: as in `select`; `PciRoot` writes what the caller has it write.
        unsafe {
            asm!("out dx, eax", in("dx") CONFIG_DATA, in("eax") value,
                options(nostack, preserves_flags));
        }
    }

    unsafe fn unsafe_clone(&self) -> Self {
        Self(())
    }
}

/// The virtio network devices on bus 0.
pub fn find<C: ConfigurationAccess>(root: &PciRoot<C>) -> impl Iterator<Item = DeviceFunction> {
    root.enumerate_bus(0)
        .filter(|(_, info)| virtio_device_type(info) == Some(DeviceType::Network))
        .map(|(device, _)| device)
}

/// Brings up the transport of `device`, all of whose queues interrupt by `message`.
pub fn open<H: Hal, C: ConfigurationAccess>(
    root: &mut PciRoot<C>,
    config: &mut C,
    device: DeviceFunction,
    message: Message,
) -> Result<VirtioTransport, OpenError> {
    root.set_command(device, Command::MEMORY_SPACE | Command::BUS_MASTER);
    let capability = |root: &PciRoot<C>, wanted: fn(&CapabilityInfo) -> bool| {
        root.capabilities(device)
            .find(wanted)
            .map(|capability| capability.offset)
    };
    let msix = capability(root, |c| c.id == CAPABILITY_MSIX).ok_or(OpenError::NoMsix)?;
    let common = capability(root, |c| {
        c.id == CAPABILITY_VENDOR && (c.private_header >> 8) as u8 == CFG_TYPE_COMMON
    })
    .ok_or(OpenError::NoCommonConfig)?;

    // MSI-X's offset and BAR number share a word (PCI 3.0 §6.8.2.4); virtio's are apart.
    let table = config.read_word(device, msix + 4);
    let table = map::<H, C>(root, device, table as u8 & 7, table & !7, MSIX_ENTRY_BYTES)?;
    let bar = config.read_word(device, common + 4) as u8;
    let offset = config.read_word(device, common + 8);
    let common = map::<H, C>(root, device, bar, offset, COMMON_CFG_BYTES)?;

    let address = 0xfee0_0000 | u32::from(message.apic_id) << 12;
    let entry = [address, 0, u32::from(message.vector), 0];
    for (index, word) in entry.into_iter().enumerate() {
        // SAFETY: the table was just mapped and has at least one entry of four words.
        unsafe { table.cast::<u32>().add(index).write_volatile(word) };
    }
    let control = config.read_word(device, msix);
    config.write_word(device, msix, control | MSIX_ENABLE);

    let transport = PciTransport::new::<H, C>(root, device).map_err(OpenError::Transport)?;
    // SAFETY: the common configuration was just mapped with that many bytes.
    let vectors = unsafe { QueueVectors::new(common) };
    Ok(VirtioTransport::pci(transport.into(), vectors))
}

/// Maps `len` bytes at `offset` of a BAR.
fn map<H: Hal, C: ConfigurationAccess>(
    root: &mut PciRoot<C>,
    device: DeviceFunction,
    bar: u8,
    offset: u32,
    len: usize,
) -> Result<NonNull<u8>, OpenError> {
    if bar > 5 {
        return Err(OpenError::Bar(bar));
    }
    let info = root.bar_info(device, bar).map_err(OpenError::Pci)?;
    let (address, size) = info
        .and_then(|info| info.memory_address_size())
        .filter(|&(address, _)| address != 0)
        .ok_or(OpenError::Bar(bar))?;
    if u64::from(offset) + len as u64 > size {
        return Err(OpenError::Bar(bar));
    }
    // SAFETY: the range lies in a BAR, which is a device's registers.
    Ok(unsafe { H::mmio_phys_to_virt(address + u64::from(offset), len) })
}

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// This BAR is not there, not memory, without address or too short.
    Bar(u8),
    /// There is no virtio 1.0 common configuration.
    NoCommonConfig,
    /// There is no MSI-X capability.
    NoMsix,
    /// A PCI register cannot be read.
    Pci(PciError),
    /// virtio-drivers refuses it.
    Transport(VirtioPciError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bar(bar) => write!(
                f,
                "BAR {bar}: expected assigned memory that holds the registers"
            ),
            Self::NoCommonConfig => f.write_str("expected a virtio 1.0 device, found a legacy one"),
            Self::NoMsix => f.write_str("expected an MSI-X capability, found none"),
            Self::Pci(error) => error.fmt(f),
            Self::Transport(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for OpenError {}
