//! How often a connection answers segments that do not fit (RFC 5961 §7).

use crate::time::{Duration, Instant};

/// Least time between two such answers on one connection, as Linux's `tcp_invalid_ratelimit`.
const INTERVAL: Duration = Duration::from_millis(500);

/// The limit of one connection.
///
/// There is no limit over all connections: it would let an outsider count challenges and so learn
/// of other connections (the side channel of CVE-2016-5696).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChallengeLimit {
    last: Option<Instant>,
}

impl ChallengeLimit {
    /// Whether an answer may go out now; counts it if so.
    pub(super) fn allow(&mut self, now: Instant) -> bool {
        if self.last.is_some_and(|last| now.since(last) < INTERVAL) {
            return false;
        }
        self.last = Some(now);
        true
    }
}

#[cfg(test)]
mod tests;
