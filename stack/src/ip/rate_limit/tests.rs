use super::RateLimit;
use crate::time::Instant;

#[test]
fn allows_a_burst_and_then_the_rate() {
    let mut limit = RateLimit::new(10, 5);
    let mut allowed = |ms: u64| {
        (0..100)
            .filter(|_| limit.allow(Instant::from_micros(ms * 1000)))
            .count()
    };
    assert_eq!(allowed(0), 5);
    assert_eq!(allowed(99), 0);
    assert_eq!(allowed(100), 1);
    assert_eq!(allowed(300), 2);
    assert_eq!(allowed(60_000), 5);
}
