//! A least limit, learnt from a device that ran dry while more would have been sent.
//!
//! Rate × completion time ([`super::device_share`]) presumes that the two do not depend on each
//! other. A backend that is a thread of a busy processor is not of that kind: it sleeps as long as
//! the scheduler lets it, takes all that is there when it wakes, and is done with it at once.
//! Its rate then is what the limit lets it find each time, divided by the time between; measured,
//! that rate confirms the limit, however small it is, and any round slower than the base lowers
//! both. What shows it is that such a device is found with nothing left, by a flow that waits,
//! after a sleep.
//!
//! So, as Linux's dynamic queue limits do for a NIC's ring: each time that happens, the limit
//! becomes half as much again. What was left there at the least, over [`SPAN_PASSES`] occasions
//! without it, was not needed, and is given back.

/// Occasions with something left that must agree on what was not needed.
const SPAN_PASSES: u8 = 16;

/// What one flow has learnt.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Starvation {
    /// The least limit.
    floor_bytes: u32,
    /// The least that was left of the flow's in this span.
    left_bytes: u32,
    /// Occasions of this span.
    passes: u8,
    /// Whether the flow waited for the completions that come next.
    has_waited: bool,
}

impl Starvation {
    /// The least that the flow must be able to have in the device.
    pub(super) fn floor_bytes(&self) -> u32 {
        self.floor_bytes
    }

    /// The flow has waited for the completions that were just told.
    pub(super) fn waited(&mut self) {
        self.has_waited = true;
    }

    /// The completions of one moment have been told; called again before the next come, it does
    /// nothing. Of `limit_bytes`, `left_bytes` are left of the flow's, and the device `is_dry` if
    /// nothing is left of anyone's, though the loop slept. What the device does while its queue is
    /// kept short on purpose, `is_probing`, says nothing.
    pub(super) fn end_pass(
        &mut self,
        limit_bytes: u32,
        left_bytes: u32,
        is_dry: bool,
        is_probing: bool,
    ) {
        // A flow that had no more to send does not tell what it would have needed.
        if !core::mem::take(&mut self.has_waited) || is_probing {
            return;
        }
        if is_dry {
            self.floor_bytes = limit_bytes.saturating_add(limit_bytes / 2);
            self.passes = 0;
            return;
        }
        self.left_bytes = if self.passes == 0 {
            left_bytes
        } else {
            self.left_bytes.min(left_bytes)
        };
        self.passes += 1;
        if self.passes >= SPAN_PASSES {
            self.passes = 0;
            self.floor_bytes = self.floor_bytes.saturating_sub(self.left_bytes);
        }
    }
}

#[cfg(test)]
mod tests;
