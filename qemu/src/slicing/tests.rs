use super::*;

const BOTH: [Kind; 2] = [Kind::Linux, Kind::Paceline];

/// `LPPL` for the order of turns.
fn order(slicing: &Slicing) -> String {
    let letter = |kind: &Kind| match kind {
        Kind::Linux => 'L',
        Kind::Paceline => 'P',
    };
    slicing.turns.iter().map(letter).collect()
}

#[test]
fn one_guest_is_measured_in_one_piece() {
    for guest in BOTH {
        let slicing = Slicing::new(&[guest], 6, 2);
        assert_eq!((slicing.slice_s, &slicing.turns[..]), (6, &[guest][..]));
    }
}

#[test]
fn two_guests_alternate_in_abba_order() {
    let slicing = Slicing::new(&BOTH, 4, 1);
    assert_eq!(slicing.slice_s, 1);
    assert_eq!(order(&slicing), "LPPLLPPL");
}

#[test]
fn every_guest_gets_the_whole_time() {
    for time_s in 1..10 {
        let Slicing { slice_s, turns } = Slicing::new(&BOTH, time_s, 1);
        for guest in BOTH {
            let count = turns.iter().filter(|turn| **turn == guest).count();
            assert_eq!(u32::try_from(count).unwrap() * slice_s, time_s);
        }
    }
}

#[test]
fn the_order_goes_on_over_the_rounds() {
    let rounds = |time_s: u32| [1, 2, 3].map(|round| order(&Slicing::new(&BOTH, time_s, round)));
    assert_eq!(rounds(1), ["LP", "PL", "LP"]);
    assert_eq!(rounds(2), ["LPPL", "LPPL", "LPPL"]);
    assert_eq!(rounds(3), ["LPPLLP", "PLLPPL", "LPPLLP"]);
}

#[test]
fn a_steady_drift_favours_neither() {
    let Slicing { turns, .. } = Slicing::new(&BOTH, 2, 1);
    let moment = |guest| -> usize {
        let places = turns.iter().enumerate().filter(|(_, turn)| **turn == guest);
        places.map(|(place, _)| place).sum()
    };
    assert_eq!(moment(Kind::Linux), moment(Kind::Paceline));
}
