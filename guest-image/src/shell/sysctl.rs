//! `sysctl`: TCP's settings, read and written.

use core::fmt::{self, Write};
use paceline_stack::{sysctl, tcp::Config};

/// Does what `argument` says and writes the outcome, as Linux's `sysctl` does: nothing shows all
/// settings, `<name>` one of them, `<name>=<value>` (with `-w` or without) sets it for connections
/// to come. `bound` then brings the settings within what this guest can afford.
pub fn sysctl(
    config: &mut Config,
    argument: &str,
    bound: impl FnOnce(&mut Config),
    out: &mut dyn Write,
) -> fmt::Result {
    let argument = argument.strip_prefix("-w ").unwrap_or(argument).trim();
    if argument.is_empty() || argument == "-a" {
        return sysctl::names().try_for_each(|name| show(config, name, out));
    }
    let Some((name, value)) = argument.split_once('=') else {
        return show(config, argument, out);
    };
    let name = name.trim_end();
    if let Err(error) = sysctl::write(config, name, value.trim().trim_matches('"')) {
        return writeln!(out, "sysctl: {error}");
    }
    bound(config);
    show(config, name, out)
}

fn show(config: &Config, name: &str, out: &mut dyn Write) -> fmt::Result {
    match sysctl::read(config, name) {
        Ok(value) => writeln!(out, "{name} = {value}"),
        Err(error) => writeln!(out, "sysctl: {error}"),
    }
}

#[cfg(test)]
mod tests;
