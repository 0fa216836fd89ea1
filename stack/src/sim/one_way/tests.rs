use super::{
    super::{CoDelConfig, Loss, Reorder},
    *,
};
use crate::time::Duration;
use alloc::vec;

/// An IPv4 frame of 1000 bytes with a number in it.
fn frame(number: u16) -> Vec<u8> {
    let mut bytes = vec![0; 1000];
    bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
    bytes[998..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[998], bytes[999]])
}

/// A millisecond for each frame, ten of delay.
fn link() -> Link {
    Link {
        rate_bps: Some(8_000_000),
        delay: Duration::from_millis(10),
        ..Link::default()
    }
}

/// Sends frames one after another as fast as the link does; returns the times and numbers of
/// those that come out.
fn run(mut way: OneWay, frames: u16) -> Vec<(u64, u16)> {
    for i in 0..frames {
        way.enter(u64::from(i) * 1_000_000, frame(i));
    }
    let mut came = Vec::new();
    while let Some(at) = way.next_ns() {
        if let Some((due, bytes)) = way.leave(at) {
            assert_eq!(due, at);
            came.push((at, number(&bytes)));
        }
    }
    came
}

#[test]
fn frames_come_out_when_they_are_due() {
    let mut way = OneWay::new(link(), 1);
    assert_eq!(way.next_ns(), None);
    way.enter(5, frame(0));
    way.enter(5, frame(1));
    assert_eq!(way.next_ns(), Some(11_000_005));
    assert_eq!(way.leave(11_000_004), None);
    // Asked late, it tells how late.
    let (due, bytes) = way.leave(13_000_000).unwrap();
    assert_eq!((due, number(&bytes)), (11_000_005, 0));
    let (due, bytes) = way.leave(13_000_000).unwrap();
    assert_eq!((due, number(&bytes)), (12_000_005, 1));
    assert_eq!(way.leave(13_000_000), None);
    assert_eq!(way.next_ns(), None);
}

#[test]
fn a_seed_has_one_fate_in_store() {
    let bad = Link {
        loss: Loss::Random { ppm: 100_000 },
        reorder: Reorder {
            ppm: 50_000,
            by: Duration::from_millis(5),
        },
        ..link()
    };
    let first = run(OneWay::new(bad, 7), 2000);
    assert_eq!(first, run(OneWay::new(bad, 7), 2000));
    assert_ne!(first, run(OneWay::new(bad, 8), 2000));
    assert!((1700..1900).contains(&first.len()), "{}", first.len());
    let overtaken = first.windows(2).filter(|pair| pair[0].1 > pair[1].1);
    assert!((60..140).contains(&overtaken.count()));
    assert!(first.is_sorted_by_key(|(at, _)| *at));
}

#[test]
fn a_full_queue_drops() {
    let narrow = Link {
        queue_bytes: Some(3000),
        ..link()
    };
    let mut way = OneWay::new(narrow, 1);
    for i in 0..10 {
        way.enter(0, frame(i));
    }
    let LinkCounters {
        packets,
        queue_drops,
        max_queue_bytes,
        ..
    } = way.counters();
    assert_eq!((packets, queue_drops, max_queue_bytes), (10, 7, 3000));
}

#[test]
fn what_waits_for_codel_comes_out_in_order() {
    let managed = Link {
        codel: Some(CoDelConfig::default()),
        ..link()
    };
    let mut way = OneWay::new(managed, 1);
    for i in 0..5 {
        way.enter(0, frame(i));
    }
    let mut came = Vec::new();
    while let Some(at) = way.next_ns() {
        while let Some((due, bytes)) = way.leave(at) {
            came.push((due / 1_000_000, number(&bytes)));
        }
    }
    assert_eq!(came, [(11, 0), (12, 1), (13, 2), (14, 3), (15, 4)]);
}
