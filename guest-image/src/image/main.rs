//! The bootable Paceline image.
#![no_std]
#![no_main]

extern crate alloc;

mod apic;
mod boot;
mod clock;
mod console;
mod crash;
mod hal;
mod heap;
mod idle;
mod interrupts;
mod ioapic;
mod memcpy;
mod nic;
mod paging;
mod panic;
mod pc;
mod platform;
mod power;
mod random;
mod run;
mod timer;
mod vcpu;
mod xen;

use core::{fmt::Display, ops::Range, ptr::NonNull};
use paceline_driver::{
    page::PagePool,
    xen::{Gfn, start_info::StartInfo},
};
use paceline_guest::{
    cmdline::Options,
    memory::{self, PAGE_BYTES},
};

/// Where the boot code enters Rust: on the boot stack, in long mode, interrupts off, the first
/// 4 GiB mapped.
extern "C" fn entry(start_info: u32) -> ! {
    interrupts::init();
    let platform = platform::detect();
    console::init(platform);
    // SAFETY: the boot tables map the first 4 GiB, where the loader's structures still are as it
    // left them.
    let info = unsafe { StartInfo::parse(start_info.into(), 1 << 32) };
    let info = info.unwrap_or_else(|error| refuse(&error));
    let map = &info.memory_map;
    let Some(layout) = memory::plan(map, &paging::image()) else {
        let kib = memory::ram_bytes(map) >> 10;
        refuse(&format_args!(
            "expected a memory map with at least 4 MiB, found {kib} KiB"
        ));
    };
    // SAFETY: called once, with parts of the memory map that nothing uses.
    unsafe {
        paging::init(map, layout.tables.clone());
        heap::init(&layout.heap);
    }
    clock::init(platform);
    apic::init(platform);
    // SAFETY: the plan keeps this part of memory for the pool; it is mapped, and at its physical
    // address.
    let pool = unsafe { page_pool(&layout.pool) };
    let xen = platform::xen().map(|xen| xen::Guest::new(xen, map, pool.pages()));

    let options = Options::parse(info.command_line(), |word| {
        log::warn!("command line: '{word}' is unknown");
    });
    let options = options.unwrap_or_else(|error| refuse(&error));
    log::set_max_level(options.log_level);
    log::info!(
        "paceline {} on {platform}, {} MiB of memory: {} KiB heap, {} NIC pages",
        env!("CARGO_PKG_VERSION"),
        memory::ram_bytes(map) >> 20,
        heap::stats().free >> 10,
        pool.pages(),
    );
    if info.command_line_truncated {
        let kept = info.command_line().len();
        log::warn!("command line: cut to its first {kept} bytes");
    }
    run::run(&options, xen.as_ref(), pool)
}

/// The pool of NIC pages in `range`.
///
/// # Safety
///
/// The range is identity-mapped, page-aligned memory that nothing else uses.
unsafe fn page_pool(range: &Range<u64>) -> PagePool {
    let Some(base) = NonNull::new(range.start as *mut u8) else {
        refuse(&"expected memory for NIC pages");
    };
    let pages = (range.end - range.start) / PAGE_BYTES;
    // SAFETY: the caller's.
    unsafe { PagePool::new(base, pages as usize, Gfn(range.start / PAGE_BYTES)) }
}

/// Ends a boot that cannot go on.
fn refuse(reason: &dyn Display) -> ! {
    log::error!("cannot boot: {reason}");
    power::crash()
}
