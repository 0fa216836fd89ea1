use super::*;

const MIN: Duration = Duration::from_millis(40);
const RTO: Duration = Duration::from_millis(250);
const MSS: u32 = 1448;

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1000)
}

/// A connection that has received data up to `ms`, and is past its quick start.
fn settled(ms: u64) -> AckPolicy {
    let mut policy = AckPolicy::new(MIN);
    policy.data_received(at(ms), RTO);
    for _ in 0..QUICK_ACKS {
        policy.sent(true);
    }
    policy
}

/// What is done about `bytes` that nothing before waits with.
fn in_order(policy: &mut AckPolicy, bytes: u32, srtt_us: Option<u32>) -> When {
    policy.in_order(arrival(bytes, bytes), None, srtt_us)
}

fn arrival(bytes: u32, unacked_bytes: u32) -> Arrival {
    Arrival {
        bytes,
        unacked_bytes,
        window_bytes: 4 << 20,
        mss: MSS,
    }
}

fn one_segment(policy: &mut AckPolicy) -> When {
    in_order(policy, MSS, Some(100_000))
}

#[test]
fn starts_quickly_and_again_after_idle() {
    let mut policy = AckPolicy::new(MIN);
    policy.data_received(at(0), RTO);
    for _ in 0..QUICK_ACKS {
        assert_eq!(one_segment(&mut policy), When::Now);
        policy.sent(false);
        policy.sent(true);
    }
    assert_eq!(one_segment(&mut policy), When::Within(MIN));
    policy.data_received(at(250), RTO);
    assert_eq!(one_segment(&mut policy), When::Within(MIN));
    policy.data_received(at(501), RTO);
    assert_eq!(one_segment(&mut policy), When::Now);
}

#[test]
fn more_than_a_segment_is_acknowledged_at_once() {
    let mut policy = settled(0);
    assert_eq!(in_order(&mut policy, MSS, None), When::Within(MIN));
    assert_eq!(in_order(&mut policy, MSS + 1, None), When::Now);
}

#[test]
fn delay_follows_the_spacing_of_segments() {
    let mut policy = settled(0);
    assert!(policy.delay_ended(RTO));
    assert_eq!(policy.ato(), MIN * 2, "nothing took it along: wait longer");
    assert_eq!(one_segment(&mut policy), When::Within(MIN * 2));
    let short_path = in_order(&mut policy, MSS, Some(500));
    assert_eq!(short_path, When::Within(MIN), "no longer than a round trip");
    policy.data_received(at(60), RTO);
    assert_eq!(policy.ato(), Duration::from_millis(100));
    for ms in 61..80 {
        policy.data_received(at(ms), RTO);
    }
    assert!(policy.ato() < MIN + Duration::from_millis(1));
    for _ in 0..10 {
        policy.delay_ended(RTO);
    }
    assert_eq!(policy.ato(), RTO);
    assert_eq!(in_order(&mut policy, MSS, None), When::Within(RTO));
}

#[test]
fn answers_take_acknowledgments_along() {
    let mut policy = AckPolicy::new(MIN);
    policy.data_received(at(0), RTO);
    policy.data_sent(at(100));
    assert_eq!(one_segment(&mut policy), When::Now, "no answer: too late");
    policy.data_received(at(101), RTO);
    policy.data_sent(at(102));
    assert_eq!(one_segment(&mut policy), When::Within(MIN));
    assert!(policy.delay_ended(RTO));
    assert_eq!(one_segment(&mut policy), When::Now, "no answer any more");
}

#[test]
fn first_reports_of_a_gap_go_at_once() {
    let mut policy = settled(0);
    let third = Duration::from_micros(200);
    for _ in 0..3 {
        assert_eq!(policy.out_of_order(44, 1, Some(600)), When::Now);
    }
    for _ in 0..44 {
        assert_eq!(policy.out_of_order(44, 2, Some(600)), When::Within(third));
    }
    assert_eq!(policy.out_of_order(44, 1, Some(600)), When::Now);
    policy.sent(false);
    let wait = policy.out_of_order(44, 1, Some(60_000));
    assert_eq!(wait, When::Within(MAX_COMPRESSION));
    assert!(
        !policy.delay_ended(RTO),
        "a report is no delayed acknowledgment"
    );
    assert_eq!(policy.out_of_order(44, 3, Some(600)), When::Now);
    assert_eq!(policy.out_of_order(0, 1, Some(600)), When::Now);
    // The next gap is a new one.
    one_segment(&mut policy);
    assert_eq!(policy.out_of_order(44, 1, Some(600)), When::Now);
}

/// A round trip that delivers `bytes`.
fn round(bytes: u32) -> Round {
    Round {
        rtt_us: 2000,
        bytes,
    }
}

#[test]
fn an_acknowledgment_covers_several_large_segments() {
    let mut policy = settled(0);
    let mut take = |unacked| policy.in_order(arrival(65_160, unacked), Some(round(1 << 20)), None);
    let a_round = When::Within(Duration::from_millis(2));
    assert_eq!(take(65_160), a_round);
    assert_eq!(take(2 * 65_160), a_round);
    assert_eq!(take(3 * 65_160), a_round);
    assert_eq!(take(4 * 65_160), When::Now);
}

#[test]
fn a_round_trip_keeps_two_acknowledgments() {
    let mut policy = settled(0);
    let large = arrival(65_160, 65_160);
    assert_eq!(policy.in_order(large, None, None), When::Now, "not known");
    assert_eq!(
        policy.in_order(large, Some(round(2 * 65_160)), None),
        When::Now
    );
    let rounds = Some(round(2 * 65_164));
    assert_ne!(policy.in_order(large, rounds, None), When::Now);
    let narrow = Arrival {
        window_bytes: 4 * 65_160,
        ..large
    };
    assert_eq!(policy.in_order(narrow, rounds, None), When::Now);
}

#[test]
fn segments_that_come_one_by_one_are_acknowledged_by_twos() {
    let mut policy = settled(0);
    let second = arrival(MSS, 2 * MSS);
    assert_eq!(
        policy.in_order(second, Some(round(1 << 20)), None),
        When::Now
    );
}

#[test]
fn a_peer_that_waits_is_answered_sooner() {
    let mut policy = settled(0);
    let mut most = u32::MAX;
    for _ in 0..4 {
        let next = policy.in_order(arrival(20_000, 20_000), Some(round(1 << 20)), None);
        if next == When::Now {
            break;
        }
        most = policy.stretch_bytes;
        assert!(policy.delay_ended(RTO));
        assert_eq!(policy.stretch_bytes, most / 2);
        policy.sent(true);
    }
    assert!(most < 65_536, "{most} bytes");
    // And again later, once it has been going on well for some time.
    for _ in 0..SMOOTH_ACKS {
        let whole = arrival(20_000, MAX_STRETCH_BYTES);
        assert_eq!(
            policy.in_order(whole, Some(round(1 << 20)), None),
            When::Now
        );
        policy.sent(true);
    }
    let large = arrival(20_000, 20_000);
    assert_ne!(
        policy.in_order(large, Some(round(1 << 20)), None),
        When::Now
    );
}
