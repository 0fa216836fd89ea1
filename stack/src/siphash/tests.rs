use super::siphash24;

/// The example of the SipHash paper (Aumasson and Bernstein, appendix A).
#[test]
fn matches_the_paper() {
    let key = core::array::from_fn(|i| i as u8);
    let data: [u8; 15] = core::array::from_fn(|i| i as u8);
    assert_eq!(siphash24(&key, &data), 0xa129_ca61_49be_45e5);
}
