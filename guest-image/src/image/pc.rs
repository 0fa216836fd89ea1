//! The devices of a PC, as QEMU makes one.

use super::{
    apic,
    hal::IdentityHal,
    interrupts::Source,
    ioapic,
    nic::{Nic, Virtio, VirtioNet},
    paging,
};
use alloc::boxed::Box;
use core::ptr::NonNull;
use paceline_driver::{
    page::PagePool,
    virtio::{
        VirtioTransport,
        pci::{self, Message, PciRoot, PortCam},
    },
};
use paceline_guest::cmdline::VirtioMmio;

/// QEMU's microvm with ACPI describes its virtio-mmio slots in the DSDT alone, code that is not run
/// here; but they are always at the same place, on the lines of the second I/O APIC.
const MICROVM_SLOTS: u32 = 24;
const MICROVM_SLOT: VirtioMmio = VirtioMmio {
    address: 0xfeb0_0000,
    len: 512,
    irq: 24,
};

/// The first virtio NIC: on the slots that the command line names, on PCI, or on microvm's slots.
pub(crate) fn nic(slots: &[VirtioMmio], pool: PagePool) -> Option<Nic> {
    slots
        .iter()
        .find_map(on_mmio)
        .or_else(on_pci)
        .or_else(on_microvm)
        .map(|net| Nic::Virtio(Box::new(Virtio::new(net, pool))))
}

fn on_microvm() -> Option<VirtioNet> {
    if !ioapic::is_there(MICROVM_SLOT.irq) {
        return None;
    }
    (0..MICROVM_SLOTS).find_map(|index| {
        let VirtioMmio { address, len, irq } = MICROVM_SLOT;
        on_mmio(&VirtioMmio {
            address: address + len * u64::from(index),
            len,
            irq: irq + index,
        })
    })
}

fn on_mmio(slot: &VirtioMmio) -> Option<VirtioNet> {
    let &VirtioMmio { address, len, irq } = slot;
    // SAFETY: the command line says that a virtio device is there.
    let registers = unsafe { paging::map_device(&(address..address + len)) };
    let registers = registers.ok().and_then(NonNull::new)?;
    // SAFETY: they were just mapped, and each slot is opened once. An empty slot and a device of
    // another kind are refused.
    let transport = unsafe { VirtioTransport::mmio(registers, len as usize) }.ok()?;
    if !transport.is_network() {
        return None;
    }
    if !ioapic::route(irq, Source::Nic) {
        log::error!("virtio-net at {address:#x}: there is no interrupt {irq}");
        return None;
    }
    log::info!("virtio-net at {address:#x}, interrupt {irq}");
    start(transport)
}

fn on_pci() -> Option<VirtioNet> {
    // SAFETY: this is ring 0, and nobody else uses the ports. Without PCI nobody answers.
    let (mut root, mut config) = unsafe { (PciRoot::new(PortCam::new()), PortCam::new()) };
    let device = pci::find(&root).next()?;
    let message = Message {
        apic_id: apic::id(),
        vector: Source::Nic.vector(),
    };
    match pci::open::<IdentityHal, _>(&mut root, &mut config, device, message) {
        Ok(transport) => {
            log::info!("virtio-net on PCI {device}");
            start(transport)
        }
        Err(error) => {
            log::error!("virtio-net on PCI {device}: {error}");
            None
        }
    }
}

fn start(transport: VirtioTransport) -> Option<VirtioNet> {
    VirtioNet::new(transport)
        .inspect_err(|error| log::error!("virtio-net: {error}"))
        .ok()
}
