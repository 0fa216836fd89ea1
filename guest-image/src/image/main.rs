//! The bootable Paceline image.
#![no_std]
#![no_main]

extern crate alloc;

mod apic;
mod boot;
mod clock;
mod console;
mod heap;
mod idle;
mod interrupts;
mod ioapic;
mod paging;
mod panic;
mod platform;
mod power;
mod run;

use core::fmt::Display;
use paceline_driver::xen::start_info::StartInfo;
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
        (layout.pool.end - layout.pool.start) / PAGE_BYTES,
    );
    if info.command_line_truncated {
        let kept = info.command_line().len();
        log::warn!("command line: cut to its first {kept} bytes");
    }
    run::run()
}

/// Ends a boot that cannot go on.
fn refuse(reason: &dyn Display) -> ! {
    log::error!("cannot boot: {reason}");
    power::crash()
}
