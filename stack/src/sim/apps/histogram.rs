//! Counts of values, as precise as their size needs.

use alloc::vec::Vec;

/// Values of one power of two are told apart in this many steps.
const STEPS: u64 = 32;

/// A histogram whose buckets are at most 1/32 of their values wide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        let index = index(value);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; 0 when there are none.
    pub fn mean(&self) -> u64 {
        (self.sum / u128::from(self.count.max(1))) as u64
    }

    /// The largest.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// What `permille` of a thousand values do not exceed, to the width of a bucket; 0 when there
    /// are none.
    pub fn percentile(&self, permille: u64) -> u64 {
        let wanted = (self.count * permille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper(index).min(self.max);
            }
        }
        self.max
    }
}

/// The bucket of a value: each below twice [`STEPS`] has its own.
fn index(value: u64) -> usize {
    let shift = value.max(STEPS).ilog2() - STEPS.ilog2();
    (u64::from(shift) * STEPS + (value >> shift)) as usize
}

/// The largest value of a bucket.
fn upper(index: usize) -> u64 {
    let index = index as u64;
    let shift = (index / STEPS).saturating_sub(1);
    let low = u128::from(index - shift * STEPS) << shift;
    u64::try_from(low + (1 << shift) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut last = 0;
        for value in (0..200).chain((8..64).flat_map(|bit| [1 << bit, (1 << bit) + 77])) {
            let index = index(value);
            assert!(index >= last, "{value}");
            last = index;
            let upper = upper(index);
            assert!(
                upper >= value && upper - value <= value / STEPS,
                "{value} {upper}"
            );
        }
        assert_eq!(upper(index(u64::MAX)), u64::MAX);
    }

    #[test]
    fn percentiles() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(500), 0);
        (1..=1000).for_each(|value| histogram.add(value));
        assert_eq!((histogram.count(), histogram.max()), (1000, 1000));
        assert_eq!(histogram.mean(), 500);
        assert!((500..=515).contains(&histogram.percentile(500)));
        assert!((990..=1000).contains(&histogram.percentile(990)));
        assert_eq!(histogram.percentile(1000), 1000);
    }
}
