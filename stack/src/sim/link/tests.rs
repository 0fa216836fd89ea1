use super::*;
use alloc::{vec, vec::Vec};

/// An IPv4 packet of `len` bytes; ECN-capable, its header checksum not filled in.
fn packet(len: usize, ect: u8) -> Packet {
    let mut front = vec![0; len];
    front[12..16].copy_from_slice(&[8, 0, 0x45, ect]);
    Packet {
        front,
        payload: Vec::new(),
        mss_bytes: None,
        partial: None,
    }
}

fn pipe(link: Link) -> Pipe {
    Pipe::new(link, Random::new(7))
}

#[test]
fn packets_leave_at_the_rate_and_arrive_after_the_delay() {
    let mut pipe = pipe(Link {
        rate_bps: Some(8_000_000),
        delay: Duration::from_millis(10),
        ..Link::default()
    });
    for i in 1..=3 {
        let passage = pipe.enter(0, packet(1000, 0));
        assert_eq!(passage.end_ns, i * 1_000_000);
        assert_eq!(passage.arrivals[0].0, i * 1_000_000 + 10_000_000);
    }
}

#[test]
fn queues_drop_what_finds_no_room() {
    let by_bytes = Link {
        queue_bytes: Some(2500),
        ..Link::default()
    };
    let by_packets = Link {
        queue_packets: Some(2),
        ..Link::default()
    };
    for link in [by_bytes, by_packets] {
        let mut pipe = pipe(Link {
            rate_bps: Some(8_000_000),
            ..link
        });
        let arrivals: Vec<usize> = [0, 0, 0, 999_999, 1_000_000]
            .map(|at| pipe.enter(at, packet(1000, 0)).arrivals.len())
            .to_vec();
        assert_eq!(arrivals, [1, 1, 0, 0, 1]);
        assert_eq!(pipe.counters.queue_drops, 2);
        assert_eq!(pipe.counters.max_queue_bytes, 2000);
    }
}

#[test]
fn shares_of_loss_reordering_and_duplicates() {
    let mut pipe = pipe(Link {
        loss: Loss::Random { ppm: 10_000 },
        reorder: Reorder {
            ppm: 50_000,
            by: Duration::from_millis(1),
        },
        duplicate_ppm: 20_000,
        ..Link::default()
    });
    for i in 0..100_000 {
        pipe.enter(i, packet(100, 0));
    }
    let LinkCounters {
        lost,
        reordered,
        duplicated,
        ..
    } = pipe.counters;
    assert!((900..1100).contains(&lost), "{lost}");
    assert!((4700..5200).contains(&reordered), "{reordered}");
    assert!((1800..2200).contains(&duplicated), "{duplicated}");
    // ARP passes.
    let mut arp = packet(42, 0);
    arp.front[13] = 6;
    pipe.link.loss = Loss::Random { ppm: 1_000_000 };
    assert_eq!(pipe.enter(0, arp).arrivals.len(), 1);
    assert_eq!(pipe.enter(0, packet(42, 0)).arrivals.len(), 0);
}

#[test]
fn bursts_have_the_length_they_should() {
    let mut pipe = pipe(Link {
        loss: Loss::Burst {
            begin_ppm: 1000,
            end_ppm: 100_000,
            loss_ppm: 1_000_000,
        },
        ..Link::default()
    });
    let lost: Vec<bool> = (0..1_000_000)
        .map(|at| pipe.enter(at, packet(100, 0)).arrivals.is_empty())
        .collect();
    let count = lost.iter().filter(|lost| **lost).count();
    let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    // One in a thousand begins a burst, ten packets long on average.
    assert!((900..1100).contains(&bursts), "{bursts}");
    assert!((9 * bursts..11 * bursts).contains(&count), "{count}");
}

#[test]
fn jitter_and_compression_keep_the_order() {
    let mut jittery = pipe(Link {
        jitter: Duration::from_millis(1),
        delay: Duration::from_millis(2),
        ..Link::default()
    });
    let arrivals: Vec<u64> = (0..1000)
        .map(|i| jittery.enter(i * 10_000, packet(100, 0)).arrivals[0].0)
        .collect();
    assert!(arrivals.is_sorted());
    assert!(arrivals.iter().zip(0..).all(|(at, i)| {
        let at = at - i * 10_000;
        (2_000_000..3_000_001).contains(&at)
    }));
}

#[test]
fn marks_begin_where_they_are_set() {
    let mut pipe = pipe(Link {
        rate_bps: Some(8_000_000),
        mark_bytes: Some(1500),
        ..Link::default()
    });
    for _ in 0..4 {
        pipe.enter(0, packet(1000, 2));
    }
    assert_eq!(pipe.counters.marks, 2);
    pipe.enter(0, packet(1000, 0));
    assert_eq!(pipe.counters.marks, 2);
}

/// Runs a CoDel link at `load` packets a second for five seconds; returns the least and the mean
/// time in the queue over the last second, and the pipe.
fn codel(load: u64, ecn: bool) -> (u64, u64, Pipe) {
    let config = CoDelConfig {
        ecn,
        ..CoDelConfig::default()
    };
    let mut pipe = pipe(Link {
        rate_bps: Some(8_000_000),
        codel: Some(config),
        ..Link::default()
    });
    let mut ready = None;
    let mut stays = Vec::new();
    let end_ns = 5_000_000_000;
    let mut entered = VecDeque::new();
    let mut next_ns = 0;
    while next_ns < end_ns {
        match ready {
            Some(at) if at <= next_ns => {
                let before = pipe.counters.codel_drops;
                let passage = pipe.ready(at);
                for _ in before..pipe.counters.codel_drops {
                    entered.pop_front();
                }
                if !passage.arrivals.is_empty() {
                    let since: u64 = entered.pop_front().expect("it went in");
                    if at > end_ns - 1_000_000_000 {
                        stays.push(at - since);
                    }
                }
                ready = passage.ready_at_ns;
            }
            _ => {
                entered.push_back(next_ns);
                let passage = pipe.enter(next_ns, packet(1000, 2));
                ready = ready.or(passage.ready_at_ns);
                next_ns += 1_000_000_000 / load;
            }
        }
    }
    let mean = stays.iter().sum::<u64>() / stays.len() as u64;
    (*stays.iter().min().unwrap(), mean, pipe)
}

#[test]
fn codel_leaves_a_short_queue_alone() {
    let (_, mean, pipe) = codel(900, false);
    assert_eq!(pipe.counters.codel_drops, 0);
    assert!(mean < 5_000_000, "{mean}");
}

#[test]
fn codel_drops_more_and_more_of_what_does_not_slow_down() {
    let (_, mean, pipe) = codel(1050, false);
    // Without it: 250 packets in excess and a quarter of a second of queue after five seconds.
    assert!((100..400).contains(&pipe.counters.codel_drops));
    assert!(mean < 150_000_000, "{mean}");
}

#[test]
fn codel_marks_what_understands_it() {
    let (_, _, pipe) = codel(1050, true);
    assert_eq!(pipe.counters.codel_drops, 0);
    assert!(pipe.counters.marks > 20, "{}", pipe.counters.marks);
}
