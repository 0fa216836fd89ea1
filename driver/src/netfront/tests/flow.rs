use super::*;
use proptest::prelude::*;

/// Sends, and returns what the backend got.
fn send_one(
    rig: &mut Rig,
    header: &[u8],
    payload: &[PageSlice],
    offload: TxOffload,
) -> Result<Frame, TxError> {
    rig.transmit(header, payload, offload, 1)?;
    rig.flush();
    rig.host.poll();
    Ok(rig.netback().next_sent().expect("the frame arrives"))
}

fn joined(header: &[u8], payload: &[PageSlice]) -> Vec<u8> {
    let pieces = payload.iter().flat_map(|slice| slice.bytes().iter());
    header.iter().chain(pieces).copied().collect()
}

#[test]
fn a_frame_of_a_header_alone_is_answered_at_once() {
    let mut rig = Rig::linux();
    let frame = send_one(&mut rig, &pattern(128, 1), &[], TxOffload::None).unwrap();
    assert_eq!(frame, Frame::plain(pattern(128, 1)));
    assert_eq!(rig.netback().mapped(), 0);
    rig.complete();
    assert_eq!(rig.device().tx_room(), 256);
    assert!(rig.completions.is_empty(), "there was no payload");
}

#[test]
fn a_small_payload_joins_the_header_and_is_credited() {
    let mut rig = Rig::linux();
    let payload = rig.slices(&pattern(62, 1), 20);
    let header = tcp4_header();
    let frame = send_one(&mut rig, &header, &payload, TxOffload::Checksum).unwrap();
    assert_eq!(frame.bytes, joined(&header, &payload));
    assert!(frame.csum_blank && frame.data_validated);
    assert_eq!(rig.netback().mapped(), 0);
    rig.complete();
    assert_eq!(
        rig.completions,
        [Completion {
            owner: 1,
            bytes: 62,
            held_us: 0
        }]
    );
}

#[test]
fn payload_is_mapped_where_it_is_and_credited_slot_by_slot() {
    let mut rig = Rig::linux();
    let before = rig.inventory();
    let payload = rig.slices(&pattern(10_000, 1), 4096);
    let header = tcp4_header();
    let offload = TxOffload::Tso {
        mss_bytes: 1448,
        version: IpVersion::V4,
    };
    let frame = send_one(&mut rig, &header, &payload, offload).unwrap();
    assert_eq!(frame.bytes, joined(&header, &payload));
    assert_eq!(frame.gso, Some((1448, 1)));
    assert_eq!(rig.netback().mapped(), 3);
    rig.complete();
    assert_eq!(rig.completions, []);
    drop(payload);
    // The last slot first.
    for (bytes, held_us) in [(10_000 - 8192, 100), (4096, 200), (4096, 300)] {
        rig.now_us += 100;
        rig.host.complete(1, |mapped| mapped - 1);
        rig.complete();
        let owner = 1;
        let last = rig.completions.last().copied();
        assert_eq!(
            last,
            Some(Completion {
                owner,
                bytes,
                held_us
            })
        );
    }
    assert_eq!(rig.device().tx_room(), 256);
    let after = rig.inventory();
    assert_eq!(after.pages, before.pages);
    assert_eq!(before.grefs - after.grefs, 3, "the pages stay granted");
}

#[test]
fn a_page_is_granted_once_for_all_the_slots_that_use_it() {
    let mut rig = Rig::linux();
    let payload = rig.slices(&pattern(4096, 1), 4096);
    let parts: Vec<_> = (0..16)
        .map(|part| PageSlice {
            page: payload[0].page.clone(),
            start: part * 256,
            end: part * 256 + 256,
        })
        .collect();
    let grefs = rig.inventory().grefs;
    let header = tcp6_header();
    let offload = TxOffload::Tso {
        mss_bytes: 1000,
        version: IpVersion::V6,
    };
    let frame = send_one(&mut rig, &header, &parts, offload).unwrap();
    assert_eq!(frame.bytes, joined(&header, &payload));
    assert_eq!(frame.gso, Some((1000, 2)));
    assert_eq!(grefs - rig.inventory().grefs, 1);
    rig.settle();
    let again = send_one(&mut rig, &header, &parts[3..5], TxOffload::None);
    assert!(again.is_ok());
    assert_eq!(grefs - rig.inventory().grefs, 1);
}

#[test]
fn a_large_segment_takes_scatter_gather() {
    let mut rig = Rig::qemu();
    rig.device().features.tso4 = true;
    let payload = rig.slices(&pattern(8000, 1), 4096);
    let offload = TxOffload::Tso {
        mss_bytes: 1448,
        version: IpVersion::V4,
    };
    let refused = rig.transmit(&tcp4_header(), &payload, offload, 1);
    assert_eq!(refused, Err(TxError::Unsendable));
}

#[test]
fn what_breaks_a_limit_is_refused_for_good() {
    let mut rig = Rig::linux();
    let header = tcp4_header();
    let tso = |mss_bytes, version| TxOffload::Tso { mss_bytes, version };
    let full = rig.slices(&pattern(17 * 4096, 1), 4096);
    let small = rig.slices(&pattern(18 * 8, 1), 8);
    let medium = rig.slices(&pattern(1449, 1), 1449);
    let mut empty = medium.clone();
    empty[0].end = 0;
    let mut outside = rig.slices(&pattern(100, 1), 100);
    outside[0].end = 101;
    let cases: [(&str, &[u8], &[PageSlice], TxOffload); 10] = [
        ("short header", &header[..13], &[], TxOffload::None),
        ("long header", &[0; 129], &[], TxOffload::None),
        ("beyond 64 KiB", &header, &full, tso(1448, IpVersion::V4)),
        ("18 slices", &header, &small, TxOffload::None),
        ("beyond the MTU", &header, &medium, TxOffload::None),
        ("beyond the MTU", &header, &medium, TxOffload::Checksum),
        ("no segment size", &header, &medium, tso(0, IpVersion::V4)),
        (
            "other IP version",
            &header,
            &medium,
            tso(1448, IpVersion::V6),
        ),
        ("empty slice", &header, &empty, TxOffload::None),
        ("unwritten bytes", &header, &outside, TxOffload::None),
    ];
    for (name, header, payload, offload) in cases {
        let result = rig.transmit(header, payload, offload, 1);
        assert_eq!(result, Err(TxError::Unsendable), "{name}");
    }
    // A page of another pool's has no grant of this device's.
    let other = Rig::new(BackendFeatures::linux());
    let mut page = other.pool.alloc().unwrap();
    page.commit(100);
    let foreign = PageSlice {
        page,
        start: 0,
        end: 100,
    };
    let result = rig.transmit(&header, &[foreign], TxOffload::None, 1);
    assert_eq!(result, Err(TxError::Unsendable));
    assert_eq!(rig.statistics().tx_unsendable, 11);
    assert_eq!(rig.device().tx_room(), 256);
}

#[test]
fn the_longest_frame_has_65_535_bytes() {
    let mut rig = Rig::linux();
    let header = tcp4_header();
    let payload = rig.slices(&pattern(65_535 - header.len(), 5), 4096);
    let offload = TxOffload::Tso {
        mss_bytes: 1448,
        version: IpVersion::V4,
    };
    let frame = send_one(&mut rig, &header, &payload, offload).unwrap();
    assert_eq!(frame.bytes.len(), 65_535);
    assert_eq!(frame.bytes, joined(&header, &payload));
}

#[test]
fn a_full_ring_is_back_pressure() {
    let mut rig = Rig::linux();
    let mut payload = rig.slices(&pattern(1400, 2), 1400);
    let header = tcp4_header();
    let mut sent = 0;
    while rig.transmit(&header, &payload, TxOffload::None, 3) == Ok(()) {
        payload = rig.slices(&pattern(1400, 2), 1400);
        sent += 1;
    }
    assert_eq!(sent, 128);
    assert_eq!(rig.device().tx_room(), 0);
    rig.flush();
    rig.host.poll();
    // The headers are answered already, the payload is mapped.
    rig.complete();
    assert_eq!(rig.device().tx_room(), 128);
    for _ in 0..64 {
        rig.transmit(&header, &payload, TxOffload::None, 3).unwrap();
    }
    let refused = rig.transmit(&header, &payload, TxOffload::None, 3);
    assert_eq!(refused, Err(TxError::Full));
    rig.settle();
    let bytes: u32 = rig.completions.iter().map(|done| done.bytes).sum();
    assert_eq!(bytes, (128 + 64) * 1400);
    assert_eq!(rig.device().tx_room(), 256);
    assert_eq!(rig.statistics().tx_full, 2);
}

/// Each mapping of a grant counts in eight bits of Xen's, so that the backend cannot map a page
/// that is in too many slots.
#[test]
fn one_page_in_all_slots_is_never_dropped() {
    let mut rig = Rig::linux();
    let page = rig.slices(&pattern(4096, 3), 4096);
    let payload: Vec<_> = (0..15).map(|_| page[0].clone()).collect();
    let header = tcp4_header();
    let offload = TxOffload::Tso {
        mss_bytes: 1448,
        version: IpVersion::V4,
    };
    let mut sent = 0;
    for _ in 0..4 {
        while rig.transmit(&header, &payload, offload, 1) == Ok(()) {
            sent += 1;
            rig.flush();
            rig.host.poll();
        }
        assert!(
            rig.device().tx_room() > 17,
            "it is not the ring that is full"
        );
        rig.settle();
    }
    assert!(sent >= 4 * 8, "{sent} frames of 16 data slots each");
    assert_eq!(rig.statistics().tx_errors, 0);
    for _ in 0..sent {
        let frame = rig.netback().next_sent().expect("every frame arrives");
        assert_eq!(frame.bytes, joined(&header, &payload));
    }
}

#[test]
fn one_burst_is_one_event() {
    let mut rig = Rig::linux();
    rig.host.take_sends();
    let payload = rig.slices(&pattern(1400, 2), 1400);
    for _ in 0..20 {
        rig.transmit(&tcp4_header(), &payload, TxOffload::None, 3)
            .unwrap();
    }
    rig.flush();
    assert_eq!(rig.host.take_sends(), [1, 0]);
    rig.flush();
    assert_eq!(rig.host.take_sends(), [0, 0]);
}

#[test]
fn events_for_responses_come_at_half_or_at_once_when_blocked() {
    let mut rig = Rig::linux();
    let payload = rig.slices(&pattern(1400, 2), 1400);
    for _ in 0..16 {
        rig.transmit(&tcp4_header(), &payload, TxOffload::None, 3)
            .unwrap();
    }
    rig.flush();
    rig.host.poll();
    rig.complete();
    // 16 headers are answered, 16 slots of payload are not.
    assert!(!rig.device().arm());
    for answered in 1..=8 {
        assert!(!rig.host.complete(1, |_| 0).tx, "after {answered}");
    }
    assert!(rig.host.complete(1, |_| 0).tx);
    assert_eq!(rig.device().poll_within_us(), Some(TX_POLL_US));
    rig.complete();
    assert_eq!(rig.device().tx_room(), 256 - 7);
}

#[test]
fn a_refused_frame_has_an_event_when_it_fits() {
    let mut rig = Rig::linux();
    let payload = rig.slices(&pattern(1400, 2), 350);
    // 5 slots each, of which 4 are mapped.
    let send = |rig: &mut Rig| rig.transmit(&tcp4_header(), &payload, TxOffload::None, 3);
    while send(&mut rig) == Ok(()) {}
    rig.flush();
    rig.host.poll();
    rig.complete();
    while send(&mut rig) == Ok(()) {}
    rig.flush();
    let raised = rig.host.poll();
    assert!(!raised.tx, "no event was asked for");
    rig.complete();
    for _ in 0..3 {
        while send(&mut rig) == Ok(()) {}
        rig.flush();
        rig.host.poll();
        rig.complete();
        assert_eq!(send(&mut rig), Err(TxError::Full));
        let missing = 5 - rig.device().tx_room();
        assert!(!rig.device().arm());
        for _ in 1..missing {
            assert!(!rig.host.complete(1, |_| 0).tx);
        }
        assert!(rig.host.complete(1, |_| 0).tx, "after {missing} slots");
        assert!(rig.device().arm(), "arming now is too late");
        rig.complete();
        assert_eq!(send(&mut rig), Ok(()));
    }
}

#[test]
fn idling_is_free_of_races() {
    let mut rig = Rig::linux();
    assert!(!rig.device().arm());
    rig.netback().send(Frame::plain(pattern(60, 0)));
    assert!(rig.host.poll().rx, "the frame raises an event");
    assert_eq!(rig.receive_all().len(), 1);
    // A frame that comes between the last look and the arming.
    rig.netback().send(Frame::plain(pattern(60, 0)));
    assert!(!rig.host.poll().rx);
    assert!(rig.device().arm());
    assert_eq!(rig.receive_all().len(), 1);
    assert!(!rig.device().arm());
}

#[test]
fn events_reach_the_guest_on_the_channel_of_their_ring() {
    let mut rig = Rig::linux();
    let mut seen = Vec::new();
    assert!(!rig.device().arm());
    rig.netback().send(Frame::plain(pattern(60, 0)));
    rig.host.poll();
    rig.events.dispatch(|port| seen.push(port));
    let frontend = "/local/domain/1/device/vif/0";
    let port = rig
        .store
        .read(alloc::format!("{frontend}/event-channel-rx"));
    assert_eq!(seen, [EventPort(port.unwrap().parse().unwrap())]);
}

#[test]
fn large_segments_arrive_in_pages() {
    let mut rig = Rig::linux();
    for (frame, segment_bytes) in [
        (large_segment(tcp4_header(), 60_000, (1448, 1)), Some(1448)),
        (large_segment(tcp6_header(), 65_400, (1428, 2)), Some(1428)),
        (Frame::plain(pattern(4096, 9)), None),
        (Frame::plain(pattern(4097, 9)), None),
    ] {
        rig.netback().send(frame.clone());
        rig.host.poll();
        let frames = rig.receive_all();
        assert_eq!(frames.len(), 1);
        assert_eq!(bytes(&frames[0]), frame.bytes);
        assert_eq!(frames[0].segment_bytes, segment_bytes);
        assert_eq!(frames[0].checksum_good, frame.csum_blank);
        assert_eq!(frames[0].slices.len(), frame.bytes.len().div_ceil(4096));
        assert!(frames[0].slices.iter().all(|slice| !slice.page.is_writer()));
        rig.flush();
        assert_eq!(rig.device().rx_posted(), 256);
    }
    let statistics = rig.statistics();
    assert_eq!(statistics.rx_gso_packets, 2);
    assert_eq!(statistics.rx_packets, 4);
}

#[test]
fn segments_whose_headers_are_not_what_the_backend_says_are_dropped() {
    let mut rig = Rig::linux();
    let mut wrong = Vec::new();
    wrong.push(large_segment(tcp4_header(), 3000, (1448, 2)));
    wrong.push(large_segment(tcp6_header(), 3000, (1448, 1)));
    for (at, value) in [
        (14, 0x44),
        (14, 0x65),
        (23, 17),
        (46, 0x40),
        (46, 0xf0),
        (12, 0x81),
    ] {
        let mut frame = large_segment(tcp4_header(), 30, (1448, 1));
        frame.bytes[at] = value;
        frame.bytes.truncate(66);
        wrong.push(frame);
    }
    let count = wrong.len() as u64;
    for frame in wrong {
        rig.netback().send(frame);
    }
    rig.netback().send(Frame::plain(pattern(13, 0)));
    rig.host.poll();
    assert!(rig.receive_all().is_empty());
    let statistics = rig.statistics();
    assert_eq!(statistics.rx_gso_mismatch, count);
    assert_eq!(statistics.rx_length_errors, 1);
    assert!(rig.device().link_up());
}

#[test]
fn qemu_s_backend_gets_one_slot_a_frame() {
    let mut rig = Rig::qemu();
    let header = tcp4_header();
    let payload = rig.slices(&pattern(1448, 2), 700);
    let frame = send_one(&mut rig, &header, &payload, TxOffload::Checksum).unwrap();
    assert_eq!(frame.bytes, joined(&header, &payload));
    rig.complete();
    let credited: u32 = rig.completions.iter().map(|done| done.bytes).sum();
    assert_eq!(credited, 1448);
    let tso = TxOffload::Tso {
        mss_bytes: 1448,
        version: IpVersion::V4,
    };
    assert_eq!(
        rig.transmit(&header, &payload, tso, 1),
        Err(TxError::Unsendable)
    );
    let mut header6 = tcp6_header();
    header6.truncate(80);
    assert_eq!(
        rig.transmit(&header6, &payload, TxOffload::Checksum, 1),
        Err(TxError::Unsendable)
    );
    rig.netback().send(Frame::plain(pattern(1514, 4)));
    rig.host.poll();
    let frames = rig.receive_all();
    assert_eq!(bytes(&frames[0]), pattern(1514, 4));
    assert_eq!(frames[0].slices[0].start, 2);
    assert!(!frames[0].checksum_good);
}

#[test]
fn a_frame_whose_rest_is_still_to_come_waits() {
    let mut rig = Rig::linux();
    let frame = large_segment(tcp4_header(), 9000, (1448, 1));
    rig.netback().send(frame.clone());
    // The backend writes all, and shows it piece by piece.
    let shown = rig.netback().rings().rx.rsp_prod();
    rig.host.poll();
    for piece in 1..=3 {
        rig.netback().rings().rx.poke_rsp_prod(shown + piece);
        assert!(rig.receive_all().is_empty());
        rig.flush();
        assert!(!rig.device().arm());
    }
    rig.netback().rings().rx.poke_rsp_prod(shown + 4);
    let frames = rig.receive_all();
    assert_eq!(bytes(&frames[0]), frame.bytes);
}

#[test]
fn pages_that_the_ring_is_about_to_need_are_left_to_it() {
    let mut rig = Rig::with_pool(BackendFeatures::linux(), 320);
    assert_eq!(rig.connect(), Ok(()));
    for _ in 0..40 {
        rig.netback().send(Frame::plain(pattern(1514, 0)));
    }
    rig.host.poll();
    let kept = rig.receive_all();
    assert_eq!(kept.len(), 40);
    // 320 less rings and arena and what is posted.
    assert_eq!(rig.pool.available(), 320 - 10 - 256);
    assert!(
        rig.device().alloc_page().is_none(),
        "40 and 19 are spoken for"
    );
    rig.flush();
    assert_eq!(rig.device().rx_posted(), 256);
    drop(kept);
    assert!(rig.device().alloc_page().is_some());
}

#[test]
fn a_reader_that_keeps_pages_does_not_starve_the_ring() {
    let mut rig = Rig::with_pool(BackendFeatures::linux(), 320);
    assert_eq!(rig.connect(), Ok(()));
    let mut kept = Vec::new();
    // Transmission leaves the pages alone that the ring needs.
    let mut pages = Vec::new();
    while let Some(page) = rig.device().alloc_page() {
        pages.push(page);
    }
    // A quarter of what rings do not need is left, too.
    let spare = (320 - OPEN_PAGES) / 4;
    assert_eq!(rig.pool.available(), RX_SLOTS_MIN + spare);
    assert_eq!(rig.device().supply(), Supply::Scarce);
    for _ in 0..100 {
        for _ in 0..8 {
            rig.netback().send(Frame::plain(pattern(1514, 0)));
        }
        rig.host.poll();
        kept.extend(rig.receive_all());
        rig.flush();
        rig.host.poll();
        assert!(rig.device().rx_posted() >= RX_SLOTS_MIN);
        assert!(rig.device().alloc_page().is_none());
    }
    assert_eq!(kept.len(), 256 + spare);
    assert_eq!(rig.device().supply(), Supply::Spent);
    let statistics = rig.statistics();
    assert_eq!(statistics.rx_no_buffer, (800 - kept.len()) as u64);
    assert!(statistics.rx_refill_failures > 0);
    assert_eq!(rig.device().poll_within_us(), Some(RETRY_US));
    // Even now the longest frame comes through, to be dropped.
    rig.netback()
        .send(large_segment(tcp4_header(), 65_000, (1448, 1)));
    rig.host.poll();
    assert_eq!(rig.netback().queued(), 0);
    drop(rig.receive_all());
    kept.clear();
    pages.clear();
    rig.flush();
    assert_eq!(rig.device().rx_posted(), 256);
    rig.netback().send(Frame::plain(pattern(1514, 0)));
    rig.host.poll();
    assert_eq!(rig.receive_all().len(), 1);
}

#[test]
fn more_pages_than_grant_references() {
    // 504 references, of which the rings need 266.
    let mut rig = Rig::with_tables(BackendFeatures::linux(), 2048, 1);
    let before = rig.inventory();
    assert_eq!(rig.connect(), Ok(()));
    // Payload that waits keeps the pages from being used over and over.
    let mut waiting = std::collections::VecDeque::new();
    for round in 0..600 {
        let payload = rig.slices(&pattern(1200, round), 400);
        waiting.push_back(payload);
        if waiting.len() < 250 {
            continue;
        }
        let payload = waiting.pop_front().unwrap();
        let frame = send_one(&mut rig, &tcp4_header(), &payload, TxOffload::None);
        assert_eq!(frame.unwrap().bytes[66..], pattern(1200, round - 249));
        rig.netback().send(Frame::plain(pattern(1514, round)));
        rig.settle();
        assert_eq!(rig.receive_all().len(), 1);
        rig.flush();
        assert_eq!(rig.device().rx_posted(), 256);
    }
    // All references in use by frames on the ring: to be tried again.
    let mut refused = None;
    while let Some(payload) = waiting.pop_front() {
        refused = rig
            .transmit(&tcp4_header(), &payload, TxOffload::None, 1)
            .err();
        if refused.is_some() {
            break;
        }
        rig.flush();
        rig.host.poll();
        rig.complete();
    }
    assert_eq!(refused, Some(TxError::Full));
    assert!(rig.statistics().tx_no_buffer > 0);
    assert_eq!(rig.device().rx_posted(), 256);
    rig.settle();
    while rig.netback().next_sent().is_some() {}
    let payload = waiting.pop_front().unwrap();
    assert!(send_one(&mut rig, &tcp4_header(), &payload, TxOffload::None).is_ok());
    drop(payload);
    waiting.clear();
    rig.settle();
    rig.host.close();
    rig.follow_backend();
    rig.now_us += RETRY_US;
    rig.flush();
    assert_eq!(rig.inventory(), before);
}

/// What a property test does next.
#[derive(Clone, Debug)]
enum Step {
    Send {
        len: usize,
        piece: usize,
        offload: u8,
    },
    Receive {
        len: usize,
        gso: bool,
    },
    Flush,
    Poll,
    Answer {
        count: usize,
        pick: usize,
    },
    Reap,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..65_400, 64usize..=4096, 0u8..3)
            .prop_map(|(len, piece, offload)| Step::Send { len, piece, offload }),
        2 => (0usize..1434, 1usize..1434, 0u8..2)
            .prop_map(|(len, piece, offload)| Step::Send { len, piece, offload }),
        4 => (1usize..65_400, any::<bool>()).prop_map(|(len, gso)| Step::Receive { len, gso }),
        2 => Just(Step::Flush),
        2 => Just(Step::Poll),
        2 => (1usize..64, any::<usize>()).prop_map(|(count, pick)| Step::Answer { count, pick }),
        2 => Just(Step::Reap),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_frames_arrive_whole_and_everything_comes_back(
        steps in prop::collection::vec(step(), 1..150),
        qemu in prop::bool::weighted(0.25),
    ) {
        let mut rig = if qemu { Rig::qemu() } else { Rig::linux() };
        let before = rig.inventory();
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        let mut owed = 0;
        for (seed, step) in steps.into_iter().enumerate() {
            match step {
                Step::Send { len, piece, offload } => {
                    let piece = piece.max(len.div_ceil(MAX_TX_SLICES));
                    if len > 0 && len.div_ceil(piece) + 300 > rig.pool.available() {
                        continue;
                    }
                    let payload = rig.slices(&pattern(len, seed), piece);
                    let header = tcp4_header();
                    let offload = match offload {
                        0 => TxOffload::None,
                        1 => TxOffload::Checksum,
                        _ => TxOffload::Tso { mss_bytes: 1448, version: IpVersion::V4 },
                    };
                    if rig.transmit(&header, &payload, offload, 77) == Ok(()) {
                        owed += len;
                        sent.push(joined(&header, &payload));
                    }
                }
                Step::Receive { len, gso } => {
                    let frame = if gso && !qemu {
                        large_segment(tcp4_header(), len, (1000, 1))
                    } else {
                        Frame::plain(pattern(14 + len % 1500, seed))
                    };
                    received.push(frame.clone());
                    rig.netback().send(frame);
                }
                Step::Flush => rig.flush(),
                Step::Poll => { rig.host.poll(); }
                Step::Answer { count, pick } => { rig.host.complete(count, |_| pick); }
                Step::Reap => {
                    rig.complete();
                    for frame in rig.receive_all() {
                        let expected = received.remove(0);
                        prop_assert_eq!(bytes(&frame), expected.bytes);
                        prop_assert_eq!(frame.segment_bytes, expected.gso.map(|(size, _)| size));
                        prop_assert_eq!(frame.checksum_good, expected.csum_blank);
                    }
                }
            }
            prop_assert_eq!(rig.device().violation(), None);
            prop_assert_eq!(rig.netback().fatal(), None);
        }
        for _ in 0..64 {
            rig.settle();
            for frame in rig.receive_all() {
                prop_assert_eq!(bytes(&frame), received.remove(0).bytes);
            }
        }
        prop_assert!(received.is_empty());
        let arrived: Vec<_> = core::iter::from_fn(|| rig.netback().next_sent())
            .map(|frame| frame.bytes)
            .collect();
        prop_assert_eq!(arrived, sent);
        prop_assert_eq!(rig.netback().errors(), 0);
        let credited: usize = rig.completions.iter().map(|done| done.bytes as usize).sum();
        prop_assert_eq!(credited, owed);
        prop_assert_eq!(rig.device().tx_room(), 256);
        prop_assert_eq!(rig.device().rx_posted(), 256);
        let idle = rig.inventory();
        prop_assert_eq!(idle.pages, before.pages);
        prop_assert_eq!(idle.mapped, before.mapped);
        rig.host.close();
        rig.follow_backend();
        rig.now_us += RETRY_US;
        rig.flush();
        let after = rig.inventory();
        prop_assert_eq!(after.pages, POOL_PAGES);
        prop_assert_eq!(after.grefs, GRANT_FRAMES * 512 - 8);
        prop_assert_eq!(after.mapped, 0);
    }
}
