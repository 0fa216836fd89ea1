use super::*;
use proptest::prelude::*;

fn estimator() -> RttEstimator {
    RttEstimator::new(Duration::from_millis(200), Duration::from_mins(2))
}

#[test]
fn first_sample_sets_srtt_and_half_of_it_as_deviation() {
    let mut rtt = estimator();
    assert_eq!(rtt.srtt_us(), None);
    assert_eq!(rtt.rto(), Duration::from_secs(1));
    rtt.sample(Duration::from_millis(100), Instant::ZERO);
    assert_eq!(rtt.srtt_us(), Some(100_000));
    assert_eq!(rtt.rttvar_us(), 50_000);
    assert_eq!(rtt.rto(), Duration::from_millis(300));
}

#[test]
fn steady_path_keeps_the_floor_over_its_rtt() {
    let mut rtt = estimator();
    for _ in 0..100 {
        rtt.sample(Duration::from_micros(80), Instant::ZERO);
    }
    assert_eq!(rtt.srtt_us(), Some(80));
    assert_eq!(rtt.rto(), Duration::from_micros(200_080));
}

#[test]
fn backoff_doubles_to_the_ceiling_and_resets() {
    let mut rtt = estimator();
    rtt.back_off();
    assert_eq!(rtt.rto(), Duration::from_secs(2));
    for _ in 0..300 {
        rtt.back_off();
    }
    assert_eq!(rtt.rto(), Duration::from_mins(2));
    rtt.reset_backoff();
    assert_eq!(rtt.rto(), Duration::from_secs(1));
    rtt.syn_timed_out();
    assert_eq!(rtt.rto(), Duration::from_secs(3));
}

#[test]
fn minimum_is_forgotten_after_its_window() {
    let mut rtt = estimator();
    rtt.sample(Duration::from_micros(10), Instant::ZERO);
    rtt.sample(Duration::from_micros(20), Instant::from_micros(300_000_000));
    assert_eq!(rtt.min_us(), Some(10));
    rtt.sample(Duration::from_micros(20), Instant::from_micros(300_000_001));
    assert_eq!(rtt.min_us(), Some(20));
}

proptest! {
    #[test]
    fn estimate_stays_between_the_samples(samples in proptest::collection::vec(1u64..1 << 40, 1..50)) {
        let mut rtt = estimator();
        for &us in &samples {
            rtt.sample(Duration::from_micros(us), Instant::ZERO);
            prop_assert!(rtt.rto() >= Duration::from_millis(200));
            prop_assert!(rtt.rto() <= Duration::from_mins(2));
        }
        let low = *samples.iter().min().unwrap();
        prop_assert!(u64::from(rtt.srtt_us().unwrap()) + 1 >= low.min(u64::from(MAX_SAMPLE_US)));
    }
}
