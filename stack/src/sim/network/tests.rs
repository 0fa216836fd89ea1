use super::*;
use alloc::vec;
use core::cell::RefCell;

#[test]
fn frames_take_their_time() {
    let link = Link {
        rate_bps: Some(1_000_000),
        delay: Duration::from_millis(10),
        ..Link::default()
    };
    let (mut network, a, b) = Network::pair(NicConfig::default(), link);
    network.record();
    // An announcement has 42 bytes: 336 us on the link.
    network.run_for(Duration::from_micros(10_335));
    assert_eq!(a.nic.counters().rx_frames, 0);
    assert_eq!(a.nic.slots_in_use(), 0);
    network.run_for(Duration::from_micros(1));
    assert_eq!(a.nic.counters().rx_frames, 1);
    assert_eq!(b.nic.counters().rx_frames, 1);
    assert_eq!(network.take_records().len(), 2);
}

#[test]
fn hooks_drop_delay_and_duplicate() {
    for (fate, expected) in [
        (Fate::Drop, 0),
        (Fate::Duplicate, 2),
        (Fate::Deliver, 1),
        (Fate::Delay(Duration::from_millis(2)), 0),
    ] {
        let (mut network, a, b) = Network::pair(NicConfig::default(), Link::default());
        network.hook(&a, move |_, _| fate);
        network.run_for(Duration::from_millis(1));
        assert_eq!(b.nic.counters().rx_frames, expected, "{fate:?}");
    }
}

#[test]
fn tasks_sleep_in_virtual_time() {
    let mut network = Network::new();
    let clock = network.clock();
    let log = alloc::rc::Rc::new(RefCell::new(vec![]));
    for ms in [3, 1, 2] {
        let (clock, log) = (clock.clone(), alloc::rc::Rc::clone(&log));
        network.spawn(async move {
            clock.sleep(Duration::from_millis(ms)).await;
            log.borrow_mut().push((ms, clock.now().as_micros()));
        });
    }
    assert!(network.run_tasks(Duration::from_secs(1)));
    assert_eq!(*log.borrow(), [(1, 1000), (2, 2000), (3, 3000)]);
}
