//! Sequence numbers and windows (RFC 9293 §3.4, RFC 7323 §2).

use core::{fmt, ops};

/// A TCP sequence number: a point on a circle of 2³².
///
/// There is no `Ord`: "before" holds only between numbers less than half the circle apart, and is
/// not transitive around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SeqNum(pub(super) u32);

impl SeqNum {
    /// Whether `self` comes strictly before `other`.
    pub(super) const fn before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether `self` comes strictly after `other`.
    pub(super) const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// Whether `self` comes before `other` or is it.
    pub(super) const fn before_or_eq(self, other: Self) -> bool {
        !other.before(self)
    }

    /// Whether `self` comes after `other` or is it.
    pub(super) const fn after_or_eq(self, other: Self) -> bool {
        !self.before(other)
    }

    /// The one that comes first.
    #[must_use]
    pub(super) const fn earliest(self, other: Self) -> Self {
        if other.before(self) { other } else { self }
    }

    /// The one that comes last.
    #[must_use]
    pub(super) const fn latest(self, other: Self) -> Self {
        if other.after(self) { other } else { self }
    }

    /// Bytes from `earlier` up to `self`, going forward round the circle.
    pub(super) const fn distance_from(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Bytes from `earlier` up to `self`; 0 when `self` is not after it.
    pub(super) const fn bytes_since(self, earlier: Self) -> u32 {
        if self.after(earlier) {
            self.distance_from(earlier)
        } else {
            0
        }
    }

    /// Whether `self` is one of the `len` numbers from `start` on.
    pub(super) const fn is_within(self, start: Self, len: u32) -> bool {
        self.distance_from(start) < len
    }
}

impl ops::Add<u32> for SeqNum {
    type Output = Self;

    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl ops::AddAssign<u32> for SeqNum {
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl ops::Sub<u32> for SeqNum {
    type Output = Self;

    fn sub(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }
}

impl fmt::Display for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The window field as it stands in a header, before scaling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnscaledWindow(pub(super) u16);

/// How many bits the window field is shifted by: 0 to 14 (RFC 7323 §2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WindowScale(u8);

impl WindowScale {
    /// No scaling.
    pub(super) const ZERO: Self = Self(0);
    /// The largest shift.
    pub(super) const MAX: Self = Self(14);

    /// The shift a peer named; more than 14 counts as 14 (RFC 7323 §2.3).
    pub(super) const fn new(shift: u8) -> Self {
        if shift > Self::MAX.0 {
            Self::MAX
        } else {
            Self(shift)
        }
    }

    /// The least shift that lets the window field express `bytes`.
    pub(super) fn for_window(bytes: u32) -> Self {
        let bits = u32::BITS - (bytes >> 16).leading_zeros();
        Self::new(bits as u8)
    }

    /// The number of bits.
    pub(super) const fn shift(self) -> u8 {
        self.0
    }

    /// The window in bytes that `field` stands for: under 2³⁰.
    pub(super) const fn expand(self, field: UnscaledWindow) -> u32 {
        (field.0 as u32) << self.0
    }

    /// The window field for `bytes`, rounded down, at most what the field can hold.
    pub(super) fn compress(self, bytes: u32) -> UnscaledWindow {
        UnscaledWindow(u16::try_from(bytes >> self.0).unwrap_or(u16::MAX))
    }

    /// The smallest number of bytes, other than zero, that the window field can express.
    pub(super) const fn granularity(self) -> u32 {
        1 << self.0
    }
}

#[cfg(test)]
mod tests;
