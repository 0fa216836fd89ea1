use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

#[test]
fn a_turn_sends_at_least_a_packet_and_saves_nothing() {
    let mut turn = Turn::default();
    turn.begin();
    assert!(turn.charge(65_160));
    assert!(!turn.charge(65_160), "it has sent more than its share");
    turn.begin();
    assert!(turn.charge(100), "the rest of it");
    turn.end();
    turn.begin();
    assert!(!turn.charge(65_536), "a whole quantum, not two");
    turn.begin();
    assert!(turn.charge(0));
    turn.begin();
    assert!(!turn.charge(u64::MAX), "no packet is so large");
}

proptest! {
    /// Flows with packets of all sizes that always have something to send.
    #[test]
    fn byte_fair(sizes in prop::collection::vec(1..=65_536u64, 2..20)) {
        let mut turns: Vec<(Turn, u64)> = sizes.iter().map(|_| (Turn::default(), 0)).collect();
        for _ in 0..100 {
            for ((turn, sent), size) in turns.iter_mut().zip(&sizes) {
                turn.begin();
                loop {
                    *sent += size;
                    if !turn.charge(*size) {
                        break;
                    }
                }
            }
        }
        let sent: Vec<u64> = turns.iter().map(|(_, sent)| *sent).collect();
        let (least, most) = (sent.iter().min(), sent.iter().max());
        let spread = most.copied().unwrap_or(0) - least.copied().unwrap_or(0);
        prop_assert!(spread <= 2 * 65_536, "{sent:?}");
        let sum: u64 = sent.iter().sum();
        let squares: u64 = sent.iter().map(|bytes| bytes.pow(2)).sum();
        let jain_percent = sum.pow(2) / (squares / 100 * sent.len() as u64);
        prop_assert!(jain_percent >= 99, "Jain index {jain_percent} %");
    }
}
