//! Instructions that 64 KiB sent and received cost, counted by callgrind; smoltcp beside it on the
//! same device.
//!
//! `cargo bench -p paceline-stack --bench instructions` runs itself under valgrind once for each
//! number, since only so they can be told apart: callgrind counts between entry and exit of one
//! function, [`sending`] or [`receiving`]. Counts repeat exactly on one machine and compiler.
//!
//! A side's count has all that the side does: the application's copy in or out, the stack, and the
//! device's copy of each frame to or from a buffer. Acknowledgments are on the other's account where
//! they are made, on one's own where they are taken in.

mod cable;
mod ours;
#[path = "../../tests/pool/mod.rs"]
mod pool;
mod smol;

use cable::Wire;
use std::{
    env,
    hint::black_box,
    process::{Command, ExitCode},
};

/// Bytes of a write.
const CHUNK_BYTES: usize = 64 << 10;
/// Writes before counting begins: windows and buffers have their sizes then.
const WARM_UP: usize = 512;
/// Writes that are counted.
const COUNTED: usize = 512;

/// Runs the sender's part of a step, and is counted when that is asked for.
#[inline(never)]
fn sending<R>(step: impl FnOnce() -> R) -> R {
    black_box(step())
}

/// Runs the receiver's part of a step, and is counted when that is asked for.
#[inline(never)]
fn receiving<R>(step: impl FnOnce() -> R) -> R {
    black_box(step())
}

/// Two stations on a cable, and a connection from one to the other.
trait Pair {
    /// Writes once, as much as is taken, and lets the sender run.
    fn send(&mut self);

    /// Lets the receiver run and reads all there is; returns how much that was.
    fn receive(&mut self) -> usize;

    /// Moves as many bytes as `chunks` have.
    fn transfer(&mut self, chunks: usize, counted: bool) {
        let mut left = chunks * CHUNK_BYTES;
        while left > 0 {
            let received = if counted {
                sending(|| self.send());
                receiving(|| self.receive())
            } else {
                self.send();
                self.receive()
            };
            left = left.saturating_sub(received);
        }
    }
}

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stack {
    Paceline,
    Smoltcp,
}

impl Stack {
    const ALL: [Self; 2] = [Self::Paceline, Self::Smoltcp];

    fn name(self) -> &'static str {
        match self {
            Self::Paceline => "paceline",
            Self::Smoltcp => "smoltcp",
        }
    }

    /// Whether it can use such a device.
    fn can(self, wire: Wire) -> bool {
        self == Self::Paceline || !wire.segments
    }

    fn pair(self, wire: Wire) -> Box<dyn FnOnce()> {
        fn run(mut pair: impl Pair) {
            pair.transfer(WARM_UP, false);
            pair.transfer(COUNTED, true);
        }
        match self {
            Self::Paceline => Box::new(move || run(ours::Paceline::new(wire))),
            Self::Smoltcp => Box::new(move || run(smol::Smoltcp::new(wire))),
        }
    }
}

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1).filter(|argument| argument != "--bench");
    match arguments.next().as_deref() {
        None => drive(),
        Some("--run") => {
            let (stack, wire) = (arguments.next(), arguments.next());
            let stack = Stack::ALL
                .into_iter()
                .find(|it| Some(it.name()) == stack.as_deref());
            let wire = wire.and_then(|name| Wire::ALL.into_iter().find(|it| it.name == name));
            let (Some(stack), Some(wire)) = (stack, wire) else {
                eprintln!("instructions: expected --run STACK DEVICE");
                return ExitCode::from(2);
            };
            stack.pair(wire)();
            ExitCode::SUCCESS
        }
        Some(other) => {
            eprintln!("instructions: unknown argument {other}");
            ExitCode::from(2)
        }
    }
}

/// Measures and prints everything.
fn drive() -> ExitCode {
    let has_valgrind = Command::new("valgrind")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !has_valgrind {
        println!("instructions: skipped, there is no valgrind to count with");
        return ExitCode::SUCCESS;
    }
    println!(
        "{:34}{:>10}{:>12}{:>12}",
        "instructions per 64 KiB", "", "sent", "received"
    );
    for wire in Wire::ALL {
        for stack in Stack::ALL {
            if !stack.can(wire) {
                continue;
            }
            let counts = ["sending", "receiving"].map(|function| count(stack, wire, function));
            let [Ok(sent), Ok(received)] = counts else {
                for error in counts.into_iter().filter_map(Result::err) {
                    eprintln!("instructions: {}, {}: {error}", stack.name(), wire.name);
                }
                return ExitCode::FAILURE;
            };
            let name = stack.name();
            println!("{:34}{name:>10}{sent:>12}{received:>12}", wire.name);
        }
    }
    ExitCode::SUCCESS
}

/// Runs one case under callgrind; returns the instructions within `function` per chunk.
fn count(stack: Stack, wire: Wire, function: &str) -> Result<u64, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect=instructions::{function}*"))
        .arg(program)
        .args(["--run", stack.name(), wire.name])
        .output()
        .map_err(|error| error.to_string())?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{}: {log}", output.status));
    }
    log.lines()
        .find_map(|line| line.split_once("Collected :"))
        .and_then(|(_, count)| count.trim().parse::<u64>().ok())
        .filter(|count| *count > 0)
        .map(|count| count / COUNTED as u64)
        .ok_or(format!("expected a count, got: {log}"))
}
