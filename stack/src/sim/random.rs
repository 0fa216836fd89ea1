//! Chance that is the same every time.

/// A small generator of pseudo-random numbers: SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers that follow from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 when that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// True in `ppm` of a million cases.
    pub fn chance(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(1_000_000) < u64::from(ppm)
    }

    /// A generator of its own for another user, whatever this one is asked later.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_from_the_seed() {
        // The first numbers of the published generator, seeded with 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.draw(), 6_457_827_717_110_365_317);
        assert_eq!(random.draw(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn shares_are_what_was_asked() {
        let mut random = Random::new(1);
        let hits = (0..1_000_000).filter(|_| random.chance(30_000)).count();
        assert!((29_500..30_500).contains(&hits), "{hits}");
        assert!(!random.chance(0) && random.chance(1_000_000));
        let sum: u64 = (0..1000).map(|_| random.below(10)).sum();
        assert!((4200..4800).contains(&sum), "{sum}");
    }
}
