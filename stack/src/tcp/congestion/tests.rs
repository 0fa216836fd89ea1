use super::*;

const MSS: u32 = 1000;

pub(super) use super::model::ack;

fn reno() -> Congestion {
    Congestion::new(CongestionAlgorithm::Reno, &Config::default())
}

pub(super) fn loss(used_bytes: u32) -> CongestionEvent {
    CongestionEvent {
        cause: Cause::Loss,
        used_bytes,
    }
}

#[test]
fn names_are_those_of_linux() {
    for algorithm in CongestionAlgorithm::ALL {
        let congestion = Congestion::new(algorithm, &Config::default());
        assert_eq!(congestion.name(), algorithm.name());
    }
    let default = Config::default().congestion_control;
    assert_eq!(default, CongestionAlgorithm::Cubic);
}

#[test]
fn starts_with_ten_segments() {
    assert_eq!(CongestionWindow::new(1460).cwnd, 14_600);
    assert_eq!(CongestionWindow::new(8960).cwnd, 89_600);
}

#[test]
fn slow_start_doubles_per_round_whatever_the_number_of_acks() {
    for acks in [1, 2, 10] {
        let mut window = CongestionWindow::new(MSS);
        let mut reno = Reno::default();
        for _ in 0..acks {
            reno.on_ack(&mut window, &ack(10 * MSS / acks));
        }
        assert_eq!(window.cwnd, 20 * MSS);
    }
}

#[test]
fn avoidance_adds_one_segment_per_round() {
    let mut window = CongestionWindow::new(MSS);
    window.ssthresh = window.cwnd;
    let mut reno = Reno::default();
    for round in 10..30 {
        assert_eq!(window.cwnd, round * MSS);
        for _ in 0..round {
            reno.on_ack(&mut window, &ack(MSS));
        }
    }
}

#[test]
fn the_ack_that_ends_slow_start_counts_for_both() {
    let mut window = CongestionWindow::new(MSS);
    window.ssthresh = 11 * MSS;
    Reno::default().on_ack(&mut window, &ack(12 * MSS));
    assert_eq!(window.cwnd, 12 * MSS);
}

#[test]
fn loss_halves_what_was_in_flight() {
    let mut window = CongestionWindow::new(MSS);
    window.cwnd = 100 * MSS;
    let mut reno = Reno::default();
    assert_eq!(reno.ssthresh(&window, loss(60 * MSS)), 30 * MSS);
    assert_eq!(reno.ssthresh(&window, loss(MSS)), 2 * MSS);
}

#[test]
fn growth_never_overflows() {
    let mut window = CongestionWindow::new(u32::from(u16::MAX));
    let mut reno = Reno::default();
    for _ in 0..10 {
        reno.on_ack(&mut window, &ack(u32::MAX));
    }
    assert_eq!(window.cwnd, MAX_WINDOW_BYTES);
}

#[test]
fn an_acknowledgment_that_may_not_grow_the_window_does_not() {
    let mut window = CongestionWindow::new(MSS);
    let sample = AckSample {
        may_grow: false,
        ..ack(MSS)
    };
    reno().on_ack(&mut window, &sample);
    assert_eq!(window.cwnd, 10 * MSS);
}

#[test]
fn a_loss_that_was_none_is_undone_once() {
    let mut window = CongestionWindow::new(MSS);
    let mut congestion = reno();
    assert!(!congestion.undo(&mut window));
    let before = window;
    congestion.on_event(&mut window, loss(10 * MSS));
    assert_eq!(window.ssthresh, 5 * MSS);
    window.cwnd = 5 * MSS;
    assert!(congestion.undo(&mut window));
    assert_eq!(window, before);
    assert!(!congestion.undo(&mut window), "only once");
}

#[test]
fn a_mark_and_a_loss_known_to_be_true_are_not_undone() {
    let mut window = CongestionWindow::new(MSS);
    let mut congestion = reno();
    congestion.on_event(&mut window, loss(10 * MSS));
    congestion.commit();
    assert!(!congestion.undo(&mut window));
    let mark = CongestionEvent {
        cause: Cause::Ecn,
        ..loss(8 * MSS)
    };
    congestion.on_event(&mut window, mark);
    assert!(!congestion.undo(&mut window));
    assert_eq!(window.ssthresh, 4 * MSS);
}
