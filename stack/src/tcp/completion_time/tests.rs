use super::*;

const PACKET: u64 = 4096;

/// Completions one after the other, of a device that always holds 10 more.
#[derive(Default)]
struct Steady {
    time: CompletionTime,
}

impl Steady {
    fn sample(&mut self, held_us: u32, queue_us: u32) {
        self.time.sample(held_us, PACKET, queue_us, 10 * PACKET);
    }
}

#[test]
fn a_jump_and_back_are_followed_within_ten_completions() {
    for (low, high) in [(50, 500), (190, 1900), (400, 4000), (10, 100)] {
        let mut device = Steady::default();
        for _ in 0..100 {
            device.sample(low, low);
        }
        assert_eq!(device.time.us(), Some(low));
        for (held, expected) in [(high, high), (low, low), (high, high), (low, low)] {
            for _ in 0..10 {
                device.sample(held, low);
            }
            assert_eq!(device.time.us(), Some(expected));
        }
    }
}

#[test]
fn single_outliers_change_nothing() {
    let mut device = Steady::default();
    for round in 0..100 {
        device.sample(200, 200);
        if round % 4 == 0 {
            device.sample(4000, 200);
        }
        if round % 4 == 2 {
            device.sample(2, 200);
        }
    }
    let us = device.time.us().expect("it is known");
    assert!((100..=250).contains(&us), "{us}");
}

#[test]
fn our_own_queue_is_no_reason() {
    let mut device = Steady::default();
    device.sample(200, 0);
    // The queue makes packets wait twice, then four times as long.
    for queue_us in [400, 800] {
        for _ in 0..20 {
            device.sample(queue_us, queue_us);
        }
    }
    assert_eq!(device.time.us(), Some(200));
}

#[test]
fn a_slow_drift_is_found_by_a_short_queue() {
    let mut device = Steady::default();
    for _ in 0..100 {
        device.sample(200, 200);
    }
    assert!(!device.time.is_probing());
    // The device takes 40 % longer. So long as the queue may be the reason, nothing changes.
    let mut samples = 0;
    while !device.time.is_probing() {
        device.sample(280, 250);
        assert_eq!(device.time.us(), Some(200));
        samples += 1;
        assert!(samples < 2000, "it never asks");
    }
    assert!(samples >= 900, "it asked after {samples}");
    for _ in 0..60 {
        device.sample(280, 150);
    }
    assert!(!device.time.is_probing());
    assert_eq!(device.time.us(), Some(280));
}

/// Times of any length between two. What matters is the mean, not the luckiest round.
#[test]
fn jitter_does_not_make_it_small() {
    let mut device = Steady::default();
    let mut random = 12_345_u32;
    let mut least = u32::MAX;
    for count in 0..50_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        device.sample(100 + (random >> 16) % 401, 300);
        if count > 1000 {
            least = least.min(device.time.us().unwrap_or(0));
        }
    }
    assert!((230..=310).contains(&least), "{least}, of 300 in the mean");
}

#[test]
fn probes_are_rare() {
    let mut device = Steady::default();
    device.sample(200, 0);
    let mut probing = 0;
    for _ in 0..10_000 {
        // A queue of a fifth, which goes when it is kept short.
        let held = if device.time.is_probing() { 200 } else { 240 };
        device.sample(held, held);
        probing += u32::from(device.time.is_probing());
    }
    assert!((1..2000).contains(&probing), "{probing} of 10,000");
    let us = device.time.us().expect("it is known");
    assert!((195..=215).contains(&us), "{us}");
}
