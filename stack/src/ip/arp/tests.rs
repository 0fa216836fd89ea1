use super::*;

const A: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);
const OTHER: Mac = Mac([2, 0, 0, 0, 0, 2]);

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1000)
}

fn address(i: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 + i)
}

fn ask(target: Ipv4Addr) -> Request {
    Request {
        target,
        to: Mac::BROADCAST,
    }
}

#[test]
fn asks_three_times_a_second_apart_then_fails_then_asks_again() {
    let mut cache = Neighbours::new();
    assert_eq!(cache.resolve(at(0), A), (Resolution::Pending, Some(ask(A))));
    assert_eq!(cache.resolve(at(500), A), (Resolution::Pending, None));
    assert_eq!(cache.deadline(), Some(at(1000)));
    assert_eq!(cache.due(at(999)), None);
    assert_eq!(cache.due(at(1000)), Some(ask(A)));
    assert_eq!(cache.due(at(1000)), None);
    assert_eq!(cache.due(at(2000)), Some(ask(A)));
    assert_eq!(cache.due(at(3000)), None);
    assert_eq!(cache.deadline(), None);
    assert_eq!(cache.resolve(at(3001), A), (Resolution::Failed, None));
    assert_eq!(
        cache.resolve(at(6001), A),
        (Resolution::Pending, Some(ask(A)))
    );
}

#[test]
fn a_reply_resolves_and_is_verified_again_when_old() {
    let mut cache = Neighbours::new();
    cache.resolve(at(0), A);
    cache.learn(at(1), A, MAC, Evidence::Reply);
    assert_eq!(cache.resolve(at(2), A), (Resolution::Known(MAC), None));
    assert_eq!(cache.deadline(), None);
    let verify = Request { target: A, to: MAC };
    let old = (Resolution::Known(MAC), Some(verify));
    assert_eq!(cache.resolve(at(30_001), A), old);
    // Still usable while it is being verified.
    assert_eq!(cache.resolve(at(30_002), A), (Resolution::Known(MAC), None));
    cache.learn(at(30_003), A, MAC, Evidence::Reply);
    assert_eq!(cache.deadline(), None);
}

#[test]
fn a_silent_neighbour_is_asked_for_by_broadcast_before_it_counts_as_gone() {
    let mut cache = Neighbours::new();
    cache.learn(at(0), A, MAC, Evidence::RequestForUs);
    cache.resolve(at(0), A);
    let mut requests = std::vec::Vec::new();
    for ms in 1..10_000 {
        requests.extend(cache.due(at(ms)).map(|request| (ms, request.to)));
    }
    let expected = [
        (1000, MAC),
        (2000, MAC),
        (3001, Mac::BROADCAST),
        (4001, Mac::BROADCAST),
        (5001, Mac::BROADCAST),
    ];
    assert_eq!(requests, expected);
    assert_eq!(cache.resolve(at(6002), A), (Resolution::Failed, None));
}

#[test]
fn unsolicited_claims_make_no_entries() {
    let mut cache = Neighbours::new();
    cache.learn(at(0), A, MAC, Evidence::Reply);
    cache.learn(at(0), A, MAC, Evidence::Unsolicited);
    assert_eq!(cache.resolve(at(1), A), (Resolution::Pending, Some(ask(A))));
}

#[test]
fn a_changed_address_is_verified_before_it_is_trusted() {
    let mut cache = Neighbours::new();
    cache.resolve(at(0), A);
    cache.learn(at(0), A, MAC, Evidence::Reply);
    // Two claimants within a second: the first stays.
    cache.learn(at(500), A, OTHER, Evidence::Reply);
    assert_eq!(cache.resolve(at(501), A), (Resolution::Known(MAC), None));
    cache.learn(at(2000), A, OTHER, Evidence::Unsolicited);
    let verify = Request {
        target: A,
        to: OTHER,
    };
    let changed = (Resolution::Known(OTHER), Some(verify));
    assert_eq!(cache.resolve(at(2001), A), changed);
}

#[test]
fn floods_of_strangers_displace_nobody_in_use() {
    let mut cache = Neighbours::new();
    for i in 0..CAPACITY as u32 {
        cache.resolve(at(0), address(i));
        cache.learn(at(1), address(i), MAC, Evidence::Reply);
    }
    for i in 100..100_000 {
        cache.learn(at(2), address(i), OTHER, Evidence::RequestForUs);
    }
    for i in 0..CAPACITY as u32 {
        assert_eq!(cache.resolve(at(3), address(i)).0, Resolution::Known(MAC));
    }
}

#[test]
fn our_own_scans_are_bounded_in_entries_and_requests() {
    let mut cache = Neighbours::new();
    let requests = (0..10_000).filter(|&i| cache.resolve(at(0), address(i)).1.is_some());
    assert!(requests.count() <= 2 * CAPACITY);
    assert_eq!(cache.entries.len(), CAPACITY);
}
