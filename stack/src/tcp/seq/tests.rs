use super::*;
use proptest::prelude::*;

#[test]
fn order_holds_across_the_wrap() {
    let last = SeqNum(u32::MAX);
    let first = SeqNum(0);
    assert!(last.before(first));
    assert!(first.after(last));
    assert_eq!(first.distance_from(last), 1);
    assert_eq!(last.earliest(first), last);
    assert_eq!(last.latest(first), first);
    assert_eq!(last.bytes_since(first), 0);
    assert!(SeqNum(2).is_within(SeqNum(u32::MAX - 1), 5));
    assert!(!SeqNum(2).is_within(SeqNum(3), 5));
}

#[test]
fn scale_is_the_least_that_fits() {
    assert_eq!(WindowScale::for_window(0), WindowScale::ZERO);
    assert_eq!(WindowScale::for_window(65_535), WindowScale::ZERO);
    assert_eq!(WindowScale::for_window(65_536).shift(), 1);
    assert_eq!(WindowScale::for_window(2 << 20).shift(), 6);
    assert_eq!(WindowScale::for_window(u32::MAX), WindowScale::MAX);
    assert_eq!(WindowScale::new(200), WindowScale::MAX);
}

proptest! {
    #[test]
    fn adding_moves_forward(start: u32, bytes in 1..u32::MAX / 2) {
        let start = SeqNum(start);
        prop_assert!(start.before(start + bytes));
        prop_assert!(!(start + bytes).before(start));
        prop_assert_eq!((start + bytes).distance_from(start), bytes);
        prop_assert_eq!(start + bytes - bytes, start);
    }

    #[test]
    fn order_is_reflexive_and_total_within_half_the_circle(a: u32, b: u32) {
        let (a, b) = (SeqNum(a), SeqNum(b));
        prop_assert!(a.before_or_eq(a) && a.after_or_eq(a));
        prop_assume!(a.distance_from(b) != 1 << 31);
        prop_assert_eq!(a.before(b), b.after(a));
        prop_assert_eq!(a.before(b), !a.after_or_eq(b));
    }

    #[test]
    fn scaling_rounds_down_by_less_than_the_granularity(bytes in 0u32..1 << 30) {
        let scale = WindowScale::for_window(bytes);
        let back = scale.expand(scale.compress(bytes));
        prop_assert!(back <= bytes && bytes - back < scale.granularity());
    }
}
