use super::*;

#[test]
fn cookies_are_text_with_a_nul() {
    let good = *b"abcdefghijklmnopqrstuvwxyz234567abcd\0";
    assert!(Cookie::parse(good).is_some());
    let mut unterminated = good;
    unterminated[36] = b'x';
    assert_eq!(Cookie::parse(unterminated), None);
    let mut control = good;
    control[3] = b'\n';
    assert_eq!(Cookie::parse(control), None);
    assert_eq!(
        Cookie::parse(*b"GET / HTTP/1.1\r\nHost: 10.0.0.2:5201\r\n"),
        None
    );
}

#[test]
fn states_keep_their_wire_values() {
    let mut known = 0;
    for byte in 0..=u8::MAX {
        if let Some(state) = State::from_wire(byte) {
            assert_eq!(state.to_wire(), byte);
            known += 1;
        }
    }
    assert_eq!(known, 13);
    assert_eq!(State::AccessDenied.to_wire(), 0xff);
    assert_eq!(State::ServerError.to_wire(), 0xfe);
    assert_eq!(State::from_wire(3), None);
}
