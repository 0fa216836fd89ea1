use super::*;

fn keys(typed: &[u8]) -> Vec<Key> {
    let mut escape = Escape::default();
    typed.iter().map(|byte| escape.key(*byte)).collect()
}

#[test]
fn control_a_x_leaves() {
    assert_eq!(keys(b"l\x01x"), [Key::Send(b'l'), Key::Held, Key::Leave]);
}

#[test]
fn control_a_twice_sends_one() {
    assert_eq!(
        keys(b"\x01\x01x"),
        [Key::Held, Key::Send(1), Key::Send(b'x')]
    );
}
