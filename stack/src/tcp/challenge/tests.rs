use super::*;

#[test]
fn one_answer_per_interval() {
    let mut limit = ChallengeLimit::default();
    let at = |ms: u64| Instant::from_micros(ms * 1000);
    assert!(limit.allow(at(0)));
    assert!(!limit.allow(at(499)));
    assert!(limit.allow(at(500)));
    assert!(!limit.allow(at(501)));
}
