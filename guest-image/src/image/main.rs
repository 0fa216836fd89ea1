//! The bootable Paceline image.
#![no_std]
#![no_main]

extern crate alloc;

mod apic;
mod boot;
mod clock;
mod console;
mod heap;
mod interrupts;
mod paging;
mod panic;
mod platform;
mod power;
mod start_info;

use paceline_guest::{
    cmdline::{self, Options},
    memory::PAGE_BYTES,
};
use start_info::StartInfo;

/// Where the boot code enters Rust: on the boot stack, in long mode, interrupts off, the first
/// 4 GiB mapped.
extern "C" fn entry(start_info: u32) -> ! {
    interrupts::init();
    let platform = platform::detect();
    console::init(platform);
    // SAFETY: the loader's structures are still as it left them, and mapped.
    let info = unsafe { StartInfo::read(start_info) };
    let info = info.unwrap_or_else(|error| refuse(&error));
    let Some(layout) = info.memory.plan(&paging::image()) else {
        let mib = info.memory.ram_bytes() >> 20;
        refuse(&format_args!(
            "expected at least 4 MiB of memory, found {mib} MiB"
        ));
    };
    // SAFETY: called once, with parts of the memory map that nothing uses.
    unsafe {
        paging::init(&info.memory, layout.tables.clone());
        heap::init(&layout.heap);
    }
    clock::init(platform);
    apic::init(platform);

    let options = Options::parse(info.cmdline(), |word| {
        log::warn!("command line: '{word}' is unknown");
    });
    let options = options.unwrap_or_else(|error: cmdline::Error<'_>| refuse(&error));
    log::set_max_level(options.log_level);
    log::info!(
        "paceline {} on {platform}, {} MiB of memory: {} KiB heap, {} NIC pages",
        env!("CARGO_PKG_VERSION"),
        info.memory.ram_bytes() >> 20,
        heap::stats().free >> 10,
        (layout.pool.end - layout.pool.start) / PAGE_BYTES,
    );
    if info.cmdline_cut {
        log::warn!("command line: cut at {} bytes", info.cmdline().len());
    }
    power::off()
}

/// Ends a boot that cannot go on.
fn refuse(reason: &dyn core::fmt::Display) -> ! {
    log::error!("cannot boot: {reason}");
    power::crash()
}
