//! One line a phase, with its seconds.

use std::{
    io::{IsTerminal, Write},
    time::Instant,
};

use anyhow::Result;

const NAME_WIDTH: usize = 44;

/// Runs `work` as a phase: its name is shown while it runs, its seconds when it has ended.
pub(crate) fn phase<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let live = std::io::stderr().is_terminal();
    if live {
        eprint!("{name:<NAME_WIDTH$} …");
        // Progress is a courtesy: a closed terminal must not end the work.
        let _ = std::io::stderr().flush();
    }
    let result = work();
    let word = if result.is_ok() { "" } else { "  failed" };
    let back = if live { "\r" } else { "" };
    eprintln!(
        "{back}{name:<NAME_WIDTH$} {:6.1} s{word}",
        start.elapsed().as_secs_f64()
    );
    result
}
