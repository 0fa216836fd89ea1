//! How long a connection has been busy, and what it was that held it up meanwhile: the times
//! `busy`, `rwnd_limited` and `sndbuf_limited` of `tcp_info`.

use super::connection::{Connection, State};
use crate::{
    device::Page,
    time::{Duration, Instant},
};

/// What a connection with data to deliver is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// It sends, or waits for the network.
    Busy,
    /// It waits for the peer's window.
    RwndLimited,
    /// All that was written is sent, and the application was not let write more.
    SndbufLimited,
}

/// A stop watch for each [`Activity`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chrono {
    /// What goes on, and since when; none while there is nothing to deliver.
    current: Option<(Activity, Instant)>,
    totals: Times,
}

/// How long each took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// There was something to deliver: the times below are part of it.
    pub(super) busy: Duration,
    /// Of this, the peer's window held it up.
    pub(super) rwnd_limited: Duration,
    /// Of this, the send buffer did.
    pub(super) sndbuf_limited: Duration,
}

impl Times {
    fn add(&mut self, activity: Activity, span: Duration) {
        self.busy += span;
        match activity {
            Activity::Busy => {}
            Activity::RwndLimited => self.rwnd_limited += span,
            Activity::SndbufLimited => self.sndbuf_limited += span,
        }
    }
}

impl Chrono {
    /// From now on it is `activity`.
    pub(super) fn set(&mut self, now: Instant, activity: Option<Activity>) {
        if self.activity() == activity {
            return;
        }
        self.totals = self.times(now);
        self.current = activity.map(|activity| (activity, now));
    }

    pub(super) fn activity(&self) -> Option<Activity> {
        self.current.map(|(activity, _)| activity)
    }

    /// The times so far.
    pub(super) fn times(&self, now: Instant) -> Times {
        let mut times = self.totals;
        if let Some((activity, since)) = self.current {
            times.add(activity, now.since(since));
        }
        times
    }
}

impl<P: Page> Connection<P> {
    /// The application has written something. Only this ends a time in which the buffer was what
    /// held the connection up: that the application has been told of room does not mean that it
    /// has filled it (Linux stops the clock when it tells).
    pub(super) fn note_refill(&mut self, now: Instant) {
        if matches!(self.chrono.activity(), None | Some(Activity::SndbufLimited)) {
            self.chrono.set(now, Some(Activity::Busy));
        }
    }

    /// At the end of a burst of output: what holds the connection up now.
    pub(super) fn note_activity(&mut self, now: Instant) {
        self.chrono.set(now, self.activity_now());
    }

    fn activity_now(&self) -> Option<Activity> {
        let notsent = self.notsent_bytes();
        if notsent == 0 && self.retransmits.is_empty() {
            return None;
        }
        // Of a full buffer a part of a segment may be left, waiting for the rest of it.
        let has_segment = notsent >= self.snd.mss;
        if self.chrono.activity() == Some(Activity::SndbufLimited) && !has_segment {
            return Some(Activity::SndbufLimited);
        }
        let cwnd_room = self.window.cwnd.saturating_sub(self.pipe_bytes());
        if cwnd_room == 0 {
            return Some(Activity::Busy);
        }
        let writes = matches!(self.state, State::Established | State::CloseWait);
        let window_room = (self.snd.una + self.snd.wnd).bytes_since(self.snd.nxt);
        // Output may wait for a larger packet than the window lets through now: that is the
        // window's doing, too, when it is the narrower of the two.
        let worth_sending = self.snd.mss.max(self.snd.wnd / 3).min(notsent);
        Some(if window_room < cwnd_room && window_room < worth_sending {
            Activity::RwndLimited
        } else if !has_segment && writes && self.write_space.is_wanted() {
            Activity::SndbufLimited
        } else {
            Activity::Busy
        })
    }
}

#[cfg(test)]
mod tests;
