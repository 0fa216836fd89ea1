use super::*;

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1000)
}

#[test]
fn limits_are_part_of_the_busy_time() {
    let mut chrono = Chrono::default();
    assert_eq!(chrono.times(at(5)), Times::default());
    chrono.set(at(10), Some(Activity::Busy));
    chrono.set(at(11), Some(Activity::Busy));
    chrono.set(at(20), Some(Activity::RwndLimited));
    chrono.set(at(50), Some(Activity::SndbufLimited));
    let ms = Duration::from_millis;
    let running = Times {
        busy: ms(50),
        rwnd_limited: ms(30),
        sndbuf_limited: ms(10),
    };
    assert_eq!(chrono.times(at(60)), running, "while it runs");
    chrono.set(at(60), None);
    assert_eq!(chrono.times(at(1000)), running);
}
