use super::*;

#[test]
fn counts_to_the_limit_and_back_to_zero() {
    let mut share = DeviceShare::default();
    assert!(share.may_transmit());
    share.sent(u32::MAX);
    assert!(!share.may_transmit());
    share.completed(u32::MAX - LIMIT_BYTES + 1);
    assert!(share.may_transmit());
    assert_eq!(share.in_device_bytes(), LIMIT_BYTES - 1);
    share.completed(LIMIT_BYTES);
    assert_eq!(share.in_device_bytes(), 0);
}
