use super::*;

const DST: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

#[test]
fn only_lowers_and_forgets() {
    let mut mtus = PathMtus::default();
    let start = Instant::ZERO;
    assert_eq!(mtus.lookup(start, DST, 1500), 1500);
    mtus.lower(start, DST, 1400, 1500);
    mtus.lower(start, DST, 1450, 1500);
    assert_eq!(mtus.lookup(start, DST, 1500), 1400);
    assert_eq!(mtus.lookup(start, DST, 1300), 1300);
    mtus.lower(start, DST, 1200, 1500);
    assert_eq!(mtus.lookup(start, DST, 1500), 1200);
    assert_eq!(mtus.lookup(start + LIFETIME, DST, 1500), 1500);
    mtus.lower(start + LIFETIME, DST, 1450, 1500);
    assert_eq!(mtus.lookup(start + LIFETIME, DST, 1500), 1450);
}

#[test]
fn absurd_values_are_bounded() {
    let mut mtus = PathMtus::default();
    mtus.lower(Instant::ZERO, DST, 0, 1500);
    assert_eq!(mtus.lookup(Instant::ZERO, DST, 1500), MIN_MTU_BYTES);
}

#[test]
fn remembers_a_bounded_number_and_drops_the_oldest() {
    let mut mtus = PathMtus::default();
    let dst = |i: u8| Ipv4Addr::new(198, 51, 100, i);
    for i in 0..40 {
        mtus.lower(Instant::from_micros(u64::from(i)), dst(i), 1400, 1500);
    }
    let known = (0..40).filter(|&i| mtus.lookup(Instant::ZERO, dst(i), 1500) == 1400);
    assert!(known.eq(24..40));
}
