//! How a script is run: what the caller asks for, and the script's own `--name=value` lines.

use super::{Problem, ast::ScriptOption};
use alloc::format;
use core::net::Ipv4Addr;

/// Whose script it is, which says what of a packet is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flavor {
    /// Made for FreeBSD.
    FreeBsd,
    /// Made for Linux.
    Linux,
    /// Made for this stack.
    #[default]
    Own,
}

impl Flavor {
    /// The flavour of a name: `freebsd`, `linux` or `own`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "freebsd" => Some(Self::FreeBsd),
            "linux" => Some(Self::Linux),
            "own" => Some(Self::Own),
            _ => None,
        }
    }
}

/// How scripts are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Whose scripts they are.
    pub flavor: Flavor,
    /// How far from its time a packet may be, in microseconds; none: what the script says, or
    /// else packetdrill's 4 ms.
    pub tolerance_us: Option<u64>,
}

/// What holds for one script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) flavor: Flavor,
    pub(super) tolerance_us: u64,
    pub(super) local: Ipv4Addr,
    pub(super) remote: Ipv4Addr,
    pub(super) gateway: Ipv4Addr,
    /// Length of the local subnet's prefix, in bits.
    pub(super) prefix: u8,
    /// The port that `bind(3, ..., ...)` means.
    pub(super) bind_port: u16,
    /// The port that `connect(3, ..., ...)` means.
    pub(super) connect_port: u16,
    pub(super) mtu_bytes: u16,
    /// Microseconds to a tick of the timestamp clock; 0: its values are not compared.
    pub(super) timestamp_tick_us: u64,
    /// Largest frame for segmentation offload; 0: the device has none.
    pub(super) max_tso_bytes: u32,
    /// How long the device holds a frame, in microseconds.
    pub(super) completion_us: u64,
}

impl Plan {
    /// The plan for a script with these `options`.
    pub(super) fn new(settings: &Settings, options: &[ScriptOption]) -> Result<Self, Problem> {
        let own = settings.flavor == Flavor::Own;
        let mut plan = Self {
            flavor: settings.flavor,
            tolerance_us: 4_000,
            local: Ipv4Addr::new(192, 168, 0, 1),
            remote: Ipv4Addr::new(192, 0, 2, 1),
            gateway: Ipv4Addr::new(192, 168, 0, 2),
            prefix: 16,
            bind_port: 8080,
            connect_port: 8080,
            mtu_bytes: 1500,
            timestamp_tick_us: if own { 1_000 } else { 0 },
            max_tso_bytes: 0,
            completion_us: 0,
        };
        for option in options {
            plan.set(option)?;
        }
        if let Some(tolerance_us) = settings.tolerance_us {
            plan.tolerance_us = tolerance_us;
        }
        Ok(plan)
    }

    fn set(&mut self, option: &ScriptOption) -> Result<(), Problem> {
        let ScriptOption { line, name, value } = option;
        let value = value.as_deref().unwrap_or("");
        let known = match name.as_str() {
            "tolerance_usecs" => assign(&mut self.tolerance_us, value, 0..=3_600_000_000),
            "local_ip" => assign_any(&mut self.local, value),
            "remote_ip" => assign_any(&mut self.remote, value),
            "gateway_ip" => assign_any(&mut self.gateway, value),
            "netmask_ip" => set_netmask(&mut self.prefix, value),
            "bind_port" => assign(&mut self.bind_port, value, 1..=u16::MAX),
            "connect_port" => assign(&mut self.connect_port, value, 1..=u16::MAX),
            "mtu" => assign(&mut self.mtu_bytes, value, 68..=u16::MAX),
            "tcp_ts_tick_usecs" => assign(&mut self.timestamp_tick_us, value, 0..=10_000_000),
            "tso" => assign(&mut self.max_tso_bytes, value, 0..=65_535),
            "completion_usecs" => assign(&mut self.completion_us, value, 0..=10_000_000),
            "ip_version" => match value {
                "ipv4" => Some(()),
                other => return Err(Problem::unsupported(*line, format!("IP version {other}"))),
            },
            // Timestamps to echo are worked out in any case; the rest is about packetdrill
            // itself. Symbols have been put in place by the parser.
            "mss" | "tcp_ts_ecr_scaled" | "define" | "verbose" | "init_scripts" | "speed" => {
                Some(())
            }
            other => return Err(Problem::unsupported(*line, format!("option --{other}"))),
        };
        known.ok_or_else(|| {
            Problem::syntax(
                *line,
                format!("a value that --{name} can have"),
                format!("'{value}'"),
            )
        })
    }
}

fn assign<T: core::str::FromStr + PartialOrd>(
    place: &mut T,
    value: &str,
    range: core::ops::RangeInclusive<T>,
) -> Option<()> {
    *place = value.parse().ok().filter(|value| range.contains(value))?;
    Some(())
}

fn assign_any<T: core::str::FromStr>(place: &mut T, value: &str) -> Option<()> {
    *place = value.parse().ok()?;
    Some(())
}

fn set_netmask(prefix: &mut u8, value: &str) -> Option<()> {
    let bits = value.parse::<Ipv4Addr>().ok()?.to_bits();
    let ones = bits.leading_ones();
    *prefix = (bits.count_ones() == ones && ones > 0).then_some(ones as u8)?;
    Some(())
}
