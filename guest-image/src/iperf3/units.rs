//! Amounts and rates as iperf3 prints them: three digits and a unit.

use alloc::format;
use core::fmt;
use paceline_stack::time::Duration;

/// Prints a number of bytes: `1.25 MBytes`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount(pub(crate) u64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, 1024)?;
        f.write_str("Bytes")
    }
}

/// Prints what an amount of bytes makes in a time: `9.41 Gbits/sec`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) bytes: u64,
    pub(crate) span: Duration,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from(self.bytes) * 8;
        let per_second = match self.span.as_micros() {
            0 => 0,
            us => bits * 1_000_000 / us,
        };
        scaled(f, u64::try_from(per_second).unwrap_or(u64::MAX), 1000)?;
        f.write_str("bits/sec")
    }
}

/// Prints seconds with two decimals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds(pub(crate) Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (self.0.as_micros() + 5_000) / 10_000;
        f.pad(&format!("{}.{:02}", hundredths / 100, hundredths % 100))
    }
}

/// Prints `value` in four columns, scaled by powers of `base`, and its prefix.
fn scaled(f: &mut fmt::Formatter<'_>, value: u64, base: u64) -> fmt::Result {
    let mut unit = 1;
    let mut prefix = "";
    // u64::MAX is 18.4e18 and 16 x 2^60: exa is the last prefix either way.
    for larger in ["K", "M", "G", "T", "P", "E"] {
        if value / unit < base {
            break;
        }
        unit *= base;
        prefix = larger;
    }
    let thousandths = (u128::from(value) * 1000 / u128::from(unit)) as u64;
    if thousandths < 9_995 {
        let hundredths = (thousandths + 5) / 10;
        write!(f, "{}.{:02} {prefix}", hundredths / 100, hundredths % 100)
    } else if thousandths < 99_950 {
        let tenths = (thousandths + 50) / 100;
        write!(f, "{}.{} {prefix}", tenths / 10, tenths % 10)
    } else {
        write!(f, "{:>4} {prefix}", (thousandths + 500) / 1000)
    }
}

#[cfg(test)]
mod tests;
