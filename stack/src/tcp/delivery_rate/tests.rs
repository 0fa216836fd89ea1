use super::*;
use crate::tcp::{out_of_order::Range, retransmit_queue::RetransmitQueue, seq::SeqNum};

const MIN_RTT: Duration = Duration::from_millis(10);

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1000)
}

#[derive(Default)]
struct Fixture {
    queue: RetransmitQueue,
    rate: DeliveryRate,
    nxt: u32,
}

impl Fixture {
    fn send(&mut self, bytes: u32, ms: u64) {
        let snapshot = self.rate.on_send(at(ms), self.queue.in_flight_bytes());
        let range = Range::new(SeqNum(self.nxt), SeqNum(self.nxt + bytes));
        self.queue.push(range, 1000, at(ms), snapshot);
        self.nxt += bytes;
    }

    fn ack(&mut self, una: u32, ms: u64) {
        let delivered = self.queue.acknowledge(SeqNum(una), at(ms));
        let latest = delivered.latest().unwrap();
        self.rate
            .on_delivered(delivered.bytes, &latest, MIN_RTT, at(ms));
    }

    fn rate(&self) -> Option<u64> {
        self.rate.latest().map(Sample::rate)
    }
}

#[test]
fn a_steady_flow_measures_its_rate() {
    let mut f = Fixture::default();
    // A segment a millisecond over a path of 10 ms: 1 MB/s.
    for ms in 0..50 {
        f.send(1000, ms);
        if ms >= 10 {
            f.ack((ms as u32 - 9) * 1000, ms);
        }
    }
    assert_eq!(f.rate(), Some(1_000_000));
    assert_eq!(f.rate.delivered_bytes(), 40_000);
}

/// Acknowledgments that come in a heap do not make the path faster.
#[test]
fn compressed_acknowledgments_are_held_against_the_time_of_sending() {
    let mut f = Fixture::default();
    for ms in 0..20 {
        f.send(1000, ms);
    }
    f.ack(1000, 30);
    f.ack(20_000, 30);
    assert_eq!(f.rate(), Some(20_000 * 1000 / 30));
}

#[test]
fn an_interval_under_the_least_rtt_is_no_measurement() {
    let mut f = Fixture::default();
    f.send(1000, 0);
    f.ack(1000, 9);
    assert_eq!(f.rate(), None);
}

#[test]
fn what_the_application_held_down_replaces_nothing_higher() {
    let mut f = Fixture::default();
    f.send(100_000, 0);
    f.ack(100_000, 10);
    assert_eq!(f.rate(), Some(10_000_000));
    f.rate.on_app_limited(0);
    f.send(1000, 20);
    f.ack(101_000, 30);
    assert_eq!(f.rate(), Some(10_000_000));
    f.rate.on_app_limited(0);
    f.send(200_000, 40);
    f.ack(301_000, 50);
    assert_eq!(f.rate(), Some(20_000_000));
    assert!(f.rate.latest().unwrap().is_app_limited);
    // That has been delivered: what follows is not limited.
    f.send(1000, 60);
    f.send(1000, 60);
    f.ack(303_000, 70);
    assert_eq!(f.rate(), Some(200_000));
}
