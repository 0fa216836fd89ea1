use super::*;
use crate::sim::{Pool, SimPage};

fn header(id: u16, offset: u16, more: bool) -> ipv4::Header {
    ipv4::Header {
        traffic_class: 0,
        total_bytes: 0,
        id,
        dont_fragment: false,
        more_fragments: more,
        fragment_offset_bytes: offset,
        ttl: 64,
        protocol: 17,
        src: Ipv4Addr::new(192, 0, 2, 1),
        dst: Ipv4Addr::new(192, 0, 2, 2),
    }
}

struct Bench {
    pool: Pool,
    reassembly: Reassembly<SimPage>,
    evicted: u64,
}

impl Bench {
    fn new() -> Self {
        Self {
            pool: Pool::new(10_000),
            reassembly: Reassembly::new(),
            evicted: 0,
        }
    }

    fn insert(&mut self, header: &ipv4::Header, len: usize) -> Outcome<SimPage> {
        self.insert_at(Instant::ZERO, header, len)
    }

    fn insert_at(&mut self, now: Instant, header: &ipv4::Header, len: usize) -> Outcome<SimPage> {
        let mut page = self.pool.alloc().unwrap();
        page.append(&std::vec![header.id as u8; len]);
        let slices = [Slice::whole(page)];
        let raw = [0; ipv4::HEADER_BYTES];
        self.reassembly
            .insert(now, header, &raw, slices, &mut self.evicted)
    }
}

#[test]
fn two_halves_in_either_order_make_a_whole() {
    for order in [[0, 8], [8, 0]] {
        let mut bench = Bench::new();
        let [first, second] = order.map(|offset| header(1, offset, offset == 0));
        assert!(matches!(bench.insert(&first, 8), Outcome::Held));
        let Outcome::Complete(whole, slices) = bench.insert(&second, 8) else {
            panic!("incomplete")
        };
        assert_eq!((whole.total_bytes, whole.is_fragment()), (36, false));
        assert_eq!(slices.iter().map(Slice::len).sum::<usize>(), 16);
        drop(slices);
        assert_eq!(bench.pool.live(), 0);
    }
}

#[test]
fn copies_are_ignored_and_overlaps_condemn() {
    let mut bench = Bench::new();
    bench.insert(&header(1, 0, true), 16);
    assert!(matches!(
        bench.insert(&header(1, 0, true), 16),
        Outcome::Dropped
    ));
    assert_eq!(bench.pool.live(), 1);
    for (offset, len) in [(8, 16), (0, 8), (0, 24)] {
        let mut bench = Bench::new();
        bench.insert(&header(1, 0, true), 16);
        bench.insert(&header(1, 64, true), 16);
        assert!(matches!(
            bench.insert(&header(1, offset, true), len),
            Outcome::Dropped
        ));
        assert_eq!(bench.pool.live(), 0, "{offset} {len}");
    }
}

#[test]
fn impossible_fragments_are_refused() {
    for (offset, more, len) in [(0, true, 0), (0, true, 9), (65_528, false, 8)] {
        let mut bench = Bench::new();
        let outcome = bench.insert(&header(1, offset, more), len);
        assert!(matches!(outcome, Outcome::Dropped), "{offset} {more} {len}");
        assert_eq!(bench.pool.live(), 0);
    }
    // Two ends that differ, and bytes behind the end.
    for (offset, more) in [(24, false), (8, false), (24, true)] {
        let mut bench = Bench::new();
        bench.insert(&header(1, 16, false), 8);
        let outcome = bench.insert(&header(1, offset, more), 8);
        assert!(matches!(outcome, Outcome::Dropped), "{offset} {more}");
        assert_eq!(bench.pool.live(), 0);
    }
}

#[test]
fn a_flood_of_fragments_is_bounded_and_the_newest_survive() {
    let mut bench = Bench::new();
    for id in 0..1000 {
        bench.insert(&header(id, 0, true), 8);
        assert!(bench.pool.live() <= MAX_DATAGRAMS);
    }
    assert_eq!(bench.evicted, 1000 - MAX_DATAGRAMS as u64);
    let newest = bench.insert(&header(999, 8, false), 8);
    assert!(matches!(newest, Outcome::Complete(..)));
    drop(newest);
    for id in 0..8 {
        for part in 0..100 {
            bench.insert(&header(id, part * 16, true), 8);
            assert!(bench.pool.live() <= MAX_FRAGMENTS);
        }
    }
}

#[test]
fn datagrams_expire_with_their_first_fragment_told() {
    let mut bench = Bench::new();
    bench.insert(&header(1, 0, true), 8);
    bench.insert_at(Instant::from_micros(5), &header(2, 8, true), 8);
    let end = Instant::ZERO + TIMEOUT;
    assert_eq!(bench.reassembly.deadline(), Some(end));
    assert!(bench.reassembly.expire(Instant::from_micros(1)).is_none());
    let expired = bench.reassembly.expire(end).unwrap();
    assert!(expired.first.is_some());
    assert!(bench.reassembly.expire(end).is_none());
    let later = end + Duration::from_secs(1);
    assert!(bench.reassembly.expire(later).unwrap().first.is_none());
    drop(expired);
    assert_eq!(bench.pool.live(), 0);
    assert_eq!(bench.reassembly.deadline(), None);
}

#[test]
fn one_congestion_mark_marks_the_datagram() {
    let mut bench = Bench::new();
    let marked = ipv4::Header {
        traffic_class: 0b11,
        ..header(1, 0, true)
    };
    bench.insert(&marked, 8);
    let Outcome::Complete(whole, _) = bench.insert(&header(1, 8, false), 8) else {
        panic!("incomplete")
    };
    assert_eq!(whole.ecn(), 0b11);
}
