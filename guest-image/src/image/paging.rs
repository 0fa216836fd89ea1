//! Page tables: everything at its physical address, no page both writable and executable.

use core::{cell::UnsafeCell, fmt, ops::Range};
use paceline_driver::xen::start_info::MemoryRegion;
use paceline_guest::memory::{self, PAGE_BYTES};
use spin::Mutex;
use x86_64::{
    PhysAddr, VirtAddr,
    registers::control::{Cr3, Cr3Flags, Cr4, Cr4Flags},
    structures::paging::{
        FrameAllocator, Mapper, OffsetPageTable, Page, PageSize, PageTable, PageTableFlags,
        PhysFrame, Size2MiB, Size4KiB, Translate,
        mapper::{MapToError, TranslateResult},
    },
};

const DATA: PageTableFlags = PageTableFlags::PRESENT
    .union(PageTableFlags::WRITABLE)
    .union(PageTableFlags::NO_EXECUTE);

const RODATA: PageTableFlags = PageTableFlags::PRESENT.union(PageTableFlags::NO_EXECUTE);

const TEXT: PageTableFlags = PageTableFlags::PRESENT;

/// End of the lower half of the virtual addresses (Intel SDM vol. 1 §3.3.7.1).
const ADDRESSES_END: u64 = 1 << 47;

const UNCACHED: PageTableFlags = DATA
    .union(PageTableFlags::NO_CACHE)
    .union(PageTableFlags::WRITE_THROUGH);

/// An address that the linker script defines.
#[repr(transparent)]
struct Symbol(UnsafeCell<u8>);

// SAFETY: only its address is taken.
unsafe impl Sync for Symbol {}

impl Symbol {
    fn address(&self) -> u64 {
        self.0.get() as u64
    }
}

unsafe extern "C" {
    safe static __image_start: Symbol;
    safe static __text_start: Symbol;
    safe static __text_end: Symbol;
    safe static __rodata_start: Symbol;
    safe static __rodata_end: Symbol;
    safe static __data_start: Symbol;
    safe static __data_end: Symbol;
    safe static __image_end: Symbol;
    safe static __stack_guard: Symbol;
    safe static __stack_bottom: Symbol;
    safe static __stack_top: Symbol;
    safe static __fault_stack_guard: Symbol;
    safe static __fault_stack_top: Symbol;
}

/// Where the image lies.
pub(crate) fn image() -> Range<u64> {
    __image_start.address()..__image_end.address()
}

/// Where code lies.
pub(crate) fn text() -> Range<u64> {
    __text_start.address()..__text_end.address()
}

/// The stacks that code runs on: the boot stack and the one for double faults.
pub(crate) fn stacks() -> [Range<u64>; 2] {
    [
        __stack_bottom.address()..__stack_top.address(),
        __fault_stack_guard.address() + PAGE_BYTES..__fault_stack_top.address(),
    ]
}

/// The page under the boot stack, which is never mapped.
pub(crate) fn stack_guard() -> Range<u64> {
    __stack_guard.address()..__stack_bottom.address()
}

/// Page tables, with the memory to grow them.
struct Tables {
    root: u64,
    frames: Range<u64>,
}

// Taken only by code that runs outside of interrupts.
static TABLES: Mutex<Option<Tables>> = Mutex::new(None);

/// Hands out the frames of a range, in order.
struct Frames<'a>(&'a mut Range<u64>);

// SAFETY: each frame of the range is given once, and the range is for page tables alone.
unsafe impl FrameAllocator<Size4KiB> for Frames<'_> {
    fn allocate_frame(&mut self) -> Option<PhysFrame> {
        if self.0.is_empty() {
            return None;
        }
        let frame = PhysFrame::containing_address(PhysAddr::new(self.0.start));
        self.0.start += PAGE_BYTES;
        Some(frame)
    }
}

/// Why memory could not be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapError {
    /// The memory set aside for page tables is used up.
    NoTables,
    /// A part is mapped already, in another way.
    Mapped,
    /// A part lies where an identity mapping cannot reach.
    OutOfReach,
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTables => "the memory for page tables is used up",
            Self::Mapped => "mapped already in another way",
            Self::OutOfReach => "expected addresses below 2^47",
        })
    }
}

impl Tables {
    /// The tables under this root.
    fn mapper(&mut self) -> OffsetPageTable<'_> {
        // SAFETY: the root and all below it are reached through `self` alone, which is borrowed
        // exclusively, and lie at their physical addresses, mapped.
        unsafe {
            let root = &mut *(self.root as *mut PageTable);
            OffsetPageTable::new(root, VirtAddr::zero())
        }
    }

    fn map_page<S: PageSize>(&mut self, address: u64, flags: PageTableFlags) -> Result<(), MapError>
    where
        for<'a> OffsetPageTable<'a>: Mapper<S>,
    {
        let page = Page::<S>::containing_address(VirtAddr::new(address));
        let frame = PhysFrame::<S>::containing_address(PhysAddr::new(address));
        let parents = PageTableFlags::PRESENT | PageTableFlags::WRITABLE;
        let mut frames = self.frames.clone();
        // SAFETY: an identity mapping; the callers see to it that memory in use keeps its
        // flags, and `map_to` changes no mapping that there is.
        let result = unsafe {
            self.mapper().map_to_with_table_flags(
                page,
                frame,
                flags,
                parents,
                &mut Frames(&mut frames),
            )
        };
        self.frames = frames;
        match result {
            Ok(flush) => {
                flush.flush();
                Ok(())
            }
            Err(MapToError::FrameAllocationFailed) => Err(MapError::NoTables),
            Err(MapToError::PageAlreadyMapped(other))
                if other == frame && self.has_flags(address, flags) =>
            {
                Ok(())
            }
            Err(MapToError::PageAlreadyMapped(_) | MapToError::ParentEntryHugePage) => {
                Err(MapError::Mapped)
            }
        }
    }

    /// Whether `address` is mapped with these flags, as far as they say how it may be used.
    fn has_flags(&mut self, address: u64, flags: PageTableFlags) -> bool {
        let found = match self.mapper().translate(VirtAddr::new(address)) {
            TranslateResult::Mapped { flags, .. } => flags,
            TranslateResult::NotMapped | TranslateResult::InvalidFrameAddress(_) => return false,
        };
        let set_by_cpu = PageTableFlags::ACCESSED | PageTableFlags::DIRTY;
        found.difference(set_by_cpu | PageTableFlags::HUGE_PAGE) == flags
    }

    /// Maps `range` with the largest pages that fit. Pages mapped so already are no error.
    fn map(&mut self, range: &Range<u64>, flags: PageTableFlags) -> Result<(), MapError> {
        if range.end > ADDRESSES_END {
            return Err(MapError::OutOfReach);
        }
        let mut at = range.start & !(PAGE_BYTES - 1);
        while at < range.end {
            if at.is_multiple_of(Size2MiB::SIZE) && range.end - at >= Size2MiB::SIZE {
                self.map_page::<Size2MiB>(at, flags)?;
                at += Size2MiB::SIZE;
            } else {
                self.map_page::<Size4KiB>(at, flags)?;
                at += PAGE_BYTES;
            }
        }
        Ok(())
    }
}

/// Replaces the boot tables: the image by its sections, memory for data, nothing at address 0
/// and under the stacks.
///
/// # Safety
///
/// Called once; `tables` is memory below 4 GiB that nothing else uses.
pub(crate) unsafe fn init(map: &[MemoryRegion], tables: Range<u64>) {
    let mut frames = tables;
    let root = frames.start;
    frames.start += PAGE_BYTES;
    // SAFETY: the caller gives the frame away, and it is mapped.
    unsafe { (root as *mut PageTable).write(PageTable::new()) };
    let mut tables = Tables { root, frames };

    let mut identity = |range: Range<u64>, flags| {
        tables
            .map(&range, flags)
            .unwrap_or_else(|error| super::refuse(&format_args!("mapping {range:x?}: {error}")));
    };
    identity(text(), TEXT);
    identity(__rodata_start.address()..__rodata_end.address(), RODATA);
    identity(__data_start.address()..__stack_guard.address(), DATA);
    for stack in stacks() {
        identity(stack, DATA);
    }
    let image = image();
    for range in memory::ram(map) {
        // The page at 0 stays out, for null pointers to fault.
        let range = range.start.max(PAGE_BYTES)..range.end;
        for part in [
            range.start..range.end.min(image.start),
            range.start.max(image.end)..range.end,
        ] {
            if !part.is_empty() {
                identity(part, DATA);
            }
        }
    }

    // SAFETY: the tables map the running code, its data and its stack, all where they are.
    unsafe {
        let frame = PhysFrame::containing_address(PhysAddr::new(root));
        Cr3::write(frame, Cr3Flags::empty());
        protect_from_user_pages();
    }
    *TABLES.lock() = Some(tables);
}

/// There are no user pages: should one appear in the tables by a bug or an attack, the
/// processor refuses to run it.
///
/// # Safety
///
/// No page that is in use has the user flag.
unsafe fn protect_from_user_pages() {
    let features = raw_cpuid::CpuId::new().get_extended_feature_info();
    if features.is_some_and(|features| features.has_smep()) {
        // SAFETY: the caller's.
        unsafe {
            Cr4::update(|flags| flags.insert(Cr4Flags::SUPERVISOR_MODE_EXECUTION_PROTECTION));
        };
    }
}

/// Maps device registers, uncached, and returns where: at their physical address.
///
/// # Safety
///
/// The range is that of a device.
pub(crate) unsafe fn map_device(range: &Range<u64>) -> Result<*mut u8, MapError> {
    map_more(range, UNCACHED)
}

/// Maps frames outside of the memory map (shared with the hypervisor), write-back.
///
/// # Safety
///
/// The range is free of memory in use.
pub(crate) unsafe fn map_shared(range: &Range<u64>) -> Result<*mut u8, MapError> {
    map_more(range, DATA)
}

fn map_more(range: &Range<u64>, flags: PageTableFlags) -> Result<*mut u8, MapError> {
    let mut tables = TABLES.lock();
    let tables = tables.as_mut().ok_or(MapError::NoTables)?;
    tables.map(range, flags)?;
    Ok(range.start as *mut u8)
}
