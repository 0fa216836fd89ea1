//! Runs packet scripts against the stack in virtual time.
//!
//! `cargo run -p paceline-stack --example pktscript -- FILE…` prints a line for each script: `ok`,
//! `FAIL file:line expected … got …`, or `skip (what is unsupported)`; then a summary. The exit
//! status is 0 when nothing failed, 1 when something did, 2 when the command line is wrong.

use paceline_stack::script::{Flavor, Settings, Verdict, run_traced};
use std::{
    env, fmt, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

const HELP: &str = "\
Runs packet scripts, in packetdrill's language, against the stack in virtual time.

usage: pktscript [options] FILE…

FILE                    a script, or a folder, of which all files named *.pkt are run
--flavor own            scripts of this stack: every packet must be accounted for, windows,
                        window scales and PSH are compared as they stand (the default)
--flavor linux          scripts made for Linux: windows count as open or closed, scales and
                        PSH are the system's own choice, ./defaults.sh has its settings
--flavor freebsd        the same for FreeBSD's
--tolerance_usecs N     how far from its time a packet may be, in microseconds, whatever the
                        script says (otherwise what it says, or 4000)
--verbose               show every call and packet
--help                  this text

A script whose name begins with an option that is not known here, or that uses what the stack
does not have, is skipped, with the reason.
";

/// What the command line asks for.
struct Arguments {
    settings: Settings,
    verbose: bool,
    paths: Vec<PathBuf>,
}

fn arguments() -> Result<Option<Arguments>, String> {
    let mut settings = Settings::default();
    let mut verbose = false;
    let mut paths = Vec::new();
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let (name, mut inline) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let mut value = || {
            let value = inline.take().or_else(|| words.next());
            value.ok_or_else(|| format!("expected a value behind {name}, got nothing"))
        };
        match name {
            "--help" | "-h" => return Ok(None),
            "--verbose" => verbose = true,
            "--flavor" => {
                let value = value()?;
                settings.flavor = Flavor::from_name(&value)
                    .ok_or_else(|| format!("expected own, linux or freebsd, got '{value}'"))?;
            }
            "--tolerance_usecs" => {
                let value = value()?;
                let us = value
                    .parse()
                    .map_err(|_| format!("expected a number of microseconds, got '{value}'"))?;
                settings.tolerance_us = Some(us);
            }
            _ if name.starts_with('-') => {
                return Err(format!(
                    "expected an option that --help lists, got '{name}'"
                ));
            }
            _ => paths.push(PathBuf::from(word)),
        }
    }
    if paths.is_empty() {
        return Err("expected a file or folder, got none".to_owned());
    }
    Ok(Some(Arguments {
        settings,
        verbose,
        paths,
    }))
}

/// The scripts at `path`: itself, or all below it, in the order of their names.
fn scripts(path: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    let mut entries: Vec<_> = fs::read_dir(path)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type()?;
        // A link to a folder could lead back here.
        if kind.is_dir() {
            scripts(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            found.push(path);
        }
    }
    Ok(())
}

/// How many scripts came to what.
#[derive(Default)]
struct Summary {
    ok: usize,
    failed: usize,
    skipped: usize,
}

/// Prints a line. Who reads no further, as `head` does, need not be told.
fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stdout(), "{line}");
}

fn run_file(path: &Path, arguments: &Arguments, summary: &mut Summary) {
    let name = path.display();
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            summary.failed += 1;
            say(format_args!(
                "FAIL {name}: expected a file to read, got: {error}"
            ));
            return;
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    let verdict = run_traced(&text, &arguments.settings, &mut |line| {
        if arguments.verbose {
            say(format_args!("    {line}"));
        }
    });
    match verdict {
        Verdict::Ok => {
            summary.ok += 1;
            say(format_args!("ok   {name}"));
        }
        Verdict::Fail {
            line,
            expected,
            got,
        } => {
            summary.failed += 1;
            say(format_args!(
                "FAIL {name}:{line} expected {expected} got {got}"
            ));
        }
        Verdict::Skip { line, what } => {
            summary.skipped += 1;
            say(format_args!("skip {name}:{line} ({what})"));
        }
    }
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            say(format_args!("{}", HELP.trim_end()));
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("pktscript: {error}; see --help");
            return ExitCode::from(2);
        }
    };
    let mut files = Vec::new();
    for path in &arguments.paths {
        if let Err(error) = scripts(path, &mut files) {
            eprintln!("pktscript: {}: {error}", path.display());
            return ExitCode::from(2);
        }
    }
    let mut summary = Summary::default();
    for path in &files {
        run_file(path, &arguments, &mut summary);
    }
    let Summary {
        ok,
        failed,
        skipped,
    } = summary;
    say(format_args!("{ok} ok, {failed} failed, {skipped} skipped"));
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
