use super::*;
use crate::{
    domain::BootTimes,
    results::{Row, Slice},
};

fn run(guest: Kind, round: u32, test: &str, rates: &[f64]) -> GuestRun {
    let slices = rates
        .iter()
        .map(|rate| Slice {
            turn: 0,
            bytes: 0,
            seconds: 1.0,
            mbit_per_s: *rate,
            retransmits: None,
            run_bytes: 0,
            dom0_cpu_s: 0.0,
            guest_cpu_s: 0.0,
        })
        .collect();
    GuestRun {
        guest,
        round,
        memory_mib: 64,
        boot: BootTimes {
            create_s: 1.0,
            first_ping_s: 0.5,
        },
        reading_cpu_s: 0.0,
        rows: vec![Row::new(test.to_owned(), slices)],
    }
}

#[test]
fn medians_of_odd_and_even_counts() {
    for (values, expected) in [
        (&[][..], None),
        (&[3.0][..], Some(3.0)),
        (&[9.0, 1.0, 2.0][..], Some(2.0)),
        (&[9.0, 1.0, 2.0, 4.0][..], Some(3.0)),
    ] {
        assert_eq!(median(values), expected, "{values:?}");
    }
}

#[test]
fn each_slice_is_compared_with_its_neighbour() {
    // The machine gets slower by half in the middle: every pair says 2 all the same, and no
    // comparison of totals or medians across pairs is as sure.
    let runs = [
        run(Kind::Linux, 1, "in", &[400.0, 400.0, 100.0]),
        run(Kind::Paceline, 1, "in", &[800.0, 400.0, 200.0]),
    ];
    let expected = Ratio {
        test: "in".to_owned(),
        median: 2.0,
        pairs: 3,
        rounds: vec![2.0],
    };
    assert_eq!(ratios(&runs), [expected]);
}

#[test]
fn rounds_give_the_spread_and_all_pairs_the_median() {
    let runs = [
        run(Kind::Linux, 1, "in", &[100.0, 100.0]),
        run(Kind::Paceline, 1, "in", &[100.0, 120.0]),
        run(Kind::Linux, 2, "in", &[200.0, 200.0]),
        run(Kind::Paceline, 2, "in", &[300.0, 400.0]),
    ];
    let [ratio] = &ratios(&runs)[..] else {
        panic!("expected one ratio");
    };
    assert!((ratio.median - 1.35).abs() < 1e-9);
    assert_eq!(ratio.pairs, 4);
    assert!((ratio.lowest() - 1.1).abs() < 1e-9);
    assert!((ratio.highest() - 1.75).abs() < 1e-9);
}

#[test]
fn what_one_guest_alone_did_has_no_ratio() {
    assert_eq!(ratios(&[run(Kind::Linux, 1, "in", &[1.0])]), []);
    let runs = [
        run(Kind::Linux, 1, "in", &[1.0]),
        run(Kind::Paceline, 1, "out", &[1.0]),
    ];
    assert_eq!(ratios(&runs), []);
}

#[test]
fn slices_without_a_byte_divide_nothing() {
    let runs = [
        run(Kind::Linux, 1, "in", &[0.0, 100.0]),
        run(Kind::Paceline, 1, "in", &[100.0, 300.0]),
    ];
    let expected = Ratio {
        test: "in".to_owned(),
        median: 3.0,
        pairs: 1,
        rounds: vec![3.0],
    };
    assert_eq!(ratios(&runs), [expected]);
    let silent = [
        run(Kind::Linux, 1, "in", &[0.0]),
        run(Kind::Paceline, 1, "in", &[100.0]),
    ];
    assert_eq!(ratios(&silent), []);
}
