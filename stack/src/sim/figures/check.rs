//! A line that a number must keep to.

use alloc::{
    format,
    string::{String, ToString},
};

/// What a number counts, for printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits per second, printed in Gb/s, Mb/s or kb/s.
    BitsPerSecond,
    /// Bytes.
    Bytes,
    /// Things.
    Count,
    /// Microseconds.
    Micros,
    /// A ratio in thousandths.
    Thousandths,
}

impl Unit {
    /// `value` in this unit, for people.
    pub fn show(self, value: u64) -> String {
        let scaled = |unit: u64, name: &str| {
            let hundredths = (u128::from(value) * 100 + u128::from(unit) / 2) / u128::from(unit);
            format!("{}.{:02} {name}", hundredths / 100, hundredths % 100)
        };
        match self {
            Self::BitsPerSecond if value >= 1_000_000_000 => scaled(1_000_000_000, "Gb/s"),
            Self::BitsPerSecond if value >= 1_000_000 => scaled(1_000_000, "Mb/s"),
            Self::BitsPerSecond => scaled(1000, "kb/s"),
            Self::Bytes if value >= 1 << 20 => scaled(1 << 20, "MiB"),
            Self::Bytes if value >= 1 << 10 => scaled(1 << 10, "KiB"),
            Self::Bytes => format!("{value} B"),
            Self::Count => value.to_string(),
            Self::Micros if value >= 1_000_000 => scaled(1_000_000, "s"),
            Self::Micros if value >= 10_000 => scaled(1000, "ms"),
            Self::Micros => format!("{value} us"),
            Self::Thousandths => format!("{}.{:03}", value / 1000, value % 1000),
        }
    }
}

/// A line, and whether it was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Of what.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// What came.
    pub got: String,
    /// Whether that is good.
    pub met: bool,
}

impl Check {
    /// `got` must be at least `least`.
    pub fn at_least(what: impl Into<String>, got: u64, least: u64, unit: Unit) -> Self {
        Self {
            what: what.into(),
            expected: format!("at least {}", unit.show(least)),
            got: unit.show(got),
            met: got >= least,
        }
    }

    /// `got` must be at most `most`.
    pub fn at_most(what: impl Into<String>, got: u64, most: u64, unit: Unit) -> Self {
        Self {
            what: what.into(),
            expected: format!("at most {}", unit.show(most)),
            got: unit.show(got),
            met: got <= most,
        }
    }

    /// `got` must be between the two, both included.
    pub fn between(what: impl Into<String>, got: u64, least: u64, most: u64, unit: Unit) -> Self {
        Self {
            what: what.into(),
            expected: format!("{} to {}", unit.show(least), unit.show(most)),
            got: unit.show(got),
            met: (least..=most).contains(&got),
        }
    }

    /// `got` must be `expected`.
    pub fn equal(what: impl Into<String>, got: u64, expected: u64, unit: Unit) -> Self {
        Self {
            what: what.into(),
            expected: unit.show(expected),
            got: unit.show(got),
            met: got == expected,
        }
    }
}
