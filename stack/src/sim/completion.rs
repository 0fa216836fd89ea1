//! When a NIC answers what it was given.

use super::{link::nanos, random::Random};
use crate::time::{Duration, Instant};

/// How long a backend holds a frame's slots. It never lets go of a frame before it has been sent,
/// nor of one before those that were published earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionTime {
    /// So long after the frame was sent.
    AfterSent(Duration),
    /// So long after it was published; later if it was not sent by then.
    Fixed(Duration),
    /// As `Fixed`, with any time between the two.
    Uniform(Duration, Duration),
    /// As `Fixed`, with another time for a share of the frames.
    Mixed {
        /// The time of most.
        usual: Duration,
        /// The time of the others.
        rare: Duration,
        /// How many of a million they are.
        rare_ppm: u32,
    },
    /// As `Fixed`, but answers are given at multiples of `every` only.
    Batched {
        /// Time after publication.
        after: Duration,
        /// Time between two batches.
        every: Duration,
    },
}

impl Default for CompletionTime {
    fn default() -> Self {
        Self::AfterSent(Duration::ZERO)
    }
}

impl CompletionTime {
    /// When a frame is answered that was published and sent at these times.
    pub(super) fn at(&self, published: Instant, sent: Instant, random: &mut Random) -> Instant {
        let fixed = |span: Duration| sent.max(published + span);
        match *self {
            Self::AfterSent(span) => sent + span,
            Self::Fixed(span) => fixed(span),
            Self::Uniform(low, high) => {
                let width = high.saturating_sub(low).as_micros() as u64;
                fixed(low + Duration::from_micros(random.below(width + 1)))
            }
            Self::Mixed {
                usual,
                rare,
                rare_ppm,
            } => fixed(if random.chance(rare_ppm) { rare } else { usual }),
            Self::Batched { after, every } => {
                let every = (every.as_micros() as u64).max(1);
                Instant::from_micros(fixed(after).as_micros().next_multiple_of(every))
            }
        }
    }
}

/// What a packet costs somebody who works on one at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// For each packet.
    pub per_packet: Duration,
    /// For each byte, in picoseconds.
    pub per_byte_ps: u64,
}

impl Cost {
    /// What makes `rate_bps` bits of frames a second the most that can be done.
    pub const fn for_rate(rate_bps: u64) -> Self {
        Self {
            per_packet: Duration::ZERO,
            per_byte_ps: 8_000_000_000_000 / rate_bps,
        }
    }

    /// Nanoseconds for `packets` with `bytes`.
    pub(super) fn nanos(&self, packets: u64, bytes: u64) -> u64 {
        nanos(self.per_packet) * packets + bytes * self.per_byte_ps / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;
    const AT: fn(u64) -> Instant = Instant::from_micros;

    #[test]
    fn times() {
        let mut random = Random::new(3);
        let mut at = |time: CompletionTime| time.at(AT(1000), AT(1065), &mut random).as_micros();
        assert_eq!(at(CompletionTime::AfterSent(US(50))), 1115);
        assert_eq!(at(CompletionTime::Fixed(US(50))), 1065);
        assert_eq!(at(CompletionTime::Fixed(US(190))), 1190);
        let uniform = at(CompletionTime::Uniform(US(100), US(200)));
        assert!((1100..=1200).contains(&uniform));
        let batched = CompletionTime::Batched {
            after: US(70),
            every: US(100),
        };
        assert_eq!(at(batched), 1100);
        let mixed = |rare_ppm| CompletionTime::Mixed {
            usual: US(100),
            rare: US(900),
            rare_ppm,
        };
        assert_eq!(at(mixed(0)), 1100);
        assert_eq!(at(mixed(1_000_000)), 1900);
    }

    #[test]
    fn costs() {
        let cost = Cost::for_rate(8_000_000_000);
        assert_eq!(cost.nanos(1, 65_536), 65_536);
        let cost = Cost {
            per_packet: US(1),
            per_byte_ps: 0,
        };
        assert_eq!(cost.nanos(3, 1000), 3000);
    }
}
