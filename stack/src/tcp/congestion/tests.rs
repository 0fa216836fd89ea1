use super::*;

const MSS: u32 = 1000;

fn ack(acked_bytes: u32) -> AckSample {
    AckSample { acked_bytes }
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
            reno.on_ack(&mut window, ack(10 * MSS / acks));
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
            reno.on_ack(&mut window, ack(MSS));
        }
    }
}

#[test]
fn the_ack_that_ends_slow_start_counts_for_both() {
    let mut window = CongestionWindow::new(MSS);
    window.ssthresh = 11 * MSS;
    Reno::default().on_ack(&mut window, ack(12 * MSS));
    assert_eq!(window.cwnd, 12 * MSS);
}

#[test]
fn loss_halves_what_was_in_flight() {
    let mut window = CongestionWindow::new(MSS);
    window.cwnd = 100 * MSS;
    let mut reno = Reno::default();
    assert_eq!(reno.ssthresh_after_loss(&window, 60 * MSS), 30 * MSS);
    assert_eq!(reno.ssthresh_after_loss(&window, MSS), 2 * MSS);
}

#[test]
fn growth_never_overflows() {
    let mut window = CongestionWindow::new(u32::from(u16::MAX));
    let mut reno = Reno::default();
    for _ in 0..10 {
        reno.on_ack(&mut window, ack(u32::MAX));
    }
    assert_eq!(window.cwnd, MAX_WINDOW_BYTES);
}
