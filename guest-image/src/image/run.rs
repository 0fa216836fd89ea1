//! The one loop.

use super::{
    clock,
    console::{self, Output},
    heap, idle,
    interrupts::{self, Source},
    panic, power,
};
use core::fmt::{self, Write};
use paceline_guest::{
    executor::{Executor, Timers},
    shell::{self, Command, Shell},
};

/// Runs the guest, for ever: events, timers, tasks, and rest.
pub(crate) fn run() -> ! {
    let mut executor = Executor::new();
    let timers = Timers::new();
    let mut shell = Shell::new();
    console::enable_input();
    // The console takes everything it is given.
    let _ = shell.prompt(&mut Output);
    loop {
        if interrupts::take().has(Source::Serial) {
            while let Some(byte) = console::read() {
                let _ = type_in(&mut shell, byte);
            }
        }
        timers.advance(clock::now());
        let ready = executor.run();
        if !ready {
            idle::wait(timers.next_deadline(), || false);
        }
    }
}

/// Gives the shell a byte and does what it says.
fn type_in(shell: &mut Shell, byte: u8) -> fmt::Result {
    let Some(command) = shell.input(byte, &mut Output)? else {
        return Ok(());
    };
    match command {
        Command::CrashPanic => panic!("asked for on the console"),
        Command::CrashFault => panic::fault(),
        Command::Free => {
            let heap::Stats { used, free } = heap::stats();
            writeln!(
                Output,
                "heap {:8} KiB used {:8} KiB free",
                used >> 10,
                free >> 10
            )?;
        }
        Command::Help => shell::help(&mut Output)?,
        Command::Ip => (),
        Command::PowerOff => power::off(),
        Command::Reboot => power::reboot(),
        Command::Uptime => {
            let now = clock::now();
            writeln!(Output, "{now} s")?;
        }
    }
    shell.prompt(&mut Output)
}
