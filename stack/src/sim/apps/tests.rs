use super::*;
use crate::sim::{Link, NicConfig};

fn link() -> Link {
    Link {
        rate_bps: Some(100_000_000),
        delay: Duration::from_millis(5),
        ..Link::default()
    }
}

#[test]
fn sending_ends() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), link());
    let meter = sink(&mut network, &b, 80, |_| {});
    let finish = send(&mut network, &a, (&b, 80), 1_000_000, |_| {});
    network.run_for(Duration::from_secs(2));
    assert_eq!(meter.bytes(), 1_000_000);
    // 80 ms on the wire; a handful of round trips for the handshake, slow start and the close.
    let took = finish.at().expect("it is done").as_micros() / 1000;
    assert!((110..250).contains(&took), "{took}");
}

#[test]
fn exchanges_take_a_round_trip_each() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), link());
    let dialogue = Dialogue {
        count: Some(10),
        parallel: 3,
        think: Duration::from_millis(1),
        ..Dialogue::default()
    };
    dialogue.serve(&mut network, (&b, 80), |_| {});
    let exchanges = dialogue.ask(&mut network, &a, (&b, 80), |_| {});
    network.run_for(Duration::from_secs(1));
    assert_eq!(exchanges.count(), 30);
    let latencies = exchanges.latencies();
    assert!(
        (10_000..10_300).contains(&latencies.mean()),
        "{latencies:?}"
    );
    exchanges.reset();
    assert_eq!(exchanges.count(), 0);
}

#[test]
fn bursts_and_pauses() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), link());
    let meter = sink(&mut network, &b, 80, |_| {});
    let off = Duration::from_millis(100);
    on_off(&mut network, &a, (&b, 80), 10_000, off, |_| {});
    network.run_for(Duration::from_secs(1));
    // One in 111 ms or so, or 151 where the last segment's acknowledgment is delayed.
    assert!((70_000..=90_000).contains(&meter.bytes()));
}
