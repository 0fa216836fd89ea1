//! The stack's settings under the names that Linux's sysctls have, as text: for a shell
//! (`sysctl net.ipv4.tcp_sack`), a command line (`sysctl.net.ipv4.tcp_sack=0`) and packet scripts.
//!
//! A setting is one row of `ROWS`: its name, the form its text has, and how it is read from and
//! written to [`Config`]. Values that Linux keeps as three numbers (`tcp_rmem`: least, initial and
//! most) are three numbers here too; a first one of which this stack has no need reads as Linux's
//! default and may be set to anything that is in order.

use crate::{
    tcp::{Config, CongestionAlgorithm, EcnMode, SlowStartMode, TsqPolicy},
    time::Duration,
};
use alloc::{format, string::String};
use core::fmt;

/// Why a setting was not read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There is no setting of this name.
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// The value does not have the setting's form.
    Value {
        /// The setting.
        name: &'static str,
        /// The form.
        expected: &'static str,
        /// The value given.
        got: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name } => {
                write!(f, "expected the name of a setting, got '{name}'")
            }
            Self::Value {
                name,
                expected,
                got,
            } => write!(f, "{name}: expected {expected}, got '{got}'"),
        }
    }
}

impl core::error::Error for Error {}

/// One setting.
struct Row {
    name: &'static str,
    /// The form of its value, for error messages.
    form: &'static str,
    read: fn(&Config) -> String,
    /// None: the value does not have the form.
    write: fn(&mut Config, &str) -> Option<()>,
}

/// A row for a field that is on or off.
macro_rules! flag {
    ($name:literal, $($field:ident).+) => {
        Row {
            name: $name,
            form: "0 or 1",
            read: |config| format!("{}", u8::from(config.$($field).+)),
            write: |config, text| {
                config.$($field).+ = flag(text)?;
                Some(())
            },
        }
    };
}

/// A row for a choice among named things.
macro_rules! choice {
    ($name:literal, $form:literal, $($field:ident).+: $type:ty) => {
        Row {
            name: $name,
            form: $form,
            read: |config| config.$($field).+.name().into(),
            write: |config, text| {
                let named = <$type>::ALL.into_iter().find(|choice| choice.name() == text);
                config.$($field).+ = named?;
                Some(())
            },
        }
    };
}

/// A row for a number within bounds; the form says which.
macro_rules! number {
    ($name:literal, $form:literal, $($field:ident).+: $type:ty, $range:expr) => {
        Row {
            name: $name,
            form: $form,
            read: |config| format!("{}", config.$($field).+),
            write: |config, text| {
                config.$($field).+ = number::<$type>(text, $range)?;
                Some(())
            },
        }
    };
}

/// A row for a span of time given as a whole number of `$unit` microseconds.
macro_rules! span {
    ($name:literal, $form:literal, $($field:ident).+, $unit:expr, $range:expr) => {
        Row {
            name: $name,
            form: $form,
            read: |config| format!("{}", config.$($field).+.as_micros() / u128::from($unit)),
            write: |config, text| {
                let count = number::<u64>(text, $range)?;
                config.$($field).+ = Duration::from_micros(count * $unit);
                Some(())
            },
        }
    };
}

const US_PER_MS: u64 = 1_000;
const US_PER_SEC: u64 = 1_000_000;
/// Linux's least buffer, the first number of `tcp_rmem` and `tcp_wmem`.
const LEAST_BUFFER_BYTES: u32 = 4096;

/// All settings, in the order of their names.
const ROWS: &[Row] = &[
    number!("net.ipv4.tcp_comp_sack_nr", "0 to 255", comp_sack_nr: u8, 0..=255),
    choice!(
        "net.ipv4.tcp_congestion_control",
        "cubic or reno",
        congestion_control: CongestionAlgorithm
    ),
    flag!("net.ipv4.tcp_dsack", dsack),
    Row {
        name: "net.ipv4.tcp_early_retrans",
        form: "0 (off), 3 or 4",
        read: |config| format!("{}", 3 * u8::from(config.tail_loss_probe)),
        write: |config, text| {
            config.tail_loss_probe = match text {
                "0" => false,
                "3" | "4" => true,
                _ => return None,
            };
            Some(())
        },
    },
    choice!("net.ipv4.tcp_ecn", "0, 1 or 2", ecn: EcnMode),
    span!(
        "net.ipv4.tcp_fin_timeout",
        "1 to 120 seconds",
        fin_timeout,
        US_PER_SEC,
        1..=120
    ),
    Row {
        name: "net.ipv4.tcp_frto",
        form: "0 (off), 1 or 2",
        read: |config| format!("{}", 2 * u8::from(config.frto)),
        write: |config, text| {
            config.frto = match text {
                "0" => false,
                "1" | "2" => true,
                _ => return None,
            };
            Some(())
        },
    },
    choice!("net.ipv4.tcp_hystart", "off, classic or plusplus", hystart: SlowStartMode),
    span!(
        "net.ipv4.tcp_keepalive_intvl",
        "1 to 32767 seconds",
        keepalive.interval,
        US_PER_SEC,
        1..=32_767
    ),
    number!(
        "net.ipv4.tcp_keepalive_probes",
        "1 to 127",
        keepalive.probes: u8,
        1..=127
    ),
    span!(
        "net.ipv4.tcp_keepalive_time",
        "1 to 32767 seconds",
        keepalive.time,
        US_PER_SEC,
        1..=32_767
    ),
    number!(
        "net.ipv4.tcp_limit_output_bytes",
        "1 to 2147483647 bytes",
        limit_output_bytes: u32,
        1..=i32::MAX as u32
    ),
    number!(
        "net.ipv4.tcp_max_tw_buckets",
        "0 to 1048576",
        max_tw_buckets: usize,
        0..=1 << 20
    ),
    flag!("net.ipv4.tcp_moderate_rcvbuf", moderate_rcvbuf),
    number!(
        "net.ipv4.tcp_notsent_lowat",
        "1 to 4294967295 bytes",
        notsent_lowat_bytes: u32,
        1..=u32::MAX
    ),
    number!("net.ipv4.tcp_orphan_retries", "0 to 255", orphan_retries: u8, 0..=255),
    flag!("net.ipv4.tcp_pacing", pacing),
    number!("net.ipv4.tcp_pacing_ca_ratio", "1 to 1000", pacing_ca_ratio: u16, 1..=1000),
    number!("net.ipv4.tcp_pacing_ss_ratio", "1 to 1000", pacing_ss_ratio: u16, 1..=1000),
    number!("net.ipv4.tcp_reordering", "1 to 127", reordering: u8, 1..=127),
    number!("net.ipv4.tcp_retries2", "0 to 255", retries2: u8, 0..=255),
    Row {
        name: "net.ipv4.tcp_rmem",
        form: "three sizes in bytes, none less than the one before, up to 1073741824",
        read: |config| {
            let (initial, most) = (config.rcvbuf_bytes, config.max_rcvbuf_bytes);
            format!("{}\t{initial}\t{most}", LEAST_BUFFER_BYTES.min(initial))
        },
        write: |config, text| {
            let [_, initial, most] = sizes(text)?;
            config.rcvbuf_bytes = initial;
            config.max_rcvbuf_bytes = most;
            Some(())
        },
    },
    span!(
        "net.ipv4.tcp_rto_max_ms",
        "1000 to 120000 milliseconds",
        rto_max,
        US_PER_MS,
        1_000..=120_000
    ),
    span!(
        "net.ipv4.tcp_rto_min_us",
        "1 to 1000000 microseconds",
        rto_min,
        1_u64,
        1..=US_PER_SEC
    ),
    flag!("net.ipv4.tcp_sack", sack),
    flag!("net.ipv4.tcp_slow_start_after_idle", slow_start_after_idle),
    number!("net.ipv4.tcp_syn_retries", "1 to 127", syn_retries: u8, 1..=127),
    number!("net.ipv4.tcp_synack_retries", "0 to 255", synack_retries: u8, 0..=255),
    flag!("net.ipv4.tcp_timestamps", timestamps),
    Row {
        name: "net.ipv4.tcp_tsq_policy",
        form: "capped, paced or measured",
        read: |config| String::from(config.tsq_policy.name()),
        write: |config, text| {
            config.tsq_policy = TsqPolicy::by_name(text)?;
            Some(())
        },
    },
    flag!("net.ipv4.tcp_window_scaling", window_scaling),
    Row {
        name: "net.ipv4.tcp_wmem",
        form: "three sizes in bytes, none less than the one before, up to 1073741824",
        read: |config| {
            let (initial, most) = (config.sndbuf_bytes, config.max_sndbuf_bytes);
            format!("{}\t{initial}\t{most}", LEAST_BUFFER_BYTES.min(initial))
        },
        write: |config, text| {
            let [_, initial, most] = sizes(text)?;
            config.sndbuf_bytes = initial;
            config.max_sndbuf_bytes = most;
            Some(())
        },
    },
];

/// The names of all settings, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

/// A setting's value, as Linux would print it.
pub fn read(config: &Config, name: &str) -> Result<String, Error> {
    Ok((find(name)?.read)(config))
}

/// Sets a setting from text. Nothing changes when the text does not have the form. Connections
/// made before keep what they have.
pub fn write(config: &mut Config, name: &str, value: &str) -> Result<(), Error> {
    let row = find(name)?;
    (row.write)(config, value.trim()).ok_or_else(|| Error::Value {
        name: row.name,
        expected: row.form,
        got: value.into(),
    })
}

/// The row of `name`; like `sysctl`, takes slashes for dots.
fn find(name: &str) -> Result<&'static Row, Error> {
    let same = |row: &&Row| {
        row.name.len() == name.len()
            && row
                .name
                .bytes()
                .zip(name.bytes())
                .all(|(a, b)| a == b || (a == b'.' && b == b'/'))
    };
    ROWS.iter()
        .find(same)
        .ok_or_else(|| Error::Unknown { name: name.into() })
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

fn number<T: core::str::FromStr + PartialOrd>(
    text: &str,
    range: core::ops::RangeInclusive<T>,
) -> Option<T> {
    text.parse().ok().filter(|value| range.contains(value))
}

/// Three sizes in bytes, in order.
fn sizes(text: &str) -> Option<[u32; 3]> {
    let mut words = text.split_ascii_whitespace();
    let mut size = || number::<u32>(words.next()?, 1..=1 << 30);
    let sizes @ [least, initial, most] = [size()?, size()?, size()?];
    (least <= initial && initial <= most && words.next().is_none()).then_some(sizes)
}

#[cfg(test)]
mod tests;
