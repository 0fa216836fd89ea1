//! Packet scripts: packetdrill's language, run against one whole stack in virtual time.
//!
//! A script interleaves what the application calls, what the peer sends (`<`) and what the stack
//! must send (`>`), each at its time. [`run`] gives a [`Verdict`]: the stack did as the script
//! says, it did not (with the line, what was expected and what came), or the script asks for
//! something that is not to be had here (with a name for it). Nothing passes unlooked at.
//!
//! ```
//! use paceline_stack::script::{Settings, Verdict, run};
//!
//! let text = "
//!     0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
//!    +0 bind(3, ..., ...) = 0
//!    +0 listen(3, 1) = 0
//!    +0 < S 0:0(0) win 65535 <mss 1460>
//!    +0 > S. 0:0(0) ack 1 <...>
//! ";
//! assert_eq!(run(text, &Settings::default()), Verdict::Ok);
//! ```
//!
//! # Differences from packetdrill
//!
//! * Time is virtual: a script of an hour takes a moment, and times are exact. The tolerance is
//!   packetdrill's 4 ms unless `--tolerance_usecs` says otherwise.
//! * One outbound packet of a script may be several on the wire, and the other way round: how a
//!   run of data is cut is not compared.
//! * The peer's numbers start shortly before their wrap, and payload is filled with a pattern that
//!   is checked on the way out and when it is read.
//! * `%{ assert … }%` blocks know `tcpi_…` fields, the counters that `nstat` shows, and integer
//!   expressions. All other Python is a skip.
//! * Of command lines, `sysctl` sets what [`crate::sysctl`] knows; set-up of the machine
//!   (`ip`, `tc`, `defaults.sh`, …) has no effect on a simulated one and is passed over.
//! * Scripts in [`Flavor::Own`] must account for every packet: one left over at the end is a
//!   failure. Windows, window scales and PSH are compared as they stand. In the other flavours a
//!   window counts as open or closed, and scales and PSH are not compared, for they are each
//!   system's own choice.

mod ast;
mod code;
mod command;
mod compare;
mod constants;
mod device;
mod errno;
mod flow;
mod frames;
mod lexer;
mod live;
mod options;
mod parser;
mod runner;
mod sockets;
mod tcp_info;

pub use options::{Flavor, Settings};

use alloc::string::String;
use core::fmt;

/// What came of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The stack did as it says.
    Ok,
    /// It did not, or the script breaks the grammar.
    Fail {
        /// Where in the script, counted from 1.
        line: u32,
        /// What was expected there.
        expected: String,
        /// What came.
        got: String,
    },
    /// It asks for something that is not supported.
    Skip {
        /// Where in the script, counted from 1.
        line: u32,
        /// What that is.
        what: String,
    },
}

/// Runs a script.
pub fn run(text: &str, settings: &Settings) -> Verdict {
    run_traced(text, settings, &mut |_| {})
}

/// Runs a script and tells `trace` of each packet and call, a line each.
pub fn run_traced(text: &str, settings: &Settings, trace: &mut dyn FnMut(&str)) -> Verdict {
    let result =
        parser::parse(text).and_then(|script| runner::Runner::new(&script, settings, trace)?.run());
    match result {
        Ok(()) => Verdict::Ok,
        Err(Problem { line, kind }) => match kind {
            ProblemKind::Unsupported(what) => Verdict::Skip { line, what },
            ProblemKind::Unexpected { expected, got } => Verdict::Fail {
                line,
                expected,
                got,
            },
        },
    }
}

/// Why a script cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    line: u32,
    kind: ProblemKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ProblemKind {
    Unexpected { expected: String, got: String },
    Unsupported(String),
}

impl Problem {
    /// Something else came than was expected.
    fn unexpected(line: u32, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self {
            line,
            kind: ProblemKind::Unexpected {
                expected: expected.into(),
                got: got.into(),
            },
        }
    }

    /// The grammar asks for something else.
    fn syntax(line: u32, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::unexpected(line, expected, got)
    }

    /// The script asks for something that is not to be had here.
    fn unsupported(line: u32, what: impl Into<String>) -> Self {
        Self {
            line,
            kind: ProblemKind::Unsupported(what.into()),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Fail {
                line,
                expected,
                got,
            } => write!(f, "FAIL line {line}: expected {expected}, got {got}"),
            Self::Skip { line, what } => write!(f, "skip line {line} ({what})"),
        }
    }
}

#[cfg(test)]
mod tests;
