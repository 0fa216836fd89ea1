//! What the loader hands over: `hvm_start_info` of the PVH boot protocol.

use core::{fmt, ptr};
use paceline_guest::memory::MemoryMap;

/// `XEN_HVM_START_MAGIC_VALUE`.
const MAGIC: u32 = 0x336e_c578;

/// The longest command line that is kept, in bytes.
const MAX_CMDLINE_BYTES: usize = 4096;

/// Most memory map entries looked at.
const MAX_MEMMAP_ENTRIES: u32 = 1024;

/// `struct hvm_start_info`, version 1.
#[repr(C)]
#[derive(Clone, Copy)]
struct HvmStartInfo {
    magic: u32,
    version: u32,
    _flags: u32,
    _nr_modules: u32,
    _modlist_paddr: u64,
    cmdline_paddr: u64,
    _rsdp_paddr: u64,
    memmap_paddr: u64,
    memmap_entries: u32,
    _reserved: u32,
}

/// `struct hvm_memmap_table_entry`.
#[repr(C)]
#[derive(Clone, Copy)]
struct MemmapEntry {
    addr: u64,
    size: u64,
    kind: u32,
    _reserved: u32,
}

/// The loader's words, copied out of its memory.
#[derive(Debug)]
pub(crate) struct StartInfo {
    cmdline: heapless::Vec<u8, MAX_CMDLINE_BYTES>,
    /// Whether the command line was longer than what is kept.
    pub(crate) cmdline_cut: bool,
    /// The memory map.
    pub(crate) memory: MemoryMap,
}

/// Why the loader's words cannot be used.
#[derive(Debug)]
pub(crate) enum Error {
    Magic(u32),
    NoMemoryMap,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic(found) => {
                write!(
                    f,
                    "expected hvm_start_info with magic {MAGIC:#x}, found {found:#x}"
                )
            }
            Self::NoMemoryMap => {
                f.write_str("expected a memory map in hvm_start_info (version 1), found none")
            }
        }
    }
}

impl StartInfo {
    /// Copies the `hvm_start_info` at physical address `address`.
    ///
    /// # Safety
    ///
    /// `address` is the one the loader gave, all that it points to is mapped and nothing has
    /// been written there since.
    pub(crate) unsafe fn read(address: u32) -> Result<Self, Error> {
        let address = address as *const HvmStartInfo;
        // SAFETY: the boot protocol says it is there; a wrong pointer at least lies in the
        // first 4 GiB, which are mapped.
        let raw = unsafe { ptr::read_unaligned(address) };
        if raw.magic != MAGIC {
            return Err(Error::Magic(raw.magic));
        }
        if raw.version < 1 || raw.memmap_entries == 0 {
            return Err(Error::NoMemoryMap);
        }
        let mut memory = MemoryMap::new();
        let entries = raw.memmap_paddr as *const MemmapEntry;
        for index in 0..raw.memmap_entries.min(MAX_MEMMAP_ENTRIES) {
            // SAFETY: the loader says that there are so many entries.
            let entry = unsafe { ptr::read_unaligned(entries.add(index as usize)) };
            memory.add(entry.addr, entry.size, entry.kind);
        }

        let mut cmdline = heapless::Vec::new();
        let mut cmdline_cut = false;
        let mut next = raw.cmdline_paddr as *const u8;
        while !next.is_null() {
            // SAFETY: the string goes on up to its terminating zero.
            let byte = unsafe { next.read() };
            if byte == 0 {
                break;
            }
            if cmdline.push(byte).is_err() {
                cmdline_cut = true;
                break;
            }
            next = next.wrapping_add(1);
        }
        Ok(Self {
            cmdline,
            cmdline_cut,
            memory,
        })
    }

    /// The command line up to the first byte that is not UTF-8.
    pub(crate) fn cmdline(&self) -> &str {
        match core::str::from_utf8(&self.cmdline) {
            Ok(line) => line,
            Err(error) => {
                core::str::from_utf8(&self.cmdline[..error.valid_up_to()]).unwrap_or_default()
            }
        }
    }
}
