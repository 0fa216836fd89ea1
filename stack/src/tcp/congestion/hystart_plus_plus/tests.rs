use super::{super::tests::ack, *};

const MSS: u32 = 1448;

/// Rounds of ten acknowledgments.
#[derive(Default)]
struct Rounds {
    hystart: HyStartPlusPlus,
    una: u32,
}

impl Rounds {
    /// A round whose samples take `rtt_us`; returns how slow start ended and the divisor at the
    /// round's end.
    fn round(&mut self, rtt_us: u32) -> (Option<SlowStartExit>, u32) {
        let nxt = self.una + 11 * MSS;
        let mut last = (None, 1);
        for _ in 0..11 {
            self.una += MSS;
            let sample = AckSample {
                rtt_us: Some(rtt_us),
                una: SeqNum(self.una),
                nxt: SeqNum(nxt),
                ..ack(MSS)
            };
            let (exit, divisor) = self.hystart.on_ack(&sample);
            last = (last.0.or(exit), divisor);
        }
        last
    }
}

#[test]
fn steady_rounds_are_slow_start() {
    let mut rounds = Rounds::default();
    for _ in 0..20 {
        assert_eq!(rounds.round(50_000), (None, 1));
    }
}

/// RFC 9406 §4.2: an eighth more than the last round, within 4 and 16 ms.
#[test]
fn a_later_round_begins_conservative_slow_start() {
    for (last_us, now_us, divisor) in [
        (8_000, 11_999, 1),
        (8_000, 12_000, 4),
        (80_000, 89_999, 1),
        (80_000, 90_000, 4),
        (400_000, 415_999, 1),
        (400_000, 416_000, 4),
    ] {
        let mut rounds = Rounds::default();
        rounds.round(last_us);
        assert_eq!(rounds.round(now_us), (None, divisor), "{last_us} {now_us}");
    }
}

#[test]
fn five_conservative_rounds_end_slow_start() {
    let mut rounds = Rounds::default();
    rounds.round(80_000);
    assert_eq!(rounds.round(100_000), (None, 4));
    for _ in 0..4 {
        assert_eq!(rounds.round(100_000), (None, 4));
    }
    let (exit, _) = rounds.round(100_000);
    assert_eq!(exit, Some(SlowStartExit::Delay));
    assert_eq!(rounds.round(200_000), (None, 1), "only once");
}

/// RFC 9406 §4.2: delay that goes away was jitter.
#[test]
fn a_faster_round_resumes_slow_start() {
    let mut rounds = Rounds::default();
    rounds.round(80_000);
    assert_eq!(rounds.round(100_000), (None, 4));
    assert_eq!(rounds.round(85_000), (None, 1));
    assert_eq!(rounds.round(86_000), (None, 1));
}

#[test]
fn seven_samples_prove_nothing() {
    let mut rounds = Rounds::default();
    rounds.round(80_000);
    for at in 0..7 {
        rounds.una += MSS;
        let sample = AckSample {
            rtt_us: Some(200_000),
            una: SeqNum(rounds.una),
            nxt: SeqNum(rounds.una + 100 * MSS),
            ..ack(MSS)
        };
        assert_eq!(rounds.hystart.on_ack(&sample), (None, 1), "sample {at}");
    }
}

#[test]
fn the_first_slow_start_is_the_only_one() {
    let mut rounds = Rounds::default();
    rounds.hystart.retire();
    rounds.round(10_000);
    assert_eq!(rounds.round(100_000), (None, 1));
}
