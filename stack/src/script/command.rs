//! Lines in backquotes: settings, and what has no meaning here.

use super::{Problem, options::Flavor};
use crate::{sysctl, tcp::Config};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// Commands, by their first words, that set a machine up in ways that a simulated one has no need
/// of, or that do nothing.
const SET_UP: [&[&str]; 9] = [
    &["defaults.sh"],
    &["echo"],
    &["ip", "tcp_metrics"],
    &["modprobe"],
    &["rm"],
    &["sync"],
    &["tc", "qdisc", "add", "dev", "tun0", "root", "pfifo"],
    &["true"],
    &[":"],
];

/// Settings of FreeBSD that have no counterpart here, with the value that says what is so anyway;
/// none: whatever it is.
const FREEBSD_WITHOUT_EFFECT: [(&str, Option<&str>); 3] = [
    ("kern.ipc.maxsockbuf", None),
    ("net.inet.tcp.hostcache.purgenow", None),
    ("net.inet.tcp.rexmit_initial", Some("1000")),
];

/// Runs a command line.
pub(super) fn run(
    line: u32,
    text: &str,
    flavor: Flavor,
    config: &mut Config,
) -> Result<(), Problem> {
    for command in split(text) {
        let words: Vec<&str> = words(&command);
        let Some((program, arguments)) = words.split_first() else {
            continue;
        };
        let name = program.rsplit('/').next().unwrap_or(program);
        if name == "sysctl" {
            for assignment in assignments(arguments) {
                set(line, &assignment, config)?;
            }
        } else if name == "set_sysctls.py" {
            for assignment in assignments(arguments) {
                let name = assignment.replacen("/proc/sys/", "", 1);
                set(line, &name, config)?;
            }
        } else if name == "defaults.sh" && flavor == Flavor::Linux {
            linux_defaults(config);
        } else if !is_set_up(name, arguments) {
            let what = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
            return Err(Problem::unsupported(line, format!("command '{what}'")));
        }
    }
    Ok(())
}

/// Whether a command need not be run.
fn is_set_up(name: &str, arguments: &[&str]) -> bool {
    let is = |known: &&[&str]| {
        known.first() == Some(&name)
            && known.len() <= arguments.len() + 1
            && known
                .iter()
                .skip(1)
                .eq(arguments.iter().take(known.len() - 1))
    };
    name.starts_with("sysctl_restore_") || SET_UP.iter().any(is)
}

/// The settings that Linux's own scripts begin with, as far as there are such.
fn linux_defaults(config: &mut Config) {
    for (name, value) in [
        ("net.ipv4.tcp_rmem", "4096 540000 15728640"),
        ("net.ipv4.tcp_wmem", "4096 262144 4194304"),
        ("net.ipv4.tcp_timestamps", "1"),
        ("net.ipv4.tcp_sack", "1"),
        ("net.ipv4.tcp_dsack", "1"),
        ("net.ipv4.tcp_syn_retries", "5"),
        ("net.ipv4.tcp_synack_retries", "5"),
        ("net.ipv4.tcp_slow_start_after_idle", "0"),
        ("net.ipv4.tcp_congestion_control", "cubic"),
        ("net.ipv4.tcp_ecn", "0"),
        ("net.ipv4.tcp_frto", "2"),
        ("net.ipv4.tcp_recovery", "1"),
        // The queueing discipline that those scripts choose does not pace.
        ("net.ipv4.tcp_pacing", "0"),
    ] {
        // What there is no setting for is as it is.
        let _ = sysctl::write(config, name, value);
    }
}

/// The single commands of a line.
fn split(text: &str) -> Vec<String> {
    text.replace("&&", "\n")
        .replace("||", "\n")
        .split(['\n', ';'])
        .map(|command| {
            // What a command prints, and what is made of it, means nothing here.
            let end = [command.find('>'), command.find(" #")]
                .into_iter()
                .flatten()
                .min()
                .unwrap_or(command.len());
            command[..end].trim().to_string()
        })
        .filter(|command| !command.is_empty() && !command.starts_with('#'))
        .collect()
}

/// Words, where quotes keep blanks together.
fn words(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = None;
    let mut quote = None;
    for (at, c) in command.char_indices() {
        match quote {
            Some(open) if open == c => quote = None,
            None if c.is_whitespace() => {
                if let Some(start) = start.take() {
                    words.push(&command[start..at]);
                }
                continue;
            }
            None if c == '"' || c == '\'' => quote = Some(c),
            _ => {}
        }
        start = start.or(Some(at));
    }
    if let Some(start) = start {
        words.push(&command[start..]);
    }
    words
}

/// Of a program's arguments, those that set something.
fn assignments(arguments: &[&str]) -> Vec<String> {
    arguments
        .iter()
        .filter(|word| !word.starts_with('-') && !word.starts_with("2>"))
        .map(|word| word.replace(['"', '\''], ""))
        .collect()
}

/// Does one `name=value`.
fn set(line: u32, assignment: &str, config: &mut Config) -> Result<(), Problem> {
    let Some((name, value)) = assignment.split_once('=') else {
        let what = format!("sysctl {assignment} without a value");
        return Err(Problem::unsupported(line, what));
    };
    let (name, value) = (name.trim(), value.trim());
    if value.contains('$') {
        return Err(Problem::unsupported(
            line,
            format!("shell expansion {value}"),
        ));
    }
    let is_without_effect = |(known, only): &(&str, Option<&str>)| {
        *known == name && only.is_none_or(|only| only == value)
    };
    if FREEBSD_WITHOUT_EFFECT.iter().any(is_without_effect) {
        return Ok(());
    }
    for (name, value) in translated(name, value, config) {
        match sysctl::write(config, &name, &value) {
            Ok(()) => {}
            // Without ECN it is not asked for; scripts that offer it will find out.
            Err(sysctl::Error::Unknown { name })
                if name == "net.ipv4.tcp_ecn" && matches!(&*value, "0" | "2") => {}
            Err(sysctl::Error::Unknown { name }) => {
                return Err(Problem::unsupported(line, format!("sysctl {name}")));
            }
            Err(error) => {
                let expected = format!("a value that {name} can have");
                return Err(Problem::syntax(line, expected, error.to_string()));
            }
        }
    }
    Ok(())
}

/// FreeBSD's names in Linux's; what is not one of them stays as it is.
fn translated(name: &str, value: &str, config: &Config) -> Vec<(String, String)> {
    let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
    match name {
        "net.inet.tcp.rfc1323" => [
            pair("net.ipv4.tcp_timestamps", value),
            pair("net.ipv4.tcp_window_scaling", value),
        ]
        .to_vec(),
        "net.inet.tcp.sack.enable" => [pair("net.ipv4.tcp_sack", value)].to_vec(),
        "net.inet.tcp.ecn.enable" => [pair("net.ipv4.tcp_ecn", value)].to_vec(),
        "net.inet.tcp.recvspace" => {
            let most = config.max_rcvbuf_bytes;
            let most = value.parse().map_or(most, |initial: u32| most.max(initial));
            [pair("net.ipv4.tcp_rmem", &format!("1 {value} {most}"))].to_vec()
        }
        "net.inet.tcp.sendspace" => {
            [pair("net.ipv4.tcp_wmem", &format!("1 {value} {value}"))].to_vec()
        }
        _ => [pair(name, value)].to_vec(),
    }
}

#[cfg(test)]
mod tests;
