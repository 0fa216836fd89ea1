//! Lenient JSON scalars: iperf3 writes numbers as integers or floats as it sees fit, negative ones
//! as huge positive ones in some builds, and takes any value as a set flag.

use core::fmt;
use serde::de::{self, Deserialize, Deserializer, Visitor};

/// An integer however written: -1 may come as -1, -1.0 or 18446744073709551615.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Int(pub(crate) i64);

impl Int {
    /// The value, or 0 when negative.
    pub(crate) fn unsigned(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0)
    }
}

impl<'de> Deserialize<'de> for Int {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IntVisitor;

        impl Visitor<'_> for IntVisitor {
            type Value = Int;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Int, E> {
                Ok(Int(value))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Int, E> {
                Ok(Int(value as i64))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Int, E> {
                // Saturates; 2^64 - 1 as a float is -1, too.
                let minus_one =
                    (18_446_744_073_709_549_568.0..=18_446_744_073_709_551_616.0).contains(&value);
                Ok(Int(if minus_one { -1 } else { value as i64 }))
            }
        }

        deserializer.deserialize_any(IntVisitor)
    }
}

/// A flag: set by `true` or any number but 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FlagVisitor;

        impl Visitor<'_> for FlagVisitor {
            type Value = Flag;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a boolean or a number")
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Flag, E> {
                Ok(Flag(value))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Flag, E> {
                Ok(Flag(value != 0))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Flag, E> {
                Ok(Flag(value != 0))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Flag, E> {
                Ok(Flag(false))
            }
        }

        deserializer.deserialize_any(FlagVisitor)
    }
}
