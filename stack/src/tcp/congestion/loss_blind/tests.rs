use super::{
    super::tests::{ack, loss},
    *,
};

#[test]
fn the_window_grows_with_use_and_is_never_cut() {
    let mut window = CongestionWindow::new(1000);
    let mut blind = LossBlind::new(50);
    blind.on_ack(&mut window, &ack(5000));
    assert_eq!(window.cwnd, 15_000);
    let mut unused = ack(5000);
    unused.is_cwnd_limited = false;
    blind.on_ack(&mut window, &unused);
    assert_eq!(window.cwnd, 15_000);
    window.ssthresh = blind.ssthresh(&window, loss(15_000));
    assert_eq!(window.ssthresh, 15_000);
    let mut recovering = ack(3000);
    recovering.is_recovering = true;
    blind.on_ack(&mut window, &recovering);
    assert_eq!((window.cwnd, window.ssthresh), (15_000, 18_000));
    blind.on_ack(&mut window, &ack(1 << 30));
    assert_eq!(window.cwnd, 50_000, "what the path holds");
}
