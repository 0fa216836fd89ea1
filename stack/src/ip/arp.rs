//! The neighbour cache: Ethernet addresses of stations on the link, learned by ARP.
//!
//! States follow the neighbour unreachability detection of RFC 4861 §7.3, which serves IPv4 as
//! well. What strangers say is believed only as far as needed: an unsolicited claim never makes an
//! entry, and one that changes an entry is verified by a probe at the next use.

use super::rate_limit::RateLimit;
use crate::{
    time::{Duration, Instant},
    wire::ethernet::Mac,
};
use core::net::Ipv4Addr;

/// Most neighbours known at a time.
pub(crate) const CAPACITY: usize = 32;

/// How long an answer is believed without asking again (RFC 4861 §10, `REACHABLE_TIME`).
const REACHABLE_TIME: Duration = Duration::from_secs(30);

/// Time between requests for one address (RFC 4861 §10, `RETRANS_TIMER`; RFC 1122 §2.3.2.1 allows
/// no more than one a second).
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Requests before giving up (RFC 4861 §10, `MAX_MULTICAST_SOLICIT`).
const MAX_PROBES: u8 = 3;

/// How long a neighbour that did not answer counts as absent.
const FAILED_TIME: Duration = Duration::from_secs(3);

/// How long after a confirmation another address is not believed: two stations that fight for
/// one address must not make it flap.
const LOCK_TIME: Duration = Duration::from_secs(1);

/// An entry used this recently is not displaced by strangers' requests.
const IN_USE_TIME: Duration = Duration::from_secs(10);

/// A request to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) target: Ipv4Addr,
    /// Broadcast, or the address to verify.
    pub(crate) to: Mac,
}

/// What is known of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// It did not answer.
    Failed,
    /// Its address.
    Known(Mac),
    /// It is being asked.
    Pending,
}

/// What an ARP packet proves about its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// It answers us.
    Reply,
    /// It wants to talk to us.
    RequestForUs,
    /// It speaks of itself to all.
    Unsolicited,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Failed { until: Instant },
    Incomplete { tries: u8, next: Instant },
    Probe { mac: Mac, tries: u8, next: Instant },
    Reachable { mac: Mac, since: Instant },
    Stale { mac: Mac },
}

#[derive(Debug)]
struct Entry {
    address: Ipv4Addr,
    state: State,
    used: Instant,
}

/// The cache.
#[derive(Debug)]
pub(crate) struct Neighbours {
    entries: heapless::Vec<Entry, CAPACITY>,
    /// Where the last look-up ended: most go to the same neighbour.
    last: usize,
    requests: RateLimit,
}

impl Neighbours {
    pub(crate) fn new() -> Self {
        Self {
            entries: heapless::Vec::new(),
            last: 0,
            requests: RateLimit::new(50, 2 * CAPACITY as u32),
        }
    }

    /// Looks `address` up for a packet that is to be sent there, and says what request to send, if
    /// any.
    pub(crate) fn resolve(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
    ) -> (Resolution, Option<Request>) {
        let Some(index) = self.find(address) else {
            self.insert(
                now,
                Entry {
                    address,
                    state: State::Incomplete {
                        tries: 0,
                        next: now,
                    },
                    used: now,
                },
            );
            return (Resolution::Pending, self.due(now));
        };
        let entry = &mut self.entries[index];
        entry.used = now;
        match entry.state {
            State::Reachable { mac, since } if now.since(since) < REACHABLE_TIME => {
                (Resolution::Known(mac), None)
            }
            State::Reachable { mac, .. } | State::Stale { mac } => {
                entry.state = State::Probe {
                    mac,
                    tries: 0,
                    next: now,
                };
                (Resolution::Known(mac), self.due(now))
            }
            State::Probe { mac, .. } => (Resolution::Known(mac), None),
            State::Incomplete { .. } => (Resolution::Pending, None),
            State::Failed { until } if now < until => (Resolution::Failed, None),
            State::Failed { .. } => {
                entry.state = State::Incomplete {
                    tries: 0,
                    next: now,
                };
                (Resolution::Pending, self.due(now))
            }
        }
    }

    /// Takes in what an ARP packet says of its sender, a station on the link.
    pub(crate) fn learn(&mut self, now: Instant, address: Ipv4Addr, mac: Mac, how: Evidence) {
        let Some(index) = self.find(address) else {
            // RFC 826: whoever asks for us will want an answer.
            if how == Evidence::RequestForUs && self.may_insert_for_stranger(now) {
                let entry = Entry {
                    address,
                    state: State::Stale { mac },
                    used: Instant::ZERO,
                };
                self.insert(now, entry);
            }
            return;
        };
        let state = &mut self.entries[index].state;
        match *state {
            State::Incomplete { .. } | State::Failed { .. } => {
                *state = if how == Evidence::Reply {
                    State::Reachable { mac, since: now }
                } else {
                    State::Stale { mac }
                };
            }
            State::Probe { mac: known, .. } if how == Evidence::Reply && known == mac => {
                *state = State::Reachable { mac, since: now };
            }
            State::Reachable { mac: known, since } => {
                if known != mac && now.since(since) >= LOCK_TIME {
                    *state = State::Stale { mac };
                }
            }
            State::Probe { mac: known, .. } | State::Stale { mac: known } => {
                if known != mac {
                    *state = State::Stale { mac };
                }
            }
        }
    }

    /// Moves entries whose time has come on by one step; returns a request to send. Called until
    /// it returns none.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Request> {
        for Entry { address, state, .. } in &mut self.entries {
            let (tries, next, to) = match state {
                State::Incomplete { tries, next } => (tries, next, Mac::BROADCAST),
                State::Probe { mac, tries, next } => (tries, next, *mac),
                State::Failed { .. } | State::Reachable { .. } | State::Stale { .. } => continue,
            };
            if now < *next {
                continue;
            }
            *next = now + PROBE_INTERVAL;
            if *tries < MAX_PROBES {
                if self.requests.allow(now) {
                    *tries += 1;
                    return Some(Request {
                        target: *address,
                        to,
                    });
                }
            } else if to == Mac::BROADCAST {
                *state = State::Failed {
                    until: now + FAILED_TIME,
                };
            } else {
                // The address it had is silent: perhaps it has another one now.
                *state = State::Incomplete {
                    tries: 0,
                    next: now,
                };
            }
        }
        None
    }

    /// When [`Neighbours::due`] has something to do next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let next = |entry: &Entry| match entry.state {
            State::Incomplete { next, .. } | State::Probe { next, .. } => Some(next),
            State::Failed { .. } | State::Reachable { .. } | State::Stale { .. } => None,
        };
        self.entries.iter().filter_map(next).min()
    }

    /// Forgets everybody: the link is another one.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.last = 0;
    }

    fn find(&mut self, address: Ipv4Addr) -> Option<usize> {
        if self
            .entries
            .get(self.last)
            .is_some_and(|entry| entry.address == address)
        {
            return Some(self.last);
        }
        let index = self.entries.iter().position(|e| e.address == address)?;
        self.last = index;
        Some(index)
    }

    /// Whether there is room, or an entry nobody needs now.
    fn may_insert_for_stranger(&self, now: Instant) -> bool {
        let idle = |entry: &Entry| now.since(entry.used) >= IN_USE_TIME;
        !self.entries.is_full() || self.entries.iter().any(idle)
    }

    /// Inserts an entry; the one least worth keeping gives way.
    fn insert(&mut self, now: Instant, entry: Entry) {
        let Err(entry) = self.entries.push(entry) else {
            return;
        };
        let worth = |entry: &Entry| {
            let rank = match entry.state {
                State::Failed { .. } => 0_u8,
                State::Incomplete { .. } => 1,
                State::Stale { .. } => 2,
                State::Probe { .. } => 3,
                State::Reachable { .. } => 4,
            };
            (now.since(entry.used) < IN_USE_TIME, rank, entry.used)
        };
        if let Some(least) = self.entries.iter_mut().min_by_key(|entry| worth(entry)) {
            *least = entry;
        }
    }
}

#[cfg(test)]
mod tests;
