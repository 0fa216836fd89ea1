//! Who is measured when.
//!
//! A shared machine's speed can change by a factor of two within a minute. Two guests are therefore
//! measured in slices of a second that alternate, and each slice is compared with its neighbour
//! only. The order is ABBA, so that a drift favours each guest as often as the other.

use crate::domain::Kind;

/// Seconds of a slice when two guests alternate: iperf3 takes whole ones.
const SLICE_S: u32 = 1;

/// The iperf3 runs of one test in one round.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Slicing {
    /// Seconds of each.
    pub(crate) slice_s: u32,
    /// Whose turn it is, one entry a slice.
    pub(crate) turns: Vec<Kind>,
}

impl Slicing {
    /// `time_s` for each of `guests` in the round with this number, from one.
    ///
    /// The order goes on over the rounds, or a single slice a round would never have the second
    /// guest first.
    pub(crate) fn new(guests: &[Kind], time_s: u32, round: u32) -> Self {
        let &[first, second] = guests else {
            return Self {
                slice_s: time_s,
                turns: guests.to_vec(),
            };
        };
        let pairs = time_s / SLICE_S;
        let earlier = round.saturating_sub(1).wrapping_mul(pairs);
        let turns = (0..pairs)
            .flat_map(|pair| {
                if earlier.wrapping_add(pair).is_multiple_of(2) {
                    [first, second]
                } else {
                    [second, first]
                }
            })
            .collect();
        Self {
            slice_s: SLICE_S,
            turns,
        }
    }
}

#[cfg(test)]
mod tests;
