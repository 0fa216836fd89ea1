//! The console: where log lines go and the shell's input comes from.

use super::{
    clock,
    interrupts::Source,
    ioapic,
    platform::{self, Platform},
    vcpu::Local,
};
use core::fmt::{self, Write};
use log::{Level, LevelFilter, Log, Metadata, Record};
use paceline_driver::xen::{EventPort, Hypervisor, console::PvConsole, native::Xen};
use spin::Mutex;
use uart_16550::{Config, Uart16550, backend::PioBackend, spec::registers::IER};

const COM1: u16 = 0x3f8;
const COM1_IRQ: u32 = 4;

/// How often the UART is asked whether it has room before a byte is given up.
const SERIAL_ATTEMPTS: u32 = 100_000;

/// How often dom0 is waited for, for [`PAUSE_NS`] each time, before output is given up.
const RING_ATTEMPTS: u32 = 1000;

const PAUSE_NS: u64 = 100_000;

/// Lets dom0 have time to read.
fn pause() {
    let start = clock::now_ns();
    while clock::now_ns().saturating_sub(start) < PAUSE_NS {
        core::hint::spin_loop();
    }
}

/// The console's ring.
struct Ring {
    shared: PvConsole,
    xen: Xen,
    /// The last output was dropped, after dom0 had had its time: it is not waited for again
    /// before it reads.
    stuck: bool,
}

impl Ring {
    fn write(&mut self, bytes: &[u8]) {
        let attempts = if self.stuck { 0 } else { RING_ATTEMPTS };
        let dropped = self.shared.dropped_bytes();
        self.shared.write_all(&self.xen, bytes, attempts, pause);
        self.stuck = self.shared.dropped_bytes() != dropped;
    }
}

enum Console {
    /// Nowhere.
    None,
    /// Xen's own console: output only.
    XenDebug,
    Serial(Uart16550<PioBackend>),
    /// The ring shared with dom0.
    XenRing(Local<Ring>),
}

static CONSOLE: Mutex<Console> = Mutex::new(Console::None);

struct Logger;

impl Log for Logger {
    /// virtio-drivers tells at length what matters only when something is wrong with it.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn || !metadata.target().starts_with("virtio_drivers")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let now = clock::now().as_micros();
        let level = match record.level() {
            Level::Error => "error: ",
            Level::Warn => "warning: ",
            Level::Info | Level::Debug | Level::Trace => "",
        };
        print(format_args!(
            "[{:5}.{:06}] {level}{}\n",
            now / 1_000_000,
            now % 1_000_000,
            record.args()
        ));
    }

    fn flush(&self) {}
}

/// Takes the first console there is and makes it the log's.
pub(crate) fn init(platform: Platform) {
    if platform.is_xen() {
        *CONSOLE.lock() = Console::XenDebug;
    } else {
        // SAFETY: COM1's ports are nobody else's.
        let uart = unsafe { Uart16550::new_port(COM1) };
        if let Ok(mut uart) = uart
            && uart.init(Config::default()).is_ok()
        {
            *CONSOLE.lock() = Console::Serial(uart);
        }
    }
    // Fails only when there is a logger already.
    let _ = log::set_logger(&Logger);
    log::set_max_level(LevelFilter::Info);
}

/// Makes the ring shared with dom0 the console.
pub(crate) fn use_ring(ring: PvConsole, xen: Xen) {
    *CONSOLE.lock() = Console::XenRing(Local::new(Ring {
        shared: ring,
        xen,
        stuck: false,
    }));
}

/// The event channel of the console's input.
pub(crate) fn port() -> Option<EventPort> {
    match &*CONSOLE.lock() {
        Console::XenRing(ring) => Some(ring.shared.port()),
        Console::None | Console::XenDebug | Console::Serial(_) => None,
    }
}

/// Has the console interrupt when there is input.
pub(crate) fn enable_input() {
    if let Console::Serial(uart) = &mut *CONSOLE.lock()
        && ioapic::route(COM1_IRQ, Source::Serial)
    {
        uart.enable_interrupts(IER::DATA_READY);
    }
}

/// The console as a writer, for the shell.
pub(crate) struct Output;

impl Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        print(format_args!("{text}"));
        Ok(())
    }
}

/// Writes to the console.
pub(crate) fn print(text: fmt::Arguments<'_>) {
    // A console that is taken is taken by the code this one interrupted: an exception's report
    // comes after `unlock`.
    if let Some(mut console) = CONSOLE.try_lock() {
        let _ = console.write_fmt(text);
    }
}

/// Takes a received byte, if any.
pub(crate) fn read() -> Option<u8> {
    match &mut *CONSOLE.lock() {
        Console::None | Console::XenDebug => None,
        Console::Serial(uart) => uart.try_receive_byte().ok(),
        Console::XenRing(ring) => {
            let mut byte = [0];
            // A ring in disorder has no input.
            matches!(ring.shared.read(&ring.xen, &mut byte), Ok(1)).then_some(byte[0])
        }
    }
}

/// Waits a bounded time for output to leave.
pub(crate) fn drain() {
    if let Some(mut console) = CONSOLE.try_lock() {
        match &mut *console {
            Console::None | Console::XenDebug => (),
            Console::XenRing(ring) => {
                for _ in 0..RING_ATTEMPTS {
                    if ring.shared.pending_bytes() == 0 {
                        break;
                    }
                    pause();
                }
            }
            Console::Serial(uart) => {
                for _ in 0..SERIAL_ATTEMPTS {
                    if uart.ready_to_send().is_ok() {
                        break;
                    }
                }
            }
        }
    }
}

/// Takes the console away from whoever has it.
///
/// # Safety
///
/// Whoever has it never goes on.
pub(crate) unsafe fn unlock() {
    // SAFETY: the caller's.
    unsafe { CONSOLE.force_unlock() };
}

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        match self {
            Self::None => (),
            Self::XenDebug => {
                // A hypervisor that does not take it leaves no other way to say so.
                let _ = platform::xen().map(|xen| xen.console_write(text.as_bytes()));
            }
            Self::XenRing(ring) => {
                for line in text.split_inclusive('\n') {
                    let (line, end) = match line.strip_suffix('\n') {
                        Some(line) => (line, "\r\n"),
                        None => (line, ""),
                    };
                    ring.write(line.as_bytes());
                    ring.write(end.as_bytes());
                }
            }
            Self::Serial(uart) => {
                for byte in text.bytes() {
                    if byte == b'\n' {
                        send(uart, b'\r');
                    }
                    send(uart, byte);
                }
            }
        }
        Ok(())
    }
}

fn send(uart: &mut Uart16550<PioBackend>, byte: u8) {
    for _ in 0..SERIAL_ATTEMPTS {
        if uart.try_send_byte(byte).is_ok() {
            break;
        }
    }
}
