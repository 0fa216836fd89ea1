//! Decisions drawn from bytes that a property test or a fuzzer has chosen.

use crate::time::Duration;

/// Where decisions come from. Zeros, and the end of the bytes, decide for what is plain, so that
/// a smaller input is a simpler run.
pub(super) struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all bytes are used up.
    pub(super) fn is_spent(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    /// The next bytes as they are, as many as there are up to `most`.
    pub(super) fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// True in about `share` of 256 cases.
    pub(super) fn chance(&mut self, share: u8) -> bool {
        self.byte() > 255 - share
    }

    /// 0 to `most`, which is less than 2^48.
    pub(super) fn upto(&mut self, most: u64) -> u64 {
        let word = u64::from(self.byte()) << 8 | u64::from(self.byte());
        (word * (most + 1)) >> 16
    }

    /// 1 to about `2^bits`, equal chances for each power of two.
    pub(super) fn magnitude(&mut self, bits: u8) -> u64 {
        let eighths = self.upto(u64::from(bits) * 8);
        let whole = 1_u64 << (eighths / 8);
        whole + whole * (eighths % 8) / 8
    }

    pub(super) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.upto(all.len() as u64 - 1) as usize]
    }

    pub(super) fn micros(&mut self, bits: u8) -> Duration {
        Duration::from_micros(self.magnitude(bits) - 1)
    }
}
