//! What the loader tells a PVH guest: `struct hvm_start_info` of `arch-x86/hvm/start_info.h`.
//!
//! Xen and `qemu -kernel` both pass it. Its parts lie anywhere in the guest's memory, so
//! [`StartInfo::parse`] copies all of it out before anything is allocated there.

use core::{fmt, ptr};
use heapless::Vec;

/// The magic number that starts the structure (`XEN_HVM_START_MAGIC_VALUE`: "xEn3", bit 7 of the
/// `E` set).
pub const MAGIC: u32 = 0x336e_c578;

/// Most memory map entries that are kept.
pub const MAX_MEMORY_REGIONS: usize = 128;

/// Most bytes of the command line that are kept; Linux's limit on x86 too.
pub const MAX_COMMAND_LINE_BYTES: usize = 2048;

/// `struct hvm_start_info`, version 1. All addresses are guest physical.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HvmStartInfo {
    /// [`MAGIC`].
    pub magic: u32,
    /// Version of this structure; the memory map came with 1.
    pub version: u32,
    /// `SIF_*` flags.
    pub flags: u32,
    /// Number of modules.
    pub nr_modules: u32,
    /// Address of an array of `hvm_modlist_entry`.
    pub modlist_paddr: u64,
    /// Address of the command line, which ends with a zero byte; or 0.
    pub cmdline_paddr: u64,
    /// Address of the ACPI RSDP; or 0.
    pub rsdp_paddr: u64,
    /// Address of an array of [`HvmMemmapEntry`].
    pub memmap_paddr: u64,
    /// Number of entries in it; may be 0.
    pub memmap_entries: u32,
    /// Zero.
    pub reserved: u32,
}

/// `struct hvm_memmap_table_entry`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HvmMemmapEntry {
    /// First address of the region.
    pub addr: u64,
    /// Its length in bytes.
    pub size: u64,
    /// `XEN_HVM_MEMMAP_TYPE_*`, which are E820's types.
    pub kind: u32,
    /// Zero.
    pub reserved: u32,
}

/// What a range of guest physical addresses holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Memory for any use.
    Ram,
    /// Not to be touched.
    Reserved,
    /// ACPI tables; memory for any use once they are read.
    AcpiReclaimable,
    /// Memory that firmware uses.
    AcpiNvs,
    /// Memory with errors.
    Unusable,
    /// The loader named a type that the public header doesn't have.
    Other(u32),
}

impl From<u32> for MemoryKind {
    fn from(kind: u32) -> Self {
        match kind {
            1 => Self::Ram,
            2 => Self::Reserved,
            3 => Self::AcpiReclaimable,
            4 => Self::AcpiNvs,
            5 => Self::Unusable,
            other => Self::Other(other),
        }
    }
}

/// A range of guest physical addresses: `start..end`, neither empty nor wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRegion {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// What it holds.
    pub kind: MemoryKind,
}

/// The start info, copied out of the loader's memory.
#[derive(Clone, Debug)]
pub struct StartInfo {
    /// The memory map as the loader gave it: not sorted, without empty regions. Empty when the
    /// loader gave none.
    pub memory_map: Vec<MemoryRegion, MAX_MEMORY_REGIONS>,
    /// Whether regions were left out because there were more than [`MAX_MEMORY_REGIONS`].
    pub memory_map_truncated: bool,
    /// Whether the command line was cut to [`MAX_COMMAND_LINE_BYTES`].
    pub command_line_truncated: bool,
    /// Physical address of the ACPI RSDP.
    pub rsdp_paddr: Option<u64>,
    command_line: Vec<u8, MAX_COMMAND_LINE_BYTES>,
}

impl StartInfo {
    /// Reads the start info at physical address `paddr`.
    ///
    /// Parts of it that do not lie below `mapped_end` are an error, not an access.
    ///
    /// # Safety
    ///
    /// Physical addresses in `1..mapped_end` are mapped at the same virtual address, readable and
    /// written to by nobody during the call.
    pub unsafe fn parse(paddr: u64, mapped_end: u64) -> Result<Self, StartInfoError> {
        let mapped = |what, paddr: u64, bytes: u64| {
            let end = paddr.checked_add(bytes);
            if paddr != 0 && end.is_some_and(|end| end <= mapped_end) {
                Ok(())
            } else {
                Err(StartInfoError::NotMapped { what, paddr, bytes })
            }
        };

        mapped("start info", paddr, size_of::<HvmStartInfo>() as u64)?;
        // SAFETY: it was just checked to lie in memory that the caller vouches for.
        let info = unsafe { read::<HvmStartInfo>(paddr) };
        let HvmStartInfo {
            magic,
            version,
            flags: _,
            nr_modules: _,
            modlist_paddr: _,
            cmdline_paddr,
            rsdp_paddr,
            memmap_paddr,
            memmap_entries,
            reserved: _,
        } = info;
        if magic != MAGIC {
            return Err(StartInfoError::BadMagic(magic));
        }

        let mut memory_map = Vec::new();
        let mut memory_map_truncated = false;
        // Version 0 ends before the memory map: what lies there means nothing.
        let entries = if version == 0 { 0 } else { memmap_entries };
        let entry_bytes = size_of::<HvmMemmapEntry>() as u64;
        if entries > 0 {
            mapped("memory map", memmap_paddr, u64::from(entries) * entry_bytes)?;
        }
        for i in 0..u64::from(entries) {
            // SAFETY: the whole table was checked above.
            let entry = unsafe { read::<HvmMemmapEntry>(memmap_paddr + i * entry_bytes) };
            let end = entry.addr.saturating_add(entry.size);
            if end == entry.addr {
                continue;
            }
            let region = MemoryRegion {
                start: entry.addr,
                end,
                kind: entry.kind.into(),
            };
            if memory_map.push(region).is_err() {
                memory_map_truncated = true;
                break;
            }
        }

        let mut command_line = Vec::new();
        let mut command_line_truncated = false;
        if cmdline_paddr != 0 {
            for paddr in cmdline_paddr.. {
                mapped("command line", paddr, 1)?;
                // SAFETY: the byte was just checked to be mapped.
                let byte = unsafe { read::<u8>(paddr) };
                if byte == 0 {
                    break;
                }
                if command_line.push(byte).is_err() {
                    command_line_truncated = true;
                    break;
                }
            }
        }

        Ok(Self {
            memory_map,
            memory_map_truncated,
            command_line_truncated,
            rsdp_paddr: (rsdp_paddr != 0).then_some(rsdp_paddr),
            command_line,
        })
    }

    /// The command line up to its first byte that is not UTF-8.
    pub fn command_line(&self) -> &str {
        match core::str::from_utf8(&self.command_line) {
            Ok(line) => line,
            Err(error) => {
                let valid = &self.command_line[..error.valid_up_to()];
                core::str::from_utf8(valid).unwrap_or_default()
            }
        }
    }
}

/// Reads a `T` from identity-mapped memory, aligned or not.
///
/// # Safety
///
/// The bytes at `paddr` are mapped there, readable, and form a valid `T`.
unsafe fn read<T: Copy>(paddr: u64) -> T {
    // SAFETY: the caller vouches for the bytes.
    unsafe { ptr::with_exposed_provenance::<T>(paddr as usize).read_unaligned() }
}

/// Why the start info could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartInfoError {
    /// It does not start with [`MAGIC`]: the guest was not entered through its PVH entry.
    BadMagic(u32),
    /// A part of it lies outside the memory that boot code mapped.
    NotMapped {
        /// Which part.
        what: &'static str,
        /// Its physical address.
        paddr: u64,
        /// Its length in bytes.
        bytes: u64,
    },
}

impl fmt::Display for StartInfoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadMagic(found) => {
                write!(f, "start info: expected magic {MAGIC:#x}, found {found:#x}")
            }
            Self::NotMapped { what, paddr, bytes } => {
                write!(f, "{what}: {bytes} bytes at {paddr:#x} are not mapped")
            }
        }
    }
}

impl core::error::Error for StartInfoError {}

#[cfg(test)]
mod tests;
