use super::*;

/// A pass for which the flow waited.
fn pass(starvation: &mut Starvation, limit_bytes: u32, left_bytes: u32) {
    starvation.waited();
    starvation.end_pass(limit_bytes, left_bytes, left_bytes == 0, false);
}

#[test]
fn a_dry_device_raises_the_floor_over_the_limit() {
    let mut starvation = Starvation::default();
    for limit in [100_000, 150_000, 225_000, u32::MAX] {
        pass(&mut starvation, limit, 0);
        let floor = starvation.floor_bytes();
        assert_eq!(floor, limit.saturating_add(limit / 2));
    }
}

#[test]
fn only_one_who_waits_can_tell() {
    let mut starvation = Starvation::default();
    starvation.end_pass(100_000, 0, true, false);
    // On purpose.
    starvation.waited();
    starvation.end_pass(100_000, 0, true, true);
    starvation.end_pass(100_000, 0, true, false);
    // Others still had something there.
    starvation.waited();
    starvation.end_pass(100_000, 0, false, false);
    assert_eq!(starvation.floor_bytes(), 0);
}

#[test]
fn what_is_always_left_is_given_back() {
    let mut starvation = Starvation::default();
    pass(&mut starvation, 100_000, 0);
    for n in 1..SPAN_PASSES {
        pass(&mut starvation, 150_000, 20_000 + u32::from(n));
        assert_eq!(starvation.floor_bytes(), 150_000);
    }
    pass(&mut starvation, 150_000, 50_000);
    assert_eq!(starvation.floor_bytes(), 129_999);
    // A dry device starts the span anew.
    pass(&mut starvation, 130_000, 10);
    pass(&mut starvation, 100_000, 0);
    for _ in 0..SPAN_PASSES {
        assert_eq!(starvation.floor_bytes(), 150_000);
        pass(&mut starvation, 150_000, 60_000);
    }
    assert_eq!(starvation.floor_bytes(), 90_000);
    for _ in 0..2 * SPAN_PASSES {
        pass(&mut starvation, 150_000, 60_000);
    }
    assert_eq!(starvation.floor_bytes(), 0);
}
