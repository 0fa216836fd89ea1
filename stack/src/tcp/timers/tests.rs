use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn earliest_of_all_timers() {
    let at = Instant::from_micros;
    let mut timers = Timers {
        retransmit: Some(at(5)),
        keepalive: Some(at(3)),
        ..Timers::default()
    };
    assert_eq!(timers.earliest(), Some(at(3)));
    assert!(!Timers::take(&mut timers.keepalive, at(2)));
    assert!(Timers::take(&mut timers.keepalive, at(3)));
    assert!(!Timers::take(&mut timers.keepalive, at(3)));
    assert_eq!(timers.earliest(), Some(at(5)));
}

proptest! {
    #[test]
    fn behaves_as_a_map_sorted_by_time(
        steps in proptest::collection::vec((0u8..4, 0usize..20, 0u64..100), 0..300),
    ) {
        let mut queue = TimerQueue::default();
        let mut model: BTreeMap<usize, u64> = BTreeMap::new();
        for (kind, index, time) in steps {
            match kind {
                0 | 1 => {
                    queue.set_earlier(index, Instant::from_micros(time));
                    let old = model.entry(index).or_insert(time);
                    *old = (*old).min(time);
                }
                2 => {
                    queue.remove(index);
                    model.remove(&index);
                }
                _ => {
                    let now = Instant::from_micros(time);
                    match queue.pop_expired(now) {
                        Some(index) => {
                            let at = model.remove(&index).unwrap();
                            prop_assert!(at <= time);
                            prop_assert!(model.values().all(|&other| other >= at));
                        }
                        None => prop_assert!(model.values().all(|&other| other > time)),
                    }
                }
            }
            prop_assert_eq!(queue.next().map(Instant::as_micros), model.values().min().copied());
        }
    }
}
