//! The console's shell: a line editor and the commands it knows.

mod ss;
mod sysctl;

pub use ss::ss;
pub use sysctl::sysctl;

use core::fmt::{self, Write};

const PROMPT: &str = "> ";

/// Longest line, in bytes.
const MAX_LINE_BYTES: usize = 128;

const BACKSPACE: u8 = 0x08;
const DELETE: u8 = 0x7f;
const END_OF_TEXT: u8 = 0x03;

/// A line that was typed, or a part of one.
pub type Line = heapless::String<MAX_LINE_BYTES>;

/// What can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Calls a page of data, which paging must refuse.
    CrashExecute,
    /// Reads memory that is not there.
    CrashFault,
    /// Panics.
    CrashPanic,
    /// Runs out of stack, onto the page that guards it.
    CrashStack,
    /// Writes to code, which paging must refuse.
    CrashWrite,
    /// Tells of memory.
    Free,
    /// Lists the commands.
    Help,
    /// Tells of the NIC and its addresses.
    Ip,
    /// Shows the stack's counters.
    Nstat,
    /// Powers off.
    PowerOff,
    /// Restarts.
    Reboot,
    /// Lists the TCP connections.
    Ss {
        /// With all that is known of each.
        info: bool,
    },
    /// Reads or writes settings: all, `<name>` or `<name>=<value>`.
    Sysctl(Line),
    /// Tells how long the guest has run.
    Uptime,
}

/// Every command, its words and its meaning.
const COMMANDS: [(&str, Command, &str); 15] = [
    ("crash execute", Command::CrashExecute, "run data as code"),
    (
        "crash fault",
        Command::CrashFault,
        "read memory that is not there",
    ),
    ("crash panic", Command::CrashPanic, "panic"),
    ("crash stack", Command::CrashStack, "run out of stack"),
    ("crash write", Command::CrashWrite, "write to code"),
    ("free", Command::Free, "memory in use"),
    ("help", Command::Help, "this list"),
    ("ip", Command::Ip, "the NIC, its addresses and counters"),
    ("nstat", Command::Nstat, "the stack's counters"),
    ("poweroff", Command::PowerOff, "power off"),
    ("reboot", Command::Reboot, "restart"),
    ("ss", Command::Ss { info: false }, "the TCP connections"),
    (
        "ss -i",
        Command::Ss { info: true },
        "the same with windows, times and counts",
    ),
    (
        "sysctl",
        Command::Sysctl(Line::new()),
        "the settings; sysctl <name> for one, sysctl <name>=<value> to set it",
    ),
    ("uptime", Command::Uptime, "time since boot"),
];

impl Command {
    /// The command of a line; none of one without words, an error of one that is unknown.
    fn parse(line: &str) -> Result<Option<Self>, ()> {
        let line = line.trim_ascii();
        let (word, rest) = line
            .split_once(|c: char| c.is_ascii_whitespace())
            .unwrap_or((line, ""));
        match word {
            "" => Ok(None),
            "ss" => Self::ss(rest).map(Some),
            // A part of a line is not longer than one.
            "sysctl" => rest
                .trim_ascii()
                .try_into()
                .map(|rest| Some(Self::Sysctl(rest)))
                .map_err(|_| ()),
            _ => COMMANDS
                .iter()
                .find(|(words, _, _)| words.split(' ').eq(line.split_ascii_whitespace()))
                .map(|(_, command, _)| Some(command.clone()))
                .ok_or(()),
        }
    }

    /// `ss` with the options that Linux's has and that mean something here: `-t`, `-n` and `-a`
    /// are what it does anyway.
    fn ss(options: &str) -> Result<Self, ()> {
        let mut info = false;
        for word in options.split_ascii_whitespace() {
            for option in word.strip_prefix('-').ok_or(())?.chars() {
                match option {
                    'a' | 'n' | 't' => {}
                    'i' => info = true,
                    _ => return Err(()),
                }
            }
        }
        Ok(Self::Ss { info })
    }
}

/// Writes the list of commands.
pub fn help(out: &mut dyn Write) -> fmt::Result {
    for (words, _, meaning) in COMMANDS {
        writeln!(out, "{words:13} {meaning}")?;
    }
    Ok(())
}

/// The line being typed.
#[derive(Debug, Default)]
pub struct Shell {
    line: Line,
    /// Whether the last byte was a carriage return, so that a line feed behind it is no line.
    after_return: bool,
}

impl Shell {
    /// A shell with nothing typed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes the prompt, to be done once and after each command.
    pub fn prompt(&self, out: &mut dyn Write) -> fmt::Result {
        write!(out, "{PROMPT}{}", self.line)
    }

    /// Takes a byte that was typed, echoes it to `out`, and returns the command when that was
    /// the end of one.
    pub fn input(&mut self, byte: u8, out: &mut dyn Write) -> Result<Option<Command>, fmt::Error> {
        let after_return = core::mem::replace(&mut self.after_return, byte == b'\r');
        match byte {
            b'\n' if after_return => Ok(None),
            b'\r' | b'\n' => {
                writeln!(out)?;
                let line = core::mem::take(&mut self.line);
                match Command::parse(&line) {
                    Ok(Some(command)) => return Ok(Some(command)),
                    Ok(None) => (),
                    Err(()) => writeln!(out, "'{}' is unknown: try 'help'", line.trim())?,
                }
                self.prompt(out)?;
                Ok(None)
            }
            BACKSPACE | DELETE => {
                if self.line.pop().is_some() {
                    out.write_str("\u{8} \u{8}")?;
                }
                Ok(None)
            }
            END_OF_TEXT => {
                self.line.clear();
                writeln!(out, "^C")?;
                self.prompt(out)?;
                Ok(None)
            }
            b' '..=b'~' => {
                // Past the end of the line typing has no effect and no echo.
                if self.line.push(char::from(byte)).is_ok() {
                    out.write_char(char::from(byte))?;
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
