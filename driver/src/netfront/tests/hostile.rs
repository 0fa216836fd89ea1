//! A backend that breaks the rules: whatever it does, nothing panics, loops or leaks, and no page
//! that it can write to is given to anyone else.

use super::super::ring::index;
use super::super::wire;
use super::*;
use crate::xen::fake::GrantMapping;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use proptest::prelude::*;

impl Rig {
    /// No page that the pool would hand out is writable for the backend.
    fn assert_free_pages_are_ours(&self) {
        let free: Vec<Page> = core::iter::from_fn(|| self.pool.alloc()).collect();
        for mapping in self.writable() {
            let clash = free.iter().find(|page| page.gfn() == mapping.gfn());
            assert!(
                clash.is_none(),
                "{clash:?} is free, and writable for the backend"
            );
        }
    }

    /// Every page that the backend could map for writing.
    fn writable(&self) -> impl Iterator<Item = GrantMapping> {
        (0..GRANT_FRAMES * 512)
            .filter_map(|gref| self.xen.map_grant(DRIVER_DOMAIN, GrantRef(gref), true).ok())
    }

    /// Looks at whatever the backend may have written.
    fn look(&mut self) -> Vec<RxFrame> {
        let frames = self.receive_all();
        self.complete();
        self.device().arm();
        self.flush();
        frames
    }

    /// Sends a frame with three slots of payload, which the backend has mapped.
    fn in_flight(&mut self) {
        let payload = self.slices(&pattern(12_000, 1), 4096);
        let offload = TxOffload::Tso {
            mss_bytes: 1448,
            version: IpVersion::V4,
        };
        assert_eq!(self.transmit(&tcp4_header(), &payload, offload, 4), Ok(()));
        self.flush();
        self.host.poll();
        self.complete();
        assert!(self.completions.is_empty());
    }

    /// Puts a response to data on the receive ring.
    fn rx_data(&mut self, offset: u16, flags: wire::RxFlags, status: i16) {
        let words = [
            wire::pair(0, offset),
            wire::pair(flags.bits(), status as u16),
        ];
        let rx = self.netback().rings().rx;
        rx.request();
        rx.respond(words, 2);
        rx.publish();
    }

    /// Puts an extra on the receive ring.
    fn rx_extra(&mut self, kind: u8, more: bool, size: u16, gso_type: u8) {
        let head = u16::from(kind) | u16::from(more) << 8;
        let rx = self.netback().rings().rx;
        rx.request();
        rx.respond([wire::pair(head, size), u32::from(gso_type)], 2);
        rx.publish();
    }

    /// Puts a response on the transmit ring.
    fn tx_response(&mut self, id: u16, status: i16) {
        let tx = self.netback().rings().tx;
        tx.respond([wire::pair(id, status as u16), 0, 0], 1);
        tx.publish();
    }

    /// The identifier of a request that the backend has mapped.
    fn pending_id(&mut self) -> u16 {
        self.netback().mapped_id(0)
    }
}

/// Has a backend misbehave, and checks all that must hold then.
fn violates(misbehave: impl FnOnce(&mut Rig), expected: Violation) {
    let mut rig = Rig::new(BackendFeatures::linux());
    let before = rig.inventory();
    assert_eq!(rig.connect(), Ok(()));
    rig.host.poll();
    rig.in_flight();
    misbehave(&mut rig);
    drop(rig.look());
    assert_eq!(rig.device().violation(), Some(expected), "{expected}");
    assert!(!rig.device().link_up());
    assert_eq!(rig.statistics().violations, 1);
    rig.assert_free_pages_are_ours();

    // The device is dead, quietly.
    for _ in 0..3 {
        assert!(rig.look().is_empty());
        assert!(!rig.device().arm());
    }
    assert_eq!(rig.statistics().violations, 1);
    assert_eq!(
        rig.transmit(&tcp4_header(), &[], TxOffload::None, 1),
        Err(TxError::Down)
    );
    let credited: u32 = rig.completions.iter().map(|done| done.bytes).sum();
    assert_eq!(credited, 12_000, "nobody waits for ever");

    // Its channels are masked.
    for port in rig.host.ports() {
        rig.xen.raise(port).unwrap();
    }
    rig.events.dispatch(|port| panic!("event on {port}"));

    // Connecting anew starts from scratch.
    assert_eq!(rig.connect(), Ok(()));
    rig.now_us += RETRY_US;
    rig.flush();
    rig.in_flight_again();
    rig.host.close();
    rig.follow_backend();
    rig.now_us += RETRY_US;
    rig.flush();
    assert_eq!(rig.inventory(), before);
}

impl Rig {
    fn in_flight_again(&mut self) {
        self.completions.clear();
        self.host.poll();
        self.in_flight();
        self.settle();
        let credited: u32 = self.completions.iter().map(|done| done.bytes).sum();
        assert_eq!(credited, 12_000);
    }
}

#[test]
fn response_producer_beyond_the_requests() {
    let tx = |got| Violation::ResponseProducer {
        ring: RingKind::Tx,
        got,
        seen: 2,
        limit: 5,
    };
    for got in [6, 2 + 257, 1 << 31] {
        violates(|rig| rig.netback().rings().tx.poke_rsp_prod(got), tx(got));
    }
    violates(
        |rig| rig.netback().rings().rx.poke_rsp_prod(257),
        Violation::ResponseProducer {
            ring: RingKind::Rx,
            got: 257,
            seen: 0,
            limit: 256,
        },
    );
}

#[test]
fn response_producer_going_backwards() {
    violates(
        |rig| rig.netback().rings().tx.poke_rsp_prod(1),
        Violation::ResponseProducer {
            ring: RingKind::Tx,
            got: 1,
            seen: 2,
            limit: 5,
        },
    );
    // Back, but not behind what has been taken.
    violates(
        |rig| {
            for _ in 0..3 {
                rig.rx_data(0, wire::RxFlags::empty(), 60);
            }
            assert!(rig.device().receive().is_some());
            rig.netback().rings().rx.poke_rsp_prod(2);
        },
        Violation::ResponseProducer {
            ring: RingKind::Rx,
            got: 2,
            seen: 3,
            limit: 256,
        },
    );
}

#[test]
fn transmit_identifier_out_of_range() {
    for got in [256, 257, u16::MAX] {
        violates(|rig| rig.tx_response(got, 0), Violation::TxId { got });
    }
}

#[test]
fn transmit_identifier_answered_twice_or_never_asked() {
    let mut answered = 0;
    let id = {
        let mut rig = Rig::linux();
        rig.in_flight();
        rig.pending_id() as u8
    };
    violates(
        |rig| {
            answered = rig.pending_id();
            rig.tx_response(answered, 0);
            rig.tx_response(answered, 0);
        },
        Violation::TxNotPending { id },
    );
    assert_eq!(u16::from(id), answered);
    violates(
        |rig| rig.tx_response(200, 0),
        Violation::TxNotPending { id: 200 },
    );
}

#[test]
fn a_request_that_was_not_shown_cannot_be_answered() {
    let mut rig = Rig::linux();
    rig.in_flight();
    let payload = rig.slices(&pattern(500, 1), 500);
    rig.transmit(&tcp4_header(), &payload, TxOffload::None, 1)
        .unwrap();
    // Identifiers are handed out last in, first out: the first slot's of the frame in flight.
    for id in 0..=255 {
        if !rig.netback().is_mapped(id) {
            rig.tx_response(id, 0);
            break;
        }
    }
    drop(rig.look());
    assert!(matches!(
        rig.device().violation(),
        Some(Violation::TxNotPending { .. })
    ));
}

#[test]
fn null_status_on_a_data_slot() {
    violates(
        |rig| {
            let id = rig.pending_id();
            rig.tx_response(id, wire::RSP_NULL);
        },
        Violation::TxNull,
    );
}

#[test]
fn transmit_status_that_does_not_exist() {
    for got in [2, -3, 32_767, -32_768] {
        let mut rig = Rig::linux();
        rig.in_flight();
        let id = rig.pending_id() as u8;
        violates(
            |rig| rig.tx_response(u16::from(id), got),
            Violation::TxStatus { id, got },
        );
    }
}

#[test]
fn transmit_errors_are_counted_and_credited() {
    let mut rig = Rig::linux();
    rig.in_flight();
    for status in [wire::RSP_ERROR, wire::RSP_DROPPED, wire::RSP_OKAY] {
        let id = rig.netback().forget_mapped();
        rig.tx_response(id, status);
    }
    rig.complete();
    let credited: u32 = rig.completions.iter().map(|done| done.bytes).sum();
    assert_eq!(credited, 12_000);
    let statistics = rig.statistics();
    assert_eq!((statistics.tx_errors, statistics.tx_dropped), (1, 1));
    assert!(rig.device().link_up());
}

#[test]
fn received_bytes_beyond_the_page() {
    for (offset, len) in [(4095, 2), (1, 4096), (u16::MAX, 1), (4096, 1)] {
        violates(
            |rig| rig.rx_data(offset, wire::RxFlags::empty(), len as i16),
            Violation::RxBounds {
                slot: 0,
                offset,
                len,
            },
        );
    }
}

#[test]
fn received_status_out_of_range() {
    for got in [0, 4097, 32_767] {
        violates(
            |rig| rig.rx_data(0, wire::RxFlags::empty(), got),
            Violation::RxStatus { slot: 0, got },
        );
    }
}

#[test]
fn received_errors_drop_the_frame_and_post_its_pages_again() {
    let mut rig = Rig::linux();
    let grefs = rig.inventory().grefs;
    let more = wire::RxFlags::MORE_DATA;
    rig.rx_data(0, more, 4096);
    rig.rx_data(0, more, -1);
    rig.rx_data(0, more, 4096);
    rig.rx_data(0, wire::RxFlags::empty(), i16::MIN);
    rig.rx_data(0, wire::RxFlags::empty(), 60);
    assert_eq!(rig.receive_all().len(), 1);
    rig.flush();
    let statistics = rig.statistics();
    assert_eq!((statistics.rx_errors, statistics.rx_packets), (1, 1));
    assert_eq!(rig.device().rx_posted(), 256);
    assert_eq!(rig.inventory().grefs, grefs);
    rig.assert_free_pages_are_ours();
}

#[test]
fn endless_extras() {
    let first = wire::RxFlags::EXTRA_INFO;
    violates(
        |rig| {
            rig.rx_data(0, first, 100);
            for _ in 0..200 {
                rig.rx_extra(wire::EXTRA_HASH, true, 0, 0);
            }
        },
        Violation::RxExtraTwice { got: 4 },
    );
    violates(
        |rig| {
            rig.rx_data(0, first, 100);
            rig.rx_extra(wire::EXTRA_GSO, true, 1448, 1);
            rig.rx_extra(wire::EXTRA_HASH, true, 0, 0);
            rig.rx_extra(wire::EXTRA_GSO, false, 1448, 1);
        },
        Violation::RxExtraTwice { got: 1 },
    );
}

#[test]
fn extras_that_do_not_exist() {
    for got in [0, 2, 3, 5, 6, 255] {
        violates(
            |rig| {
                rig.rx_data(0, wire::RxFlags::EXTRA_INFO, 100);
                rig.rx_extra(got, false, 1448, 1);
            },
            Violation::RxExtraType { got },
        );
    }
}

#[test]
fn segmentation_that_does_not_exist() {
    for got in [0, 3, 9, 255] {
        violates(
            |rig| {
                rig.rx_data(0, wire::RxFlags::EXTRA_INFO, 100);
                rig.rx_extra(wire::EXTRA_GSO, false, 1448, got);
            },
            Violation::RxGsoType { got },
        );
    }
    violates(
        |rig| {
            rig.rx_data(0, wire::RxFlags::EXTRA_INFO, 100);
            rig.rx_extra(wire::EXTRA_GSO, false, 0, 1);
        },
        Violation::RxGsoSize,
    );
}

#[test]
fn more_data_to_the_end_of_the_ring() {
    for len in [1, 4096] {
        violates(
            |rig| {
                for _ in 0..256 {
                    rig.rx_data(0, wire::RxFlags::MORE_DATA, len);
                }
            },
            if len == 1 {
                Violation::RxTooManySlots { limit: 18 }
            } else {
                Violation::RxTooLong {
                    limit_bytes: 65_553,
                    got_bytes: 17 * 4096,
                }
            },
        );
    }
    // Errors in between do not make it endless.
    violates(
        |rig| {
            for _ in 0..256 {
                rig.rx_data(0, wire::RxFlags::MORE_DATA, -1);
            }
        },
        Violation::RxTooManySlots { limit: 18 },
    );
}

#[test]
fn eighteen_slots_are_the_most() {
    let eighteen = |rig: &mut Rig, last: wire::RxFlags| {
        for _ in 0..17 {
            rig.rx_data(0, wire::RxFlags::MORE_DATA, 100);
        }
        rig.rx_data(0, last, 100);
    };
    let mut rig = Rig::linux();
    eighteen(&mut rig, wire::RxFlags::empty());
    let frames = rig.look();
    assert_eq!(frames[0].slices.len(), 18);
    assert_eq!(frames[0].len(), 1800);
    violates(
        |rig| {
            eighteen(rig, wire::RxFlags::MORE_DATA);
            assert!(rig.look().is_empty());
            assert!(rig.device().link_up());
            rig.rx_data(0, wire::RxFlags::empty(), 100);
        },
        Violation::RxTooManySlots { limit: 18 },
    );
}

#[test]
fn a_frame_that_never_ends_costs_its_own_slots_only() {
    let mut rig = Rig::linux();
    for _ in 0..16 {
        rig.rx_data(0, wire::RxFlags::MORE_DATA, 4000);
    }
    let available = rig.pool.available();
    for _ in 0..1000 {
        assert!(rig.look().is_empty());
    }
    assert_eq!(rig.device().rx_posted(), 256);
    assert_eq!(available - rig.pool.available(), 16);
    assert!(rig.device().link_up());
}

#[test]
fn a_received_page_that_stays_mapped_is_not_looked_at() {
    let mut rig = Rig::linux();
    let [_, gref] = rig.netback().rings().rx.peek(0);
    let mapping = rig
        .xen
        .map_grant(DRIVER_DOMAIN, GrantRef(gref), true)
        .unwrap();
    rig.netback()
        .send(large_segment(tcp4_header(), 9000, (1448, 1)));
    rig.netback().send(Frame::plain(pattern(60, 0)));
    rig.host.poll();
    let frames = rig.look();
    assert_eq!(frames.len(), 1);
    assert_eq!(bytes(&frames[0]), pattern(60, 0));
    drop(frames);
    assert_eq!(rig.statistics().rx_still_mapped, 1);
    assert_eq!(rig.device().grants_waiting(), 1);
    assert_eq!(rig.device().poll_within_us(), Some(RETRY_US));
    let available = rig.pool.available();
    for _ in 0..10 {
        rig.now_us += RETRY_US;
        rig.flush();
    }
    assert_eq!(rig.pool.available(), available);
    rig.assert_free_pages_are_ours();
    drop(mapping);
    rig.now_us += RETRY_US;
    rig.flush();
    assert_eq!(rig.pool.available(), available + 1);
    let statistics = rig.statistics();
    assert_eq!(
        (statistics.grants_deferred, statistics.grants_reclaimed),
        (1, 1)
    );
    assert_eq!(rig.device().poll_within_us(), None);
}

#[test]
fn a_received_page_that_stays_mapped_for_ever_is_given_up() {
    let mut rig = Rig::linux();
    let [_, gref] = rig.netback().rings().rx.peek(0);
    let _mapping = rig
        .xen
        .map_grant(DRIVER_DOMAIN, GrantRef(gref), true)
        .unwrap();
    rig.netback().send(Frame::plain(pattern(60, 0)));
    rig.host.poll();
    assert!(rig.look().is_empty());
    for _ in 0..7000 {
        rig.now_us += RETRY_US;
        rig.flush();
    }
    assert_eq!(rig.statistics().grants_leaked, 1);
    assert_eq!(rig.device().grants_waiting(), 0);
    rig.assert_free_pages_are_ours();
}

#[test]
fn received_pages_that_all_stay_mapped() {
    let mut mappings = Vec::new();
    violates(
        |rig| {
            for ahead in 0..65 {
                let [_, gref] = rig.netback().rings().rx.peek(ahead);
                mappings.push(rig.xen.map_grant(DRIVER_DOMAIN, GrantRef(gref), true));
            }
            for _ in 0..65 {
                rig.netback().send(Frame::plain(pattern(60, 0)));
            }
            rig.host.poll();
            drop(rig.look());
            mappings.clear();
        },
        Violation::GrantsHeld { limit: 64 },
    );
}

#[test]
fn a_backend_does_not_answer_for_the_pages_that_one_before_it_keeps() {
    let mut rig = Rig::linux();
    let kept: Vec<_> = (0..65)
        .map(|ahead| {
            let [_, gref] = rig.netback().rings().rx.peek(ahead);
            rig.xen
                .map_grant(DRIVER_DOMAIN, GrantRef(gref), true)
                .unwrap()
        })
        .collect();
    rig.host.close();
    rig.follow_backend();
    assert_eq!(rig.device().grants_waiting(), 65 + 2, "and the rings");
    assert_eq!(rig.connect(), Ok(()));
    rig.host.poll();
    rig.netback().send(Frame::plain(pattern(60, 0)));
    rig.host.poll();
    assert_eq!(rig.look().len(), 1);
    assert_eq!(rig.device().violation(), None);
    drop(kept);
}

#[test]
fn a_sent_page_that_stays_mapped_is_out_of_circulation_until_it_is_not() {
    let mut rig = Rig::new(BackendFeatures::linux());
    let before = rig.inventory();
    assert_eq!(rig.connect(), Ok(()));
    rig.host.poll();
    let payload = rig.slices(&pattern(3000, 1), 3000);
    rig.transmit(
        &tcp4_header(),
        &payload,
        TxOffload::Tso {
            mss_bytes: 1448,
            version: IpVersion::V4,
        },
        1,
    )
    .unwrap();
    let gref = rig.pool.tx_gref(payload[0].page.index()).unwrap();
    let mapping = rig.xen.map_grant(DRIVER_DOMAIN, gref, false).unwrap();
    rig.flush();
    rig.settle();
    rig.host.close();
    rig.follow_backend();
    let index = payload[0].page.index();
    assert!(rig.pool.is_held(index));

    // On the next connection the page cannot be sent, but is not lost to its user either.
    assert_eq!(rig.connect(), Ok(()));
    let offload = TxOffload::None;
    let part = [PageSlice {
        end: 1000,
        ..payload[0].clone()
    }];
    assert_eq!(
        rig.transmit(&tcp4_header(), &part, offload, 1),
        Err(TxError::Full)
    );
    assert_eq!(rig.statistics().tx_no_buffer, 1);
    drop((payload, part));
    while let Some(page) = rig.device().alloc_page() {
        assert_ne!(page.index(), index);
        core::mem::forget(page.clone());
    }
    drop(mapping);
    rig.now_us += RETRY_US;
    rig.flush();
    assert!(!rig.pool.is_held(index));
    assert_eq!(rig.pool.tx_gref(index), None);
    assert_eq!(rig.device().grants_waiting(), 0);
    rig.host.close();
    rig.follow_backend();
    rig.now_us += RETRY_US;
    rig.flush();
    assert_eq!(rig.inventory().grefs, before.grefs);
}

#[test]
fn a_ring_that_changes_while_it_is_read() {
    let mut frames = 0;
    for seed in 1..=30 {
        frames += race(seed);
    }
    assert!(
        frames > 0,
        "the device stops at once, and races with nobody"
    );
}

/// Ends the other thread, lest a failed assertion wait for it for ever.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Receives while another thread writes to the rings at random, until the device has had enough;
/// returns how many frames that took.
fn race(seed: u64) -> usize {
    let mut rig = Rig::linux();
    rig.in_flight();
    let ring_pages: Vec<usize> = ["tx-ring-ref", "rx-ring-ref"]
        .map(|key| {
            let path = alloc::format!("/local/domain/1/device/vif/0/{key}");
            let gref = GrantRef(rig.store.read(path).unwrap().parse().unwrap());
            let mapping = rig.xen.map_grant(DRIVER_DOMAIN, gref, true).unwrap();
            mapping.page().addr().get()
        })
        .into();
    let stop = AtomicBool::new(false);
    let mut frames = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = seed << 32 | 0x4f6c_dd1d;
            while !stop.load(Ordering::Relaxed) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let page = ring_pages[(random >> 20) as usize % 2];
                // Not the indices: the device would stop at the first look.
                let word = index::SLOTS + (random >> 32) as usize % (1024 - index::SLOTS);
                let address = core::ptr::with_exposed_provenance_mut::<u32>(page + word * 4);
                // SAFETY: the ring pages live as long as the rig, and are accessed by atomics.
                unsafe { AtomicU32::from_ptr(address) }.store(random as u32, Ordering::Relaxed);
            }
        });
        let _stop = StopOnDrop(&stop);
        for round in 0..500 {
            // A frame as it should be, unless the other thread makes something else of it.
            rig.rx_data(0, wire::RxFlags::empty(), 60);
            if round % 7 == 0 {
                rig.complete();
            }
            frames += rig.look().len();
            if rig.device().violation().is_some() {
                assert!(!rig.device().link_up());
                assert!(rig.receive_all().is_empty());
                break;
            }
        }
    });
    rig.assert_free_pages_are_ours();
    frames
}

/// What a hostile backend does next.
#[derive(Clone, Debug)]
enum Step {
    PokeTx {
        word: usize,
        value: u32,
    },
    PokeRx {
        word: usize,
        value: u32,
    },
    RxData {
        offset: u16,
        flags: u16,
        status: i16,
    },
    RxExtra {
        kind: u8,
        more: bool,
        size: u16,
        gso_type: u8,
    },
    TxResponse {
        id: u16,
        status: i16,
    },
    Map {
        ahead: usize,
    },
    Unmap,
    Send,
    Look,
    Time,
}

fn step() -> impl Strategy<Value = Step> {
    let word = || prop_oneof![0usize..16, 0usize..1024];
    let value = || prop_oneof![0u32..300, any::<u32>()];
    let status = || prop_oneof![Just(0i16), Just(1), Just(-1), 0i16..=4096, any::<i16>()];
    prop_oneof![
        1 => (word(), value()).prop_map(|(word, value)| Step::PokeTx { word, value }),
        1 => (word(), value()).prop_map(|(word, value)| Step::PokeRx { word, value }),
        6 => (prop_oneof![Just(0u16), any::<u16>()], 0u16..16, status())
            .prop_map(|(offset, flags, status)| Step::RxData { offset, flags, status }),
        3 => (0u8..6, any::<bool>(), any::<u16>(), 0u8..4).prop_map(
            |(kind, more, size, gso_type)| Step::RxExtra { kind, more, size, gso_type }
        ),
        3 => (0u16..300, status()).prop_map(|(id, status)| Step::TxResponse { id, status }),
        2 => (0usize..256).prop_map(|ahead| Step::Map { ahead }),
        1 => Just(Step::Unmap),
        3 => Just(Step::Send),
        4 => Just(Step::Look),
        1 => Just(Step::Time),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn whatever_a_backend_writes_no_memory_of_others_is_touched(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut rig = Rig::new(BackendFeatures::linux());
        let before = rig.inventory();
        prop_assert_eq!(rig.connect(), Ok(()));
        let mut mapped = Vec::new();
        let mut frames = Vec::new();
        for step in steps {
            match step {
                Step::PokeTx { word, value } => rig.netback().rings().tx.poke(word, value),
                Step::PokeRx { word, value } => rig.netback().rings().rx.poke(word, value),
                Step::RxData { offset, flags, status } => {
                    rig.rx_data(offset, wire::RxFlags::from_bits_retain(flags), status);
                }
                Step::RxExtra { kind, more, size, gso_type } => {
                    rig.rx_extra(kind, more, size, gso_type);
                }
                Step::TxResponse { id, status } => rig.tx_response(id, status),
                Step::Map { ahead } => {
                    let [_, gref] = rig.netback().rings().rx.peek(ahead);
                    mapped.extend(rig.xen.map_grant(DRIVER_DOMAIN, GrantRef(gref), true));
                }
                Step::Unmap => mapped.clear(),
                Step::Send => {
                    let len = 1400.min(rig.pool.available());
                    let payload = rig.slices(&pattern(len, 1), 1400);
                    let _ = rig.transmit(&tcp4_header(), &payload, TxOffload::Checksum, 1);
                }
                Step::Look => {
                    frames.extend(rig.look());
                    for frame in &frames {
                        prop_assert!(frame.slices.len() <= MAX_RX_SLICES);
                        prop_assert_eq!(bytes(frame).len(), frame.len());
                    }
                    rig.assert_free_pages_are_ours();
                    // Nor are the pages of frames that were handed up.
                    for mapping in rig.writable() {
                        prop_assert!(frames
                            .iter()
                            .flat_map(|frame| &frame.slices)
                            .all(|slice| slice.page.gfn() != mapping.gfn()));
                    }
                    if frames.len() > 4 {
                        frames.clear();
                    }
                }
                Step::Time => rig.now_us += RETRY_US,
            }
        }
        // However it was, everything comes back once the backend is gone.
        frames.clear();
        mapped.clear();
        rig.host.close();
        rig.follow_backend();
        rig.now_us += RETRY_US;
        rig.flush();
        prop_assert_eq!(rig.inventory(), before);
    }
}
