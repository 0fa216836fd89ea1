//! When a connection must be looked at again, and the queue of all of them.

use crate::time::{Duration, Instant};
use alloc::vec::Vec;

/// The timers of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Timers {
    /// Retransmission of data, SYN or FIN (RFC 6298).
    pub(super) retransmit: Option<Instant>,
    /// End of the patience with data overtaken by later data (RFC 8985 §6.2).
    pub(super) reorder: Option<Instant>,
    /// Probe for a lost tail (RFC 8985 §7).
    pub(super) probe: Option<Instant>,
    /// Probe of a window too small to send into (RFC 9293 §3.8.6.1).
    pub(super) persist: Option<Instant>,
    /// When data that pacing holds may leave ([`super::pacing`]).
    pub(super) pace: Option<Instant>,
    /// The delayed acknowledgment (RFC 9293 §3.8.6.3).
    pub(super) delayed_ack: Option<Instant>,
    /// Keepalive (RFC 9293 §3.8.4).
    pub(super) keepalive: Option<Instant>,
    /// End of FIN-WAIT-2, or of a close that nobody waits for.
    pub(super) linger: Option<Instant>,
}

impl Timers {
    /// The first of them.
    pub(super) fn earliest(&self) -> Option<Instant> {
        let Self {
            retransmit,
            reorder,
            probe,
            persist,
            pace,
            delayed_ack,
            keepalive,
            linger,
        } = *self;
        let timers = [
            retransmit,
            reorder,
            probe,
            persist,
            pace,
            delayed_ack,
            keepalive,
            linger,
        ];
        timers.into_iter().flatten().min()
    }

    /// Whether `timer` has run out; stops it if so.
    pub(super) fn take(timer: &mut Option<Instant>, now: Instant) -> bool {
        let expired = timer.is_some_and(|at| at <= now);
        if expired {
            *timer = None;
        }
        expired
    }
}

/// Sets `timer` to run out `span` from now.
pub(super) fn arm(timer: &mut Option<Instant>, now: Instant, span: Duration) {
    *timer = Some(now + span);
}

/// A heap of deadlines with at most one per index.
///
/// A deadline is only ever moved forward in time by [`TimerQueue::set_earlier`]: a connection
/// whose timers moved back is found too early, once, and set anew. So an acknowledgment, which
/// moves the retransmission timer back, costs nothing here.
#[derive(Debug, Default)]
pub(super) struct TimerQueue {
    heap: Vec<(Instant, usize)>,
    /// Place in the heap by index.
    places: Vec<Option<usize>>,
}

impl TimerQueue {
    /// The first deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.first().map(|&(at, _)| at)
    }

    /// Makes sure that `index` is found at `at` or earlier.
    pub(super) fn set_earlier(&mut self, index: usize, at: Instant) {
        if index >= self.places.len() {
            self.places.resize(index + 1, None);
        }
        match self.places[index] {
            Some(place) if self.heap[place].0 <= at => {}
            Some(place) => {
                self.heap[place].0 = at;
                self.sift_up(place);
            }
            None => {
                self.heap.push((at, index));
                let place = self.heap.len() - 1;
                self.places[index] = Some(place);
                self.sift_up(place);
            }
        }
    }

    /// Takes out an index whose deadline has come.
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<usize> {
        let &(at, index) = self.heap.first()?;
        if at > now {
            return None;
        }
        self.remove(index);
        Some(index)
    }

    /// Forgets `index`.
    pub(super) fn remove(&mut self, index: usize) {
        let Some(place) = self.places.get_mut(index).and_then(Option::take) else {
            return;
        };
        self.heap.swap_remove(place);
        if let Some(&(_, moved)) = self.heap.get(place) {
            self.places[moved] = Some(place);
            self.sift_up(place);
            self.sift_down(self.places[moved].unwrap_or(place));
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.places[self.heap[a].1] = Some(a);
        self.places[self.heap[b].1] = Some(b);
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent].0 <= self.heap[place].0 {
                return;
            }
            self.swap(parent, place);
            place = parent;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let Some(&(at, _)) = self.heap.get(left) else {
                return;
            };
            let right_is_less = self
                .heap
                .get(left + 1)
                .is_some_and(|&(right, _)| right < at);
            let child = left + usize::from(right_is_less);
            if self.heap[place].0 <= self.heap[child].0 {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }
}

#[cfg(test)]
mod tests;
