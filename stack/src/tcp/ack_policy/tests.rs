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

fn one_segment(policy: &mut AckPolicy) -> When {
    policy.in_order(MSS, MSS, Some(100_000))
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
    assert_eq!(policy.in_order(MSS, MSS, None), When::Within(MIN));
    assert_eq!(policy.in_order(MSS + 1, MSS, None), When::Now);
}

#[test]
fn delay_follows_the_spacing_of_segments() {
    let mut policy = settled(0);
    assert!(policy.delay_ended(RTO));
    assert_eq!(policy.ato(), MIN * 2, "nothing took it along: wait longer");
    assert_eq!(one_segment(&mut policy), When::Within(MIN * 2));
    let short_path = policy.in_order(MSS, MSS, Some(500));
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
    assert_eq!(policy.in_order(MSS, MSS, None), When::Within(RTO));
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
