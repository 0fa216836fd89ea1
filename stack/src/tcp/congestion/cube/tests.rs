use super::*;
use proptest::prelude::*;

#[test]
fn roots_of_cubes() {
    for (volume, expected) in [
        (0, 0),
        (1, 1),
        (7, 1),
        (8, 2),
        (26, 2),
        (27, 3),
        (1_000_000_000, 1000),
        (u128::from(u32::MAX).pow(3), u32::MAX),
    ] {
        assert_eq!(root(volume), expected, "of {volume}");
    }
}

/// RFC 9438 §4.2 with W_max = 100 segments and a window of 70: K = (30 / 0.4)^(1/3) s = 4.217 s.
#[test]
fn the_time_to_w_max() {
    assert_eq!(root(volume(30 * 1000, 1000)), 4_217_163);
    assert_eq!(height(4_217_163, 1000), 29_999);
    assert_eq!(height(4_217_164, 1000), 30_000);
}

#[test]
fn a_second_is_two_fifths_of_a_segment() {
    assert_eq!(height(1_000_000, 1000), 400);
    assert_eq!(height(10_000_000, 1448), 579_200);
    assert_eq!(height(0, 65_000), 0);
}

proptest! {
    #[test]
    fn a_root_is_the_largest_that_fits(volume in 0..1u128 << 96) {
        let root = u128::from(root(volume));
        prop_assert!(root.pow(3) <= volume);
        prop_assert!(root == u128::from(u32::MAX) || (root + 1).pow(3) > volume);
    }

    #[test]
    fn a_height_is_what_real_numbers_say(us in 0..400_000_000u32, mss in 48..65_000u32) {
        let seconds = f64::from(us) / 1e6;
        let real = 0.4 * seconds.powi(3) * f64::from(mss);
        let whole = height(u64::from(us), mss);
        prop_assert!(whole.abs_diff(real as u64) <= 1 + (whole >> 40), "{whole} {real}");
    }

    #[test]
    fn time_and_height_are_each_other_s_inverse(bytes in 0..1u32 << 30, mss in 48..65_000u32) {
        let t = u64::from(root(volume(bytes, mss)));
        prop_assert!(height(t, mss) <= u64::from(bytes));
        prop_assert!(height(t + 1, mss) >= u64::from(bytes));
    }

    #[test]
    fn nothing_overflows(us in any::<u64>(), mss in any::<u32>(), bytes in any::<u32>()) {
        height(us, mss);
        prop_assert!(volume(bytes, mss) < 1 << 96);
    }
}
