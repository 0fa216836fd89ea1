//! The command line: words in, one [`Command`] out, or an error that names what was expected.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use lexopt::{Arg, Parser, ValueExt};

use crate::{clock::Clock, domain::Kind};

/// What the user asked for.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    /// Print this text and stop.
    Help(String),
    /// Boot Xen and measure.
    Run(RunOptions),
    /// Run the test steps.
    Test(TestOptions),
    /// Boot Xen and hand over dom0's console.
    Shell(ShellOptions),
    /// Remove everything the rig keeps.
    Clean,
}

/// Which guests a command is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum GuestChoice {
    /// Both, in the same dom0.
    Both,
    /// The Linux reference domain.
    Linux,
    /// Paceline.
    Paceline,
}

impl GuestChoice {
    /// Whether Paceline takes part.
    pub(crate) fn paceline(self) -> bool {
        self != Self::Linux
    }

    /// Whether the Linux reference takes part.
    pub(crate) fn linux(self) -> bool {
        self != Self::Paceline
    }

    /// The guests, in the order of their creation.
    pub(crate) fn kinds(self) -> Vec<Kind> {
        match self {
            Self::Both => vec![Kind::Linux, Kind::Paceline],
            Self::Linux => vec![Kind::Linux],
            Self::Paceline => vec![Kind::Paceline],
        }
    }
}

/// How QEMU executes guest code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AccelChoice {
    /// KVM when a probe guest answers, else TCG.
    Auto,
    /// KVM, unprobed.
    Kvm,
    /// QEMU's own translator.
    Tcg,
}

/// Options on the machine that carries Xen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RigOptions {
    /// `--accel`.
    pub(crate) accel: AccelChoice,
    /// `--clock`, an option of `run` alone.
    pub(crate) clock: Clock,
    /// `--xen`: a hypervisor to boot instead of the release's own.
    pub(crate) xen: Option<PathBuf>,
    /// `--kernel`: dom0's kernel.
    pub(crate) kernel: Option<PathBuf>,
    /// `--modules`: the folder with that kernel's modules.
    pub(crate) modules: Option<PathBuf>,
    /// `--tools`: a tree with xl, xenstored, busybox, iperf3 and their libraries.
    pub(crate) tools: Option<PathBuf>,
    /// `--memory`: Paceline's and Linux's memory.
    pub(crate) memory_mib: Option<u32>,
    /// `--cmdline`: further words for Paceline's command line.
    pub(crate) cmdline: String,
}

impl RigOptions {
    /// Whether the files given are there: better said now than after minutes of building.
    pub(crate) fn check(&self) -> Result<()> {
        let Self {
            accel: _,
            clock: _,
            xen,
            kernel,
            modules,
            tools,
            memory_mib: _,
            cmdline: _,
        } = self;
        for (name, path, folder) in [
            ("--xen", xen, false),
            ("--kernel", kernel, false),
            ("--modules", modules, true),
            ("--tools", tools, true),
        ] {
            let Some(path) = path else {
                continue;
            };
            let kind = if folder { "folder" } else { "file" };
            let found = std::fs::metadata(path)
                .with_context(|| format!("{name}: expected a {kind}, got `{}`", path.display()))?;
            if found.is_dir() != folder {
                bail!("{name}: expected a {kind}, got `{}`", path.display());
            }
        }
        Ok(())
    }
}

impl Default for RigOptions {
    fn default() -> Self {
        Self {
            accel: AccelChoice::Auto,
            clock: Clock::Host,
            xen: None,
            kernel: None,
            modules: None,
            tools: None,
            memory_mib: None,
            cmdline: String::new(),
        }
    }
}

/// Options of `cargo qemu run`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunOptions {
    /// `--guest`.
    pub(crate) guests: GuestChoice,
    /// `--time`: seconds of each row, per guest and round.
    pub(crate) time_s: u32,
    /// `--parallel`: flows of the parallel runs.
    pub(crate) flows: u32,
    /// `--rounds`: how often each guest is booted and measured.
    pub(crate) rounds: u32,
    /// The machine.
    pub(crate) rig: RigOptions,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            guests: GuestChoice::Paceline,
            time_s: Clock::Host.default_time_s(),
            flows: 4,
            rounds: 1,
            rig: RigOptions::default(),
        }
    }
}

/// Options of `cargo qemu test`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TestOptions {
    /// `--filter`: only steps whose name contains one of these.
    pub(crate) filters: Vec<String>,
    /// `--list`: print the steps' names.
    pub(crate) list: bool,
    /// The machine.
    pub(crate) rig: RigOptions,
}

/// Options of `cargo qemu shell`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShellOptions {
    /// `--guest`.
    pub(crate) guests: GuestChoice,
    /// The machine.
    pub(crate) rig: RigOptions,
}

const USAGE: &str = "\
Builds, boots, tests and measures the Paceline guest inside QEMU.

Usage: cargo qemu <command> [options]

Commands:
  run     boot Xen, start a guest under it, measure it with iperf3 from dom0
  test    run every test this machine can run
  shell   boot Xen with a guest and hand over dom0's console
  clean   remove downloaded packages, boot images and results

`cargo qemu <command> --help` lists a command's options.
";

const RIG_USAGE: &str =
    "      --memory MIB       memory of each guest (default: 64 for paceline, 256 for linux)
      --cmdline WORDS    further words for Paceline's command line
      --accel auto|kvm|tcg
                         auto: KVM when a probe guest answers, else TCG (default: auto)
      --xen FILE         hypervisor, gzipped or not       \\
      --kernel FILE      dom0's kernel                     | all four on hosts other
      --modules DIR      that kernel's modules             | than Debian 12 and 13
      --tools DIR        tree with xl, busybox, iperf3 …  /
  -h, --help             print this
";

const RUN_USAGE: &str = "\
Boots Xen with a Linux dom0 in QEMU, starts the guest as a PVH domain and measures it with
stock iperf3 from dom0. Writes target/qemu/results.json.

With both guests, each row is measured in slices of a second that alternate between them, and
the ratio printed is the median over the pairs of neighbouring slices: a host whose speed drifts
slows both alike. Absolute figures still are the host's of that minute; compare them with
--clock instructions.

Usage: cargo qemu run [options]

Options:
      --guest paceline|linux|both
                         what to measure; both prints the ratios (default: paceline)
      --time S           seconds of each row, per guest and round
                         (default: 6, with --clock instructions 2)
      --parallel N       flows of the parallel runs (default: 4)
      --rounds N         times each guest is booted and measured; with both and several,
                         the ratios' spread over them is printed (default: 1)
      --clock host|instructions
                         what the machine takes for time (default: host). instructions: 1 ns
                         for each one executed, both processors taking turns. A figure is
                         then the work of dom0 and guest together, the same on a busy host
                         and an idle one: for comparing versions and guests. TCG only; a
                         slice of a second takes about twelve.
";

const TEST_USAGE: &str = "\
Runs the host's tests, boots the guest under plain QEMU and under Xen, and ends with a line
`N passed, N failed`.

Usage: cargo qemu test [options]

Options:
      --filter TEXT      only steps whose name contains TEXT; may be repeated
      --list             print the steps' names and stop
";

const SHELL_USAGE: &str = "\
Boots Xen with the guest running and hands over dom0's console. Ctrl-A x ends it.

Usage: cargo qemu shell [options]

Options:
      --guest paceline|linux|both
                         what to start (default: paceline)
";

const CLEAN_USAGE: &str = "\
Removes target/qemu: downloaded packages, boot images, logs and results.

Usage: cargo qemu clean
";

/// Parses the words after `cargo qemu`.
pub(crate) fn parse(mut parser: Parser) -> Result<Command> {
    let expected = "expected one of run, test, shell, clean";
    let Some(first) = parser.next()? else {
        bail!("no command given: {expected}; see cargo qemu --help");
    };
    match first {
        Arg::Short('h') | Arg::Long("help") => Ok(Command::Help(USAGE.to_owned())),
        Arg::Value(word) => match word.string()?.as_str() {
            "run" => parse_run(&mut parser),
            "test" => parse_test(&mut parser),
            "shell" => parse_shell(&mut parser),
            "clean" => parse_clean(&mut parser),
            "help" => Ok(Command::Help(USAGE.to_owned())),
            other => bail!("unknown command `{other}`: {expected}"),
        },
        other => bail!("unknown option `{}`: {expected}", spelled(&other)),
    }
}

fn parse_run(parser: &mut Parser) -> Result<Command> {
    let mut options = RunOptions::default();
    let mut time_s = None;
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => {
                return Ok(Command::Help(format!("{RUN_USAGE}{RIG_USAGE}")));
            }
            Arg::Long("guest") => options.guests = guest_choice(parser)?,
            Arg::Long("time") => time_s = Some(number(parser, "--time", 1, 3_600)?),
            Arg::Long("parallel") => options.flows = number(parser, "--parallel", 1, 128)?,
            Arg::Long("rounds") => options.rounds = number(parser, "--rounds", 1, 100)?,
            Arg::Long("clock") => options.rig.clock = clock(parser)?,
            other => {
                let word = spelled(&other);
                rig_option(
                    parser,
                    &word,
                    &mut options.rig,
                    "--guest, --time, --parallel, --rounds, --clock",
                )?;
            }
        }
    }
    let RigOptions { accel, clock, .. } = options.rig;
    if (accel, clock) == (AccelChoice::Kvm, Clock::Instructions) {
        bail!("--clock instructions: expected --accel tcg or auto, got --accel kvm");
    }
    options.time_s = time_s.unwrap_or(clock.default_time_s());
    Ok(Command::Run(options))
}

fn parse_test(parser: &mut Parser) -> Result<Command> {
    let mut options = TestOptions::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => {
                return Ok(Command::Help(format!("{TEST_USAGE}{RIG_USAGE}")));
            }
            Arg::Long("filter" | "only") => options.filters.push(parser.value()?.string()?),
            Arg::Long("list") => options.list = true,
            other => {
                let word = spelled(&other);
                rig_option(parser, &word, &mut options.rig, "--filter, --list")?;
            }
        }
    }
    Ok(Command::Test(options))
}

fn parse_shell(parser: &mut Parser) -> Result<Command> {
    let mut options = ShellOptions {
        guests: GuestChoice::Paceline,
        rig: RigOptions::default(),
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => {
                return Ok(Command::Help(format!("{SHELL_USAGE}{RIG_USAGE}")));
            }
            Arg::Long("guest") => options.guests = guest_choice(parser)?,
            other => {
                let word = spelled(&other);
                rig_option(parser, &word, &mut options.rig, "--guest")?;
            }
        }
    }
    Ok(Command::Shell(options))
}

fn parse_clean(parser: &mut Parser) -> Result<Command> {
    match parser.next()? {
        None => Ok(Command::Clean),
        Some(Arg::Short('h') | Arg::Long("help")) => Ok(Command::Help(CLEAN_USAGE.to_owned())),
        Some(arg) => bail!(
            "`cargo qemu clean` takes no options, got `{}`",
            spelled(&arg)
        ),
    }
}

/// Takes one of the options every booting command has.
fn rig_option(parser: &mut Parser, arg: &str, rig: &mut RigOptions, own: &str) -> Result<()> {
    match arg {
        "--accel" => {
            rig.accel = match parser.value()?.string()?.as_str() {
                "auto" => AccelChoice::Auto,
                "kvm" => AccelChoice::Kvm,
                "tcg" => AccelChoice::Tcg,
                other => bail!("--accel: expected auto, kvm or tcg, got `{other}`"),
            }
        }
        "--xen" => rig.xen = Some(parser.value()?.into()),
        "--kernel" => rig.kernel = Some(parser.value()?.into()),
        "--modules" => rig.modules = Some(parser.value()?.into()),
        "--tools" => rig.tools = Some(parser.value()?.into()),
        "--memory" => rig.memory_mib = Some(number(parser, "--memory", 8, 1_024)?),
        "--cmdline" => rig.cmdline = parser.value()?.string()?,
        other => bail!(
            "unknown option `{other}`: expected one of {own}, --memory, --cmdline, --accel, \
             --xen, --kernel, --modules, --tools, --help"
        ),
    }
    Ok(())
}

fn guest_choice(parser: &mut Parser) -> Result<GuestChoice> {
    match parser.value()?.string()?.as_str() {
        "both" => Ok(GuestChoice::Both),
        "linux" => Ok(GuestChoice::Linux),
        "paceline" => Ok(GuestChoice::Paceline),
        other => bail!("--guest: expected paceline, linux or both, got `{other}`"),
    }
}

fn clock(parser: &mut Parser) -> Result<Clock> {
    match parser.value()?.string()?.as_str() {
        "host" => Ok(Clock::Host),
        "instructions" => Ok(Clock::Instructions),
        other => bail!("--clock: expected host or instructions, got `{other}`"),
    }
}

fn number(parser: &mut Parser, name: &str, low: u32, high: u32) -> Result<u32> {
    let text = parser.value()?.string()?;
    let expected = || format!("{name}: expected a number from {low} to {high}, got `{text}`");
    let value: u32 = text.parse().with_context(expected)?;
    if !(low..=high).contains(&value) {
        bail!(expected());
    }
    Ok(value)
}

fn spelled(arg: &Arg<'_>) -> String {
    match arg {
        Arg::Short(letter) => format!("-{letter}"),
        Arg::Long(name) => format!("--{name}"),
        Arg::Value(value) => value.to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests;
